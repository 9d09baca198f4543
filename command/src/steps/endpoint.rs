//! Manages the running fakes of a scenario, in this process or in the cluster.

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

/// The configuration of a fake.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FakeSpec {
    /// The admission plugin that calls the fake.
    pub(crate) admission: Admission,
    /// How the fake treats connections.
    pub(crate) transport: Transport,
    /// How the fake responds.
    pub(crate) behavior: Behavior,
    /// Additional names in the certificate of a fake in this process; in the cluster, a fake has its Service's names.
    pub(crate) names: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum RunningFake {
    /// A fake in this process.
    Here {
        fake: FakeWebhook,
        /// The host in the URL at which the server calls the fake.
        host: String,
    },
    /// A fake that runs in the fakes pod of the cluster.
    InCluster(Box<RemoteFake>),
}

impl RunningFake {
    /// Starts a fake that the server of `target` can reach; `name` must be unique.
    pub(crate) async fn start(target: &Target, name: &str, spec: &FakeSpec) -> Outcome<Self> {
        match &target.fakes {
            FakesPlace::Here { host, listen } => Self::start_here(host, *listen, spec.clone()).await,
            FakesPlace::InCluster(fleet) => {
                let fake = fleet.put(name, spec.entry()).await.map_err(StepFailure::new)?;
                Ok(Self::InCluster(Box::new(fake)))
            }
        }
    }

    async fn start_here(host: &str, listen: IpAddr, spec: FakeSpec) -> Outcome<Self> {
        let (remote_access, mut names) = if listen.is_loopback() {
            (RemoteAccess::Refused, Vec::new())
        } else {
            (RemoteAccess::Allowed, vec![host.to_owned()])
        };
        let FakeSpec { transport, behavior, names: services, admission: _ } = spec;
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
        // Creating a certificate takes a while, and all scenarios share one task.
        let fake = tokio::spawn(FakeWebhook::start(fake)).await??;
        Ok(Self::Here { fake, host: host.to_owned() })
    }

    /// Returns the `clientConfig` for calls to this fake.
    pub(crate) fn client_config(&self) -> Value {
        match self {
            Self::Here { fake, host } => {
                let url = format!("https://{}:{}/", bracketed(host), fake.address().port());
                json!({"url": url, "caBundle": STANDARD.encode(fake.ca_bundle())})
            }
            Self::InCluster(fake) => fake.client_config.clone(),
        }
    }

    /// Changes the behavior of the fake from the next call on.
    pub(crate) async fn change(&mut self, spec: &FakeSpec) -> Outcome {
        match self {
            Self::Here { fake, .. } => {
                fake.set_behavior(spec.behavior.clone());
                Ok(())
            }
            Self::InCluster(fake) => fake.replace(spec.entry()).await.map_err(StepFailure::new),
        }
    }

    /// Returns the calls whose number is greater than `number`, oldest first.
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

    /// Stops a fake in the cluster; a fake in this process stops when it is dropped.
    pub(crate) async fn stop(self) -> Outcome {
        match self {
            Self::Here { .. } => Ok(()),
            Self::InCluster(fake) => fake.remove().await.map_err(StepFailure::new),
        }
    }
}

impl FakeSpec {
    /// Returns the entry that configures the fake in a fakes file.
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

/// Returns the host, enclosed in brackets if it is an IPv6 address, as URLs require.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}
