import type { RequestListener } from "node:http";

/** An object of the Kubernetes API. */
export type KubernetesObject = Record<string, any>;

/** A change of one field by a call. */
export interface Change {
  /** Such as `spec.containers[1]`. */
  path: string;
  from?: unknown;
  to?: unknown;
}

/** A call of a webhook. */
export interface Call {
  type: "mutating" | "validating";
  /** The name of the webhook configuration. */
  configuration: string;
  webhook: string;
  /** 1, or 2 for a reinvocation. */
  round: number;
  outcome: "allowed" | "denied" | "failedOpen" | "failedClosed" | "refused";
  /** Why the webhook did not allow the request. */
  message?: string;
  /** The JSON Patch that the webhook returned. */
  patch?: KubernetesObject[];
  /** Whether the patch changed the object. */
  changed: boolean;
  changes: Change[];
  warnings: string[];
  /** The request of the AdmissionReview as the webhook received it. */
  request: KubernetesObject;
}

/** A request that could change an object, as `admit review --record DIR -o json` prints it. */
export interface Request {
  request: KubernetesObject;
  decision: { allowed: boolean; code: number; message: string; [field: string]: unknown };
  warnings: string[];
  calls: Call[];
  /** The object as the server stored it, or when it was rejected. */
  object?: KubernetesObject;
  [field: string]: unknown;
}

/** The server rejected a request. */
export class StatusError extends Error {
  /** The HTTP status code. */
  readonly code: number;
}

/** A running API server. */
export interface Server {
  /** The path of a kubeconfig for a cluster administrator. */
  readonly kubeconfig: string;
  /** The address of the server, such as `https://127.0.0.1:6443`. */
  readonly url: string;
  /** The bearer token of a cluster administrator. */
  readonly token: string;
  /** The PEM certificates that verify the server. */
  readonly ca: string;

  /** Serves a listener over TLS, registers the webhook configurations in a manifest, and returns the URL. */
  webhook(manifest: string, listener: RequestListener): Promise<string>;
  /** Registers the webhook configurations in a manifest with the URL of a server and the PEM certificates for it. */
  register(manifest: string, url: string, ca: string): Promise<void>;
  /** Writes `tls.crt`, `tls.key`, and `ca.crt` for a server on loopback, and returns the CA certificate. */
  certificate(directory: string): Promise<string>;
  /** Starts the fakes in a file for `admit fakes`, and registers them. */
  fakes(file: string): Promise<void>;
  /** Creates an object in a collection, such as `/api/v1/namespaces/default/pods`, and returns it as stored. */
  create(collection: string, object: KubernetesObject): Promise<KubernetesObject>;
  /** Returns all requests that could have changed an object, in the order in which they ended. */
  requests(): Request[];
  /** Returns the webhook calls of all requests, in the order in which they ended. */
  calls(): Call[];
  /** Stops the server, its fakes, and its webhooks. */
  close(): Promise<void>;
}

/** Options of `start`. */
export interface Options {
  /** Arguments of `admit serve`. */
  args?: string[];
  /** Relative paths of manifests start at this directory. */
  directory?: string;
}

/** Starts an API server. */
export function start(options?: Options): Promise<Server>;

/** Returns the path of the binary: `ADMIT`, the one of the platform's package, or admit on `PATH`. */
export function binary(): string;
