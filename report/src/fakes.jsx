// The fakes that the server was started with, and their behaviors, which the user can change.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./stream.js";
import { Badge, Pre, Text, Title, count } from "./ui.jsx";
import { yaml } from "./yaml.js";

/** Loads the fakes of the server, again after each change of `received`. Undefined until they are loaded. */
export function useFakes(token, received) {
  const [fakes, setFakes] = useState();
  const changes = useRef(0);
  const change = (fakes) => {
    changes.current += 1;
    setFakes(fakes);
  };
  useEffect(() => {
    // A response from before a change is outdated. The list of requests shows whether the server can be reached.
    const before = changes.current;
    call(token, "fakes").then((fakes) => changes.current === before && setFakes(fakes), () => {});
  }, [received]);
  return [fakes, change];
}

export function Fakes({ token, fakes, onChange, focus }) {
  return (
    <article>
      <Title focus={focus}>{count(fakes.length, "fake")}</Title>
      <p class="muted">A new behavior applies to new calls until the server ends. The fakes file does not change.</p>
      {fakes.map((fake) => <Fake key={fake.name} token={token} fake={fake} onChange={onChange} />)}
    </article>
  );
}

function Fake({ token, fake, onChange }) {
  const current = yaml(fake.behavior);
  // Undefined while the text is the behavior of the server.
  const [draft, setDraft] = useState();
  const [error, setError] = useState();
  const [status, setStatus] = useState("");
  const text = draft ?? current;
  const edit = (event) => {
    setDraft(event.currentTarget.value);
    setStatus("");
  };
  const discard = () => {
    setDraft(undefined);
    setError(undefined);
  };
  const submit = async (event) => {
    event.preventDefault();
    try {
      onChange(await call(token, "fakes", { name: fake.name, behavior: text }));
      discard();
      setStatus("The behavior was changed");
    } catch (error) {
      setError(error.message);
      setStatus("");
    }
  };
  return (
    <section class="fake" aria-label={fake.name}>
      <h2><Text>{fake.name}</Text></h2>
      <p class="about"><Badge>{fake.type}</Badge> <code><Text>{fake.url}</Text></code> <span>{count(fake.calls, "call")}</span></p>
      <form onSubmit={submit} class="question">
        <label>Behavior <span class="hidden">of <Text>{fake.name}</Text></span>
          <textarea rows={Math.min(Math.max(text.split("\n").length, 2), 20)} spellcheck={false} value={text} onInput={edit} />
        </label>
        <div class="filters">
          <button type="submit" disabled={draft === undefined}>Change behavior</button>
          {draft !== undefined && <button type="button" onClick={discard}>Discard changes</button>}
          <span role="status">{status}</span>
        </div>
      </form>
      {error && <div role="alert"><Pre label="Error">{error}</Pre></div>}
    </section>
  );
}
