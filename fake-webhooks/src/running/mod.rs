//! Adds, changes, and removes the running fakes of a fleet by name.

mod group;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use certs::CertificateAuthority;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use self::group::Group;
use crate::endpoint::{Endpoint, Shared};
use crate::fakes_file::{FakeEntry, FakesFile};
use crate::journal::log_line;
use crate::json::set;
use crate::plan::{self, Plan, PlanError, PlannedListener, by_url};
use crate::{
    Behavior, Certificate, Credentials, Limits, Observer, StartError, TlsError, Transport, WebhookType,
};

/// A callback that receives log lines; it must not block.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The fakes of a fleet.
pub(crate) struct Running {
    authority: Arc<CertificateAuthority>,
    shared: Shared,
    limits: Limits,
    log: Log,
    /// The settings of the listener for fakes that are added later.
    home: PlannedListener,
    /// The fakes and their groups; the lock serializes changes, including the creation of sockets.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    groups: Vec<Group>,
    fakes: BTreeMap<String, RunningFake>,
}

/// A fake and its address.
struct RunningFake {
    entry: FakeEntry,
    endpoint: Arc<Endpoint>,
    /// The address of the group that serves the fake.
    address: SocketAddr,
}

/// The error for the name of a fake that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("unknown fake `{0}`")]
pub struct UnknownFake(pub(crate) String);

/// A running fake, for users who watch it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FakeStatus {
    /// The unique name of the fake.
    pub name: String,
    /// Whether the webhook is mutating or validating.
    #[serde(rename = "type")]
    pub kind: WebhookType,
    /// The URL at which an API server calls the fake.
    pub url: String,
    /// The current behavior.
    pub behavior: Behavior,
    /// The number of calls since the start or the last reset, including calls in progress.
    pub calls: u64,
}

/// The reason why the behavior of a fake could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BehaviorError {
    /// No fake has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownFake),
    /// The behavior writes raw bytes, but the fake offers HTTP/2.
    #[error(
        "invalid behavior for the running fake `{0}`: raw bytes require HTTP/1.1; start the fake with `http: http1`"
    )]
    NeedsHttp1(String),
    /// The behavior requires a client certificate, but the fake does not request one.
    #[error(
        "invalid behavior for the running fake `{0}`: the fake does not request client certificates; start it with \
         `connection: client-certificate`"
    )]
    NeedsClientCertificates(String),
}

