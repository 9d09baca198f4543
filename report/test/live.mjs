// Uses the page of `admit serve --ui` in Chromium: node live.mjs SERVER SCREENSHOTS
//
// SERVER is a JSON file with the link to the page, and with the URL, the token, and the certificate authority of the
// API server. The server was started with --fakes report/example/fakes.yaml. live.png is the picture in docs/guide/serve.md.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import https from "node:https";
import { PATIENCE, accessible, eventually, launch, none, options, text, texts } from "./page.mjs";

const [file, screenshots] = process.argv.slice(2);
const server = JSON.parse(await readFile(file, "utf8"));
await mkdir(screenshots, { recursive: true });

/** Creates an object, and returns the status code. The webhooks deny all objects in the namespace default. */
function create(namespace, resource, object) {
  const path = `/api/v1/namespaces/${namespace}/${resource}`;
  const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const request = https.request(new URL(path, server.url), { method: "POST", ca: server.authority, headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    });
    request.on("error", reject);
    request.end(JSON.stringify({ apiVersion: "v1", ...object }));
  });
}

const configMap = (name) => create("kube-system", "configmaps", { kind: "ConfigMap", metadata: { name } });

const browser = await launch();
const context = await browser.newContext({ colorScheme: "light", viewport: { width: 1120, height: 900 } });
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
const problems = [];
const { origin } = new URL(server.link);
page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
page.on("pageerror", (error) => problems.push(error.stack));
page.on("request", (request) => request.url().startsWith(`${origin}/`) || problems.push(request.url()));
const heading = (name) => page.getByRole("heading", { level: 1, name });
const rows = page.locator("main table").first().locator("tbody tr");

await page.goto(server.link);
await page.getByText("connected: new requests appear here").waitFor();
assert.equal(page.url(), `${origin}/`, "the token must not stay in the address");
// The webhook configurations of the fakes were not created by requests.
await heading("0 requests").waitFor();
await accessible(page, "the list without requests");
assert.equal(await configMap("settings"), 201);
assert.equal(await configMap("limits"), 201);
await heading("2 requests").waitFor();

// Requests appear as they come, the last one first.
const pod = { kind: "Pod", metadata: { name: "web" }, spec: { containers: [{ name: "web", image: "nginx:1.27" }] } };
assert.equal(await configMap("one"), 201);
assert.equal(await create("default", "pods", pod), 403);
const secret = { kind: "Secret", metadata: { name: "login" }, stringData: { password: "hunter2hunter2" } };
assert.equal(await create("kube-system", "secrets", secret), 201);
await heading("5 requests").waitFor();
const list = await texts(rows);
[/secrets kube-system\/login/, /pods default\/web[\s\S]*denied/, /configmaps kube-system\/one/].forEach((expected, index) =>
  assert.match(list[index], expected));
await accessible(page, "the list");
await page.screenshot({ path: `${screenshots}/live.png` });
await page.emulateMedia({ colorScheme: "dark" });
await accessible(page, "the list in dark colors");
await page.screenshot({ path: `${screenshots}/live-dark.png` });
await page.emulateMedia({ colorScheme: "light" });

// Filters hold for new requests, too. The injector answers the third call with a patch that does not fit.
await options(page, "Show").selectOption("rejected");
await eventually(async () => assert.equal(await rows.count(), 1));
assert.equal(await create("default", "pods", { ...pod, metadata: { name: "other" } }), 500);
await heading("6 requests").waitFor();
await eventually(async () => assert.equal(await rows.count(), 2));
await options(page, "Show").selectOption("all");

// A paused list does not change.
await page.getByLabel("Pause").check();
assert.equal(await configMap("two"), 201);
assert.equal(await configMap("three"), 201);
await heading("6 requests").waitFor();
await page.getByLabel("Pause").uncheck();
await heading("8 requests").waitFor();

// The views of a request are those of a report, and do not change when other requests come.
await page.getByRole("link", { name: "CREATE pods default/web" }).click();
await heading("CREATE pods default/web").waitFor();
await text(page.locator(".timeline"), /sidecar-injector[\s\S]*image-policy[\s\S]*denied/);
await page.locator(".timeline a", { hasText: "image-policy" }).click();
const opened = page.locator("details.call[open]");
await eventually(() => text(opened, /allowed: false[\s\S]*is not signed/));
assert.equal(await configMap("four"), 201);
await page.getByRole("link", { name: "Requests", exact: true }).click();
await heading("9 requests").waitFor();

