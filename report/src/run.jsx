// A run of features: features, rules, scenarios, and steps.
import { useMemo, useState } from "preact/hooks";
import { Badge, Diff, Pre, Search, Sign, Table, Text, Title, count, duration, matches, useLimit } from "./ui.jsx";
import { visible } from "./yaml.js";

const STATUS = {
  passed: ["good", "passed"],
  failed: ["bad", "failed"],
  skipped: ["none", "skipped"],
  notRun: ["none", "not run"],
  notReached: ["none", "not reached"],
};

const Status = ({ status }) => {
  const [tone, text] = STATUS[status] ?? ["none", status];
  return <Sign tone={tone}>{text}</Sign>;
};

export function Run({ report, focus }) {
  const [search, setSearch] = useState("");
  const [hidden, setHidden] = useState([]);
  const { counts } = report;
  const all = useMemo(() => report.features.flatMap((feature, at) => [
    ...feature.scenarios.map((scenario) => ({ feature, at, rule: null, scenario })),
    ...feature.rules.flatMap((rule) => rule.scenarios.map((scenario) => ({ feature, at, rule, scenario }))),
  ]), [report]);
  const statuses = [...new Set(all.map(({ scenario }) => scenario.status))].sort();
  const found = all.filter(({ feature, rule, scenario }) => !hidden.includes(scenario.status) &&
    matches(search, feature.name, feature.path, rule?.name ?? "", scenario.name, ...scenario.tags.map((tag) => `@${tag}`),
      ...scenario.attempts.flatMap((attempt) => attempt.steps.map((step) => step.text))));
  const features = report.features
    .map((feature, at) => ({ feature, at, scenarios: found.filter((it) => it.at === at) }))
    .filter(({ scenarios }) => scenarios.length > 0);
  const toggle = (status) => setHidden(hidden.includes(status) ? hidden.filter((it) => it !== status) : [...hidden, status]);
  return (
    <article>
      <Title focus={focus}>{count(all.length, "scenario")} in {count(report.features.length, "feature")}</Title>
      <p>
        <Badge tone="good">{counts.passed} passed</Badge> <Badge tone={counts.failed ? "bad" : "none"}>{counts.failed} failed</Badge>{" "}
        {counts.flaky > 0 && <><Badge tone="warn">{counts.flaky} flaky</Badge>{" "}</>}
        {counts.unsupported > 0 && <><Badge tone="warn">{counts.unsupported} not supported</Badge>{" "}</>}
        {counts.skipped > 0 && <><Badge>{counts.skipped} skipped</Badge>{" "}</>}
        {counts.notRun > 0 && <><Badge>{counts.notRun} not run</Badge>{" "}</>}
        <span class="muted"><Text>{`on target ${report.target}, ${duration(report.seconds * 1000)}, admit ${report.admit}`}</Text></span>
      </p>
      {report.warnings?.map((warning, at) => (
        <p key={at} class="warning"><Badge tone="warn">warning</Badge> <Text>{warning}</Text></p>
      ))}
      <div class="filters">
        <Search label="Filter" value={search} onInput={setSearch} />
        <fieldset>
          <legend>Status</legend>
          {statuses.map((status) => (
            <label key={status}>
              <input type="checkbox" checked={!hidden.includes(status)} onChange={() => toggle(status)} /> {STATUS[status]?.[1] ?? status}
            </label>
          ))}
        </fieldset>
        <p role="status">{count(found.length, "scenario")}</p>
      </div>
      {features.map(({ feature, at, scenarios }) => (
        <Feature key={at} feature={feature} scenarios={scenarios} isOpen={features.length <= 3 || search !== ""} />
      ))}
    </article>
  );
}

