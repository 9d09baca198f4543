//! How a fake of a scenario is reached from the server, and what it received.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::{CertificateAuthority, Defect};
use fake_webhooks::{Behaviour, Certificate, Entry, Fake, FakeWebhook, RefusingPort, RemoteAccess};
use serde_json::{Value, json};

use super::failure::Outcome;
use crate::target::Target;

/// What a connection to a webhook meets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A certificate that the configuration's bundle vouches for.
    #[default]
    Trusted,
    /// A certificate with a defect.
    Presenting(Defect),
    /// Nobody.
    Refusing,
}

/// A webhook that the server can call.
#[derive(Debug)]
pub(crate) enum Running {
    /// A fake that listens.
    Fake {
        /// The fake.
        fake: FakeWebhook,
        /// What is dialled from the server.
        host: String,
    },
    /// A port that refuses.
    Refusing {
        /// The port.
        port: RefusingPort,
        /// What is dialled from the server.
        host: String,
    },
}

impl Running {
    /// Starts to listen where `target` can reach it.
    pub(crate) async fn start(target: &Target, endpoint: Endpoint, behaviour: Behaviour) -> Outcome<Self> {
        let host = target.fakes_host.clone();
        let certificate = match endpoint {
            Endpoint::Refusing => return Ok(Self::Refusing { port: RefusingPort::bind()?, host }),
            Endpoint::Trusted => Certificate::Valid,
            Endpoint::Presenting(defect) => Certificate::Defective(defect),
        };
        let is_local = target.fakes_listen.is_loopback();
        let (remote_access, names) = if is_local {
            (RemoteAccess::Refused, Vec::new())
        } else {
            (RemoteAccess::Allowed, vec![host.clone()])
        };
        let listen = SocketAddr::new(target.fakes_listen, 0);
        let fake = Fake { behaviour, certificate, listen, names, remote_access, ..Fake::default() };
        // Certificates take their time, and all scenarios share one task.
        let fake = tokio::spawn(FakeWebhook::start(fake)).await??;
        Ok(Self::Fake { fake, host })
    }

    /// `clientConfig` for calls to `path`.
    pub(crate) fn client_config(&self, path: &str) -> Outcome<Value> {
        let (host, address, bundle) = match self {
            Self::Fake { fake, host } => (host, fake.address(), fake.ca_bundle().to_owned()),
            Self::Refusing { port, host } => {
                let authority = CertificateAuthority::new("admit test CA")?;
                (host, port.address(), authority.certificate_pem().to_owned())
            }
        };
        let url = format!("https://{}:{}{path}", bracketed(host), address.port());
        Ok(json!({"url": url, "caBundle": STANDARD.encode(bundle)}))
    }

    /// Does something else from the next call on.
    pub(crate) fn set_behaviour(&self, behaviour: Behaviour) {
        match self {
            Self::Fake { fake, .. } => fake.set_behaviour(behaviour),
            Self::Refusing { .. } => {}
        }
    }

    /// The calls that it received, oldest first.
    pub(crate) fn journal(&self) -> Vec<Entry> {
        match self {
            Self::Fake { fake, .. } => fake.journal(),
            Self::Refusing { .. } => Vec::new(),
        }
    }
}

/// An IPv6 address stands in brackets in a URL.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}
