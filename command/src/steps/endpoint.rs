//! How a fake of a scenario is reached from the server, and what it received.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Behavior, Entry, Fake, FakeWebhook, RemoteAccess, Transport};
use harness::json::set;
use serde_json::{Value, json};

use super::failure::{Outcome, StepFailure};
use super::parameter::Admission;
use crate::fakes::RemoteFake;
use crate::target::{FakesPlace, Target};

/// What a fake is to be like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// Which plugin calls it.
    pub(crate) admission: Admission,
    /// What a connection to it meets.
    pub(crate) transport: Transport,
    /// What it does.
    pub(crate) behavior: Behavior,
    /// Names in its certificate beside that of its host; a fake in the cluster has those of its Service.
    pub(crate) names: Vec<String>,
}

/// A webhook that the server can call.
#[derive(Debug)]
pub(crate) enum Running {
    /// A fake of this process.
    Here {
        /// The fake.
        fake: FakeWebhook,
        /// What is dialled from the server.
        host: String,
    },
    /// A fake in the cluster.
    InCluster(Box<RemoteFake>),
}

impl Running {
    /// Starts a fake where `target` can reach it, under a `name` that no other has.
    pub(crate) async fn start(target: &Target, name: &str, wanted: &Wanted) -> Outcome<Self> {
        match &target.fakes {
            FakesPlace::Here { host, listen } => Self::start_here(host, *listen, wanted.clone()).await,
            FakesPlace::InCluster(fleet) => {
                let fake = fleet.put(name, wanted.entry()).await.map_err(StepFailure::new)?;
                Ok(Self::InCluster(Box::new(fake)))
            }
        }
    }

    async fn start_here(host: &str, listen: IpAddr, wanted: Wanted) -> Outcome<Self> {
        let (remote_access, mut names) = if listen.is_loopback() {
            (RemoteAccess::Refused, Vec::new())
        } else {
            (RemoteAccess::Allowed, vec![host.to_owned()])
        };
        let Wanted { transport, behavior, names: services, admission: _ } = wanted;
        names.extend(services);
        let fake = Fake {
            behavior,
            certificate: transport.certificate,
            rotate: transport.rotate,
            connection: transport.connection,
            http: transport.http,
            listen: SocketAddr::new(listen, 0),
            names,
            remote_access,
            ..Fake::default()
        };
        // Certificates take their time, and all scenarios share one task.
        let fake = tokio::spawn(FakeWebhook::start(fake)).await??;
        Ok(Self::Here { fake, host: host.to_owned() })
    }

    /// `clientConfig` for calls to it.
    pub(crate) fn client_config(&self) -> Value {
        match self {
            Self::Here { fake, host } => {
                let url = format!("https://{}:{}/", bracketed(host), fake.address().port());
                json!({"url": url, "caBundle": STANDARD.encode(fake.ca_bundle())})
            }
            Self::InCluster(fake) => fake.client_config.clone(),
        }
    }

    /// Does something else from the next call on.
    pub(crate) async fn change(&mut self, wanted: &Wanted) -> Outcome {
        match self {
            Self::Here { fake, .. } => {
                fake.set_behavior(wanted.behavior.clone());
                Ok(())
            }
            Self::InCluster(fake) => fake.replace(wanted.entry()).await.map_err(StepFailure::new),
        }
    }

    /// The calls that it received after the one with this number, oldest first.
    pub(crate) async fn calls_after(&self, number: u64) -> Outcome<Vec<Entry>> {
        match self {
            Self::Here { fake, .. } => {
                let mut calls = fake.journal();
                calls.retain(|call| call.number > number);
                Ok(calls)
            }
            Self::InCluster(fake) => fake.calls_after(number).await.map_err(StepFailure::new),
        }
    }

    /// Ends it. What runs in this process ends by itself too.
    pub(crate) async fn stop(self) -> Outcome {
        match self {
            Self::Here { .. } => Ok(()),
            Self::InCluster(fake) => fake.remove().await.map_err(StepFailure::new),
        }
    }
}

impl Wanted {
    /// As an entry of a file of fakes.
    fn entry(&self) -> Value {
        let mut entry = json!(self.transport);
        let kind = match self.admission {
            Admission::Mutating => "mutating",
            Admission::Validating => "validating",
        };
        set(&mut entry, &["type"], kind);
        set(&mut entry, &["behavior"], json!(self.behavior));
        entry
    }
}

/// An IPv6 address stands in brackets in a URL.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}
