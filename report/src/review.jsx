// A request: what the API server, its plugins, and the webhooks did with it. And a list of requests.
import { useMemo, useState } from "preact/hooks";
import { CLIENT, History } from "./blame.js";
import {
  Badge, Changes, Choice, Diff, Download, Mark, Pre, Search, Section, Table, Text, Title, Yaml, count, duration, matches, useLimit,
} from "./ui.jsx";
import { visible, yaml } from "./yaml.js";

const VERDICTS = {
  admitted: ["good", "admitted"],
  denied: ["bad", "denied"],
  undecided: ["bad", "rejected: a webhook failed"],
  unsupported: ["warn", "not supported by admit"],
  conditional: ["warn", "depends on webhooks with unknown responses"],
};

/** The sentence that the view of a request begins with. */
function headline({ decision, calls, policies = [] }) {
  const by = (...outcomes) => {
    const names = calls.filter((call) => outcomes.includes(call.outcome)).map((call) => call.webhook);
    return [...new Set(names)].join(", ");
  };
  const [denied, failed] = [by("denied"), by("failedClosed", "refused")];
  if (decision.verdict === "admitted") return "Admitted";
  if (decision.verdict === "conditional") return "Depends on webhooks with unknown responses";
  if (decision.verdict === "unsupported") return "Not supported by admit";
  if (decision.verdict === "undecided") return failed ? `Rejected, because ${failed} failed` : "Rejected, because a webhook failed";
  if (denied) return `Denied by ${denied}`;
  const policy = policies.find(({ outcome }) => outcome === "denied");
  if (policy && !failed) return `Denied by the policy ${policyName(policy)}`;
  return failed ? `Rejected, because ${failed} failed` : "Rejected by the API server";
}
const OUTCOMES = {
  allowed: ["good", "allowed"],
  denied: ["bad", "denied"],
  failedOpen: ["warn", "failed open"],
  failedClosed: ["bad", "failed closed"],
  refused: ["bad", "rejected by the server"],
  unknown: ["warn", "response unknown"],
};
const POLICY_OUTCOMES = {
  allowed: ["good", "allowed"],
  applied: ["good", "applied"],
  denied: ["bad", "denied"],
  notEnforced: ["warn", "not enforced"],
  skipped: ["none", "not applied"],
};

/** The name of a policy with its binding and param. */
function policyName({ policy, binding, param }) {
  const parts = [binding && `binding ${binding}`, param && `param ${param}`].filter(Boolean);
  return parts.length > 0 ? `${policy} (${parts.join(", ")})` : policy;
}

const PolicyOutcome = ({ policy }) => {
  const [tone, text] = POLICY_OUTCOMES[policy.outcome] ?? ["none", policy.outcome];
  return <><Mark tone={tone}>{text}</Mark>{policy.message && <>: <Text>{policy.message}</Text></>}</>;
};

const TESTS = {
  exempt: "exempt",
  namespaceSelector: "namespaceSelector",
  objectSelector: "objectSelector",
  rules: "rules",
  matchConditions: "match conditions",
  notReinvoked: "not reinvoked",
  error: "error",
};

export const Verdict = ({ verdict }) => {
  const [tone, text] = VERDICTS[verdict] ?? ["none", verdict];
  return <Mark tone={tone}>{text}</Mark>;
};

/** The tone and the words for a call: a call that changed the object stands out from one that only allowed it. */
function outcome(call) {
  const [tone, text] = OUTCOMES[call.outcome] ?? ["none", call.outcome];
  if (tone !== "good") return [tone, text];
  return call.changed ? ["note", `${text}, changed`] : ["good", text];
}

const Outcome = ({ call }) => {
  const [tone, text] = outcome(call);
  return <Mark tone={tone}>{text}</Mark>;
};

export function resource({ resource: { group, resource }, subresource }) {
  return `${resource}${group ? `.${group}` : ""}${subresource ? `/${subresource}` : ""}`;
}

