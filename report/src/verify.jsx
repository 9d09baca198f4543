// A verification: the verdict on each webhook, the findings, and the results of all checks.
import { useMemo, useState } from "preact/hooks";
import {
  Badge, Changes, Choice, Download, Prose, SEVERITY, Search, Section, Severity, Table, Text, Title, Yaml, count, matches, useLimit,
} from "./ui.jsx";
import { Order } from "./order.jsx";
import { visible } from "./yaml.js";

const OUTCOMES = { good: "good", bad: "bad", unknown: "warn" };
const RESULTS = {
  found: ["bad", "✗", "has findings"],
  passed: ["good", "✓", "passed"],
  notChecked: ["warn", "?", "not checked"],
  notExercised: ["warn", "○", "not exercised"],
  notApplicable: ["none", "–", "does not apply"],
};
const ORDER = ["error", "warning", "note"];

/** The number of webhooks that the matrix shows at once. */
const MAX_COLUMNS = 25;

export function Verification({ report, verdicts, base, focus }) {
  const findings = useMemo(() => {
    const all = report.checks.flatMap((check) => check.findings.map((finding) => ({ check, finding })));
    return all.sort((one, other) => ORDER.indexOf(one.finding.severity) - ORDER.indexOf(other.finding.severity));
  }, [report]);
  const sections = [
    ["verdicts", "Verdicts"], ["remarks", "Warnings and notes"], ["findings", "Findings"], ["denials", "Denials"],
    ...(report.interactions?.length > 0 ? [["order", "Order"]] : []), ["results", "All results"],
  ];
  return (
    <article>
      <Title focus={focus}>Verification of {count(verdicts.length, "webhook")}</Title>
      <p class="muted">
        {count(report.objects, "object")}, {count(report.calls, "call")}
        {report.shard && `, shard ${report.shard.index} of ${report.shard.count}`}
        {report.interrupted && ", interrupted before it finished"}
      </p>
      <nav class="toc" aria-label="Sections">
        {sections.map(([id, text]) => <a key={id} href={`#${base}/${id}`}>{text}</a>)}
      </nav>
      <Section id="verdicts" title="Verdicts" base={base}><Verdicts report={report} verdicts={verdicts} /></Section>
      <Section id="remarks" title="Warnings and notes" base={base}><Remarks remarks={report.remarks ?? []} /></Section>
      <Section id="findings" title="Findings" base={base}>
        <Findings findings={findings} webhooks={verdicts.map((verdict) => verdict.webhook)} />
      </Section>
      <Section id="denials" title="Denials" base={base}><Denials webhooks={report.webhooks ?? {}} /></Section>
      {report.interactions?.length > 0 && (
        <Section id="order" title="Order" base={base}><Order interactions={report.interactions} /></Section>
      )}
      <Section id="results" title="All results" base={base}><Matrix report={report} verdicts={verdicts} /></Section>
    </article>
  );
}

function Verdicts({ report, verdicts }) {
  const [shown, more] = useLimit(verdicts, 200);
  const worst = (findings) => SEVERITY[ORDER.find((severity) => findings.includes(severity))] ?? "none";
  const tally = (findings) => ORDER.map((severity) => [severity, findings.filter((found) => found === severity).length]);
  return (
    <>
      <Table caption="Verdicts" columns={["Webhook", "Verdict", "Findings", ["Calls", "number"], ["Patches", "number"], "Address"]}>
        <tbody>
          {shown.map(({ webhook, words, outcome, findings }) => {
            const tried = report.webhooks?.[webhook];
            return (
              <tr key={webhook}>
                <th scope="row"><Text>{webhook}</Text></th>
                <td><Badge tone={words ? OUTCOMES[outcome] : worst(findings)}><Text>{words || "see the findings"}</Text></Badge></td>
                <td>
                  {tally(findings).filter(([, number]) => number > 0).map(([severity, number]) => (
                    <><Badge key={severity} tone={SEVERITY[severity]}>{count(number, severity)}</Badge>{" "}</>
                  ))}
                  {findings.length === 0 && <span class="muted">none</span>}
                </td>
                <td class="number">{tried?.called.toLocaleString("en-US")}</td>
                <td class="number">{tried?.patched.toLocaleString("en-US")}</td>
                <td><Text>{report.addresses?.[webhook]}</Text></td>
              </tr>
            );
          })}
        </tbody>
      </Table>
      {more}
    </>
  );
}

