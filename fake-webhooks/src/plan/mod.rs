//! Assigns fakes to ports, based only on the fakes files.

mod configurations;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use certs::Name;
use serde_json::Value;

pub(crate) use self::configurations::by_url;
use self::configurations::{configurations, configured};
use crate::fakes_file::{FakeEntry, FakesFile};
use crate::{Credentials, RemoteAccess, Transport};

/// The assignment of fakes to listeners, for both fleets and cluster manifests.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    listeners: Vec<PlannedListener>,
    files: Vec<PlannedFile>,
}

/// A listener, with the properties that all its fakes share.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlannedListener {
    /// The address; port 0 uses a free port.
    pub listen: SocketAddr,
    /// Whether `listen` may be an address that other machines can reach.
    pub remote_access: RemoteAccess,
    /// The host name or address that callers use.
    pub host: Name,
    /// The transport of all fakes on the listener.
    pub transport: Transport,
    /// The credentials that all fakes on the listener require. A kubeconfig has one user for each host and port.
    pub credentials: Option<Credentials>,
}

/// A fake with its listener.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlannedFake {
    /// The entry in the fakes file.
    pub entry: FakeEntry,
    /// The index in [`Plan::listeners`].
    pub listener: usize,
    /// The address of the listener; port 0 uses a free port.
    pub listen: SocketAddr,
}

/// The fakes of a file, in file order.
#[derive(Clone, Debug, PartialEq)]
struct PlannedFile {
    name: String,
    fakes: Vec<PlannedFake>,
}

/// The reason why files cannot be served together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A file listens on all addresses, so URLs need an explicit host.
    #[error("invalid address {0} for callers: set `host` or --host to the name or address that callers use")]
    NoHost(IpAddr),
    /// Two configurations have the same name, so the second would replace the first.
    #[error("duplicate configuration name `{0}`: change the `name` in one of the files")]
    SameName(String),
    /// Two webhooks have the same name.
    #[error("duplicate webhook name `{0}`: change the `name` in one of the files")]
    SameWebhook(String),
    /// No port number is left after the requested port.
    #[error("no ports left for another certificate or connection: 65535 is the highest")]
    NoPort,
}

impl Plan {
    /// Assigns all fakes in `files` to listeners.
    ///
    /// Fakes of one file with equal [`Transport`] and credentials share a port. The first listener of an address uses
    /// the requested port, and additional listeners use the ports that follow.
    ///
    /// # Errors
    /// Returns an error if two files conflict, or if a file listens on all addresses and does not have a host.
    pub fn new(files: &[FakesFile]) -> Result<Self, PlanError> {
        let (mut names, mut webhooks) = (BTreeSet::new(), BTreeSet::new());
        if let Some(file) = files.iter().find(|file| !names.insert(&file.name)) {
            return Err(PlanError::SameName(file.name.clone()));
        }
        let mut entries = files.iter().flat_map(|file| &file.webhooks);
        if let Some(entry) = entries.find(|entry| !webhooks.insert(&entry.name)) {
            return Err(PlanError::SameWebhook(entry.name.clone()));
        }
        let mut plan = Self { listeners: Vec::new(), files: Vec::new() };
        let mut ports = Ports::default();
        for file in files {
            plan.add(file, &mut ports)?;
        }
        Ok(plan)
    }

    fn add(&mut self, file: &FakesFile, ports: &mut Ports) -> Result<(), PlanError> {
        let host = host(file)?;
        let first = self.listeners.len();
        let mut fakes = Vec::new();
        for entry in &file.webhooks {
            let mut own = self.listeners.iter().enumerate().skip(first);
            let credentials = entry.behavior.demanded();
            let shared =
                own.find(|(_, it)| it.transport == entry.transport && it.credentials.as_ref() == credentials);
            let (listener, listen) = if let Some((listener, planned)) = shared {
                (listener, planned.listen)
            } else {
                let listen = ports.next(file.listen)?;
                self.listeners.push(PlannedListener {
                    listen,
                    remote_access: file.remote_access,
                    host: host.clone(),
                    transport: entry.transport,
                    credentials: credentials.cloned(),
                });
                (self.listeners.len() - 1, listen)
            };
            fakes.push(PlannedFake { entry: entry.clone(), listener, listen });
        }
        self.files.push(PlannedFile { name: file.name.clone(), fakes });
        Ok(())
    }