export const objectName = ({ namespace, name }) => [namespace, name].filter(Boolean).join("/");

export const about = ({ request }) => `${request.operation} ${resource(request)} ${objectName(request)}`.trim();

const round = (number) => (number === 2 ? "second round" : "first round");

/** Returns who made a step, such as `sidecar.example.com` or `API server`. */
function actor(steps, by) {
  if (by === CLIENT) return "client";
  const step = steps[by];
  if (!step) return "unknown";
  const again = step.round === 2 ? ", second round" : "";
  if (step.by === "webhook") return `${step.name}${again}`;
  if (step.by === "policy") return `${policyName({ ...step, policy: step.name })}${again}`;
  if (step.by === "plugin") return `${step.name || "admission plugin"}${again}`;
  return step.by === "defaults" ? "defaults" : "API server";
}

const KINDS = { webhook: "mutating webhook", policy: "mutating admission policy", plugin: "admission plugin", defaults: "decoding and defaults of the API", server: "API server" };

/** Whether the step is one of a webhook or a policy, which the user configures. */
const isConfigured = (step) => ["webhook", "policy"].includes(step?.by);

/** The index of the color of an actor: the same webhook or policy has the same color in both rounds. */
function colors(steps) {
  const names = [];
  const of = (step) => [step.by, step.name, step.configuration, step.binding, step.param].join(" ");
  steps.filter(isConfigured).forEach((step) => names.includes(of(step)) || names.push(of(step)));
  return (by) => {
    if (by === CLIENT) return "client";
    const step = steps[by];
    if (!isConfigured(step)) return step?.by ?? "server";
    return `w${names.indexOf(of(step)) % 6}`;
  };
}

/** Returns where the history of the object starts: with the object that the client sent, or that the first webhook saw. */
function start(report) {
  const { request, calls } = report;
  if (!["CREATE", "UPDATE"].includes(request.operation)) return undefined;
  if (request.object && request.patch === undefined) return request.object;
  return calls.find((call) => call.type === "mutating" && call.request?.object)?.request.object;
}