function Feature({ feature, scenarios, isOpen }) {
  const failed = scenarios.filter(({ scenario }) => scenario.status === "failed").length;
  const [toggled, setToggled] = useState(null);
  const opens = toggled ?? (isOpen || failed > 0);
  const [shown, more] = useLimit(scenarios, 100);
  const rules = [];
  for (const it of shown) {
    if (rules.at(-1)?.rule !== it.rule) rules.push({ rule: it.rule, scenarios: [] });
    rules.at(-1).scenarios.push(it.scenario);
  }
  return (
    <details class="feature" open={opens} onToggle={(event) => event.currentTarget.open !== opens && setToggled(event.currentTarget.open)}>
      <summary>
        <h2><Text>{feature.name}</Text></h2>{" "}
        <span class="muted"><Text>{feature.path}</Text>, {count(scenarios.length, "scenario")}</span>{" "}
        {failed > 0 && <Badge tone="bad">{failed} failed</Badge>}
      </summary>
      {opens && rules.map(({ rule, scenarios }, index) => (
        <div key={index} class="rule">
          {rule && <h3><Text>{`Rule: ${rule.name}`}</Text></h3>}
          {scenarios.map((scenario) => <Scenario key={scenario.line} scenario={scenario} path={feature.path} />)}
        </div>
      ))}
      {opens && more}
    </details>
  );
}

function Scenario({ scenario, path }) {
  const [isOpen, setOpen] = useState(scenario.status === "failed");
  const { attempts } = scenario;
  const time = attempts.reduce((sum, attempt) => sum + attempt.seconds, 0);
  return (
    <details class="scenario" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Status status={scenario.status} /> {scenario.flaky && <><Badge tone="warn">flaky</Badge>{" "}</>}
        <Text>{scenario.name}</Text>{" "}
        <span class="muted"><Text>{`${path}:${scenario.line}`}</Text>{attempts.length > 0 && `, ${duration(time * 1000)}`}</span>
      </summary>
      {isOpen && (
        <div class="body">
          {scenario.tags.length > 0 && <p class="muted"><Text>{scenario.tags.map((tag) => `@${tag}`).join(" ")}</Text></p>}
          {scenario.reason && <p><Text>{scenario.reason}</Text></p>}
          {attempts.map((attempt, index) => (
            <div key={index}>
              {attempts.length > 1 && <h4>Attempt {index + 1}: <Status status={attempt.status} /></h4>}
              <ol class="steps">{attempt.steps.map((step, at) => <Step key={at} step={step} />)}</ol>
              {attempt.trouble && <Pre label="Error outside of the steps">{attempt.trouble}</Pre>}
            </div>
          ))}
        </div>
      )}
    </details>
  );
}

function Step({ step }) {
  return (
    <li class={STATUS[step.status]?.[0] ?? "none"}>
      <Status status={step.status} /> <strong><Text>{step.keyword.trim()}</Text></strong> <Text>{step.text}</Text>{" "}
      {step.seconds >= 0.001 && <span class="muted">{duration(step.seconds * 1000)}</span>}
      {step.argument?.length > 0 && <Pre label={`The argument of the step in line ${step.line}`}>{step.argument.join("\n")}</Pre>}
      {step.message && <Failure message={step.message} />}
      {step.notes.length > 0 && <ul class="told">{step.notes.map((note, index) => <li key={index}><Text>{note}</Text></li>)}</ul>}
    </li>
  );
}

const EXPECTED = /^(?:(.*?):? )??expected (.+?), (?:found|but it was|but found|but) (.+)$/s;

/**
 * The message of a failed step. A line with an expected and an actual value is a row of a table, and only the other lines
 * are shown as text.
 */
function Failure({ message }) {
  const lines = message.split("\n").map((text) => ({ text, row: EXPECTED.exec(text.trim()) }));
  const rows = lines.map(({ row }) => row).filter(Boolean);
  const rest = lines.filter(({ row }) => !row).map(({ text }) => text).join("\n").trimEnd();
  const hasNames = rows.some(([, of]) => of);
  return (
    <>
      {rows.length > 0 && (
        <Table caption="Expected and actual" columns={hasNames ? ["Field", "Expected", "Actual"] : ["Expected", "Actual"]} class="changes">
          <tbody>
            {rows.map(([, of, expected, actual], index) => (
              <tr key={index}>
                {hasNames && <th scope="row"><code>{visible(of ?? "")}</code></th>}
                <td class="ins"><code class="block">{visible(expected)}</code></td>
                <td class="del"><code class="block">{visible(actual)}</code></td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {rows.map(([, , expected, actual], index) =>
        expected.length + actual.length > 200 && <Diff key={index} from={actual} to={expected} label="From the actual to the expected value" />)}
      {rest && <Pre label="Why the step failed">{rest}</Pre>}
    </>
  );
}