function Findings({ findings, webhooks }) {
  const [search, setSearch] = useState("");
  const [severity, setSeverity] = useState("all");
  const [webhook, setWebhook] = useState("all");
  const found = findings.filter(({ check, finding }) =>
    (severity === "all" || finding.severity === severity) &&
    (webhook === "all" || webhook in finding.webhooks) &&
    matches(search, check.id, check.title, finding.kind, finding.message, ...Object.keys(finding.webhooks)));
  const [shown, more] = useLimit(found, 50);
  if (findings.length === 0) return <p>No findings.</p>;
  return (
    <>
      <div class="filters">
        <Search label="Filter" value={search} onInput={setSearch} />
        <Choice label="Severity" value={severity} onChange={setSeverity}
          options={[["all", "all"], ...ORDER.map((name) => [name, name])]} />
        <Choice label="Webhook" value={webhook} onChange={setWebhook}
          options={[["all", "all"], ...webhooks.map((name) => [name, visible(name)])]} />
        <p role="status">{count(found.length, "finding")}</p>
      </div>
      {shown.map(({ check, finding }) => (
        <Finding key={`${check.id} ${findings.findIndex((it) => it.finding === finding)}`} check={check} finding={finding} />
      ))}
      {more}
    </>
  );
}

/** Groups the consequences of a finding by check and by the reason in the baseline. */
function byCheck(consequences) {
  const groups = new Map();
  for (const consequence of consequences) {
    const key = JSON.stringify([consequence.check, consequence.accepted]);
    groups.set(key, [...(groups.get(key) ?? []), consequence]);
  }
  return [...groups.values()];
}