export function Request({ report, base, focus }) {
  const { request, decision, calls, webhooks, warnings, steps, notes, recorded, cluster, auditAnnotations, conversions = [], policies = [] } = report;
  const history = useMemo(() => {
    const first = start(report);
    return first && new History(first, steps, report.object);
  }, [report]);
  const open = calls.filter((call) => call.outcome === "failedOpen");
  const skipped = webhooks.filter((webhook) => !webhook.called);
  const again = [...new Set([
    ...policies.filter((policy) => policy.round === 2).map(policyName),
    ...calls.filter((call) => call.round === 2).map((call) => call.webhook),
  ])];
  const changed = calls.filter((call) => call.changed).length;
  const made = calls.filter((call) => call.outcome !== "unknown");
  const sections = [
    ["timeline", "Timeline"],
    ["changes", "Changes"],
    ["object", "Object"],
    ["calls", "Calls"],
    ["skipped", "Not called"],
    ["audit", "Audit annotations"],
  ];
  return (
    <article>
      <Title focus={focus}><Text>{about(report)}</Text></Title>
      <p class="muted">
        <Text>{`by ${request.userInfo.username ?? "an unnamed user"}`}</Text>
        {request.userInfo.groups?.length > 0 && <Text>{` (${request.userInfo.groups.join(", ")})`}</Text>}
        {request.dryRun && ", dry run"}
        {recorded && <Text>{`, ${recorded.verb} at ${recorded.time}${recorded.userAgent ? ` from ${recorded.userAgent}` : ""}`}</Text>}
        {report.source.file && <Text>{`, ${report.source.file}:${report.source.line}`}</Text>}
      </p>
      <div class={`decision ${VERDICTS[decision.verdict]?.[0] ?? ""}`}>
        <p class="verdict"><Text>{headline(report)}</Text></p>
        <pre tabIndex={0} role="region" aria-label="The message, as kubectl prints it">
          {[decision.message, ...warnings.map((warning) => `Warning: ${warning}`)].map(visible).join("\n")}
        </pre>
        <ul class="facts">
          <li>
            {decision.condition ? "Decided" : `HTTP ${decision.code}`} after {duration(report.durationMs)}: {count(made.length, "call")} of {count(new Set(made.map((call) => `${call.configuration}/${call.webhook}`)).size, "webhook")},{" "}
            {changed === 1 ? "1 call changed" : `${changed} calls changed`} the object, {count(skipped.length, "webhook")} not called
          </li>
          {again.length > 0 && (
            <li>
              Reinvoked, because a later webhook, policy, or plugin changed the object: <Text>{again.join(", ")}</Text>
            </li>
          )}
          {open.map((call) => (
            <li key={call.uid}>
              <Mark tone="warn">Failed open:</Mark> <Text>{`${call.webhook}: ${call.message}`}</Text>
            </li>
          ))}
          {decision.condition?.webhooks.map((webhook, index) => (
            <li key={index}>
              <Mark tone="warn">Response unknown:</Mark>{" "}
              <Text>{`${webhook.name} could ${[decision.condition.verdict === "admitted" && "reject the request", webhook.couldChange && "change the object"].filter(Boolean).join(" or ")}`}</Text>
            </li>
          ))}
          {decision.condition && <li>If these webhooks allow the request and do not change the object: <Text>{decision.condition.message}</Text></li>}
          {cluster?.unread.map((item, index) => (
            <li key={index}>
              <Mark tone="warn">Not read from the cluster:</Mark>{" "}
              <Text>{`${[item.resource, item.name].filter(Boolean).join(" ")}: ${item.uncertain}`}</Text>
            </li>
          ))}
          {notes.map((note, index) => <li key={index}><Text>{note}</Text></li>)}
        </ul>
      </div>
      <nav class="toc" aria-label="Sections">
        {sections.map(([id, text]) => <a key={id} href={`#${base}/${id}`}>{text}</a>)}
      </nav>
      <Section id="timeline" title="Timeline" base={base}
        note="Mutating webhooks are called one after another, validating webhooks in parallel. Steps of the API server are not timed.">
        <Timeline report={report} base={base} />
      </Section>
      <Section id="changes" title="Changes" base={base} note="What each step changed, field by field, in order.">
        <Steps steps={steps} history={history} />
      </Section>
      <Section id="object" title="Object" base={base}>
        <Blame report={report} history={history} />
      </Section>
      <Section id="calls" title="Calls" base={base} note="The review that each webhook received, and its response.">
        {calls.length === 0 && <p>No webhook was called.</p>}
        <Calls calls={calls} webhooks={webhooks} base={base} />
      </Section>
      <Section id="skipped" title="Not called" base={base}>
        <Skipped webhooks={webhooks} />
        <SkippedPolicies policies={policies.filter(({ outcome }) => outcome === "skipped")} />
      </Section>
      <Section id="audit" title="Audit annotations" base={base}>
        {Object.keys(auditAnnotations).length === 0 ? <p>The webhooks did not add audit annotations.</p> : (
          <Table caption="Audit annotations" columns={["Annotation", "Value"]}>
            <tbody>
              {Object.entries(auditAnnotations).map(([name, value]) => (
                <tr key={name}>
                  <th scope="row"><code><Text>{name}</Text></code></th>
                  <td><code class="block"><Text>{value}</Text></code></td>
                </tr>
              ))}
            </tbody>
          </Table>
        )}
      </Section>
      {conversions.length > 0 && (
        <Section id="conversions" title="Conversions" base={base}>
          <Table caption="Conversions" columns={["Definition", "Object", "From", "To", "Result", "Duration"]}>
            <tbody>
              {conversions.map((conversion, index) => (
                <tr key={index}>
                  <th scope="row"><Text>{conversion.definition}</Text></th>
                  <td><Text>{objectName(conversion)}</Text></td>
                  <td><Text>{conversion.from}</Text></td>
                  <td><Text>{conversion.to}</Text></td>
                  <td>{conversion.converted ? <Badge tone="good">converted</Badge> : <Badge tone="bad">failed</Badge>}{" "}
                    <Text>{conversion.message}</Text></td>
                  <td>{duration(conversion.durationMs)}</td>
                </tr>
              ))}
            </tbody>
          </Table>
        </Section>
      )}
      <p><Download name="report.json" value={report}>Download this report as JSON</Download></p>
    </article>
  );
}

