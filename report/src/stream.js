// The connection of the page to `admit serve --ui`.
import { parse } from "./data.js";

const SESSION = "admit-session";
const RETRY_MS = 1000;

const authorization = (token) => ({ Authorization: `Bearer ${token}` });

/** Exchanges the token of the link for a session. Returns the token of the session; null if there is none. */
export async function session() {
  const [, link] = location.hash.match(/^#token=([\w-]+)$/) ?? [];
  if (link) {
    // The token must not stay in the history of the browser.
    history.replaceState(null, "", location.pathname);
    const response = await fetch("session", { method: "POST", headers: authorization(link) });
    if (response.ok) sessionStorage.setItem(SESSION, (await response.json()).token);
  }
  return sessionStorage.getItem(SESSION);
}

/** Requests JSON from the server. The promise rejects with the server's message. */
export async function call(token, path, body) {
  const headers = { ...authorization(token), "Content-Type": "application/json" };
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(path, { ...options, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(text || `HTTP status ${response.status}`);
  return parse(text);
}

/** Yields the complete lines of each chunk. */
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    if (!value.includes("\n")) continue;
    const complete = rest.split("\n");
    rest = complete.pop();
    yield complete;
  }
}

/**
 * Passes new requests to `add` until the session ends, as a list of a number, a report, and the length of its JSON.
 * Connects again if the server closes the connection, and passes the state of the connection to `tell`.
 */
export async function follow(token, add, tell) {
  let last = 0;
  for (;;) {
    try {
      const response = await fetch(`requests?after=${last}`, { headers: authorization(token) });
      if (response.status === 401) {
        sessionStorage.removeItem(SESSION);
        return tell("ended");
      }
      if (response.ok) {
        tell("connected");
        for await (const chunk of lines(response.body)) {
          const added = chunk.map((line) => ({ ...parse(line), length: line.length }));
          last = added.at(-1).number;
          add(added);
        }
      }
      tell(response.status === 503 ? "busy" : "interrupted");
    } catch {
      tell("interrupted");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