const link = (page) => (/^https:\/\//.test(page ?? "") ? page : undefined);

function Finding({ check, finding }) {
  const { differences, steps } = finding;
  const webhooks = Object.keys(finding.webhooks);
  const hidden = Object.values(finding.webhooks).reduce((sum, number) => sum + number, 0) - finding.examples.length;
  const objects = finding.examples.join(", ") + (hidden > 0 ? ` and ${hidden.toLocaleString("en-US")} more` : "");
  const help = finding.help ?? check.help;
  return (
    <section class={`finding ${SEVERITY[finding.severity]}`} aria-label={`${check.id}: ${visible(finding.message)}`}>
      <h3>
        <Severity severity={finding.severity} />{" "}
        {link(check.page) ? <a href={link(check.page)} rel="noreferrer">{check.id}</a> : check.id} <Text>{finding.message}</Text>
      </h3>
      <p class="muted"><Text>{check.title}</Text></p>
      <dl>
        <dt>Webhooks</dt><dd><Text>{webhooks.join(", ")}</Text></dd>
        {finding.examples.length > 0 && <><dt>Objects</dt><dd><Text>{objects}</Text></dd></>}
        {finding.fields?.length > 0 && <><dt>Fields</dt><dd><Text>{finding.fields.join(", ")}</Text></dd></>}
        {finding.request && <><dt>Request</dt><dd><Text>{finding.request}</Text></dd></>}
        {help && <><dt>What to change</dt><dd><Prose>{help}</Prose></dd></>}
        {finding.accepted && <><dt>Accepted</dt><dd><Text>{finding.accepted}</Text></dd></>}
        {finding.proof && <><dt>Proof</dt><dd><code><Text>{finding.proof}</Text></code></dd></>}
        {finding.consequences?.length > 0 && (
          <>
            <dt>Also fails</dt>
            <dd><ul>{byCheck(finding.consequences).map(([first, ...others]) => (
              <li key={`${first.check} ${first.accepted}`}>
                {first.check} <Text>{first.message}</Text>{others.length > 0 && ` and ${count(others.length, "similar finding")}`}
                {first.accepted && <> (accepted: <Text>{first.accepted}</Text>)</>}
              </li>
            ))}</ul></dd>
          </>
        )}
      </dl>
      {differences.length > 0 && (
        <Changes caption="Differences" from="Expected" to="Found" classes={["ins", "del"]}
          changes={differences.map(({ path, expected, found }) => ({
            path, ...(expected !== undefined && { from: expected }), ...(found !== undefined && { to: found }),
          }))} />
      )}
      <details><summary>Why it matters</summary><p><Text>{finding.why ?? check.why}</Text></p>
        <p class="muted"><Text>{`Source: ${check.source}`}</Text></p></details>
      {finding.object !== undefined && (
        <Lazy summary="The smallest object that shows it"><Yaml value={finding.object} label="The smallest object" /></Lazy>
      )}
      {steps.length > 0 && (
        <Lazy summary={`The reviews that show it: ${count(steps.length, "call")}`}>
          {steps.map((step, index) => (
            <div key={index}>
              <h4><Text>{`${index + 1}. ${step.webhook}`}</Text>{step.foreign && " (a fake of admit)"}{step.status && `, HTTP ${step.status}`}</h4>
              <div class="columns">
                <div><h5>Review</h5><Yaml value={step.review} label="The review" /></div>
                <div><h5>Response</h5><Yaml value={step.reply} label="The response" /></div>
              </div>
            </div>
          ))}
        </Lazy>
      )}
      <p><Download name={`${check.id}-${finding.kind.replace(/\W+/g, "-")}.json`} value={{ check: check.id, ...finding }}>
        Download the proof as JSON
      </Download></p>
    </section>
  );
}

/** Details whose content is created when the user opens them. */
function Lazy({ summary, children }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children}
    </details>
  );
}

const reasons = (map) => Object.entries(map ?? {}).map(([reason, times]) => (times > 1 ? `${reason} (${times} times)` : reason));

/** Says what a result means. The texts of a report end without a period. */
function explain(result) {
  return [outcome(result), ...(result.notes ?? [])].join(". ");
}

function outcome(result) {
  if (result.verdict === "passed") {
    const unclear = reasons(result.notChecked).map((reason) => `not checked: ${reason}`);
    return [`passed for ${count(result.held, "object")}`, ...unclear].join("; ");
  }
  const why = reasons(["notChecked", "notExercised", "notApplicable"].includes(result.verdict) ? result[result.verdict] ?? {} : {});
  return [RESULTS[result.verdict]?.[2] ?? result.verdict, ...why].join(": ");
}

const FILTERS = [
  ["applicable", "that apply to a webhook"], ["found", "with findings"], ["passed", "that passed"],
  ["notChecked", "that could not be checked"],
  ["notExercised", "that were not exercised"], ["all", "all"],
];

/** Returns whether a filter of the matrix includes a check. */
function includes(filter, { results, skipped }) {
  if (filter === "all") return true;
  if (filter === "applicable") return skipped || results.some((result) => result.verdict !== "notApplicable");
  return results.some((result) => result.verdict === filter);
}

