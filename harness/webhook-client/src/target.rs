//! Where one HTTP request goes, taken apart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use url::Url;

use super::address::percent_decoded;

/// A URL, taken apart once for all requests to it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The whole URL. That of a service has no port, so that the client takes the port of the service's address.
    pub(super) uri: Uri,
    /// Its path and query, as a request over HTTP/1.1 names it.
    pub(super) path: Uri,
    /// `Host`.
    pub(super) host: HeaderValue,
    /// What the user and the password in the URL come to, if it has them.
    pub(super) authorization: Option<HeaderValue>,
}

impl Target {
    /// `url`, which leads to the service with this authority or somewhere else.
    ///
    /// # Errors
    /// A URL to which nothing can be sent.
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

    /// Whether connections to the one can be used for the other.
    pub(super) fn is_at(&self, other: &Uri) -> bool {
        self.uri.scheme() == other.scheme() && self.uri.authority() == other.authority()
    }

    /// Whether it is reached without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTP)
    }
}

/// Takes the user and the password out of `url`.
fn take_authorization(url: &mut Url) -> Option<HeaderValue> {
    let authorization = basic(url)?;
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(authorization)
}

/// What the user and the password in `url` come to as a header, if it has them.
pub(super) fn basic(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let user = [url.username(), url.password().unwrap_or_default()].map(percent_decoded).join(&b':');
    let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(user))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// The path and the query of `url`, if it leads to `authority`.
pub(super) fn path_at<'a>(url: &'a str, authority: &str) -> Option<&'a str> {
    url.strip_prefix("https://")?
        .strip_prefix(authority)
        .filter(|path| path.is_empty() || path.starts_with(['/', '?']))
}
