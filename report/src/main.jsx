// Shows reports, or the requests of a running server. Addresses of reports: #/DOCUMENT/REQUEST/SECTION, or
// #/DOCUMENT/SECTION.
import { render } from "preact";
import { App } from "./app.jsx";
import { load } from "./data.js";
import { Lint } from "./lint.jsx";
import { Live } from "./live.jsx";
import { Request, Requests, about } from "./review.jsx";
import { Run } from "./run.jsx";
import { session } from "./stream.js";
import { Badge, Table, Text, Title, count } from "./ui.jsx";
import { Verification } from "./verify.jsx";

function describe({ command, report }) {
  if (command === "admit run") {
    const { passed, failed } = report.counts;
    return [failed ? "bad" : "good", `${passed} passed, ${failed} failed`];
  }
  if (command === "admit review") {
    const conditional = report.filter((it) => it.decision.verdict === "conditional").length;
    const rejected = report.filter((it) => !it.decision.allowed).length - conditional;
    const open = conditional ? `, ${conditional} conditional` : "";
    return [rejected ? "bad" : conditional ? "warn" : "good", `${count(report.length, "request")}, ${rejected} not admitted${open}`];
  }
  const findings = command === "admit lint" ? report.findings : report.checks.flatMap((check) => check.findings);
  const tone = findings.some((it) => it.severity === "error") ? "bad" : findings.length ? "warn" : "good";
  return [tone, count(findings.length, "finding")];
}

function Overview({ documents, focus }) {
  return (
    <article>
      <Title focus={focus}>{count(documents.length, "report")}</Title>
      <Table caption="Reports" columns={["Report", "Command", "Result"]}>
        <tbody>
          {documents.map((document, index) => {
            const [tone, text] = describe(document);
            return (
              <tr key={index}>
                <th scope="row"><a href={`#/${index}`}><Text>{document.name}</Text></a></th>
                <td>{document.command}</td>
                <td><Badge tone={tone}>{text}</Badge></td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </article>
  );
}

const isNumber = (text) => /^\d+$/.test(text ?? "");

/** Finds the view for an address. */
function route(documents, path) {
  const rest = [...path];
  const crumbs = [];
  let at = 0;
  if (documents.length > 1) crumbs.push(["#/", "Reports"]);
  if (isNumber(rest[0])) at = Number(rest.shift());
  else if (documents.length > 1) return { key: "", crumbs: [], view: (focus) => <Overview documents={documents} focus={focus} /> };
  const document = documents[at];
  if (!document) return { key: "missing", crumbs, view: (focus) => <Title focus={focus}>This page does not exist</Title> };
  const { command, report, name, verdicts } = document;
  let base = `/${at}`;
  const views = {
    "admit run": (focus) => <Run report={report} focus={focus} />,
    "admit verify": (focus) => <Verification report={report} verdicts={verdicts} base={base} focus={focus} />,
    "admit lint": (focus) => <Lint report={report} base={base} focus={focus} />,
  };
  if (command !== "admit review") return { key: base, crumbs, section: rest[0], view: views[command] };
  const listed = base;
  if (report.length > 1) {
    if (!isNumber(rest[0])) {
      return { key: base, crumbs, section: rest[0], view: (focus) => <Requests requests={report} name={name} base={base} focus={focus} /> };
    }
    crumbs.push([`#${listed}`, documents.length > 1 ? `Requests in ${name}` : "Requests"]);
  }
  const number = isNumber(rest[0]) ? Number(rest.shift()) : 0;
  base = `${base}/${number}`;
  if (!report[number]) return { key: "missing", crumbs, view: (focus) => <Title focus={focus}>This request does not exist</Title> };
  if (report.length > 1) crumbs.push([`#${base}`, about(report[number])]);
  return { key: base, crumbs, section: rest[0], view: (focus) => <Request report={report[number]} base={base} focus={focus} /> };
}

const isLive = document.getElementById("live") !== null;
const start = async () => {
  if (isLive) return <Live token={await session()} />;
  const { documents } = await load();
  return <App route={(path) => route(documents, path)} />;
};

start().then(
  (view) => {
    document.getElementById("summary").hidden = true;
    render(view, document.getElementById("app"));
  },
  (error) => {
    const message = document.createElement("p");
    message.setAttribute("role", "alert");
    message.textContent = isLive ? `The page cannot reach admit serve: ${error.message}`
      : `The details cannot be shown (${error.message}). This is a summary.`;
    document.getElementById("main").prepend(message);
  },
);

// A new link, pasted into the tab of an old one.
if (isLive) addEventListener("hashchange", () => location.hash.startsWith("#token=") && location.reload());

// A link to the content of the page changes the hash, which names the view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
