//! Converts transport errors to the messages of Go's HTTP client.

use std::error::Error as StdError;
use std::io;

use bytes::Bytes;
use http::StatusCode;
use kubernetes_admission::caller::CallError;
use kubernetes_types::quoting::quote;
use rustls::{AlertDescription, CertificateError, InvalidMessage, PeerIncompatible};
use url::Url;

use super::certificate::CertificateFault;
use super::name_server::lookup_failed;
use super::stream;

/// Returns the error for a failed POST request.
///
/// Source: Go net/url/url.go, `Error`.
/// Rule: HTTP-16.
pub(super) fn post_failed(url: &str, text: &str) -> CallError {
    CallError::Transport(format!("Post {}: {text}", quote(url)))
}

/// Returns the error for a response with this status whose body could not be read.
///
/// Source: client-go rest/request.go, `transformResponse`.
/// Rule: HTTP-31.
pub(super) fn reading_failed(status: StatusCode, text: &str) -> CallError {
    let reason = format!("unexpected error when reading response body. Please retry. Original error: {text}");
    CallError::Body { status: status.as_u16(), reason }
}

/// The reason why a request did not receive a response.
#[derive(Debug)]
pub(super) enum SendError {
    /// No request can be sent to the URL.
    Url(String),
    /// The connection could not be established.
    Connect(Box<dyn StdError + Send + Sync>),
    /// The connection ended, or the response is invalid.
    Http(hyper::Error),
    /// A connection that an earlier request had used ended before the response.
    KeptConnectionEnded(hyper::Error),
    /// The HTTP/1.1 response is malformed.
    Malformed {
        error: hyper::Error,
        /// The received bytes of the response.
        received: Bytes,
    },
}

impl SendError {
    /// Returns whether the error is [`Self::Connect`].
    pub(super) fn is_connect(&self) -> bool {
        matches!(self, Self::Connect(_))
    }

    fn cause(&self) -> Cause<'_> {
        match self {
            Self::Url(text) => Cause::Other(text.clone()),
            Self::Connect(error) => cause(&**error),
            Self::Http(error) | Self::KeptConnectionEnded(error) | Self::Malformed { error, .. } => {
                cause(error)
            }
        }
    }
}

/// Returns Go's error for a request to `url` that did not receive a response.
#[expect(clippy::wildcard_enum_match_arm, reason = "other errors of the system go out in its own words")]
pub(super) async fn transport(error: &SendError, url: &str) -> String {
    let received: &[u8] = if let SendError::Malformed { received, .. } = error { received } else { &[] };
    match error.cause() {
        Cause::Tls(error) => tls(error),
        Cause::Io(error) if stream::is_complete(error) => error.to_string(),
        Cause::Io(error) => {
            let peer = peer(url).await;
            match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    format!("dial tcp {peer}: connect: connection refused")
                }
                io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
                io::ErrorKind::HostUnreachable => format!("dial tcp {peer}: connect: no route to host"),
                io::ErrorKind::NetworkUnreachable => {
                    format!("dial tcp {peer}: connect: network is unreachable")
                }
                _ if error.to_string().starts_with(ALERT_OF_HTTP2) => alert_by_name(&error.to_string()),
                _ if error.to_string().contains("lookup") => lookup_failed(&host(url), &error.to_string()),
                _ => format!("dial tcp {peer}: {error}"),
            }
        }
        Cause::Http(error) if error.is_incomplete_message() => "EOF".to_owned(),
        Cause::Http(error) if error.is_parse() => {
            let what = malformed(received);
            let what = what.unwrap_or_else(|| format!("malformed HTTP response ({error})"));
            format!("net/http: HTTP/1.x transport connection broken: {what}")
        }
        Cause::Http(error) => innermost(error),
        Cause::Other(text) if text.contains("lookup") => lookup_failed(&host(url), &text),
        Cause::Other(text) => text,
    }
}

