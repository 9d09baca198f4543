//! Fakes in a cluster that come and go with the scenarios of a run.
//!
//! The port of a fake follows from its transport, and a Service has to show a port before anybody knows whether it is
//! needed. So each transport of the catalog is served from the start, and further ports are kept for any other.

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

/// Ports of the Service for transports that the catalog does not have, or that no two fakes may share.
const SPARE_PORTS: u16 = 16;
/// The name of the only file; `admit fakes deploy` calls its files otherwise.
const FILE: &str = "admit run";
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The pod and the Service of a fleet: put into a cluster, and taken out again.
pub(crate) struct FleetDeployment {
    api: Api,
    namespace: FakesNamespace,
    image: String,
    source: Source,
    progress: Progress,
    /// Whether there may be something to take out.
    is_ours: AtomicBool,
}

/// A fleet in a cluster.
#[derive(Clone)]
pub(crate) struct Fleet {
    namespace: FakesNamespace,
    admin: Admin,
    /// The ports that the Service shows.
    ports: BTreeSet<u16>,
}

/// One fake of a fleet.
pub(crate) struct RemoteFake {
    fleet: Fleet,
    name: String,
    /// How an API server of the cluster calls it.
    pub(crate) client_config: Value,
}

impl FleetDeployment {
    /// Nothing is in the cluster yet.
    ///
    /// # Errors
    /// The name of the namespace is too long for a certificate.
    pub(crate) fn new(api: Api, namespace: FakesNamespace, image: &str) -> Result<Self, Failure> {
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, FIRST_PORT));
        let file = SourceFile::parse(every_transport(), FILE)?;
        let source = Source::place(vec![file], listen, &namespace.host())?;
        let progress = Progress::new(LONGEST_WAIT);
        let is_ours = AtomicBool::new(false);
        Ok(Self { api, namespace, image: image.to_owned(), source, progress, is_ours })
    }

    /// Puts the fleet into the cluster, unless it is there from an earlier run, and waits until it answers.
    ///
    /// # Errors
    /// The namespace holds other fakes, or the pod does not come up: the failure says what the cluster tells of it.
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
        install::check_owners(&self.api, &self.namespace, &workload, "choose another namespace").await?;
        self.is_ours.store(!self.is_there(&workload).await?, Ordering::Relaxed);
        let admin = install::install(&self.api, &self.progress, &manifests).await?;
        Ok(Fleet { namespace: self.namespace.clone(), admin, ports: manifests.webhook_ports().collect() })
    }

    /// Whether an earlier run left a fleet.
    async fn is_there(&self, workload: &[Value]) -> Result<bool, Failure> {
        let namespace = self.namespace.as_str();
        let Some(found) = self.api.get(&Kind::CONFIG_MAP.path(namespace, NAME)).await? else {
            return Ok(false);
        };
        let is_same = |object, field| at(object, &[field]) == at(&found, &[field]);
        if workload.iter().any(|object| is_same(object, "kind") && is_same(object, "data")) {
            return Ok(true);
        }
        Err(Failure::usage(format!(
            "other fakes are deployed in the namespace `{namespace}`: choose another one, or take them out with `admit \
             fakes delete --namespace {namespace}`"
        )))
    }

    /// Takes out what [`FleetDeployment::put`] put there, also if it did not get to its end.
    ///
    /// # Errors
    /// The cluster does not answer or refuses, or something does not go in time.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        if !self.is_ours.load(Ordering::Relaxed) {
            return Ok(());
        }
        let progress = Progress::new(LONGEST_WAIT);
        let removal = Removal { api: &self.api, progress: &progress, namespace: &self.namespace };
        removal.remove().await.map(|_| ())
    }

    /// Whether [`FleetDeployment::remove`] has something to take out.
    pub(crate) fn is_ours(&self) -> bool {
        self.is_ours.load(Ordering::Relaxed)
    }

    /// Where the fleet is.
    pub(crate) fn namespace(&self) -> &FakesNamespace {
        &self.namespace
    }
}

impl Fleet {
    /// Where its Service is.
    pub(crate) fn host(&self) -> String {
        self.namespace.host()
    }

    /// Adds a fake, or puts it in the place of the one with its name. `entry` is an entry of a file of fakes without
    /// name and path.
    ///
    /// # Errors
    /// The fakes cannot be reached or refuse, or no port is left for this transport.
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
                "the Service of the fakes shows no further port: more than {SPARE_PORTS} connections and certificates \
                 beyond those of the catalog are asked for at a time"
            )));
        }
        Ok(fake)
    }
}

impl RemoteFake {
    /// The calls that it received after the one with this number, oldest first. Each is there before the API server
    /// answers the request that it belongs to.
    ///
    /// # Errors
    /// The fakes cannot be reached, or their journal cannot be read.
    pub(crate) async fn calls_after(&self, number: u64) -> Result<Vec<Entry>, Failure> {
        let journal = self.fleet.admin.journal(&format!("fake={}&after={number}", self.name)).await?;
        let entries = at(&journal, &["entries"]).as_array().map_or(&[][..], Vec::as_slice);
        entries.iter().map(|entry| Entry::from_json(entry).map_err(Failure::environment)).collect()
    }

    /// Does what `entry` says from now on.
    ///
    /// # Errors
    /// As with [`Fleet::put`].
    pub(crate) async fn replace(&mut self, entry: Value) -> Result<(), Failure> {
        *self = self.fleet.put(&self.name, entry).await?;
        Ok(())
    }

    /// Ends it.
    ///
    /// # Errors
    /// The fakes cannot be reached.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        self.fleet.admin.remove(&self.name).await
    }
}

/// A file with one fake for each transport of the catalog. One that changes after its first handshake cannot be
/// shared, so that it gets a port of its own when somebody asks for it.
fn every_transport() -> String {
    let mut transports = vec![Transport::default()];
    for fault in catalog() {
        let text = json!({"name": "fault", "type": fault.kind.unwrap_or(fake_webhooks::Kind::Validating), "fault": fault.id});
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
    fn every_transport_of_the_catalog_has_a_port_that_the_service_shows() {
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
