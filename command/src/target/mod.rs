//! What the steps speak to: a Kubernetes client, and how a fake is reached from that server.

mod arguments;
mod call_log;
mod cleanup;
mod cluster;
mod connection;
mod envtest;
mod identity;
mod in_process;
mod relay;
mod storage;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

pub use admit_testing::audit_log::{Annotations, AuditEvent, AuditLog};
pub use arguments::TargetArguments;
pub(crate) use call_log::{CallLog, RecordedCall};
pub(crate) use cleanup::{Cleanup, Leftovers, RUN_LABEL};

use crate::Failure;
use crate::fakes::Fleet;
use crate::static_manifests::Watch;
use envtest::Servers;
use harness::json::set;
use harness::server::ServiceName;
use identity::Identities;
use serde_json::Value;
use storage::Storage;

/// A server that scenarios run against.
pub struct Target {
    /// Which kind of server.
    pub kind: TargetKind,
    /// The only way in which steps speak to it.
    pub client: kube::Client,
    /// The same, each of whose requests goes over a connection of its own where there is none otherwise: in process too an
    /// answer may be a WebSocket.
    pub connecting_client: kube::Client,
    /// Where the fakes of scenarios run.
    pub(crate) fakes: FakesPlace,
    /// Where services listen that a `clientConfig` names, by `--service`: host and port. The API server of this crate
    /// knows them itself; for every other one a configuration's `service` has to be rewritten into a `url`.
    pub services: BTreeMap<ServiceName, (String, u16)>,
    /// Where the audit events of requests are found; a cluster may not show them.
    pub audit: AuditLog,
    /// The calls of webhooks that are no fakes.
    pub(crate) calls: CallLog,
    /// The value of [`RUN_LABEL`] on what has no namespace.
    pub(crate) run: String,
    /// What becomes of that when a scenario ends.
    pub(crate) leftovers: Leftovers,
    identities: Identities,
    storage: Storage,
    /// Of the API server of this crate.
    _manifests: Watch,
}

/// Where the fakes of scenarios run, and how the server reaches them.
pub(crate) enum FakesPlace {
    /// In this process, by URL.
    Here {
        /// The host under which the server reaches them: `127.0.0.1` but for a cluster.
        host: String,
        /// The address at which they listen: loopback but for a cluster.
        listen: IpAddr,
    },
    /// In a pod of the cluster, by Service.
    InCluster(Fleet),
}

impl FakesPlace {
    /// In this process, for a server on this machine.
    fn loopback() -> Self {
        Self::Here { host: LOOPBACK.to_string(), listen: LOOPBACK }
    }

    /// What the server has to reach.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Here { host, .. } => host.clone(),
            Self::InCluster(fleet) => fleet.host(),
        }
    }
}

impl Target {
    /// Has the server find the `service` of a webhook's `clientConfig` where `--service` says that it listens. Returns the
    /// service that has to be in the server for that, and the host that it has to lead to.
    ///
    /// The API server of this crate needs nothing for that. A kube-apiserver without a network behind it finds a service
    /// of type `ExternalName` at its host and the webhook's own port, and keeps the service's name in TLS. In a cluster the
    /// service is somebody's own, so that the webhook gets a URL.
    ///
    /// Source: apiserver pkg/util/proxy/proxy.go, `ResolveCluster`; pkg/util/webhook/client.go.
    pub(crate) fn locate(&self, webhook: &mut Value) -> Option<(ServiceName, String)> {
        let client_config = webhook.get_mut("clientConfig")?.as_object_mut()?;
        let service = client_config.get_mut("service")?;
        let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = ServiceName { namespace: text("namespace").to_owned(), name: text("name").to_owned() };
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
        let url = format!("https://{host}:{port}/{}", text("path").trim_start_matches('/'));
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

/// Which kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TargetKind {
    /// The API server of this crate, without a socket.
    InProcess,
    /// etcd and kube-apiserver started from KUBEBUILDER_ASSETS.
    Envtest,
    /// A cluster that KUBECONFIG names.
    Cluster,
}

impl TargetKind {
    /// Every kind, in the order in which they are described.
    pub const ALL: [Self; 3] = [Self::InProcess, Self::Envtest, Self::Cluster];

    /// The kind as the command line and the tags of scenarios write it.
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

/// A target with the servers that were started for it; dropped means that they are killed and their folder is gone.
#[derive(Debug)]
pub struct Launched {
    /// What the scenarios speak to.
    pub target: Arc<Target>,
    _servers: Option<Servers>,
}

impl Launched {
    /// Makes a target ready whose fakes run in this process; `tell` hears what is being waited for.
    ///
    /// # Errors
    /// An environment error: the failure says what to do.
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

    /// Makes a target ready, wherever its fakes run. `cleanup` knows what has to be taken out of a cluster again, also
    /// if this does not get to its end.
    ///
    /// # Errors
    /// As with [`Launched::start`].
    pub(crate) async fn start_run(
        arguments: &TargetArguments,
        cleanup: &Cleanup,
        tell: impl Fn(&str),
    ) -> Result<Self, Failure> {
        match arguments.target {
            TargetKind::InProcess | TargetKind::Envtest => Self::start(arguments, tell).await,
            TargetKind::Cluster => {
                let target = cluster::target_of_run(arguments, cleanup).await?;
                Ok(Self { target: Arc::new(target), _servers: None })
            }
        }
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
