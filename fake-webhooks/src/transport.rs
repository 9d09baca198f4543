//! What is decided before a request is read: the connection, the certificate, the version of HTTP.

use serde::{Deserialize, Serialize};

use crate::Certificate;

/// What is decided before a request is read. Fakes for which it is equal share a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Transport {
    /// Which certificate is shown.
    pub certificate: Certificate,
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
}

/// Which versions of HTTP a fake offers in the TLS handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpVersions {
    /// `both`: HTTP/2 and HTTP/1.1.
    #[default]
    Both,
    /// `http1`: HTTP/1.1.
    Http1,
    /// `http2`: HTTP/2.
    Http2,
}

impl std::fmt::Display for Transport {
    /// What differs from the usual, such as `certificate expired`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "certificate `{}`", self.certificate)?;
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        if self.connection != Connection::default() {
            write!(f, ", connection `{}`", word(&serde_json::json!(self.connection)))?;
        }
        if self.http != HttpVersions::default() {
            write!(f, ", http `{}`", word(&serde_json::json!(self.http)))?;
        }
        Ok(())
    }
}
