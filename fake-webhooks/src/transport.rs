//! What is decided before a request is read: the connection, the certificate, the version of HTTP.

use serde::{Deserialize, Serialize};

use crate::{Behavior, Certificate, Credentials};

/// What is decided before a request is read. Fakes for which it is equal share a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Transport {
    /// Which certificate is shown.
    pub certificate: Certificate,
    /// Which certificate is shown instead after the first handshake, if another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Certificate>,
    /// What a connection meets.
    pub connection: Connection,
    /// Which versions of HTTP are offered.
    pub http: HttpVersions,
}

/// What a connection to a fake meets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Connection {
    /// `accepted`: the fake.
    #[default]
    Accepted,
    /// `refused`: a port at which nobody listens.
    Refused,
    /// `closed`: it is closed as soon as the caller says something.
    Closed,
    /// `reset`: it is reset as soon as the caller says something.
    Reset,
    /// `silent`: it is accepted, and nothing is ever said: the TLS handshake does not end.
    Silent,
    /// `plain-http`: HTTP without TLS.
    PlainHttp,
    /// `tls-or-plain-http`: the fake, over TLS or not, as the caller begins: where redirects to `http://` may lead.
    TlsOrPlainHttp,
    /// `tls-1.1`: the TLS handshake ends as with a server that knows no version above 1.1.
    #[serde(rename = "tls-1.1")]
    Tls11,
    /// `client-certificate`: a certificate of the caller is demanded, signed by the authority of the fakes. kube-apiserver
    /// has none for webhooks unless its admission configuration names one.
    ClientCertificate,
}

/// Which versions of HTTP a fake offers in the TLS handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpVersions {
    /// `both`: HTTP/2 and HTTP/1.1; only HTTP/1.1 for a behavior that writes bytes of its own.
    #[default]
    Both,
    /// `http1`: HTTP/1.1.
    Http1,
    /// `http2`: HTTP/2.
    Http2,
}

impl Transport {
    /// With a version of HTTP that leaves room for what `behavior` does, and with client certificates if it demands one.
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
    /// What differs from the usual, such as `certificate expired`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "certificate `{}`", self.certificate)?;
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