/// Returns Go's error for a malformed first line of a response; `None` if the line is valid or incomplete.
///
/// Source: Go net/http/response.go, `ReadResponse`; net/http/request.go, `ParseHTTPVersion`.
fn malformed(received: &[u8]) -> Option<String> {
    let end = received.iter().position(|byte| *byte == b'\n')?;
    let line = str::from_utf8(received.get(..end)?).ok()?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    let Some((version, status)) = line.split_once(' ') else {
        return Some(format!("malformed HTTP response {}", quote(line)));
    };
    let status = status.trim_start_matches(' ');
    let code = status.split(' ').next().unwrap_or_default();
    if code.len() != 3 || !code.parse::<i16>().is_ok_and(|code| code >= 0) {
        return Some(format!("malformed HTTP status code {}", quote(code)));
    }
    let is_version = matches!(version.as_bytes(), [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
        if major.is_ascii_digit() && minor.is_ascii_digit());
    (!is_version).then(|| format!("malformed HTTP version {}", quote(version)))
}

/// Returns whether the connection ended before the request was sent. The error does not contain the reason.
pub(super) fn was_not_sent(error: &SendError) -> bool {
    matches!(error.cause(), Cause::Http(error) if error.is_canceled() || error.is_closed())
}

/// Returns Go's error for a body that could not be read.
pub(super) fn body(error: &hyper::Error) -> String {
    let text = innermost(error);
    match cause(error) {
        Cause::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => "unexpected EOF".to_owned(),
        Cause::Io(error) if stream::is_complete(error) => error.to_string(),
        Cause::Http(error) if error.is_incomplete_message() => "unexpected EOF".to_owned(),
        _ if text.contains("chunk size") => "invalid byte in chunk length".to_owned(),
        Cause::Http(_) if text.contains("end of file") => "unexpected EOF".to_owned(),
        Cause::Tls(_) | Cause::Io(_) | Cause::Http(_) | Cause::Other(_) => text,
    }
}

/// The most specific cause of an error that is known.
enum Cause<'a> {
    Tls(&'a rustls::Error),
    Io(&'a io::Error),
    Http(&'a hyper::Error),
    Other(String),
}

/// Returns the most specific error in the chain. An `io::Error` may wrap another error without being its source.
fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Cause<'a> {
    let mut found = None;
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Cause::Tls(error);
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            found = Some(Cause::Http(error));
        }
        next = error.source();
        if let Some(error) = error.downcast_ref::<io::Error>() {
            found = Some(Cause::Io(error));
            if let Some(inner) = error.get_ref() {
                next = Some(inner);
            }
        }
    }
    found.unwrap_or_else(|| Cause::Other(innermost(error)))
}

fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns Go's message for a TLS error.
///
/// Source: Go crypto/tls; net/http/transport.go.
#[expect(clippy::wildcard_enum_match_arm, reason = "other errors go out in the words of rustls")]
pub(super) fn tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
            match other.0.downcast_ref::<CertificateFault>() {
                Some(complaint) => format!("tls: failed to verify certificate: {complaint}"),
                None => format!("tls: failed to verify certificate: x509: {other}"),
            }
        }
        rustls::Error::InvalidCertificate(other) => {
            format!("tls: failed to verify certificate: x509: {other}")
        }
        rustls::Error::AlertReceived(alert) => format!("remote error: tls: {}", alert_text(*alert)),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "tls: server selected unsupported protocol version 302".to_owned()
        }
        other => format!("tls: {other}"),
    }
}

/// The prefix of the message for a TLS alert from rustls. The HTTP/2 library keeps only the message of an error.
const ALERT_OF_HTTP2: &str = "received fatal alert: ";

fn alert_by_name(text: &str) -> String {
    let name = text.strip_prefix(ALERT_OF_HTTP2).unwrap_or(text);
    let alert = (0..=u8::MAX).map(AlertDescription::from).find(|alert| format!("{alert:?}") == name);
    format!("remote error: tls: {}", alert.map_or_else(|| name.to_owned(), alert_text))
}

/// Returns Go's message for a TLS alert.
///
/// Source: Go crypto/tls/alert.go.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "alerts without a text of their own are named by their number"
)]
fn alert_text(alert: AlertDescription) -> String {
    let text = match alert {
        AlertDescription::CloseNotify => "close notify",
        AlertDescription::UnexpectedMessage => "unexpected message",
        AlertDescription::BadRecordMac => "bad record MAC",
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::IllegalParameter => "illegal parameter",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::DecodeError => "error decoding message",
        AlertDescription::DecryptError => "error decrypting message",
        AlertDescription::ProtocolVersion => "protocol version not supported",
        AlertDescription::InsufficientSecurity => "insufficient security level",
        AlertDescription::InternalError => "internal error",
        AlertDescription::UnrecognisedName => "unrecognized name",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::NoApplicationProtocol => "no application protocol",
        other => return format!("alert({})", u8::from(other)),
    };
    text.to_owned()
}

fn host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns the address that Go would connect to first.
async fn peer(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return String::new() };
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(443);
    let text = format!("{host}:{port}");
    match tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await {
        Ok(mut addresses) => addresses.next().map_or(text, |address| address.to_string()),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::malformed;

    #[test]
    fn a_first_line_that_is_not_http_is_quoted() {
        for (received, expect) in [
            ("garbage\r\n\r\n", Some("malformed HTTP response \"garbage\"")),
            ("\r\nHTTP/1.1 200 OK\r\n", Some("malformed HTTP response \"\"")),
            ("PRI * HTTP/2.0\r\n", Some("malformed HTTP status code \"*\"")),
            ("HTTP/1.1 20 OK\n", Some("malformed HTTP status code \"20\"")),
            ("HTTP/1.1 -20 OK\n", Some("malformed HTTP status code \"-20\"")),
            ("HTTP/1 200 OK\n", Some("malformed HTTP version \"HTTP/1\"")),
            ("HTTP/2.0 200 OK\n", None),
            ("HTTP/1.1  200\r\n", None),
            ("garbage", None),
        ] {
            assert_eq!(malformed(received.as_bytes()).as_deref(), expect, "{received:?}");
        }
    }
}
