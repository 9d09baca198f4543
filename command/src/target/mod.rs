//! Defines the targets of steps: a Kubernetes client, and how its server reaches fakes.

mod arguments;
mod call_log;
mod cleanup;
mod cluster;
mod connection;
mod envtest;
mod identity;
mod in_process;
mod policies;
mod readiness;
mod relay;
mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

pub use admit_testing::audit_log::{Annotations, AuditEvent, AuditLog};
pub use arguments::TargetArguments;
pub(crate) use call_log::{CallLog, RecordedCall, RecordedSkip};
pub(crate) use cleanup::{Cleanup, Leftovers, RUN_LABEL};
pub(crate) use policies::{PolicyType, RunPolicies};

use crate::delivery::Delivery;
use crate::diagnostic::several;
use crate::fakes::Fleet;
use crate::static_manifests::Watch;
use crate::{Failure, service_map};
use envtest::Servers;
use harness::json::{set, text};
use harness::server::ServiceName;
use identity::Identities;
use output::one_line;
use serde_json::Value;
use storage::Storage;

/// A server that scenarios run against, with the clients and settings that steps use to access it.
pub struct Target {
    /// Whether the target is in process, envtest, or a cluster.
    pub kind: TargetKind,
    /// The client that steps use.
    pub client: kube::Client,
    /// A client that opens a new connection for each request, so that WebSocket requests also work in process.
    pub connecting_client: kube::Client,
    /// The location of the scenarios' fakes.
    pub(crate) fakes: FakesPlace,
    /// The host and port to which `--service` maps each Service.
    ///
    /// The in-process API server uses the mapping. For other targets, `Target::locate` rewrites each `clientConfig`.
    pub services: BTreeMap<ServiceName, (String, u16)>,
    /// The Services that the loaded webhook configurations refer to.
    pub(crate) referenced: ReferencedServices,
    /// The calls that did not reach a webhook of a loaded configuration.
    pub(crate) unreached: UnreachedCalls,
    /// The policies whose evaluation failed and therefore rejected requests, in scenarios that passed.
    pub(crate) failed_policies: FailedPolicies,
    /// The fields of the scenarios' objects that the server ignored.
    pub(crate) unknown_fields: UnknownFields,
    /// The audit events of requests. Some clusters do not provide them.
    pub audit: AuditLog,
    /// The recorded calls and skipped webhooks of each request.
    pub(crate) calls: CallLog,
    /// The name of the run. It is the value of [`RUN_LABEL`] on cluster-scoped objects.
    pub(crate) run: String,
    /// Whether the objects of scenarios are removed or kept.
    pub(crate) leftovers: Leftovers,
    /// The admission policies that the run creates.
    pub(crate) policies: RunPolicies,
    identities: Identities,
    storage: Storage,
    /// The watch on the API server's manifest directories. It ends when the target is dropped.
    _manifests: Watch,
}

/// The Services that loaded webhook configurations refer to.
#[derive(Debug, Default)]
pub(crate) struct ReferencedServices(Mutex<BTreeSet<ServiceName>>);

impl ReferencedServices {
    fn insert(&self, name: &ServiceName) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(name) {
            names.insert(name.clone());
        }
    }
}

/// The number of calls to each Service for which the connection or the TLS handshake failed.
#[derive(Debug, Default)]
pub(crate) struct UnreachedCalls(Mutex<BTreeMap<(ServiceName, Delivery), usize>>);

impl UnreachedCalls {
    pub(crate) fn count(&self, name: &ServiceName, delivery: Delivery) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry((name.clone(), delivery)).or_default() += 1;
    }
}

/// The fields that the server ignored in objects that steps store, each as a sentence about the object.
#[derive(Debug, Default)]
pub(crate) struct UnknownFields(Mutex<BTreeSet<String>>);

impl UnknownFields {
    pub(crate) fn insert(&self, sentence: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(sentence);
    }

    /// Returns the sentences, sorted.
    pub(crate) fn sentences(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The number of requests that each policy rejected because it failed, by its name and the message.
#[derive(Debug, Default)]
pub(crate) struct FailedPolicies(Mutex<BTreeMap<(String, String), usize>>);

impl FailedPolicies {
    pub(crate) fn count(&self, policy: &str, message: &str) {
        let mut policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *policies.entry((policy.to_owned(), message.to_owned())).or_default() += 1;
    }

    /// Returns a message for each policy.
    ///
    /// A scenario that expects a rejection passes although the policy cannot tell valid objects from invalid ones.
    pub(crate) fn messages(&self) -> Vec<String> {
        let policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let message = |((policy, message), count): (&(String, String), &usize)| {
            let requests = several(*count, "request");
            format!(
                "policy \"{policy}\" rejected {requests} because its evaluation failed: {}; if \
                 this is intended, check the message with the step `the message contains`",
                one_line(message)
            )
        };
        policies.iter().map(message).collect()
    }
}

/// The location of the scenarios' fakes, and how the server reaches them.
pub(crate) enum FakesPlace {
    /// In this process, at a URL.
    Here {
        /// The host at which the server reaches the fakes: `127.0.0.1`, except for a cluster.
        host: String,
        /// The address on which the fakes listen: loopback, except for a cluster.
        listen: IpAddr,
    },
    /// In a pod of the cluster, behind a Service.
    InCluster(Fleet),
}

impl FakesPlace {
    /// Returns the location of fakes for a server on this machine.
    fn loopback() -> Self {
        Self::Here { host: LOOPBACK.to_string(), listen: LOOPBACK }
    }

    /// Returns the host at which the server reaches the fakes.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Here { host, .. } => host.clone(),
            Self::InCluster(fleet) => fleet.host(),
        }
    }
}