/** Puts the steps of plugins between the calls of webhooks, in the order in which they happened. */
function timeline({ calls, steps, policies = [] }) {
  const groups = { mutating1: [], mutating2: [], validating: [], end: [] };
  const mutating = calls.filter((call) => call.type === "mutating");
  let position = 0;
  const take = (upTo) => {
    for (; position < upTo; position += 1) groups[`mutating${mutating[position].round}`].push({ call: mutating[position] });
  };
  steps.forEach((step) => {
    if (step.by === "webhook") {
      const at = mutating.findIndex((call, index) => index >= position && call.webhook === step.name &&
        call.configuration === step.configuration && call.round === step.round && call.changes.length > 0);
      if (at >= 0) take(at + 1);
    } else if (step.by === "server") {
      groups.end.push({ step });
    } else if (step.by !== "policy") {
      const isLast = position >= mutating.length && mutating.length > 0;
      groups[isLast ? `mutating${mutating.at(-1).round}` : `mutating${step.round}`].push({ step });
    }
  });
  take(mutating.length);
  groups.validating = calls.filter((call) => call.type === "validating")
    .sort((one, other) => one.startedMs - other.startedMs).map((call) => ({ call }));
  const applied = (phase, number) =>
    policies.filter((policy) => policy.type === phase && (policy.round ?? 1) === number && policy.outcome !== "skipped")
      .map((policy) => ({ policy, step: steps.find((step) => step.by === "policy" && step.name === policy.policy &&
        step.binding === policy.binding && step.param === policy.param && step.round === number) }));
  // Policies run after the plugins of a round, and before its webhooks.
  const withPolicies = (rows, number) => {
    const firstCall = rows.findIndex(({ call }) => call);
    const at = firstCall < 0 ? rows.length : firstCall;
    return [...rows.slice(0, at), ...applied("mutating", number), ...rows.slice(at)];
  };
  return [
    ["Mutation, first round", withPolicies(groups.mutating1, 1)],
    ["Mutation, second round (reinvocation)", withPolicies(groups.mutating2, 2)],
    ["Validating policies", applied("validating", 1)],
    ["Validation, in parallel", groups.validating],
    ["Storage", groups.end],
  ].filter(([, rows]) => rows.length > 0);
}

const LEGEND = [["good", "allowed"], ["note", "allowed, changed the object"], ["warn", "failed open, or response unknown"], ["bad", "denied or failed"]];

