// The configurations of a running server, and which webhooks it would call for a request.
import { useEffect, useState } from "preact/hooks";
import { SkippedTable } from "./review.jsx";
import { call } from "./stream.js";
import { Choice, Section, Table, Text, Title, Yaml, count } from "./ui.jsx";

const OPERATIONS = ["CREATE", "UPDATE", "DELETE"].map((name) => [name, name]);

const EXAMPLE = `apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
spec:
  containers:
  - name: web
    image: nginx:1.27
`;

export function Webhooks({ token, focus }) {
  return (
    <article>
      <Title focus={focus}>Webhooks and policies</Title>
      <Section id="question" title="Would a webhook be called?"
        note="The server decides for each webhook as for a request, but calls none. The object is the one before any plugin, policy, or webhook changes it.">
        <Question token={token} />
      </Section>
      <Section id="configurations" title="Configurations" note="The webhook configurations, policies, and bindings, as the server stores them.">
        <Configurations token={token} />
      </Section>
    </article>
  );
}

function Question({ token }) {
  const [question, setQuestion] = useState({ operation: "CREATE", object: EXAMPLE, user: "", groups: "" });
  const [answer, setAnswer] = useState();
  const [error, setError] = useState();
  const set = (name) => (value) => setQuestion({ ...question, [name]: value });
  const field = (name) => (event) => set(name)(event.currentTarget.value);
  const ask = async (event) => {
    event.preventDefault();
    const groups = question.groups.split(/[\s,]+/).filter(Boolean);
    try {
      setAnswer(await call(token, "question", { ...question, user: question.user.trim(), groups }));
      setError(undefined);
    } catch (error) {
      setAnswer(undefined);
      setError(error.message);
    }
  };
  return (
    <>
      <form onSubmit={ask} class="question">
        <label for="object">Object, as YAML or JSON</label>
        <textarea id="object" rows="10" spellcheck={false} value={question.object} onInput={field("object")} />
        <div class="filters">
          <Choice label="Operation" value={question.operation} options={OPERATIONS} onChange={set("operation")} />
          <label class="field">User <input value={question.user} placeholder="kubernetes-admin" onInput={field("user")} /></label>
          <label class="field">Groups <input value={question.user ? question.groups : ""} disabled={!question.user} placeholder={question.user ? "" : "system:masters"} onInput={field("groups")} /></label>
          <button type="submit">Ask</button>
        </div>
      </form>
      {error && <p role="alert"><Text>{error}</Text></p>}
      {answer && <Answer webhooks={answer.webhooks} />}
    </>
  );
}

function Answer({ webhooks }) {
  const called = webhooks.filter((webhook) => webhook.called);
  return (
    <>
      <p role="status">{`${called.length} of ${count(webhooks.length, "webhook")} would be called`}</p>
      {called.length > 0 && (
        <Table caption="Webhooks that would be called" columns={["Would be called", "Type", "Failure policy"]} class="called">
          <tbody>
            {called.map((webhook, index) => (
              <tr key={index}>
                <th scope="row"><Text>{webhook.name}</Text><br /><span class="muted"><Text>{webhook.configuration}</Text></span></th>
                <td>{webhook.type}</td>
                <td>{webhook.failurePolicy}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      <SkippedTable caption="Webhooks that would not be called" title="Would not be called" webhooks={webhooks.filter((webhook) => !webhook.called)} />
    </>
  );
}

function Configurations({ token }) {
  const [objects, setObjects] = useState();
  const [error, setError] = useState();
  const load = () => call(token, "configurations").then(
      (objects) => {
        setObjects(objects);
        setError(undefined);
      },
      (error) => setError(error.message),
    );
  useEffect(() => {
    load();
  }, []);
  return (
    <>
      {error && <p role="alert"><Text>{error}</Text></p>}
      {objects?.length === 0 && <p>The server has no webhook configurations and no policies.</p>}
      {objects?.map((object) => (
        <details key={object.metadata.uid}>
          <summary><strong><Text>{object.metadata.name}</Text></strong> <span class="muted"><Text>{object.kind}</Text></span></summary>
          <Yaml value={object} label={object.metadata.name} />
        </details>
      ))}
      <p><button type="button" onClick={load}>Load again</button></p>
    </>
  );
}
