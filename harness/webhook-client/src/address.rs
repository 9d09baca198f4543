//! Builds the URL of a call as the API server does.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use url::{Host, Url};

use kubernetes_admission::audit::go_duration;
use kubernetes_admission::config::WebhookTarget;

use super::target::{Target, percent_decoded};

/// The properties that are the same for all calls to one webhook target.
#[derive(Debug)]
pub(super) struct Destination {
    target: WebhookTarget,
    /// The URL without its query, or the reason why it is invalid.
    base: Result<String, String>,
    /// The authority of the service; `None` if the target is a URL.
    service: Option<String>,
    /// The timeout in seconds and the address of the first call. Most later calls reuse the address.
    first: OnceLock<(u64, Address)>,
    /// Whether the target is the API server itself.
    pub(super) is_the_api_server: bool,
    /// Whether the target is a URL with a loopback host.
    pub(super) is_loopback: bool,
}

impl Destination {
    pub(super) fn new(target: &WebhookTarget) -> Self {
        Self {
            target: target.clone(),
            base: base(target),
            service: match target {
                WebhookTarget::Service(service) => Some(service.authority()),
                WebhookTarget::Url(_) => None,
            },
            first: OnceLock::new(),
            is_the_api_server: is_the_api_server(target),
            is_loopback: matches!(target, WebhookTarget::Url(url) if is_loopback(url)),
        }
    }

    /// Returns whether this destination was created for `target`.
    pub(super) fn is_of(&self, target: &WebhookTarget) -> bool {
        self.target == *target
    }

    /// Returns the address of a call with `timeout`.
    ///
    /// # Errors
    /// Returns an error message for an invalid URL. The API rejects configurations with an invalid URL.
    ///
    /// Source: apiserver pkg/util/webhook/client.go; client-go `rest/{client,request,url_utils}.go`.
    /// Rule: HTTP-03, HTTP-05.
    pub(super) fn address(&self, timeout: Duration) -> Result<Cow<'_, Address>, String> {
        let base = self.base.as_ref().map_err(Clone::clone)?;
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        let (first, address) = self.first.get_or_init(|| (seconds, self.with_timeout(base, seconds)));
        Ok(if *first == seconds {
            Cow::Borrowed(address)
        } else {
            Cow::Owned(self.with_timeout(base, seconds))
        })
    }

    /// Parses the URL of a request. If the target is a service, the URL may contain the authority of the service.
    pub(super) fn target(&self, url: &str) -> Result<Target, String> {
        Target::new(url, self.service())
    }

    /// Returns the authority of the service; `None` if the target is a URL.
    pub(super) fn service(&self) -> Option<&str> {
        self.service.as_deref()
    }

    fn with_timeout(&self, base: &str, seconds: u64) -> Address {
        let url = format!("{base}?timeout={}", go_duration(Duration::from_secs(seconds)));
        Address { target: self.target(&url), url }
    }
}

/// Returns whether a URL has a loopback host. HTTP/2 may be used only for loopback hosts.
///
/// Source: apiserver pkg/util/webhook/client.go, `isLocalHost`.
/// Rule: HTTP-12.
fn is_loopback(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    })
}

/// The address of a call.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// The URL with the query `?timeout=`, as shown in error messages.
    pub(super) url: String,
    /// The parsed URL, or the reason why no request can be sent to it.
    pub(super) target: Result<Target, String>,
}

/// Returns the URL of `target` without its query.
fn base(target: &WebhookTarget) -> Result<String, String> {
    let (origin, path) = match target {
        WebhookTarget::Service(service) => {
            (format!("https://{}", service.authority()), service.path.as_bytes().to_vec())
        }
        WebhookTarget::Url(url) => {
            let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("Unparsable URL: {url}"))?;
            Url::parse(url).map_err(|error| format!("Unparsable URL: {error}"))?;
            let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            (format!("{scheme}://{host}"), percent_decoded(path))
        }
    };
    Ok(format!("{origin}{}", encoded(&cleaned_path(&path))))
}

/// The host name of the API server in a cluster.
pub(super) const OWN_HOST: &str = "kubernetes.default.svc";

/// Returns whether the target is the API server itself. kube-apiserver calls it with its own credentials.
///
/// Source: apiserver pkg/util/webhook/authentication.go, `NewDefaultAuthenticationInfoResolverWrapper`; kube-aggregator
/// pkg/apiserver/resolvers.go, `loopbackResolver`.
/// Rule: HTTP-15.
fn is_the_api_server(target: &WebhookTarget) -> bool {
    match target {
        WebhookTarget::Service(service) => {
            service.namespace == "default" && service.name == "kubernetes" && service.port == 443
        }
        WebhookTarget::Url(url) => Url::parse(url)
            .is_ok_and(|url| url.host_str() == Some(OWN_HOST) && url.port_or_known_default() == Some(443)),
    }
}

/// Removes empty, `.`, and `..` segments and the trailing slash from `path`.
///
/// Source: Go path/path.go, `Clean`.
/// Rule: HTTP-04.
pub fn cleaned_path(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut path = b"/".to_vec();
    path.extend(segments.join(&b'/'));
    path
}

/// Percent-encodes a path.
///
/// Source: Go net/url/url.go, `shouldEscape` for paths.
fn encoded(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::config::ServiceReference;

    use super::*;

    #[track_caller]
    fn check(target: &WebhookTarget, timeout: Duration, expect: &str) {
        let destination = Destination::new(target);
        assert_eq!(destination.address(timeout).unwrap().url, expect);
    }

    #[test]
    fn paths_are_cleaned_and_seconds_are_rounded_up() {
        for (url, expect) in [
            ("https://h", "https://h/?timeout=10s"),
            ("https://h:8443/", "https://h:8443/?timeout=10s"),
            ("https://H/mutate/", "https://H/mutate?timeout=10s"),
            ("https://h//a/./b/../c", "https://h/a/c?timeout=10s"),
            ("https://h/a%2Fb%20c", "https://h/a/b%20c?timeout=10s"),
            ("https://[::1]:1/a!", "https://[::1]:1/a%21?timeout=10s"),
        ] {
            check(&WebhookTarget::Url(url.to_owned()), Duration::from_millis(9_001), expect);
        }
    }

    #[test]
    fn the_api_server_has_two_names() {
        let service = |namespace: &str, name: &str, port: u16| {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            WebhookTarget::Service(ServiceReference { namespace, name, path: String::new(), port })
        };
        let url = |url: &str| WebhookTarget::Url(url.to_owned());
        for (target, expect) in [
            (service("default", "kubernetes", 443), true),
            (service("default", "kubernetes", 8443), false),
            (service("other", "kubernetes", 443), false),
            (service("default", "other", 443), false),
            (url("https://kubernetes.default.svc/version"), true),
            (url("https://kubernetes.default.svc:443"), true),
            (url("https://kubernetes.default.svc:6443"), false),
            (url("https://kubernetes.default"), false),
        ] {
            assert_eq!(is_the_api_server(&target), expect, "{target:?}");
        }
    }

    #[test]
    fn a_service_is_named_with_its_port() {
        let service = ServiceReference {
            namespace: "ns".to_owned(),
            name: "svc".to_owned(),
            path: String::new(),
            port: 443,
        };
        let target = WebhookTarget::Service(service);
        check(&target, Duration::from_secs(1), "https://svc.ns.svc:443/?timeout=1s");
    }
}