/// The reason why a fake could not be added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PutError {
    #[error("path already in use by the fake `{0}` on the same port")]
    PathTaken(String),
    #[error("no ports left: 65535 is the highest")]
    NoPort,
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Running {
    /// Creates a fleet without fakes; fakes that are added later listen at `home`.
    pub(crate) fn new(
        home: &FakesFile,
        authority: Arc<CertificateAuthority>,
        limits: Limits,
        log: Log,
    ) -> Result<Self, PlanError> {
        let home = PlannedListener {
            listen: home.listen,
            remote_access: home.remote_access,
            host: plan::host(home)?,
            transport: Transport::default(),
            credentials: None,
        };
        let tell = Arc::clone(&log);
        let shared = Shared::new(&limits, move |text| tell(text));
        Ok(Self { authority, shared, limits, log, home, state: Mutex::default() })
    }

    /// Starts all fakes of a plan and returns the `clientConfig` of each fake, in order.
    pub(crate) async fn start(&self, plan: &Plan) -> Result<Vec<Value>, StartError> {
        let mut state = self.state.lock().await;
        let mut client_configs = BTreeMap::new();
        for (listener, planned) in plan.listeners().iter().enumerate() {
            let group = self.listen(planned.clone()).await?;
            let address = group.address();
            let client_config = |path: &str| self.client_config(&group, path);
            let served = plan.fakes().enumerate().filter(|(_, fake)| fake.listener == listener);
            client_configs
                .extend(served.clone().map(|(place, fake)| (place, client_config(&fake.entry.path))));
            state.groups.push(group);
            for (_, fake) in served {
                self.place(&mut state, fake.entry.clone(), address);
            }
        }
        Ok(client_configs.into_values().collect())
    }

    async fn listen(&self, planned: PlannedListener) -> Result<Group, StartError> {
        let transport = planned.transport;
        let group = Group::start(planned, &self.authority, &self.limits, &self.shared).await?;
        (self.log)(&format!("listening on {} {transport}", group.address()));
        Ok(group)
    }

    fn place(&self, state: &mut State, entry: FakeEntry, address: SocketAddr) {
        let log = Arc::clone(&self.log);
        let observer = Observer::new(move |entry| log(&log_line(entry)));
        let behavior = entry.behavior.clone();
        let endpoint = Endpoint::new(&entry.name, behavior, &self.limits, observer, &self.shared);
        let endpoint = Arc::new(endpoint);
        if let Some(group) = state.groups.iter().find(|group| group.address() == address) {
            group.serve(entry.path.clone(), Arc::clone(&endpoint));
        }
        state.fakes.insert(entry.name.clone(), RunningFake { entry, endpoint, address });
    }

    /// Adds or replaces a fake; returns its description, and whether the fake is new.
    pub(crate) async fn put(&self, entry: FakeEntry) -> Result<(Value, bool), PutError> {
        let mut state = self.state.lock().await;
        let group = state.groups.iter().find(|group| group.fits(&entry)).map(Group::address);
        let address = if let Some(address) = group {
            address
        } else {
            let listen = self.free(&state)?;
            let planned = PlannedListener {
                listen,
                transport: entry.transport,
                credentials: entry.behavior.demanded().cloned(),
                ..self.home.clone()
            };
            let group = self.listen(planned).await?;
            let address = group.address();
            state.groups.push(group);
            address
        };
        let mut others = state.fakes.values().filter(|other| other.entry.name != entry.name);
        if let Some(other) = others.find(|it| it.address == address && it.entry.path == entry.path) {
            return Err(PutError::PathTaken(other.entry.name.clone()));
        }
        let name = entry.name.clone();
        let (path, old) = (entry.path.clone(), state.fakes.remove(&name));
        // The new fake is started first, so that a concurrent call reaches one of them.
        self.place(&mut state, entry, address);
        let is_new = old.is_none();
        if let Some(old) = old
            && (old.address, &old.entry.path) != (address, &path)
        {
            leave(&mut state, &old).await;
        }
        (self.log)(&format!("{name} {}", if is_new { "was added" } else { "was replaced" }));
        Ok((self.view(&state, &name).unwrap_or_default(), is_new))
    }

    /// Returns an address for an additional listener.
    fn free(&self, state: &State) -> Result<SocketAddr, PutError> {
        let wanted = self.home.listen;
        if wanted.port() == 0 {
            return Ok(wanted);
        }
        let is_free = |port: &u16| state.groups.iter().all(|group| group.address().port() != *port);
        let port = (wanted.port()..=u16::MAX).find(is_free).ok_or(PutError::NoPort)?;
        Ok(SocketAddr::new(wanted.ip(), port))
    }

    /// Removes a fake, and closes its port if no other fake uses it.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), UnknownFake> {
        let mut state = self.state.lock().await;
        let fake = state.fakes.remove(name).ok_or_else(|| UnknownFake(name.to_owned()))?;
        leave(&mut state, &fake).await;
        self.shared.metrics.forget(name);
        (self.log)(&format!("{name} was removed"));
        Ok(())
    }

    /// Changes the behavior of a fake for new calls and returns the fake's description.
    ///
    /// The transport does not change. A behavior that requires another transport is rejected.
    pub(crate) async fn set_behavior(&self, name: &str, behavior: Behavior) -> Result<Value, BehaviorError> {
        let mut state = self.state.lock().await;
        let fake = state.fakes.get_mut(name).ok_or_else(|| UnknownFake(name.to_owned()))?;
        let (transport, required) = (fake.entry.transport, fake.entry.transport.for_behavior(&behavior));
        if required.http != transport.http {
            return Err(BehaviorError::NeedsHttp1(name.to_owned()));
        }
        if required.connection != transport.connection {
            return Err(BehaviorError::NeedsClientCertificates(name.to_owned()));
        }
        fake.entry.behavior = behavior.clone();
        fake.endpoint.set_behavior(behavior);
        (self.log)(&format!("{name} has a new behavior"));
        Ok(self.view(&state, name).unwrap_or_default())
    }

    /// Resets the call counter of a fake and forgets its earlier calls.
    pub(crate) async fn reset(&self, name: &str) -> Result<(), UnknownFake> {
        let state = self.state.lock().await;
        let fake = state.fakes.get(name).ok_or_else(|| UnknownFake(name.to_owned()))?;
        fake.endpoint.reset();
        Ok(())
    }

    /// Issues certificates of the kind `certificate` for new handshakes. Open connections are kept.
    pub(crate) async fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        let mut state = self.state.lock().await;
        for group in &mut state.groups {
            group.rotate(certificate)?;
        }
        for fake in state.fakes.values_mut() {
            fake.entry.transport.certificate = certificate;
        }
        (self.log)(&format!("new handshakes use the certificate `{certificate}`"));
        Ok(())
    }

    /// Returns the required credentials by host and port.
    pub(crate) async fn credentials(&self) -> BTreeMap<String, Credentials> {
        let state = self.state.lock().await;
        state.groups.iter().filter_map(Group::credentials).collect()
    }

    /// Returns the descriptions of all fakes, sorted by name.
    pub(crate) async fn list(&self) -> Vec<Value> {
        let state = self.state.lock().await;
        state.fakes.keys().filter_map(|name| self.view(&state, name)).collect()
    }

    /// Returns the status of each fake, sorted by name.
    pub(crate) async fn statuses(&self) -> Vec<FakeStatus> {
        let state = self.state.lock().await;
        let status = |fake: &RunningFake| {
            let group = state.groups.iter().find(|group| group.address() == fake.address)?;
            Some(FakeStatus {
                name: fake.entry.name.clone(),
                kind: fake.entry.kind,
                url: group.url(&fake.entry.path),
                behavior: fake.entry.behavior.clone(),
                calls: fake.endpoint.calls(),
            })
        };
        state.fakes.values().filter_map(status).collect()
    }

    fn view(&self, state: &State, name: &str) -> Option<Value> {
        let RunningFake { entry, address, .. } = state.fakes.get(name)?;
        let group = state.groups.iter().find(|group| group.address() == *address)?;
        let Transport { certificate, rotate, connection, http } = entry.transport;
        let mut view = self.client_config(group, &entry.path);
        for (field, value) in [
            ("name", json!(entry.name)),
            ("type", json!(entry.kind)),
            ("path", json!(entry.path)),
            ("port", json!(address.port())),
            ("behavior", json!(entry.behavior)),
            ("certificate", json!(certificate)),
            ("connection", json!(connection)),
            ("http", json!(http)),
        ] {
            set(&mut view, &[field], value);
        }
        if let Some(rotate) = rotate {
            set(&mut view, &["rotate"], json!(rotate));
        }
        Some(view)
    }

    /// Returns a `clientConfig` with `url` and `caBundle`.
    fn client_config(&self, group: &Group, path: &str) -> Value {
        by_url(&group.url(path), group.ca_bundle().unwrap_or(self.authority.certificate_pem()))
    }

    pub(crate) fn authority_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    pub(crate) fn authority(&self) -> &Arc<CertificateAuthority> {
        &self.authority
    }

    /// Returns the settings of the listener for fakes that are added later.
    pub(crate) fn home(&self) -> &PlannedListener {
        &self.home
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) async fn stop(&self) {
        let groups = std::mem::take(&mut self.state.lock().await.groups);
        futures::future::join_all(groups.into_iter().map(Group::stop)).await;
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

/// Removes a fake from its port, and closes the port if no other fake uses it.
async fn leave(state: &mut State, fake: &RunningFake) {
    let mut groups = state.groups.iter().enumerate();
    let Some((index, group)) = groups.find(|(_, group)| group.address() == fake.address) else { return };
    let is_served = group.at(&fake.entry.path).is_some_and(|endpoint| Arc::ptr_eq(&endpoint, &fake.endpoint));
    if is_served {
        group.forget(&fake.entry.path);
    }
    if group.is_empty() {
        state.groups.remove(index).stop().await;
    }
}
