// Starts admit, an API server that calls admission webhooks as kube-apiserver does, for tests.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { binary } from "./binary.js";

export { binary };

const STOP_TIMEOUT = 10_000;
// A CA certificate or a placeholder. `register` replaces it, and the server rejects a placeholder.
const CA_BUNDLE = /\bcaBundle: *(\$\{[^}]*\}|"[^"]*"|'[^']*'|[^\s,}|>"'][^\s,}]*)/g;
const CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1";

export class StatusError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "StatusError";
    this.code = code;
  }
}

export async function start({ args = [], directory = "." } = {}) {
  const server = new Server(directory);
  try {
    await server._start(args);
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

export class Server {
  #binary = binary();
  #directory;
  #folder = mkdtempSync(join(tmpdir(), "admit-"));
  #closers = [];

  constructor(directory) {
    this.#directory = directory;
    this.kubeconfig = join(this.#folder, "kubeconfig");
  }

  async _start(args) {
    const records = join(this.#folder, "records");
    const lines = this.#run(["serve", "--kubeconfig-out", this.kubeconfig, "--record", records, ...args]);
    // The kubeconfig is complete when the second line, with its path, is printed.
    for (let count = 0; count < 2; count++) {
      if ((await lines.next()).done) throw new Error(`admit serve stopped: ${this.#log("serve")}`);
    }
    const content = readFileSync(this.kubeconfig, "utf8");
    this.url = field(content, "server");
    this.token = field(content, "token");
    this.ca = Buffer.from(field(content, "certificate-authority-data"), "base64").toString();
  }

  async close() {
    for (const close of this.#closers.splice(0).reverse()) await close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async webhook(manifest, listener) {
    const folder = join(this.#folder, "webhook");
    const ca = await this.certificate(folder);
    const [cert, key] = ["tls.crt", "tls.key"].map((name) => readFileSync(join(folder, name)));
    const server = createServer({ cert, key }, listener).listen(0, "127.0.0.1");
    await once(server, "listening");
    this.#closers.push(async () => {
      server.closeAllConnections?.();
      await promisify(server.close.bind(server))();
    });
    const url = `https://127.0.0.1:${server.address().port}`;
    await this.register(manifest, url, ca);
    return url;
  }

  async certificate(directory) {
    const names = ["--ip", "127.0.0.1", "--dns", "localhost"];
    await promisify(execFile)(this.#binary, ["certs", ...names, "--force", "--out", directory]);
    return readFileSync(join(directory, "ca.crt"), "utf8");
  }

  async register(manifest, url, ca) {
    let registered = 0;
    for (const document of readFileSync(resolve(this.#directory, manifest), "utf8").split(/^---.*$/m)) {
      const kind = /^kind: *["']?(Mutating|Validating)WebhookConfiguration\b/m.exec(document);
      if (!kind) continue;
      const collection = `${CONFIGURATIONS}/${kind[1].toLowerCase()}webhookconfigurations`;
      // A dry run converts YAML to JSON.
      const body = document.replace(CA_BUNDLE, "caBundle: null");
      const configuration = await this.#post(`${collection}?dryRun=All`, body);
      for (const webhook of configuration.webhooks ?? []) {
        const { service, url: old } = webhook.clientConfig;
        const path = service ? (service.path ?? "") : new URL(old).pathname;
        webhook.clientConfig = { url: url + path, caBundle: Buffer.from(ca).toString("base64") };
      }
      for (const name of ["uid", "creationTimestamp", "generation", "managedFields"]) {
        delete configuration.metadata[name];
      }
      await this.create(collection, configuration);
      registered++;
    }
    if (registered === 0) throw new Error(`${manifest} does not contain a webhook configuration`);
  }

  async fakes(file) {
    const path = resolve(this.#directory, file);
    const lines = this.#run(["fakes", "-f", path, "--listen", "127.0.0.1:0", "-o", "json"]);
    // The list ends with a line that contains only a brace.
    let text = "";
    for (let line = ""; line !== "}"; text += line) {
      const next = await lines.next();
      if (next.done) throw new Error(`admit fakes stopped: ${this.#log("fakes")}`);
      line = next.value;
    }
    for (const configuration of JSON.parse(text).items) {
      await this.create(`${CONFIGURATIONS}/${configuration.kind.toLowerCase()}s`, configuration);
    }
  }

  async create(collection, object) {
    return await this.#post(collection, JSON.stringify(object));
  }

  requests() {
    const folder = join(this.#folder, "records");
    const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl")).sort();
    // A line without its end is still being written.
    const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1));
    return lines.map((line) => JSON.parse(line));
  }

  calls() {
    return this.requests().flatMap((request) => request.calls);
  }

  /** Starts admit, returns the lines of its standard output, and stops it with the server. */
  #run(args) {
    const log = openSync(join(this.#folder, `${args[0]}.log`), "a");
    const child = spawn(this.#binary, args, { stdio: ["ignore", "pipe", log] });
    closeSync(log);
    const ended = new Promise((done) => {
      child.on("error", done);
      child.on("exit", done);
    });
    this.#closers.push(async () => {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT);
      await ended;
      clearTimeout(timer);
    });
    return createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  #log(command) {
    return readFileSync(join(this.#folder, `${command}.log`), "utf8").trim();
  }

  async #post(path, body) {
    // Every JSON document is a YAML document.
    const headers = { "Content-Type": "application/yaml", Authorization: `Bearer ${this.token}` };
    const request = httpsRequest(this.url + path, { method: "POST", headers, ca: this.ca, agent: false });
    // Without a listener, an error after the response would end the process. It also ends the response.
    request.on("error", () => {});
    request.end(body);
    const [response] = await once(request, "response");
    const chunks = [];
    for await (const chunk of response) chunks.push(chunk);
    const object = JSON.parse(Buffer.concat(chunks).toString());
    if (response.statusCode >= 400) throw new StatusError(response.statusCode, object.message ?? "");
    return object;
  }
}

/** Returns a field of a kubeconfig in the form in which admit serve writes it. */
function field(kubeconfig, name) {
  const found = new RegExp(`^ *${name}: (\\S+)$`, "m").exec(kubeconfig);
  if (!found) throw new Error(`the kubeconfig of admit serve does not contain ${name}`);
  return found[1];
}
