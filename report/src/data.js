// Reads the reports that the page contains.

/** Returns the decompressed data of the page. */
export async function load() {
  const encoded = document.getElementById("data").textContent;
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return parse(await new Response(stream).text());
}

/** A number that JavaScript cannot represent, as it is written. */
class Numeral {
  constructor(text) {
    this.text = text;
  }

  toJSON() {
    return JSON.rawJSON ? JSON.rawJSON(this.text) : Number(this.text);
  }
}

export const isNumeral = (value) => value instanceof Numeral;

/** Parses JSON. Long numbers keep their digits if the browser supports it. */
export function parse(text) {
  if (!/[:[,]-?\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) => {
    const isExact = typeof value !== "number" || !context?.source || String(value) === context.source;
    return isExact || /[.eE]/.test(context.source) ? value : new Numeral(context.source);
  });
}
