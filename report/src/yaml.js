// Formats values as YAML, line by line.
import { isNumeral } from "./data.js";

/** Characters that change the direction of writing, control characters, and unusual line breaks. */
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Makes characters visible that could change how the page reads. */
export const visible = (text) =>
  String(text).replace(UNSAFE, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);

const PLAIN = /^[A-Za-z_./][\w./@:-]*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i;

const quoted = (text) =>
  PLAIN.test(text) && !RESERVED.test(text) && !text.endsWith(":")
    ? text
    : JSON.stringify(text).replace(UNSAFE, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Formats a key of a mapping. */
export const key = (text) => quoted(text);

/** Formats a value that is not a list or an object with members. */
export function scalar(value) {
  if (typeof value === "string") return quoted(value);
  if (isNumeral(value)) return value.text;
  if (Array.isArray(value)) return "[]";
  if (value && typeof value === "object") return "{}";
  return String(value);
}

export const isObject = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) && !isNumeral(value);

const isBranch = (value) =>
  (Array.isArray(value) && value.length > 0) || (isObject(value) && Object.keys(value).length > 0);

/** Returns the lines of a value as YAML. */
export function lines(value) {
  const all = [];
  write(value, "", "", all);
  return all;
}

export const yaml = (value) => (value === undefined ? "" : lines(value).join("\n"));

function write(value, first, indent, all) {
  if (!isBranch(value)) {
    all.push(first + scalar(value));
  } else if (Array.isArray(value)) {
    value.forEach((item, index) => write(item, `${index ? indent : first}- `, `${indent}  `, all));
  } else {
    Object.entries(value).forEach(([name, member], index) => {
      const start = `${index ? indent : first}${key(name)}:`;
      if (isBranch(member)) {
        all.push(start);
        const deeper = Array.isArray(member) ? indent : `${indent}  `;
        write(member, deeper, deeper, all);
      } else {
        all.push(`${start} ${scalar(member)}`);
      }
    });
  }
}