    /// Returns the listeners in the order in which fakes first use them.
    pub fn listeners(&self) -> &[PlannedListener] {
        &self.listeners
    }

    /// Returns the fakes of all files in order.
    pub fn fakes(&self) -> impl Iterator<Item = &PlannedFake> + Clone {
        self.files.iter().flat_map(|file| &file.fakes)
    }

    /// Returns the webhook configurations of all files; `client_config` creates the `clientConfig` of each fake.
    ///
    /// Mutating webhooks are called in file order.
    pub fn configurations(&self, mut client_config: impl FnMut(&PlannedFake) -> Value) -> Vec<Value> {
        let mut all = Vec::new();
        for file in &self.files {
            let placed: Vec<_> = file.fakes.iter().map(|fake| (&fake.entry, client_config(fake))).collect();
            all.extend(configurations(&file.name, &placed));
        }
        all
    }
}

impl PlannedFake {
    /// Returns the entry for a webhook configuration, with the given `clientConfig`.
    pub fn configured(&self, client_config: &Value) -> Value {
        configured(&self.entry, client_config)
    }
}

/// Returns the host name or address of the fakes in a file.
///
/// # Errors
/// Returns an error if the file listens on all addresses and does not have a host.
pub(crate) fn host(file: &FakesFile) -> Result<Name, PlanError> {
    let ip = file.listen.ip();
    match &file.host {
        Some(host) => Ok(host.clone()),
        None if ip.is_unspecified() => Err(PlanError::NoHost(ip)),
        None => Ok(ip.into()),
    }
}

/// The number of listeners at each requested address.
#[derive(Default)]
struct Ports(BTreeMap<SocketAddr, u16>);

impl Ports {
    fn next(&mut self, wanted: SocketAddr) -> Result<SocketAddr, PlanError> {
        let taken = self.0.entry(wanted).or_default();
        let port = if wanted.port() == 0 { Some(0) } else { wanted.port().checked_add(*taken) };
        *taken += 1;
        Ok(SocketAddr::new(wanted.ip(), port.ok_or(PlanError::NoPort)?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(name: &str, listen: &str, webhooks: &str) -> FakesFile {
        let text = format!("version: 1\nname: {name}\nlisten: {listen}\nwebhooks:\n{webhooks}");
        FakesFile::parse(&text, "fakes.yaml").unwrap()
    }

    fn webhook(name: &str, certificate: &str) -> String {
        format!("- {{name: {name}, type: validating, behavior: allow, certificate: {certificate}}}\n")
    }

    #[test]
    fn fakes_with_equal_transport_share_a_port() {
        let webhooks = [webhook("a", "valid"), webhook("b", "expired"), webhook("c", "valid")].concat();
        let files = [
            file("one", "127.0.0.1:8443", &webhooks),
            file("two", "127.0.0.1:8443", &webhook("d", "valid")),
            file("three", "127.0.0.1:0", &webhook("e", "valid")),
        ];
        let plan = Plan::new(&files).unwrap();
        let ports: Vec<_> = plan.listeners().iter().map(|listener| listener.listen.port()).collect();
        assert_eq!(ports, [8443, 8444, 8445, 0]);
        let listeners: Vec<_> = plan.fakes().map(|fake| fake.listener).collect();
        assert_eq!(listeners, [0, 1, 0, 2, 3]);
        let configurations = plan.configurations(|fake| json!({"listener": fake.listener}));
        assert_eq!(configurations[0]["webhooks"][1]["clientConfig"], json!({"listener": 1}));
        assert_eq!(configurations[2]["webhooks"][0]["name"], "e.fakes.local");
    }

    #[test]
    fn conflicting_files_are_rejected() {
        let one = file("one", "127.0.0.1:0", &webhook("a", "valid"));
        let check = |files: &[FakesFile], expected: PlanError| assert_eq!(Plan::new(files), Err(expected));
        check(&[one.clone(), one.clone()], PlanError::SameName("one".to_owned()));
        let other = FakesFile { name: "other".to_owned(), ..one.clone() };
        check(&[one, other], PlanError::SameWebhook("a.fakes.local".to_owned()));
        let everywhere = file("one", "0.0.0.0:0", &webhook("a", "valid"));
        check(&[everywhere], PlanError::NoHost("0.0.0.0".parse().unwrap()));
        let webhooks = [webhook("a", "valid"), webhook("b", "expired")].concat();
        check(&[file("one", "127.0.0.1:65535", &webhooks)], PlanError::NoPort);
    }
}
