import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "@admit-dev/admit";
import { listener } from "./webhook.js";

const pod = { metadata: { name: "web" }, spec: { containers: [{ name: "web", image: "nginx" }] } };

test("sidecar is pulled from the mirror", async (t) => {
  const server = await start();
  t.after(() => server.close());
  await server.webhook("webhook.yaml", listener);
  await server.fakes("fakes.yaml");
  await server.create("/api/v1/namespaces/default/pods", pod);
  const [, , again] = server.calls();
  assert.deepEqual([again.webhook, again.round], ["mirror.example.com", 2]);
  assert.equal(again.request.object.spec.containers[1].image, "envoy");
  const change = { path: "spec.containers[1].image", from: "envoy", to: "mirror.example.com/envoy" };
  assert.deepEqual(again.changes, [change]);
});
