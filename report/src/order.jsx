// The interactions of mutating webhooks and of mutating policies: a drawing of each, and a table with what differs.
import { Badge, Table, Text, count, useLimit } from "./ui.jsx";
import { visible } from "./yaml.js";

const RELATIONS = {
  dependsOn: ["note", "depends on the order"], overwrites: ["warn", "overwrites"], pair: ["warn", "the order matters"],
};
/** The numbers of webhooks and arrows that a drawing can show legibly. */
const MAX_DRAWN = { webhooks: 30, arrows: 60 };
const ARROWS =
  " An arrow points to a webhook that makes different changes if the other webhook is called first. A dashed arrow " +
  "points to a webhook that overwrites changes of the other one.";
const ROW = 30;
/** The maximum number of characters of a name, and the width of one. */
const NAME = { length: 55, width: 7.2 };

export function Order({ interactions }) {
  const [shown, more] = useLimit(interactions, 200);
  const names = [...new Set(interactions.flatMap(({ webhook, other }) => [webhook, other]))].sort();
  const isLegible = names.length <= MAX_DRAWN.webhooks && interactions.length <= MAX_DRAWN.arrows;
  return (
    <>
      <p class="muted">
        Each pair of webhooks was called in both orders.{isLegible && ARROWS}
      </p>
      {isLegible && <Drawing names={names} interactions={interactions} noun="webhook" />}
      <Table caption="Interactions of webhooks" columns={["Called first", "Called second", "Relation", "Fields", ["Objects", "number"], "Example"]}>
        <tbody>
          {shown.map(({ webhook, other, relation, fields, objects, example }) => (
            <tr key={`${other} ${webhook} ${relation}`}>
              <th scope="row"><Text>{other}</Text></th>
              <td><Text>{webhook}</Text></td>
              <td><Badge tone={RELATIONS[relation]?.[0]}>{RELATIONS[relation]?.[1] ?? relation}</Badge></td>
              <td><Text>{fields.join(", ")}</Text></td>
              <td class="number">{objects.toLocaleString("en-US")}</td>
              <td><Text>{example}</Text></td>
            </tr>
          ))}
        </tbody>
      </Table>
      {more}
    </>
  );
}

/** The pairs of policies whose order determines the result. No policy of a pair is the first, so arcs have no arrows. */
export function PolicyOrder({ findings }) {
  const [shown, more] = useLimit(findings, 200);
  const pairs = findings.map(({ webhook, other }) => ({ webhook, other, relation: "pair" }));
  const names = [...new Set(pairs.flatMap(({ webhook, other }) => [webhook, other]))].sort();
  const isLegible = names.length <= MAX_DRAWN.webhooks && pairs.length <= MAX_DRAWN.arrows;
  return (
    <>
      <p class="muted">
        kube-apiserver applies mutating policies in random order. The result of these pairs depends on their order.
      </p>
      {isLegible && <Drawing names={names} interactions={pairs} noun="policy" />}
      <Table caption="Pairs of policies" columns={["Policy", "Other policy", "What depends on the order"]}>
        <tbody>
          {shown.map(({ webhook, other, message, accepted }) => (
            <tr key={`${webhook} ${other}`}>
              <th scope="row"><Text>{webhook}</Text></th>
              <td><Text>{other}</Text></td>
              <td><Text>{message}</Text>{accepted && <> <Badge>accepted</Badge></>}</td>
            </tr>
          ))}
        </tbody>
      </Table>
      {more}
    </>
  );
}

/** The webhooks or policies one below the other, with an arc for each interaction. */
function Drawing({ names, interactions, noun }) {
  const row = (name) => names.indexOf(name) * ROW + ROW / 2;
  const widest = Math.max(...interactions.map(({ webhook, other }) => reach(names, webhook, other)));
  const shown = names.map((name) => (name.length > NAME.length ? `${name.slice(0, NAME.length - 1)}…` : name));
  const start = 12 + NAME.width * Math.max(...shown.map((name) => name.length));
  const width = start + widest * 1.25 + 20;
  const height = names.length * ROW;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Drawing of the interactions">
      <svg class="order" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img"
        aria-label={`${count(interactions.length, "interaction")} of ${noun === "policy" ? `${names.length} policies` : count(names.length, noun)}; the table below lists them`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {names.map((name, index) => (
          <text key={name} x={start - 8} y={row(name) + 4} text-anchor="end"><title>{visible(name)}</title>{visible(shown[index])}</text>
        ))}
        {interactions.map(({ webhook, other, relation }) => {
          // Two arcs between the same webhooks must not cover each other.
          const shift = (relation === "overwrites" ? 6 : 0) + (row(other) < row(webhook) ? -3 : 3);
          const x = start + reach(names, webhook, other) * (relation === "overwrites" ? 1.25 : 1);
          const [from, to] = [row(other) + shift, row(webhook) + shift];
          return (
            <path key={`${other} ${webhook} ${relation}`} class={relation} marker-end={relation === "pair" ? undefined : "url(#arrow)"}
              d={`M${start} ${from}C${x} ${from} ${x} ${to} ${start + 1} ${to}`}>
              <title>{visible(`${other} ${relation === "pair" ? "and" : "→"} ${webhook}: ${RELATIONS[relation]?.[1] ?? relation}`)}</title>
            </path>
          );
        })}
      </svg>
    </div>
  );
}

/** How far to the right an arc extends: farther if the webhooks are farther apart. */
const reach = (names, one, other) => 40 + 25 * Math.abs(names.indexOf(one) - names.indexOf(other));
