// The findings of admit lint.
import { useState } from "preact/hooks";
import { PolicyOrder } from "./order.jsx";
import { Badge, Choice, Search, Section, Severity, Table, Prose, Text, Title, count, matches, useLimit } from "./ui.jsx";

const ORDER = ["error", "warning", "note"];

export function Lint({ report, base, focus }) {
  const [search, setSearch] = useState("");
  const [severity, setSeverity] = useState("all");
  const { findings, notChecked, skipped, stale = [] } = report;
  const sorted = [...findings].sort((one, other) => ORDER.indexOf(one.severity) - ORDER.indexOf(other.severity));
  const found = sorted.filter((finding) => (severity === "all" || finding.severity === severity) &&
    matches(search, finding.check, finding.file, finding.webhook, finding.field, finding.message));
  const [shown, more] = useLimit(found, 200);
  // Only findings about the order of two policies name another object.
  const pairs = findings.filter((finding) => finding.other);
  const others = [
    ...notChecked.map((it) => [it.check, "not checked", `${it.webhook ? `${it.webhook}: ` : ""}${it.reason}`]),
    ...skipped.map((it) => [it.check, "skipped", it.reason]),
    ...stale.map((it) => [it.check, "stale baseline entry", `${it.webhook}: ${it.kind} (${it.place.file}:${it.place.line})`]),
  ];
  return (
    <article>
      <Title focus={focus}>{count(findings.length, "finding")} in {count(report.configurations, "configuration")}</Title>
      {findings.length === 0 ? <p>No findings.</p> : (
        <>
          <div class="filters">
            <Search label="Filter" value={search} onInput={setSearch} />
            <Choice label="Severity" value={severity} onChange={setSeverity} options={[["all", "all"], ...ORDER.map((name) => [name, name])]} />
            <p role="status">{count(found.length, "finding")}</p>
          </div>
          <Table caption="Findings" columns={["Severity", "Check", "Webhook and field", "Finding", "Place"]} class="lint">
            <tbody>
              {shown.map((finding, index) => (
                <tr key={index}>
                  <td><Severity severity={finding.severity} />{finding.accepted && <Badge>accepted</Badge>}</td>
                  <th scope="row">
                    {/^https:\/\//.test(finding.page) ? <a href={finding.page} rel="noreferrer">{finding.check}</a> : finding.check}
                  </th>
                  <td><Text>{finding.webhook}</Text><br /><code><Text>{finding.field}</Text></code></td>
                  <td>
                    <Text>{finding.message}</Text>
                    {finding.help && <p class="muted"><strong>What to change:</strong> <Prose>{finding.help}</Prose></p>}
                    {finding.accepted && <p class="muted"><Text>{`Accepted: ${finding.accepted}`}</Text></p>}
                  </td>
                  <td><Text>{`${finding.file}:${finding.line}`}</Text></td>
                </tr>
              ))}
            </tbody>
          </Table>
          {more}
        </>
      )}
      {pairs.length > 0 && (
        <Section id="order" title="Order of mutating policies" base={base}><PolicyOrder findings={pairs} /></Section>
      )}
      {others.length > 0 && (
        <Section id="others" title="Checks without a result" base={base}>
          <Table caption="Checks without a result" columns={["Check", "Result", "Reason"]}>
            <tbody>
              {others.map(([check, result, reason], index) => (
                <tr key={index}><th scope="row">{check}</th><td><Badge>{result}</Badge></td><td><Text>{reason}</Text></td></tr>
              ))}
            </tbody>
          </Table>
        </Section>
      )}
    </article>
  );
}
