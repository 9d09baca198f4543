//! Parses the URL of an HTTP request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use url::Url;

/// A URL that is parsed once for all requests to it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The complete URL. The URL of a service omits the port, because the client connects to a resolved address.
    pub(super) uri: Uri,
    /// The path and query, for an HTTP/1.1 request line.
    pub(super) path: Uri,
    /// The value of the `Host` header.
    pub(super) host: HeaderValue,
    /// The value of the `Authorization` header, if the URL contains a user and password.
    pub(super) authorization: Option<HeaderValue>,
}

impl Target {
    /// Parses `url`. If its authority is `service`, the URI omits the port, but the `Host` header contains it.
    ///
    /// # Errors
    /// Returns a message if no request can be sent to the URL.
    ///
    /// Rule: HTTP-01, HTTP-02.
    pub(super) fn new(url: &str, service: Option<&str>) -> Result<Self, String> {
        let at_service = service.and_then(|service| Some((service, path_at(url, service)?)));
        let (mut url, host) = match at_service {
            Some((service, path)) => {
                let name = service.rsplit_once(':').map_or(service, |(name, _)| name);
                (Url::parse(&format!("https://{name}{path}")), Some(service))
            }
            None => (Url::parse(url), None),
        };
        let url = url.as_mut().map_err(|error| error.to_string())?;
        if !url.has_host() {
            return Err("URL scheme is not allowed".to_owned());
        }
        let authorization = take_authorization(url);
        let uri = Uri::try_from(url.as_str()).map_err(|error| error.to_string())?;
        let host = host.or(uri.authority().map(Authority::as_str)).unwrap_or_default();
        let host = HeaderValue::from_str(host).map_err(|error| error.to_string())?;
        let path = uri.path_and_query().cloned().map(Uri::from).unwrap_or_default();
        Ok(Self { uri, path, host, authorization })
    }

    /// Returns whether a connection to this URL can also be used for requests to `other`.
    pub(super) fn is_at(&self, other: &Uri) -> bool {
        self.uri.scheme() == other.scheme() && self.uri.authority() == other.authority()
    }

    /// Returns whether connections to this URL do not use TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTP)
    }
}

/// Removes the user and password from `url` and returns them as the value of an `Authorization` header.
fn take_authorization(url: &mut Url) -> Option<HeaderValue> {
    let authorization = basic(url)?;
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(authorization)
}

/// Returns the user and password in `url` as the value of an `Authorization` header, if present.
pub(super) fn basic(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let user = [url.username(), url.password().unwrap_or_default()].map(percent_decoded).join(&b':');
    let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(user))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Returns the path and query of `url` if its authority is `authority`.
pub(super) fn path_at<'a>(url: &'a str, authority: &str) -> Option<&'a str> {
    url.strip_prefix("https://")?
        .strip_prefix(authority)
        .filter(|path| path.is_empty() || path.starts_with(['/', '?']))
}

/// Decodes percent escapes in `path`. A `%` that does not start an escape is kept.
pub fn percent_decoded(path: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(path).collect()
}