function Timeline({ report, base }) {
  const { calls, steps } = report;
  const end = Math.max(report.durationMs, ...calls.map((call) => call.startedMs + call.durationMs), 0.001);
  const rows = timeline(report);
  if (rows.length === 0) return <p>No webhook was called, no policy was applied, and no step changed the object.</p>;
  const at = (ms) => `${(Math.min(ms / end, 1) * 100).toFixed(2)}%`;
  return (
    <>
    <p class="legend">{LEGEND.map(([tone, text]) => <Mark key={tone} tone={tone}>{text}</Mark>)}</p>
    <Table caption="Timeline of the request" class="timeline"
      columns={["Step", "Result", ["Start", "number"], ["Duration", "number"], [<Axis end={end} />, "bars"]]}>
      {rows.map(([title, group]) => (
        <tbody key={title}>
          <tr class="group"><th scope="rowgroup" colSpan={5}>{title}</th></tr>
          {group.map(({ call, step, policy }, index) => policy ? (
            <tr key={index} class="in-tree">
              <th scope="row"><Text>{policyName(policy)}</Text></th>
              <td>
                <PolicyOutcome policy={policy} />
                {step && <>{" "}(<a href={`#${base}/step-${steps.indexOf(step)}`}>{count(step.changes.length, "field")}</a>)</>}
              </td>
              <td /><td /><td class="bars" />
            </tr>
          ) : call ? (
            <tr key={index}>
              <th scope="row"><a href={`#${base}/call-${calls.indexOf(call)}`}><Text>{call.webhook}</Text></a></th>
              <td><Outcome call={call} /></td>
              <td class="number">{duration(call.startedMs)}</td>
              <td class="number">{duration(call.durationMs)}</td>
              <td class="bars" aria-hidden="true">
                <svg width="100%" height="12" preserveAspectRatio="none">
                  <rect class={`bar ${outcome(call)[0]}`} x={at(call.startedMs)} y="0" height="12" rx="2"
                    width={at(Math.max(call.durationMs, end / 300))} />
                </svg>
              </td>
            </tr>
          ) : (
            <tr key={index} class="in-tree">
              <th scope="row"><Text>{step.name || KINDS[step.by]}</Text></th>
              <td><a href={`#${base}/step-${steps.indexOf(step)}`}>{`changed ${count(step.changes.length, "field")}`}</a></td>
              <td /><td /><td class="bars" />
            </tr>
          ))}
        </tbody>
      ))}
    </Table>
    </>
  );
}

const Axis = ({ end }) => (
  <span class="axis">
    <span>0</span>
    <span>{duration(end / 4)}</span>
    <span>{duration(end / 2)}</span>
    <span><span>{duration((end * 3) / 4)}</span><span>{duration(end)}</span></span>
  </span>
);

function Steps({ steps, history }) {
  if (steps.length === 0) return <p>No step changed the object.</p>;
  return steps.map((step, index) => (
    <details key={index} id={`step-${index}`} class="step" open={isConfigured(step)}>
      <summary>
        {index + 1}. <strong><Text>{actor(steps, index)}</Text></strong>{" "}
        <span class="muted">
          {KINDS[step.by]}{isConfigured(step) && `, ${round(step.round)}`}: {count(step.changes.length, "change")}
        </span>
      </summary>
      <Changes caption={`Changes by ${visible(actor(steps, index))}`} changes={step.changes} />
      {history?.isComplete && <ShowDiff before={history.states[index]} after={history.states[index + 1]} />}
    </details>
  ));
}

function ShowDiff({ before, after }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Difference of the object as YAML</summary>
      {isOpen && <Diff from={yaml(before.value)} to={yaml(after.value)} label="Difference of the object" />}
    </details>
  );
}

function Blame({ report, history }) {
  const { steps, object } = report;
  const [state, setState] = useState(String(steps.length));
  if (!history?.isComplete) {
    if (object === undefined) return <p>The request has no object.</p>;
    return (
      <>
        <p class="muted">The report does not contain the object that the client sent, so the page cannot tell who set each field.</p>
        <Yaml value={object} label="The object" />
      </>
    );
  }
  const options = history.states.map((_, index) => [
    String(index),
    index === 0 ? "as the client sent it" : `${index}. after ${visible(actor(steps, index - 1))}`,
  ]);
  const index = Number(state);
  const lines = history.states[index].lines;
  return (
    <>
      <p class="muted">The column on the left names who set each field last. Underlined names set a field that had another value before.</p>
      <Choice label="Show the object" value={state} options={options} onChange={setState} />
      <BlameLines key={state} lines={lines} steps={steps} current={index - 1} />
    </>
  );
}

