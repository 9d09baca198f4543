// Tests an installed package; run in the project that has installed it.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { binary, start, StatusError } from "@admit-dev/admit";

const manifest = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a-team}
webhooks:
- name: team.example.com
  clientConfig: {caBundle: CA_BUNDLE, service: {namespace: team, name: webhook, path: /mutate}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  reinvocationPolicy: IfNeeded
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a-team}
webhooks:
- name: deny.example.com
  clientConfig: {url: "https://placeholder.invalid/validate", caBundle: "CA_BUNDLE"}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`;

const fakes = `
version: 1
name: b-labels
webhooks:
- name: labels
  type: mutating
  behavior: always-mutate
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
`;

/** Adds a field at /mutate, and denies every object at /validate. */
async function listener(request, response) {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { uid } = JSON.parse(body).request;
  const patch = Buffer.from('[{"op": "add", "path": "/data", "value": {"team": "unknown"}}]').toString("base64");
  const answer = request.url.startsWith("/mutate")
    ? { uid, allowed: true, patchType: "JSONPatch", patch }
    : { uid, allowed: false, status: { message: "not today" } };
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
}

async function serve(t, options = {}) {
  const directory = mkdtempSync(join(tmpdir(), "admit-test-"));
  writeFileSync(join(directory, "webhook.yaml"), manifest);
  writeFileSync(join(directory, "fakes.yaml"), fakes);
  const server = await start({ directory, ...options });
  t.after(async () => {
    await server.close();
    rmSync(directory, { recursive: true });
  });
  return server;
}

const configmaps = "/api/v1/namespaces/default/configmaps";

test("webhook changes the object", async (t) => {
  const server = await serve(t);
  await server.webhook("webhook.yaml", listener);
  const created = await server.create(configmaps, { metadata: { name: "settings" } });
  assert.deepEqual(created.data, { team: "unknown" });
  const [call, ...others] = server.calls();
  assert.equal(others.length, 0);
  assert.deepEqual([call.webhook, call.round, call.outcome], ["team.example.com", 1, "allowed"]);
  assert.deepEqual(call.changes, [{ path: "data", to: { team: "unknown" } }]);
  assert.equal(call.request.object.metadata.namespace, "default");
});

test("denial throws the message of the server", async (t) => {
  const server = await serve(t);
  await server.webhook("webhook.yaml", listener);
  const message = 'admission webhook "deny.example.com" denied the request: not today';
  const creation = server.create("/api/v1/namespaces/default/secrets", { metadata: { name: "key" } });
  await assert.rejects(creation, (error) => error instanceof StatusError && error.message === message);
  assert.equal(server.requests().at(-1).decision.allowed, false);
});

test("webhook is reinvoked after a fake", async (t) => {
  const server = await serve(t);
  await server.webhook("webhook.yaml", listener);
  await server.fakes("fakes.yaml");
  await server.create(configmaps, { metadata: { name: "settings" } });
  const rounds = server.calls().map((call) => [call.configuration, call.round]);
  assert.deepEqual(rounds, [["a-team", 1], ["b-labels", 1], ["a-team", 2]]);
});

test("arguments are passed to the server, and its error is thrown", async () => {
  await assert.rejects(start({ args: ["--unknown"] }), /admit serve stopped: .*--unknown/);
});

test("closed server has stopped and removed its files", async () => {
  const server = await start();
  await server.close();
  assert.equal(existsSync(server.kubeconfig), false);
  await assert.rejects(server.create(configmaps, {}), /ECONNREFUSED/);
});

const environment = { ...process.env };
delete environment.ADMIT;

test("command prints its version and returns the exit status", () => {
  const command = join("node_modules", ".bin", "admit");
  assert.match(execFileSync(command, ["--version"], { env: environment, encoding: "utf8" }), /^admit 0\./);
  assert.equal(spawnSync(command, ["run", "missing.feature"], { env: environment }).status, 2);
});

test("command passes SIGTERM on to the binary", async () => {
  const folder = mkdtempSync(join(tmpdir(), "admit-test-"));
  const args = ["serve", "--kubeconfig-out", join(folder, "kubeconfig")];
  const command = spawn(join("node_modules", ".bin", "admit"), args, { env: environment });
  await once(command.stdout, "data");
  command.kill("SIGTERM");
  // admit serve stops with status 0.
  assert.deepEqual(await once(command, "exit"), [0, null]);
  rmSync(folder, { recursive: true });
});

test("unsupported platform error says how to build", async () => {
  // import.meta.resolve is asynchronous in Node 18.
  const folder = dirname(createRequire(import.meta.url).resolve("@admit-dev/admit"));
  const { binary: find } = await import(pathToFileURL(join(folder, "binary.js")));
  assert.throws(() => find("plan9-mips", { PATH: "" }), /@admit-dev\/plan9-mips .*cargo install --locked --git/);
  assert.throws(() => find("linux-x64", { ADMIT: "/missing" }), /invalid environment variable ADMIT: \/missing/);
  assert.ok(existsSync(binary()));
});
