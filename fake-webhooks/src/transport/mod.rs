//! Describes the transport of a fake: connection, certificate, and HTTP versions.

mod certificate;

use serde::{Deserialize, Serialize};

pub use self::certificate::{Authority, Certificate, UnknownCertificate};
use crate::{Behavior, Credentials};

/// The transport of a fake. Fakes with equal transports share a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Transport {
    /// The kind of server certificate.
    pub certificate: Certificate,
    /// The kind of certificate after the first handshake, or `None` if the certificate does not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Certificate>,
    /// How the fake treats connections.
    pub connection: Connection,
    /// The HTTP versions that the fake offers.
    pub http: HttpVersions,
}

/// How a fake treats connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Connection {
    /// `accepted`: connections reach the fake.
    #[default]
    Accepted,
    /// `refused`: no process listens on the port.
    Refused,
    /// `closed`: the connection is closed after the caller's first bytes.
    Closed,
    /// `reset`: the connection is reset after the caller's first bytes.
    Reset,
    /// `silent`: the connection is accepted, but the TLS handshake does not complete.
    Silent,
    /// `plain-http`: the fake uses HTTP without TLS.
    PlainHttp,
    /// `tls-or-plain-http`: the fake supports TLS and plain HTTP, so that redirects to `http://` reach the fake.
    TlsOrPlainHttp,
    /// `tls-1.1`: the TLS handshake fails as it does with a server that supports only TLS 1.1.
    #[serde(rename = "tls-1.1")]
    Tls11,
    /// `client-certificate`: the fake requires a client certificate that the fakes' certificate authority signed.
    ///
    /// kube-apiserver sends a client certificate only if its admission configuration contains one.
    ClientCertificate,
}

/// The HTTP versions that a fake offers in the TLS handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpVersions {
    /// `both`: HTTP/2 and HTTP/1.1, or only HTTP/1.1 for a behavior that writes raw bytes.
    #[default]
    Both,
    /// `http1`: the fake offers only HTTP/1.1.
    Http1,
    /// `http2`: the fake offers only HTTP/2.
    Http2,
}

/// Whether a fake may listen on an address that other machines can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteAccess {
    /// The fake may listen only on loopback addresses.
    #[default]
    Refused,
    /// The fake may listen on any address, for example for a cluster.
    Allowed,
}

impl Transport {
    /// Adapts HTTP versions and client certificates to the requirements of `behavior`.
    pub(crate) fn for_behavior(self, behavior: &Behavior) -> Self {
        let http = match self.http {
            HttpVersions::Both if behavior.writes_bytes() => HttpVersions::Http1,
            http @ (HttpVersions::Both | HttpVersions::Http1 | HttpVersions::Http2) => http,
        };
        let demands_certificate = matches!(behavior.demanded(), Some(Credentials::Certificate(_)));
        let connection = if demands_certificate && self.connection == Connection::Accepted {
            Connection::ClientCertificate
        } else {
            self.connection
        };
        Self { connection, http, ..self }
    }
}

impl std::fmt::Display for Transport {
    /// Formats the certificate, and the other settings that differ from their defaults.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.certificate == Self::default().certificate {
            f.write_str("with a valid certificate")?;
        } else {
            write!(f, "with the certificate `{}`", self.certificate)?;
        }
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(later) = self.rotate {
            write!(f, ", after the first handshake `{later}`")?;
        }
        if self.connection != Connection::default() {
            write!(f, ", connection `{}`", word(&serde_json::json!(self.connection)))?;
        }
        if self.http != HttpVersions::default() {
            write!(f, ", http `{}`", word(&serde_json::json!(self.http)))?;
        }
        Ok(())
    }
}