// Values of Secrets are masked: Kioq is *** in base64.
await page.getByRole("link", { name: "CREATE secrets kube-system/login" }).click();
await heading("CREATE secrets kube-system/login").waitFor();
await text(page.locator("#object"), /password: Kioq/);
assert(!(await page.content()).includes("hunter2hunter2"));
assert(!(await page.content()).includes(Buffer.from("hunter2hunter2").toString("base64")));
await accessible(page, "a request");
await page.screenshot({ path: `${screenshots}/live-request.png` });

// The question is answered without a call, and configurations are shown.
await page.getByRole("link", { name: "Webhooks and policies" }).click();
await heading("Webhooks and policies").waitFor();
await page.getByRole("button", { name: "Ask" }).click();
await page.getByText("5 of 7 webhooks would be called").waitFor();
const skipped = page.locator("table.skipped");
await text(skipped, /only-deployments[\s\S]*rules/);
await text(skipped, /tenant-only[\s\S]*namespaceSelector/);
await accessible(page, "the answer");
await page.screenshot({ path: `${screenshots}/live-question.png`, fullPage: true });
await page.emulateMedia({ colorScheme: "dark" });
await accessible(page, "the answer in dark colors");
await page.emulateMedia({ colorScheme: "light" });
await page.getByLabel("Object, as YAML or JSON").fill("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}");
await page.getByRole("button", { name: "Ask" }).click();
await page.getByText("2 of 7 webhooks would be called").waitFor();
await text(skipped, /registry-rewriter[\s\S]*not-system[\s\S]*false/);
await page.locator("details", { hasText: "MutatingWebhookConfiguration" }).locator("summary").click();
await eventually(() => text(page.locator("#configurations"), /name: sidecar-injector.fakes.local/));
await page.getByRole("link", { name: "Requests", exact: true }).click();
await heading("9 requests").waitFor();
await page.getByRole("link", { name: "CREATE secrets kube-system/login" }).click();

// Fakes of --fakes are shown with their calls. A new behavior is checked as in a fakes file, and applies to new calls.
await page.getByRole("link", { name: "Fakes", exact: true }).click();
await heading("7 fakes").waitFor();
const policy = page.getByRole("region", { name: "image-policy.fakes.local" });
const behavior = page.getByLabel("Behavior of image-policy.fakes.local");
await text(policy, /validating[\s\S]*https:\/\/127\.0\.0\.1:\d+\/image-policy[\s\S]*1 call/);
assert.match(await behavior.inputValue(), /^deny:\n  code: 403\n  message: "image registry.internal\/nginx:1.27 is not signed"/);
await accessible(page, "the fakes");
await page.screenshot({ path: `${screenshots}/live-fakes.png`, fullPage: true });
await behavior.fill("deny:\n  mesage: no");
await policy.getByRole("button", { name: "Change behavior" }).click();
await eventually(() => text(policy.getByRole("alert"), /behavior:2:3: .*`mesage`[\s\S]*2 \|   mesage: no/));
await page.emulateMedia({ colorScheme: "dark" });
await accessible(page, "an invalid behavior in dark colors");
await page.screenshot({ path: `${screenshots}/live-fakes-dark.png` });
await page.emulateMedia({ colorScheme: "light" });
await behavior.fill("allow");
await policy.getByRole("button", { name: "Change behavior" }).click();
await policy.getByText("The behavior was changed").waitFor();
await none(policy.getByRole("alert"));
assert.match(await behavior.inputValue(), /^allow:/);
const injector = page.getByLabel("Behavior of sidecar-injector.fakes.local");
await injector.fill("allow");
await page.getByRole("region", { name: "sidecar-injector.fakes.local" }).getByRole("button", { name: "Change behavior" }).click();
await page.getByRole("region", { name: "sidecar-injector.fakes.local" }).getByText("The behavior was changed").waitFor();
assert.equal(await create("default", "pods", { ...pod, metadata: { name: "admitted" } }), 201);
await eventually(() => text(policy, /2 calls/));
await page.getByRole("link", { name: "Requests", exact: true }).click();
await heading("10 requests").waitFor();
await page.getByRole("link", { name: "CREATE secrets kube-system/login" }).click();

// The page survives a reload, but the link works only once.
await page.reload();
await heading("CREATE secrets kube-system/login").waitFor();
await page.getByRole("link", { name: "Requests", exact: true }).click();
await heading("10 requests").waitFor();
await page.getByRole("link", { name: "Fakes", exact: true }).waitFor();
// The rejected behavior.
assert.deepEqual(problems.map((it) => it.replace(/\n[\s\S]*/, "")), ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]);
const other = await (await browser.newContext()).newPage();
await other.goto(server.link);
await other.getByRole("heading", { name: "Open a new link" }).waitFor();

await browser.close();
console.log("1 passed, 0 failed");