function BlameLines({ lines, steps, current }) {
  const [shown, more] = useLimit(lines, 1000);
  const color = colors(steps);
  return (
    <>
      <Table caption="The object, and who set each field" columns={["Set by", "Field"]} class="blame">
        <tbody>
          {shown.map(({ text, by, before }, index) => {
            const isFirst = index === 0 || shown[index - 1].by !== by || before.length > 0;
            const name = visible(actor(steps, by));
            const past = before.map((it) => `${visible(actor(steps, it.by))}: ${visible(yaml(it.value)).slice(0, 300)}`);
            return (
              <tr key={index} class={by === current && by !== CLIENT ? "current" : ""}>
                <td class={`by ${color(by)}`}>
                  {before.length > 0 ? (
                    <details class="before">
                      <summary>{name}</summary>
                      {past.map((text, at) => <div key={at}>before: <code>{text}</code></div>)}
                    </details>
                  ) : <span class={isFirst ? "" : "hidden"}>{name}</span>}
                </td>
                <td><code>{visible(text)}</code></td>
              </tr>
            );
          })}
        </tbody>
      </Table>
      {more}
    </>
  );
}

function Calls({ calls, webhooks, base }) {
  const [shown, more] = useLimit(calls, 200);
  return (
    <>
      {shown.map((call, index) => {
        const is = ({ type, configuration, name }) =>
          type === call.type && configuration === call.configuration && name === call.webhook;
        const conditions = webhooks.find(is)?.conditions?.filter((condition) => condition.round === call.round) ?? [];
        return <Call key={index} call={call} conditions={conditions} index={index} base={base} />;
      })}
      {more}
    </>
  );
}

function Call({ call, conditions, index, base }) {
  const [isOpen, setOpen] = useState(false);
  const { patch, changes, auditAnnotations } = call;
  return (
    <details class="call" id={`call-${index}`} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong><Text>{call.webhook}</Text></strong>{" "}
        <span class="muted"><Text>{`${call.type}, ${call.type === "mutating" ? `${round(call.round)}, ` : ""}${call.configuration}, ${duration(call.durationMs)}`}</Text></span>{" "}
        <Outcome call={call} />
      </summary>
      {isOpen && (
        <div class="body">
          {call.message && <Pre label="The message">{call.message}</Pre>}
          {call.hint && <p><strong>Hint:</strong> <Text>{call.hint}</Text></p>}
          {call.notes?.map((note, at) => <p key={at}><strong>Note:</strong> <Text>{note}</Text></p>)}
          {call.errorBody && <Pre label="The start of the response">{call.errorBody}</Pre>}
          {call.httpStatus && <p>HTTP status {call.httpStatus}, uid <code>{visible(call.uid)}</code></p>}
          {call.warnings.length > 0 && (
            <><h3>Warnings</h3><ul>{call.warnings.map((warning, at) => <li key={at}><Text>{warning}</Text></li>)}</ul></>
          )}
          {Object.keys(auditAnnotations).length > 0 && (
            <><h3>Audit annotations</h3><Yaml value={auditAnnotations} label="Audit annotations" /></>
          )}
          <Conditions conditions={conditions} />
          {changes.length > 0 && <><h3>Changes</h3><Changes caption="Changes by this call" changes={changes} /></>}
          <div class="columns">
            <div>
              <h3>Review</h3>
              {call.request === undefined ? <Missing /> : <Yaml value={call.request} label="The request of the review" />}
            </div>
            <div>
              <h3>Response</h3>
              {call.response === undefined
                ? call.httpStatus ? <Missing /> : <p class="muted">{call.outcome === "unknown" ? "The webhook was not called." : "The webhook did not respond."}</p>
                : <Yaml value={call.response} label="The response" />}
              {patch && <><h4>Decoded patch</h4><Yaml value={patch} label="The decoded patch" /></>}
            </div>
          </div>
          <p><a href={`#${base}/timeline`}>Back to the timeline</a></p>
        </div>
      )}
    </details>
  );
}

