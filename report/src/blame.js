// Follows an object through the steps that changed it, and remembers for each field who set it.
import { isObject, key, scalar } from "./yaml.js";

/** The client that sent the object. Other actors are positions in the list of steps. */
export const CLIENT = -1;

/** Creates a node for a value that `by` set. */
function node(value, by, before = []) {
  if (Array.isArray(value)) return { items: value.map((item) => node(item, by)), by, before };
  if (isObject(value)) {
    return { members: new Map(Object.entries(value).map(([name, it]) => [name, node(it, by)])), by, before };
  }
  return { value, by, before };
}

function plain({ items, members, value }) {
  if (items) return items.map(plain);
  if (members) return Object.fromEntries([...members].map(([name, it]) => [name, plain(it)]));
  return value;
}

/** Splits a path such as `spec.containers[1].image` or `metadata.labels["a.b/c"]`. */
export function tokens(path) {
  const found = [];
  const pattern = /\.?([^.[\]"]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;
  while (pattern.lastIndex < path.length) {
    const match = pattern.exec(path);
    if (!match) return null;
    if (match[1] !== undefined) found.push(match[1]);
    else if (match[2] !== undefined) found.push(Number(match[2]));
    else found.push(JSON.parse(match[3]));
  }
  return found;
}

const child = (parent, token) => (typeof token === "number" ? parent?.items?.[token] : parent?.members?.get(token));

/** The position of a change in the order in which changes can be applied: outer lists first, removals before additions. */
function order(change) {
  const { path } = change;
  const last = path.at(-1);
  const isItem = typeof last === "number";
  const rank = isItem && !("to" in change) ? 0 : isItem && !("from" in change) ? 1 : 2;
  return { depth: path.length, rank, index: rank === 0 ? -last : isItem ? last : 0 };
}

/** Fields that the server sets before the first step. */
const SET_BY_SERVER = ["creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion", "uid"];

/** Formats an object so that equal objects have equal texts, without the fields that the server sets. */
function canonical(object) {
  const metadata = Object.entries(object?.metadata ?? {}).filter(([name]) => !SET_BY_SERVER.includes(name));
  return JSON.stringify({ ...object, metadata: Object.fromEntries(metadata) }, (_key, value) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value);
}

/** Follows the object of a report through its steps. */
export class History {
  /** Whether every change could be applied, and led to the object of the report. */
  isComplete = true;

  constructor(object, steps, last) {
    this.root = node(object, CLIENT);
    this.states = [this.snapshot()];
    steps.forEach((step, index) => {
      this.apply(step.changes, index);
      this.states.push(this.snapshot());
    });
    if (last !== undefined && canonical(plain(this.root)) !== canonical(last)) this.isComplete = false;
  }

  snapshot() {
    return { lines: blamed(this.root), value: plain(this.root) };
  }

  apply(changes, by) {
    const sorted = changes
      .map((change) => ({ ...change, path: tokens(change.path) }))
      .filter((change) => change.path || (this.isComplete = false))
      .sort((one, other) => {
        const [a, b] = [order(one), order(other)];
        return a.depth - b.depth || a.rank - b.rank || a.index - b.index;
      });
    for (const change of sorted) this.change(change, by);
  }

  change({ path, ...change }, by) {
    if (path.length === 0) {
      this.root = node(change.to, by, [...this.root.before, { by: this.root.by, value: plain(this.root) }]);
      return;
    }
    const parent = path.slice(0, -1).reduce(child, this.root);
    const last = path.at(-1);
    const isItem = typeof last === "number";
    if (!parent || (isItem ? !parent.items : !parent.members)) {
      this.isComplete = false;
      return;
    }
    if (!("to" in change)) {
      if (isItem) parent.items.splice(last, 1);
      else parent.members.delete(last);
    } else if (isItem && !("from" in change)) {
      parent.items.splice(last, 0, node(change.to, by));
    } else {
      const old = child(parent, last);
      const before = old ? [...old.before, { by: old.by, value: plain(old) }] : [];
      const changed = node(change.to, by, before);
      if (isItem) parent.items[last] = changed;
      else parent.members.set(last, changed);
    }
  }
}

/** Returns the lines of an object as YAML, each with who set it and what it was before. */
function blamed(root) {
  const all = [];
  const push = (text, { by, before }) => all.push({ text, by, before });
  const isBranch = ({ items, members }) => items?.length > 0 || members?.size > 0;
  const leaf = (it) => (it.items ? "[]" : it.members ? "{}" : scalar(it.value));
  const write = (it, first, indent) => {
    if (!isBranch(it)) push(first + leaf(it), it);
    else if (it.items) it.items.forEach((item, at) => write(item, `${at ? indent : first}- `, `${indent}  `));
    else {
      [...it.members].forEach(([name, member], at) => {
        const start = `${at ? indent : first}${key(name)}:`;
        if (!isBranch(member)) return push(`${start} ${leaf(member)}`, member);
        push(start, member);
        const deeper = member.items ? indent : `${indent}  `;
        write(member, deeper, deeper);
      });
    }
  };
  write(root, "", "");
  return all;
}
