// The page of `admit serve --ui`: the requests of a running server, and its webhooks. Addresses: #/requests/SECTION,
// #/requests/NUMBER/SECTION, #/webhooks/SECTION, and #/fakes.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { App } from "./app.jsx";
import { Fakes, useFakes } from "./fakes.jsx";
import { Request, Requests } from "./review.jsx";
import { follow } from "./stream.js";
import { Mark, Title, count } from "./ui.jsx";
import { Webhooks } from "./webhooks.jsx";

const MAX_REQUESTS = 1000;
const MAX_LENGTH = 32 << 20;
/** How long to collect requests before the page shows them. */
const DELAY_MS = 100;

const STATES = {
  connecting: ["none", "connecting"],
  connected: ["good", "connected: new requests appear here"],
  interrupted: ["warn", "not connected, connecting again; if the server has restarted, open its new link"],
  busy: ["warn", "too many pages are open: close another page"],
  ended: ["bad", "this session has ended: open the link that admit serve printed last"],
};

/** Keeps the last requests, newest first, within the limits of the server. */
function useRequests(token) {
  const [requests, setRequests] = useState([]);
  const [state, setState] = useState("connecting");
  useEffect(() => {
    let kept = [];
    let length = 0;
    let timer;
    const show = () => {
      timer = undefined;
      setRequests(kept.map(({ report }) => report).reverse());
    };
    const add = (added) => {
      for (const { number, report, length: more } of added) {
        report.recorded.number = number;
        kept.push({ report, length: more });
        length += more;
      }
      let removed = 0;
      while (kept.length - removed > MAX_REQUESTS || length > MAX_LENGTH) {
        length -= kept[removed].length;
        removed += 1;
      }
      kept = kept.slice(removed);
      timer ??= setTimeout(show, DELAY_MS);
    };
    follow(token, add, setState);
  }, []);
  return { requests, state };
}

const number = (report) => report.recorded.number;

export function Live({ token }) {
  if (token) return <Session token={token} />;
  return (
    <article>
      <Title>Open a new link</Title>
      <p role="alert">Open the link that <code>admit serve --ui</code> printed last. Each link works once, in one browser tab.</p>
    </article>
  );
}

function Session({ token }) {
  const { requests, state } = useRequests(token);
  const [paused, setPaused] = useState(null);
  const viewed = useRef();
  // Each request may have caused calls.
  const [fakes, setFakes] = useFakes(token, requests);
  const shown = paused ?? requests;

  const list = (focus) => (
    <Requests requests={shown} name="admit review" base="/requests" focus={focus} number={number}>
      <Connection state={state} />
      <p>
        <label><input type="checkbox" checked={paused !== null}
          onChange={(event) => setPaused(event.currentTarget.checked ? requests : null)} /> Pause</label>
        <Missing shown={shown} />
      </p>
      {shown.length === 0 && <p>The server has not received a request that could change something.</p>}
    </Requests>
  );
  const request = (text, section) => {
    // A request that is being read stays, even if the list no longer contains it.
    const report = requests.find((it) => number(it) === Number(text)) ??
      (viewed.current && number(viewed.current) === Number(text) ? viewed.current : undefined);
    if (!report) return { key: "missing", crumbs: [], view: (focus) => <Title focus={focus}>This request is not available</Title> };
    viewed.current = report;
    const base = `/requests/${text}`;
    return { key: base, crumbs: [], section, view: (focus) => <Request report={report} base={base} focus={focus} /> };
  };
  const route = ([view, at, section]) => {
    if (view === "webhooks") return { key: view, crumbs: [], section: at, view: (focus) => <Webhooks token={token} focus={focus} /> };
    if (view === "fakes" && fakes?.length > 0) {
      return { key: view, crumbs: [], section: at, view: (focus) => <Fakes token={token} fakes={fakes} onChange={setFakes} focus={focus} /> };
    }
    if (/^\d+$/.test(at ?? "")) return request(at, section);
    return { key: "", crumbs: [], section: at, view: list };
  };
  return (
    <>
      <nav aria-label="Views" class="views">
        <a href="#/">Requests</a>
        <a href="#/webhooks">Webhooks and policies</a>
        {fakes?.length > 0 && <a href="#/fakes">Fakes</a>}
      </nav>
      <App route={route} />
    </>
  );
}

function Connection({ state }) {
  const [tone, text] = STATES[state];
  return <p role={state === "connected" ? "status" : "alert"}><Mark tone={tone}>{text}</Mark></p>;
}

/** How many requests the server has received before those in the list. */
function Missing({ shown }) {
  const missing = useMemo(() => (shown.length > 0 ? number(shown[0]) - shown.length : 0), [shown]);
  return missing > 0 && (
    <span class="muted">{` ${count(missing, "request")} not shown: the page keeps the last 1,000 requests and 32 MiB, and no request over 8 MiB`}</span>
  );
}
