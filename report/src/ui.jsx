// Parts that several views use.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { diffLines } from "diff";
import { visible, yaml } from "./yaml.js";

/** Text from a report. */
export const Text = ({ children }) => visible(children ?? "");

/** A sentence from a report, in which backticks mark code. */
export const Prose = ({ children }) =>
  String(children ?? "").split("`").map((part, index, { length }) =>
    (index % 2 === 1 && index < length - 1 ? <code key={index}>{visible(part)}</code> : visible(index % 2 === 1 ? `\`${part}` : part)));

export const count = (number, noun) => `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;

/** Formats a duration in milliseconds. */
export function duration(ms) {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms >= 10) return `${ms.toFixed(0)} ms`;
  if (ms >= 0.1) return `${ms.toFixed(1)} ms`;
  return `${(ms * 1000).toFixed(0)} µs`;
}

/** A word with a color and a symbol. Tones: good, bad, warn, note, none. */
export const Badge = ({ tone = "none", children }) => <span class={`badge ${tone}`}>{children}</span>;

/** A word after a colored dot. Tones: those of a badge. */
export const Mark = ({ tone = "none", children }) => <span class={`mark ${tone}`}>{children}</span>;

const SIGNS = { good: "✓", bad: "✗", warn: "!", none: "–" };

/** A symbol for a result, which screen readers read as a word. */
export const Sign = ({ tone, children }) => (
  <span class={`sign ${tone}`}>
    <span aria-hidden="true">{SIGNS[tone]}</span>
    <span class="hidden">{children}</span>
  </span>
);

export const SEVERITY = { error: "bad", warning: "warn", note: "note" };

export const Severity = ({ severity }) => <Badge tone={SEVERITY[severity]}>{severity}</Badge>;

/** A section that the page can link to. */
export function Section({ id, title, base, children, note }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} tabIndex={-1}>
        {title} {base && <a class="anchor" href={`#${base}/${id}`} aria-label={`Link to ${title}`}>#</a>}
      </h2>
      {note && <p class="muted">{note}</p>}
      {children}
    </section>
  );
}

/** A table that scrolls sideways. A column is a text, or a list of a text and a class. */
export function Table({ caption, columns, children, class: names = "" }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class={names}>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => {
              const [content, type] = Array.isArray(column) ? column : [column];
              return <th scope="col" key={content} class={type}>{content}</th>;
            })}
          </tr>
        </thead>
        {children}
      </table>
    </div>
  );
}

/** Shows the first items of a long list, and more on demand. */
export function useLimit(items, most) {
  const [limit, setLimit] = useState(most);
  const more = items.length - limit;
  const button = more > 0 && (
    <p>
      <button type="button" onClick={() => setLimit(Infinity)}>Show {more.toLocaleString("en-US")} more</button>
    </p>
  );
  return [more > 0 ? items.slice(0, limit) : items, button];
}

/** Shows a text with line breaks. */
export function Pre({ children, label }) {
  const all = visible(children ?? "").split("\n");
  const [shown, more] = useLimit(all, 500);
  return (
    <>
      <pre tabIndex={0} role="region" aria-label={label}>{shown.join("\n")}</pre>
      {more}
    </>
  );
}

export const Yaml = ({ value, label }) => <Pre label={label}>{typeof value === "string" ? value : yaml(value)}</Pre>;

/** Shows a value in a cell of a table: short values in line, long ones folded. */
export function Value({ value, absent = "not set" }) {
  if (value === undefined) return <span class="muted">{absent}</span>;
  const text = yaml(value);
  const rows = text.split("\n");
  if (rows.length === 1 && text.length <= 200) return <code>{visible(text)}</code>;
  if (rows.length <= 8 && text.length <= 600) return <code class="block">{visible(text)}</code>;
  return (
    <details>
      <summary>{rows.length === 1 ? count(text.length, "character") : count(rows.length, "line")}</summary>
      <code class="block">{visible(text.slice(0, 200_000))}</code>
    </details>
  );
}

/** The changes of fields, one row each. The classes color the values of the two columns. */
export function Changes({ caption, changes, from = "Before", to = "After", classes = ["del", "ins"] }) {
  const [shown, more] = useLimit(changes, 200);
  return (
    <>
      <Table caption={caption} columns={["Field", from, to]} class="changes">
        <tbody>
          {shown.map((change, index) => (
            <tr key={index}>
              <th scope="row"><code><Text>{change.path || "(whole object)"}</Text></code></th>
              <td class={classes[0]}><Value value={change.from} /></td>
              <td class={classes[1]}><Value value={change.to} absent={to === "After" ? "removed" : undefined} /></td>
            </tr>
          ))}
        </tbody>
      </Table>
      {more}
    </>
  );
}

/** The difference between two texts, line by line. */
export function Diff({ from, to, label }) {
  const parts = diffLines(from, to, { timeout: 500 });
  if (!parts) return <p class="muted">The texts are too long to compare.</p>;
  const rows = parts.flatMap((part) => {
    const sign = part.added ? "+" : part.removed ? "-" : " ";
    const all = part.value.replace(/\n$/, "").split("\n");
    const isLong = sign === " " && all.length > 8;
    const kept = isLong ? [...all.slice(0, 3), null, ...all.slice(-3)] : all;
    return kept.map((text) => ({ sign: text === null ? "…" : sign, text: text ?? count(all.length - 6, "equal line") }));
  });
  const names = { "+": "ins", "-": "del", "…": "muted" };
  return (
    <pre tabIndex={0} role="region" aria-label={label} class="diff">
      {rows.map(({ sign, text }, index) => (
        <span key={index} class={names[sign]}>{`${sign} ${visible(text)}\n`}</span>
      ))}
    </pre>
  );
}

/** Lets the user download a value as JSON. */
export function Download({ name, value, children }) {
  const download = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }));
    const link = document.createElement("a");
    [link.href, link.download] = [url, name];
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return <button type="button" onClick={download}>{children}</button>;
}

/** A text field that filters a list. */
export function Search({ label, value, onInput }) {
  return (
    <label class="field">
      {label} <input type="search" value={value} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}

export function Choice({ label, value, options, onChange }) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{label}</label>{" "}
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([name, text]) => (
          <option key={name} value={name}>{text}</option>
        ))}
      </select>
    </span>
  );
}

/** Returns whether each word of `search` occurs in one of the texts. */
export function matches(search, ...texts) {
  const text = texts.join("\n").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The heading of a view, which gets the focus when the view changes. */
export function Title({ children, focus }) {
  const heading = useRef();
  useEffect(() => {
    document.title = `${heading.current.textContent} - admit`;
  }, [children]);
  useEffect(() => {
    if (focus) heading.current.focus();
  }, [focus]);
  return <h1 tabIndex={-1} ref={heading}>{children}</h1>;
}