function Matrix({ report, verdicts }) {
  const [search, setSearch] = useState("");
  const [show, setShow] = useState("applicable");
  const [chosen, setChosen] = useState({});
  const webhooks = useMemo(() => [...new Set([
    ...verdicts.map((verdict) => verdict.webhook),
    ...report.checks.flatMap((check) => check.results.map((result) => result.webhook)),
  ])], [report]);
  const columns = webhooks.filter((name) => matches(search, name)).slice(0, MAX_COLUMNS);
  const table = useMemo(() => report.checks.map((check) => ({
    check, results: new Map(check.results.map((result) => [result.webhook, result])),
  })), [report]);
  const rows = table.filter(({ check }) => includes(show, check));
  return (
    <>
      <div class="filters">
        <Choice label="Checks" value={show} onChange={setShow} options={FILTERS} />
        {webhooks.length > MAX_COLUMNS && (
          <>
            <Search label="Webhooks" value={search} onInput={setSearch} />
            <p role="status">{`${columns.length} of ${count(webhooks.length, "webhook")}`}</p>
          </>
        )}
      </div>
      <p class="legend">
        {Object.entries(RESULTS).map(([name, [tone, sign, text]]) => <span key={name}><Badge tone={tone}>{sign}</Badge> {text}</span>)}
        <span>Select a result to see why.</span>
      </p>
      <Table caption="Results of all checks" columns={["Check", ...columns.map((name) => visible(name))]} class="matrix">
        <tbody>
          {rows.map(({ check, results }) => [
            <tr key={check.id}>
              <th scope="row">
                {link(check.page) ? <a href={link(check.page)} rel="noreferrer">{check.id}</a> : check.id} <Text>{check.title}</Text>
                {check.skipped && <><br /><span class="muted"><Text>{`skipped: ${check.skipped}`}</Text></span></>}
              </th>
              {columns.map((name) => {
                const result = results.get(name);
                if (!result) return <td key={name} />;
                const [tone, sign, text] = RESULTS[result.verdict] ?? ["none", "", result.verdict];
                return (
                  <td key={name}>
                    <button type="button" class={`badge ${tone}`} aria-label={`${check.id} ${visible(name)}: ${text}`}
                      aria-expanded={chosen.id === check.id && chosen.webhook === name}
                      onClick={() => setChosen(chosen.id === check.id && chosen.webhook === name ? {} : { id: check.id, webhook: name })}>
                      {sign}
                    </button>
                  </td>
                );
              })}
            </tr>,
            chosen.id === check.id && results.has(chosen.webhook) && (
              <tr key={`${check.id} detail`}>
                <td colSpan={columns.length + 1} class="result" role="status">
                  <strong><Text>{chosen.webhook}</Text></strong>: <Text>{explain(results.get(chosen.webhook))}</Text>
                </td>
              </tr>
            ),
          ])}
        </tbody>
      </Table>
    </>
  );
}

/** The warnings and notes about the run as a whole. */
function Remarks({ remarks }) {
  if (remarks.length === 0) return <p>None.</p>;
  return (
    <Table caption="Warnings and notes" columns={["Severity", "Warning or note"]}>
      <tbody>
        {remarks.map(({ severity, message, help = [] }, index) => (
          <tr key={index}>
            <th scope="row"><Severity severity={severity} /></th>
            <td>
              <Text>{message}</Text>
              {help.map((text) => <p key={text} class="muted"><strong>What to do:</strong> <Prose>{text}</Prose></p>)}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** The reasons of the denials, the most frequent first. */
function Denials({ webhooks }) {
  const rows = Object.entries(webhooks).flatMap(([webhook, { denied = {}, objects }]) =>
    Object.entries(denied).sort(([, one], [, other]) => other - one)
      .map(([reason, number]) => [webhook, `${number.toLocaleString("en-US")} of ${count(objects ?? 0, "object")}`, reason]));
  const [shown, more] = useLimit(rows, 50);
  if (rows.length === 0) return <p>No webhook denied an object.</p>;
  return (
    <>
      <Table caption="Denials" columns={["Webhook", "Denied", "Reason"]}>
        <tbody>
          {shown.map(([webhook, number, reason], index) => (
            <tr key={index}><th scope="row"><Text>{webhook}</Text></th><td>{number}</td><td><Text>{reason}</Text></td></tr>
          ))}
        </tbody>
      </Table>
      {more}
    </>
  );
}
