//! Deploys fakes to a cluster for scenarios. The scenarios add and remove fakes during a run.
//!
//! The port of a fake depends on its transport, and the Service must list all ports in advance. Therefore the Service
//! has a port for every transport in the catalog from the start, and spare ports for other transports.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fake_webhooks::{Entry, FakeEntry, Transport, catalog};
use harness::json::{at, set};
use serde_json::{Value, json};

use super::admin::Admin;
use super::api::{Api, Kind};
use super::delete::Removal;
use super::install;
use super::manifests::{FIRST_PORT, Manifests};
use super::names::{FakesNamespace, NAME};
use super::progress::Progress;
use super::source::{Source, SourceFile};
use crate::Failure;

/// The number of spare ports for transports that are not in the catalog or cannot be shared.
const SPARE_PORTS: u16 = 16;
/// The name of the generated fakes file. It differs from the names of all files of `admit fakes deploy`.
const FILE: &str = "admit run";
const TIMEOUT: Duration = Duration::from_secs(120);

/// The deployment of a fleet to a namespace of a cluster.
pub(crate) struct FleetDeployment {
    api: Api,
    namespace: FakesNamespace,
    image: String,
    source: Source,
    progress: Progress,
    /// Whether the cluster may contain objects to remove.
    is_ours: AtomicBool,
}

/// A set of fakes that is deployed to a cluster.
#[derive(Clone)]
pub(crate) struct Fleet {
    namespace: FakesNamespace,
    admin: Admin,
    /// The ports of the Service.
    ports: BTreeSet<u16>,
}

pub(crate) struct RemoteFake {
    fleet: Fleet,
    name: String,
    /// The `clientConfig` for calls by the cluster's API server.
    pub(crate) client_config: Value,
}

impl FleetDeployment {
    /// Prepares a deployment without contacting the cluster.
    ///
    /// # Errors
    /// Returns an error if the name of the namespace is too long for a certificate.
    pub(crate) fn new(api: Api, namespace: FakesNamespace, image: &str) -> Result<Self, Failure> {
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, FIRST_PORT));
        let file = SourceFile::parse(every_transport(), FILE)?;
        let source = Source::place(vec![file], listen, &namespace.host())?;
        let progress = Progress::new(TIMEOUT);
        let is_ours = AtomicBool::new(false);
        Ok(Self { api, namespace, image: image.to_owned(), source, progress, is_ours })
    }

    /// Deploys the fleet unless an earlier run deployed it, and waits until it responds.
    ///
    /// # Errors
    /// Returns an error if the namespace contains other fakes, or the pod does not become ready. The error includes its
    /// state.
    pub(crate) async fn put(&self) -> Result<Fleet, Failure> {
        let secrets = install::secrets(&self.api, &self.namespace).await?;
        let manifests = Manifests {
            namespace: &self.namespace,
            image: &self.image,
            source: &self.source,
            spare_ports: SPARE_PORTS,
            secrets: &secrets,
        };
        let workload = manifests.workload();
        install::check_owners(&self.api, &self.namespace, &workload, "use another namespace").await?;
        self.is_ours.store(!self.exists(&workload).await?, Ordering::Relaxed);
        let admin = install::install(&self.api, &self.progress, &manifests).await?;
        Ok(Fleet { namespace: self.namespace.clone(), admin, ports: manifests.webhook_ports().collect() })
    }

    /// Returns whether the cluster already contains a fleet of an earlier run.
    async fn exists(&self, workload: &[Value]) -> Result<bool, Failure> {
        let namespace = self.namespace.as_str();
        let Some(found) = self.api.get(&Kind::CONFIG_MAP.path(namespace, NAME)).await? else {
            return Ok(false);
        };
        let is_same = |object, field| at(object, &[field]) == at(&found, &[field]);
        if workload.iter().any(|object| is_same(object, "kind") && is_same(object, "data")) {
            return Ok(true);
        }
        Err(Failure::usage(format!(
            "other fakes are deployed in the namespace `{namespace}`: use another one, or remove them with `admit fakes \
             delete --namespace {namespace}`"
        )))
    }

    /// Removes the objects that [`FleetDeployment::put`] created, even if it was interrupted.
    ///
    /// # Errors
    /// Returns an error if the cluster does not respond, rejects a request, or does not delete an object before the
    /// timeout.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        if !self.is_ours.load(Ordering::Relaxed) {
            return Ok(());
        }
        let progress = Progress::new(TIMEOUT);
        let removal = Removal { api: &self.api, progress: &progress, namespace: &self.namespace };
        removal.remove().await.map(|_| ())
    }

    /// Returns whether [`FleetDeployment::remove`] may have objects to remove.
    pub(crate) fn is_ours(&self) -> bool {
        self.is_ours.load(Ordering::Relaxed)
    }

    pub(crate) fn namespace(&self) -> &FakesNamespace {
        &self.namespace
    }
}