/// Returns the name of the Service in the `service` of a `clientConfig`.
pub(crate) fn service_name(service: &Value) -> ServiceName {
    let text = |field| text(service, &[field]).to_owned();
    ServiceName { namespace: text("namespace"), name: text("name") }
}

impl Target {
    /// Records the Services that the webhooks of a loaded configuration refer to.
    pub(crate) fn record_services(&self, configuration: &Value) {
        let webhooks = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        for service in webhooks.filter_map(|webhook| webhook.pointer("/clientConfig/service")) {
            self.referenced.insert(&service_name(service));
        }
    }

    /// Returns a message for each Service of `--service` that no loaded webhook configuration refers to.
    ///
    /// Returns no message if a scenario failed and no scenario loaded a configuration, because the error of the failed
    /// scenario is the cause.
    pub(crate) fn unused_services(&self, has_failures: bool) -> Vec<String> {
        let referenced = self.referenced.0.lock().unwrap_or_else(PoisonError::into_inner);
        if has_failures && referenced.is_empty() {
            return Vec::new();
        }
        service_map::unused(self.services.keys(), &referenced, "the webhooks that the scenarios load")
    }

    /// Returns a message for each Service with calls that did not reach a webhook, or whose TLS handshake failed.
    ///
    /// With the failure policy Ignore, a scenario can pass although these calls failed.
    pub(crate) fn unreached_services(&self) -> Vec<String> {
        let calls = self.unreached.0.lock().unwrap_or_else(PoisonError::into_inner);
        let message = |((name, delivery), count): (&(ServiceName, Delivery), &usize)| {
            let calls = several(*count, "call");
            let webhook = format!("the webhook behind {}/{}", name.namespace, name.name);
            match (self.services.get(name), delivery) {
                (Some((host, port)), Delivery::Untrusted) => {
                    format!("{calls} to {webhook} at {host}:{port} failed in the TLS handshake")
                }
                (None, Delivery::Untrusted) => format!("{calls} to {webhook} failed in the TLS handshake"),
                (Some((host, port)), _) => format!("{calls} did not reach {webhook} at {host}:{port}"),
                (None, _) => {
                    format!("{calls} did not reach {webhook} because --service does not set its address")
                }
            }
        };
        calls.iter().map(message).collect()
    }

    /// Rewrites the `service` in a webhook's `clientConfig` so that the server reaches the address of `--service`.
    ///
    /// Returns the Service to create and its external host, if the target requires a Service. The in-process API server
    /// does not require a change. In envtest, kube-apiserver connects to the host of an `ExternalName` Service and uses
    /// the Service name for TLS. In a cluster, the Service may already exist, so the webhook gets a URL.
    ///
    /// Source: apiserver pkg/util/proxy/proxy.go, `ResolveCluster`; pkg/util/webhook/client.go.
    pub(crate) fn locate(&self, webhook: &mut Value) -> Option<(ServiceName, String)> {
        let client_config = webhook.get_mut("clientConfig")?.as_object_mut()?;
        let service = client_config.get_mut("service")?;
        let name = service_name(service);
        let (host, port) = self.services.get(&name)?;
        match self.kind {
            TargetKind::InProcess => return None,
            TargetKind::Envtest => {
                set(service, &["port"], *port);
                return Some((name, host.clone()));
            }
            TargetKind::Cluster => {}
        }
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let url = format!("https://{host}:{port}/{}", text(service, &["path"]).trim_start_matches('/'));
        client_config.remove("service");
        client_config.insert("url".to_owned(), Value::String(url));
        None
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TargetKind {
    /// The in-process API server.
    InProcess,
    /// etcd and kube-apiserver from KUBEBUILDER_ASSETS.
    Envtest,
    /// The cluster in KUBECONFIG.
    Cluster,
}

impl TargetKind {
    /// All kinds of targets, in the order in which the documentation lists them.
    pub const ALL: [Self; 3] = [Self::InProcess, Self::Envtest, Self::Cluster];

    /// Returns the name of the kind, as on the command line and in tags.
    pub fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Envtest => "envtest",
            Self::Cluster => "cluster",
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A started target with its servers. The servers stop when this value is dropped.
#[derive(Debug)]
pub struct Launched {
    /// The started target.
    pub target: Arc<Target>,
    _servers: Option<Servers>,
}

impl Launched {
    /// Starts a target whose fakes run in this process; `tell` receives progress messages.
    ///
    /// # Errors
    /// Returns an error if the environment does not support the target. The error contains advice.
    pub async fn start(arguments: &TargetArguments, tell: impl Fn(&str)) -> Result<Self, Failure> {
        let (target, servers) = match arguments.target {
            TargetKind::InProcess => (in_process::target(arguments)?, None),
            TargetKind::Envtest => {
                let (target, servers) = envtest::start(arguments, tell).await?;
                (target, Some(servers))
            }
            TargetKind::Cluster => (cluster::target(arguments).await?, None),
        };
        Ok(Self { target: Arc::new(target), _servers: servers })
    }

    /// Starts a target and registers its objects in a cluster with `cleanup`, even if the start fails.
    ///
    /// # Errors
    /// Returns the errors of [`Launched::start`].
    pub(crate) async fn start_run(
        arguments: &TargetArguments,
        cleanup: &Cleanup,
        tell: impl Fn(&str),
    ) -> Result<Self, Failure> {
        if arguments.wait > 0 {
            tell("waiting for the webhooks to start");
            arguments.wait_for_services().await?;
        }
        match arguments.target {
            TargetKind::InProcess | TargetKind::Envtest => Self::start(arguments, tell).await,
            TargetKind::Cluster => {
                let target = cluster::target_for_run(arguments, cleanup).await?;
                Ok(Self { target: Arc::new(target), _servers: None })
            }
        }
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
