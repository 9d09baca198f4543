//! The objects that put fakes into a cluster: a function of files, names and secrets, without a cluster.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::json::set;
use serde_json::{Value, json};

use super::names::{FakesNamespace, NAME};
use super::source::Source;

/// The first of the ports at which the webhooks listen, in the pod and at the Service.
pub(crate) const FIRST_PORT: u16 = 8443;
/// The port of the admin endpoint, in the pod and at the Service.
pub(crate) const ADMIN_PORT: u16 = 9443;

/// Keys of the Secret, and names of its files in the pod.
pub(crate) const CA_CERTIFICATE: &str = "ca.crt";
pub(crate) const CA_KEY: &str = "ca.key";
pub(crate) const TOKEN: &str = "token";

/// The annotation of a pod that changes with what the process reads.
pub(crate) const CONTENT: &str = "fakes.local/content";

/// The user and group of the process: `nobody` of images without a shell; any number but 0 does.
const USER: u32 = 65532;
const FILES_DIRECTORY: &str = "/etc/admit-fakes/files";
const AUTHORITY_DIRECTORY: &str = "/etc/admit-fakes/authority";

/// What is deployed.
#[derive(Debug)]
pub(crate) struct Manifests<'a> {
    /// Where to.
    pub(crate) namespace: &'a FakesNamespace,
    /// The image of `fake-webhooks`.
    pub(crate) image: &'a str,
    /// The files of fakes.
    pub(crate) source: &'a Source,
    /// How many ports the Service shows beyond those of the files, for fakes that come later.
    pub(crate) spare_ports: u16,
    /// What nobody else knows.
    pub(crate) secrets: &'a Secrets,
}

/// What the Secret holds.
#[derive(Clone)]
pub(crate) struct Secrets {
    /// The certificate of the fakes' own authority, as PEM: the `caBundle`.
    pub(crate) ca_certificate: String,
    /// Its key, as PEM.
    pub(crate) ca_key: String,
    /// What the admin endpoint asks for.
    pub(crate) token: String,
}

/// Without the key and the token, so that they cannot end up in a log.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("ca_certificate", &self.ca_certificate).finish_non_exhaustive()
    }
}

impl Manifests<'_> {
    /// The namespace, which is only made where there is none.
    pub(crate) fn namespace(&self) -> Value {
        let mut labels = self.namespace.labels();
        // The pod needs none of what this level takes away, and nothing else belongs here.
        set(&mut labels, &["pod-security.kubernetes.io/enforce"], "restricted");
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.namespace.as_str(), "labels": labels},
        })
    }

    /// What stands in the namespace, in the order in which one needs the other.
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
                // One: each pod has its own journal and counts its own calls.
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
            // It answers no signal that it could not answer within a second.
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

    /// Changes with all that the process reads once only, so that it is started anew when one of them changes.
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

    /// The ports of webhooks: those of the files, and then the spare ones.
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