const Missing = () => (
  <p class="muted">
    Not in this report. <code>admit review --show-reviews</code> includes reviews and responses. Records do not contain
    responses, and responses about Secrets and tokens require <code>--show-secrets</code>.
  </p>
);

/** Combines entries that are the same in both rounds. */
function combined(entries) {
  const all = new Map();
  for (const { round: number, ...entry } of entries) {
    const text = JSON.stringify(entry);
    all.set(text, { ...entry, rounds: all.has(text) ? "both rounds" : round(number) });
  }
  return [...all.values()];
}

function Conditions({ conditions }) {
  return conditions.map((condition, index) => (
    <div key={index}>
      <Badge>match condition</Badge> <code><Text>{`${condition.name}: ${condition.expression}`}</Text></code>{" "}
      {condition.error ? <Badge tone="bad"><Text>{condition.error}</Text></Badge>
        : <Badge tone={condition.value ? "good" : "warn"}>{String(condition.value)}</Badge>}{" "}
      <span class="muted">cost {condition.cost.toLocaleString("en-US")}</span>
    </div>
  ));
}

function SkippedPolicies({ policies }) {
  if (policies.length === 0) return null;
  return (
    <Table caption="Policies that were not applied" columns={["Policy", "Reason"]}>
      <tbody>
        {policies.map((policy, index) => (
          <tr key={index}>
            <th scope="row"><Text>{policyName(policy)}</Text></th>
            <td><Text>{policy.message}</Text></td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Skipped({ webhooks }) {
  const [search, setSearch] = useState("");
  const rows = webhooks.filter((webhook) => webhook.skipped.length > 0 || !webhook.called);
  const found = rows.filter((webhook) =>
    matches(search, webhook.name, webhook.configuration, ...webhook.skipped.map((skipped) => `${skipped.test} ${skipped.reason}`)));
  if (rows.length === 0) return <p>Every webhook was called.</p>;
  const never = found.filter((webhook) => !webhook.called);
  const once = found.filter((webhook) => webhook.called);
  return (
    <>
      {rows.length > 10 && <div class="filters"><Search label="Filter webhooks" value={search} onInput={setSearch} /></div>}
      <SkippedTable caption="Webhooks that were not called" webhooks={never} />
      {once.length > 0 && (
        <>
          <h3>Called, but not in both rounds</h3>
          <SkippedTable caption="Webhooks that were not called in both rounds" webhooks={once} />
        </>
      )}
    </>
  );
}

export function SkippedTable({ caption, webhooks, title = "Webhook" }) {
  const [shown, more] = useLimit(webhooks, 200);
  if (webhooks.length === 0) return null;
  return (
    <>
      <Table caption={caption} columns={[title, "Type", "Why"]} class="skipped">
        <tbody>
          {shown.map((webhook, index) => (
            <tr key={index}>
              <th scope="row"><Text>{webhook.name}</Text><br /><span class="muted"><Text>{webhook.configuration}</Text></span></th>
              <td>{webhook.type}</td>
              <td>
                {combined(webhook.skipped).map((skipped, at) => (
                  <div key={at}>
                    <Badge>{TESTS[skipped.test] ?? skipped.test}</Badge>{" "}
                    <Text>{skipped.reason}</Text>{webhook.type === "mutating" && <span class="muted">{` (${skipped.rounds})`}</span>}
                    <Compared lines={(skipped.compared ?? []).filter((line) => !skipped.reason.includes(line))} />
                  </div>
                ))}
                {webhook.skipped.length === 0 && <Badge>{webhook.considered ? "not called" : "not reached: the request ended before"}</Badge>}
                {!webhook.called && <Conditions conditions={combined(webhook.conditions ?? [])} />}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
      {more}
    </>
  );
}

const Compared = ({ lines }) => lines.length > 0 && (
  <ul>{lines.map((line, index) => <li key={index}><code><Text>{line}</Text></code></li>)}</ul>
);

const SLOW = 1000;

/** A list of requests with filters. `number` returns the number of a request in its address. */
export function Requests({ requests, name, base, focus, number = (_report, index) => index, children }) {
  const [search, setSearch] = useState("");
  const [show, setShow] = useState("all");
  const rows = useMemo(() => requests.map((report, index) => ({ report, index })), [requests]);
  const tests = {
    all: () => true,
    rejected: ({ report }) => !report.decision.allowed,
    open: ({ report }) => report.calls.some((call) => call.outcome === "failedOpen"),
    reinvoked: ({ report }) => [...report.calls, ...(report.policies ?? [])].some(({ round }) => round === 2),
    slow: ({ report }) => report.durationMs >= SLOW,
  };
  const found = rows.filter((row) => tests[show](row) &&
    matches(search, about(row.report), row.report.request.userInfo.username ?? "", row.report.decision.message,
      ...row.report.calls.map((call) => call.webhook)));
  const [shown, more] = useLimit(found, 300);
  return (
    <article>
      <Title focus={focus}>{count(requests.length, "request")}</Title>
      {name !== "admit review" && <p class="muted"><Text>{name}</Text></p>}
      {children}
      <div class="filters">
        <Search label="Filter" value={search} onInput={setSearch} />
        <Choice label="Show" value={show} onChange={setShow} options={[
          ["all", "all requests"], ["rejected", "requests that were not admitted"], ["open", "requests with webhooks that failed open"],
          ["reinvoked", "requests with a reinvocation"], ["slow", "requests that took a second or longer"],
        ]} />
        <p role="status">{count(found.length, "request")}</p>
      </div>
      <Table caption="Requests" columns={["#", "Request", "User", "Decision", "Webhooks called", ["Duration", "number"]]}>
        <tbody>
          {shown.map(({ report, index }) => (
            <tr key={number(report, index)}>
              <td>{report.recorded?.number ?? index + 1}</td>
              <th scope="row"><a href={`#${base}/${number(report, index)}`}><Text>{about(report)}</Text></a></th>
              <td><Text>{report.request.userInfo.username}</Text></td>
              <td><Verdict verdict={report.decision.verdict} /></td>
              <td><Text>{[...new Set(report.calls.map((call) => call.webhook))].join(", ")}</Text></td>
              <td class="number">{duration(report.durationMs)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
      {more}
      <Section id="totals" title="Webhooks" base={base}><Totals requests={requests} /></Section>
    </article>
  );
}

function Totals({ requests }) {
  const totals = useMemo(() => {
    const all = new Map();
    for (const call of requests.flatMap((report) => report.calls).filter((call) => call.outcome !== "unknown")) {
      const name = `${call.configuration}/${call.webhook}`;
      const total = all.get(name) ?? { name, type: call.type, calls: 0, changed: 0, denied: 0, failed: 0, times: [] };
      total.calls += 1;
      total.changed += call.changed;
      total.denied += call.outcome === "denied";
      total.failed += ["failedOpen", "failedClosed", "refused"].includes(call.outcome);
      total.times.push(call.durationMs);
      all.set(name, total);
    }
    const list = [...all.values()];
    list.forEach((total) => total.times.sort((a, b) => a - b));
    return list.sort((one, other) => other.times.at(-1) - one.times.at(-1));
  }, [requests]);
  return (
    <Table caption="Webhooks, slowest first" columns={["Webhook", "Type", ...["Calls", "Changed", "Denied", "Failed", "Median", "Longest"].map((name) => [name, "number"])]}>
      <tbody>
        {totals.map((total) => (
          <tr key={total.name}>
            <th scope="row"><Text>{total.name}</Text></th>
            <td>{total.type}</td>
            <td class="number">{total.calls}</td><td class="number">{total.changed}</td>
            <td class="number">{total.denied}</td><td class="number">{total.failed}</td>
            <td class="number">{duration(total.times[Math.floor(total.times.length / 2)])}</td>
            <td class="number">{duration(total.times.at(-1))}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
