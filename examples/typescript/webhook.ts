// A mutating webhook that makes Pods pull all images from a mirror.
import type { IncomingMessage, ServerResponse } from "node:http";

const registry = "mirror.example.com/";

interface Pod {
  spec: { containers: { image: string }[] };
}

function mutate(pod: Pod) {
  return pod.spec.containers.flatMap(({ image }, index) =>
    image.startsWith(registry)
      ? []
      : [{ op: "replace", path: `/spec/containers/${index}/image`, value: registry + image }],
  );
}

export async function listener(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { uid, object } = JSON.parse(body).request as { uid: string; object: Pod };
  const operations = mutate(object);
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  const answer = { uid, allowed: true, ...(operations.length > 0 && { patchType: "JSONPatch", patch }) };
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
}
