//! Creates the manifests of deployed fakes from files, names, and secrets.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::json::set;
use serde_json::{Value, json};

use super::names::{FakesNamespace, NAME};
use super::source::Source;

/// The first port of the webhooks in the pod and the Service.
pub(crate) const FIRST_PORT: u16 = 8443;
/// The port of the admin endpoint in the pod and the Service.
pub(crate) const ADMIN_PORT: u16 = 9443;

/// The key of the CA certificate in the Secret, and its file name in the pod.
pub(crate) const CA_CERTIFICATE: &str = "ca.crt";
pub(crate) const CA_KEY: &str = "ca.key";
pub(crate) const TOKEN: &str = "token";

/// The pod annotation with a hash of the files that are read only at startup; a change restarts the pod.
pub(crate) const CONTENT: &str = "fakes.local/content";

/// The user and group of the process, as in distroless images; must not be 0.
const USER: u32 = 65532;
const FILES_DIRECTORY: &str = "/etc/admit-fakes/files";
const AUTHORITY_DIRECTORY: &str = "/etc/admit-fakes/authority";

/// The input from which the manifests are created.
#[derive(Debug)]
pub(crate) struct Manifests<'a> {
    /// The namespace to deploy to.
    pub(crate) namespace: &'a FakesNamespace,
    /// The image of `fake-webhooks`.
    pub(crate) image: &'a str,
    /// The fakes files and the ports of their webhooks.
    pub(crate) source: &'a Source,
    /// The number of spare ports for fakes that are added later.
    pub(crate) spare_ports: u16,
    /// The CA and the token for the Secret.
    pub(crate) secrets: &'a Secrets,
}

/// The values in the Secret of deployed fakes.
#[derive(Clone)]
pub(crate) struct Secrets {
    /// The CA certificate of the fakes as PEM. It becomes the `caBundle` of the webhooks.
    pub(crate) ca_certificate: String,
    /// The private key of the CA as PEM.
    pub(crate) ca_key: String,
    /// The token that the admin endpoint requires.
    pub(crate) token: String,
}

/// Formats the secrets for debugging, without the key and the token.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("ca_certificate", &self.ca_certificate).finish_non_exhaustive()
    }
}

impl Manifests<'_> {
    /// Returns the manifest of the Namespace. admit applies it only if the Namespace does not exist.
    pub(crate) fn namespace(&self) -> Value {
        let mut labels = self.namespace.labels();
        // The pod satisfies this level, and the namespace contains nothing else.
        set(&mut labels, &["pod-security.kubernetes.io/enforce"], "restricted");
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.namespace.as_str(), "labels": labels},
        })
    }

    /// Returns the manifests of the namespaced objects in the order in which they are applied.
    pub(crate) fn workload(&self) -> [Value; 4] {
        [self.secret(), self.config_map(), self.deployment(), self.service()]
    }

    fn metadata(&self) -> Value {
        json!({"name": NAME, "namespace": self.namespace.as_str(), "labels": self.namespace.labels()})
    }

    fn secret(&self) -> Value {
        let Secrets { ca_certificate, ca_key, token } = self.secrets;
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self.metadata(),
            "type": "Opaque",
            "data": {
                CA_CERTIFICATE: STANDARD.encode(ca_certificate),
                CA_KEY: STANDARD.encode(ca_key),
                TOKEN: STANDARD.encode(token),
            },
        })
    }

    fn config_map(&self) -> Value {
        let files =
            self.source.files.iter().enumerate().map(|(index, file)| (file_name(index), json!(file.text)));
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self.metadata(),
            "data": files.collect::<serde_json::Map<_, _>>(),
        })
    }

    fn deployment(&self) -> Value {
        let labels = self.namespace.labels();
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self.metadata(),
            "spec": {
                // One replica, because each pod has its own journal and call counters.
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": {CONTENT: self.content()}},
                    "spec": self.pod(),
                },
            },
        })
    }

    fn pod(&self) -> Value {
        json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            // The process stops within a second.
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                // The group that may read the Secret.
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "fake-webhooks",
                "image": self.image,
                "imagePullPolicy": "IfNotPresent",
                "args": self.arguments(),
                "ports": self.ports().map(|(name, port)| json!({
                    "name": name, "containerPort": port, "protocol": "TCP",
                })).collect::<Vec<_>>(),
                "readinessProbe": {
                    "httpGet": {"path": "/healthz", "port": "admin", "scheme": "HTTPS"},
                    "periodSeconds": 1,
                },
                "resources": {
                    "requests": {"cpu": "10m", "memory": "32Mi"},
                    "limits": {"memory": "256Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "files", "mountPath": FILES_DIRECTORY, "readOnly": true},
                    {"name": "authority", "mountPath": AUTHORITY_DIRECTORY, "readOnly": true},
                ],
            }],
            "volumes": [
                {"name": "files", "configMap": {"name": NAME, "defaultMode": 0o444}},
                {"name": "authority", "secret": {"secretName": NAME, "defaultMode": 0o440}},
            ],
        })
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        for index in 0..self.source.files.len() {
            arguments.extend(["-f".to_owned(), format!("{FILES_DIRECTORY}/{}", file_name(index))]);
        }
        arguments.extend([
            format!("--listen=0.0.0.0:{FIRST_PORT}"),
            format!("--host={}", self.namespace.host()),
            "--allow-remote".to_owned(),
            format!("--authority={AUTHORITY_DIRECTORY}"),
            format!("--admin=0.0.0.0:{ADMIN_PORT}"),
            format!("--admin-token-file={AUTHORITY_DIRECTORY}/{TOKEN}"),
        ]);
        arguments
    }

    /// Returns a hash of the files that the process reads only at startup, so that a change restarts the pod.
    fn content(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.source.files.iter().for_each(|file| file.text.hash(&mut hasher));
        let Secrets { ca_certificate, ca_key, token } = self.secrets;
        (ca_certificate, ca_key, token).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    fn ports(&self) -> impl Iterator<Item = (String, u16)> {
        self.webhook_ports()
            .map(|port| (format!("webhooks-{port}"), port))
            .chain([("admin".to_owned(), ADMIN_PORT)])
    }

    /// Returns the ports of the webhooks: the ports in the files, followed by the spare ports.
    pub(crate) fn webhook_ports(&self) -> impl Iterator<Item = u16> {
        let planned = self.source.plan.listeners().iter().map(|listener| listener.listen.port());
        let first_spare = planned.clone().max().map_or(FIRST_PORT, |last| last + 1);
        planned.chain(first_spare..first_spare + self.spare_ports)
    }

    fn service(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(),
            "spec": {
                "type": "ClusterIP",
                "selector": self.namespace.labels(),
                "ports": self.ports().map(|(name, port)| json!({
                    "name": name, "port": port, "targetPort": name, "protocol": "TCP",
                })).collect::<Vec<_>>(),
            },
        })
    }
}

fn file_name(index: usize) -> String {
    format!("{index}.yaml")
}