impl Fleet {
    /// Returns the host name of the fleet's Service.
    pub(crate) fn host(&self) -> String {
        self.namespace.host()
    }

    /// Adds or replaces a fake; `entry` is an entry of a fakes file without the name and the path.
    ///
    /// # Errors
    /// Returns an error if the fakes cannot be reached or reject the entry, or no port is left for this transport.
    pub(crate) async fn put(&self, name: &str, mut entry: Value) -> Result<RemoteFake, Failure> {
        let path = format!("/{name}");
        set(&mut entry, &["path"], &*path);
        let placed = self.admin.put(name, &entry).await?;
        let fleet = self.clone();
        let port =
            at(&placed, &["port"]).as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
        let service = json!({"namespace": self.namespace.as_str(), "name": NAME, "port": port, "path": path});
        let client_config = json!({"service": service, "caBundle": at(&placed, &["caBundle"])});
        let fake = RemoteFake { fleet, name: name.to_owned(), client_config };
        if !self.ports.contains(&port) {
            fake.remove().await?;
            return Err(Failure::environment(format!(
                "no ports left in the Service of the fakes: at most {SPARE_PORTS} connections and certificates that are \
                 not in the catalog can be used at the same time"
            )));
        }
        Ok(fake)
    }
}

impl RemoteFake {
    /// Returns the calls after call `number`, oldest first.
    ///
    /// A call is recorded before the API server answers the request that caused it.
    ///
    /// # Errors
    /// Returns an error if the fakes cannot be reached, or their journal cannot be read.
    pub(crate) async fn calls_after(&self, number: u64) -> Result<Vec<Entry>, Failure> {
        let journal = self.fleet.admin.journal(&format!("fake={}&after={number}", self.name)).await?;
        let entries = at(&journal, &["entries"]).as_array().map_or(&[][..], Vec::as_slice);
        entries.iter().map(|entry| Entry::from_json(entry).map_err(Failure::environment)).collect()
    }

    /// Replaces the fake with the fake that `entry` describes.
    ///
    /// # Errors
    /// Returns the same errors as [`Fleet::put`].
    pub(crate) async fn replace(&mut self, entry: Value) -> Result<(), Failure> {
        *self = self.fleet.put(&self.name, entry).await?;
        Ok(())
    }

    /// Removes the fake.
    ///
    /// # Errors
    /// Returns an error if the fakes cannot be reached.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        self.fleet.admin.remove(&self.name).await
    }
}

/// Returns a fakes file with one fake for each transport in the catalog.
///
/// A transport that changes after its first handshake cannot be shared and gets its own port on demand.
fn every_transport() -> String {
    let mut transports = vec![Transport::default()];
    for fault in catalog() {
        let text = json!({"name": "fault", "type": fault.kind.unwrap_or(fake_webhooks::WebhookType::Validating), "fault": fault.id});
        let entry = FakeEntry::parse(&text.to_string(), FILE);
        let transport = entry.map(|entry| entry.transport).unwrap_or_default();
        if transport.rotate.is_none() && !transports.contains(&transport) {
            transports.push(transport);
        }
    }
    let fakes = transports.into_iter().enumerate().map(|(index, transport)| {
        let mut fake = json!(transport);
        set(&mut fake, &["name"], format!("transport-{index}"));
        set(&mut fake, &["type"], "validating");
        set(&mut fake, &["behavior"], "allow");
        fake
    });
    let file = json!({"version": 1, "name": "admit-run", "webhooks": fakes.collect::<Vec<_>>()});
    format!("{file:#}\n")
}

impl std::fmt::Debug for RemoteFake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteFake").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_has_a_port_for_every_transport_of_the_catalog() {
        let file = SourceFile::parse(every_transport(), FILE).unwrap();
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, FIRST_PORT));
        let source = Source::place(vec![file], listen, "admit-fakes.demo.svc").unwrap();
        let served: Vec<_> = source.plan.listeners().iter().map(|listener| listener.transport).collect();
        for text in ["connection: refused", "certificate: expired", "http: http1"] {
            let entry = format!("{{name: a, type: validating, behavior: allow, {text}}}");
            let transport = FakeEntry::parse(&entry, "test").unwrap().transport;
            assert_eq!(served.iter().filter(|it| **it == transport).count(), 1, "{text}");
        }
        let secrets = install::new_secrets().unwrap();
        let namespace: FakesNamespace = "demo".parse().unwrap();
        let manifests = Manifests {
            namespace: &namespace,
            image: "image",
            source: &source,
            spare_ports: SPARE_PORTS,
            secrets: &secrets,
        };
        let ports: BTreeSet<_> = manifests.webhook_ports().collect();
        assert_eq!(ports.len(), served.len() + usize::from(SPARE_PORTS));
        let [_, _, _, service] = manifests.workload();
        let shown = service["spec"]["ports"].as_array().unwrap();
        assert_eq!(shown.len(), ports.len() + 1, "those, and the admin endpoint");
    }
}
