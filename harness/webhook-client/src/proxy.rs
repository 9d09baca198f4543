//! Selects the proxy for a call as the environment variables specify.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use kubernetes_types::status::Unsupported;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use url::{Host, Url};

use super::target::percent_decoded;

/// The maximum length of the status line in a proxy's response, in bytes.
const STATUS_LINE: u64 = 4096;

/// The proxies in `HTTPS_PROXY` and `HTTP_PROXY`, and the exceptions in `NO_PROXY`.
///
/// Lowercase variable names take precedence over uppercase names, except that the networks in `NO_PROXY` always apply.
///
/// Source: golang.org/x/net `http/httpproxy/proxy.go`, `Config`.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    https: Option<Url>,
    http: Option<Url>,
    except: Vec<Exception>,
}

/// A proxy for calls to a webhook.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ProxyRoute {
    pub(super) proxy: Url,
    /// The resolved address of the webhook's Service; `None` if the webhook has a URL.
    ///
    /// The proxy connects to this address or, if it is `None`, to the webhook's URL.
    pub(super) service: Option<Url>,
}

impl From<Url> for ProxyRoute {
    fn from(proxy: Url) -> Self {
        Self { proxy, service: None }
    }
}

/// An entry of `NO_PROXY`.
#[derive(Debug)]
enum Exception {
    /// `*`: all hosts.
    All,
    Network(IpNet),
    Address(IpAddr, Option<String>),
    /// The domain with a leading dot, the port, and whether the domain itself also matches.
    Domain {
        suffix: String,
        port: Option<String>,
        itself: bool,
    },
}

impl Proxies {
    pub(super) fn from_environment() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// Reads the environment variables with `variable`. Proxies with invalid URLs are ignored.
    ///
    /// Source: golang.org/x/net `http/httpproxy/proxy.go`, `FromEnvironment`; apimachinery `pkg/util/net/http.go`,
    /// `NewProxierWithNoProxyCIDR`, which reads networks from `NO_PROXY` in preference to `no_proxy`.
    fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| {
            names.into_iter().find_map(|name| variable(name).filter(|text| !text.is_empty()))
        };
        let proxy = |names| first(names).and_then(|text| proxy_url(&text));
        let mut except: Vec<_> = first(["no_proxy", "NO_PROXY"])
            .iter()
            .flat_map(|list| list.split(','))
            .filter_map(Exception::new)
            .collect();
        let upper = first(["NO_PROXY", "no_proxy"]);
        let networks = upper.iter().flat_map(|list| list.split(',')).filter_map(|entry| entry.parse().ok());
        except.extend(networks.map(Exception::Network));
        Self {
            https: proxy(["https_proxy", "HTTPS_PROXY"]),
            http: proxy(["http_proxy", "HTTP_PROXY"]),
            except,
        }
    }

    /// Returns whether no proxies are configured.
    pub(super) fn is_empty(&self) -> bool {
        self.https.is_none() && self.http.is_none()
    }

    /// Returns the proxy for requests to `url`; `None` for direct requests and loopback addresses.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if the proxy's URL does not have the scheme `http`.
    ///
    /// Source: golang.org/x/net `http/httpproxy/proxy.go`, `proxyForURL` and `useProxy`.
    /// Rule: HTTP-23.
    pub(super) fn for_url(&self, url: &Url) -> Result<Option<Url>, Unsupported> {
        let proxy = match url.scheme() {
            "https" => self.https.as_ref(),
            "http" => self.http.as_ref(),
            _ => None,
        };
        let Some(proxy) = proxy.filter(|_| !self.is_excepted(url)) else { return Ok(None) };
        if proxy.scheme() != "http" {
            let what = format!("proxies with the scheme {} (the environment names one)", proxy.scheme());
            return Err(Unsupported { what });
        }
        Ok(Some(proxy.clone()))
    }

    fn is_excepted(&self, url: &Url) -> bool {
        let port = url.port_or_known_default().unwrap_or_default().to_string();
        let (domain, address) = match url.host() {
            None => return true,
            Some(Host::Domain(name)) => (name, None),
            Some(Host::Ipv4(address)) => ("", Some(IpAddr::V4(address))),
            Some(Host::Ipv6(address)) => ("", Some(address.to_canonical())),
        };
        domain == "localhost"
            || address.is_some_and(|address| address.is_loopback())
            || self.except.iter().any(|exception| exception.matches(domain, address, &port))
    }
}

impl Exception {
    /// Parses an entry of `NO_PROXY`.
    ///
    /// Source: golang.org/x/net `http/httpproxy/proxy.go`, `init`.
    fn new(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_lowercase();
        if entry == "*" {
            return Some(Self::All);
        }
        if let Ok(network) = entry.parse() {
            return Some(Self::Network(network));
        }
        let is_address = entry.parse::<IpAddr>().is_ok();
        let (host, port) = match entry.rsplit_once(':').filter(|_| !is_address) {
            Some((host, port)) => (host, Some(port.to_owned()).filter(|port| !port.is_empty())),
            None => (entry.as_str(), None),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical(), port));
        }
        let host = if host.starts_with("*.") { host.trim_start_matches('*') } else { host };
        let itself = !host.starts_with('.');
        let suffix = if itself { format!(".{host}") } else { host.to_owned() };
        (!host.is_empty()).then_some(Self::Domain { suffix, port, itself })
    }

    fn matches(&self, domain: &str, address: Option<IpAddr>, at: &str) -> bool {
        let is_at = |port: &Option<String>| port.as_deref().is_none_or(|port| port == at);
        match self {
            Self::All => true,
            Self::Network(network) => address.is_some_and(|address| network.contains(&address)),
            Self::Address(this, port) => address == Some(*this) && is_at(port),
            Self::Domain { suffix, port, itself } => {
                let is_the_domain = *itself && suffix.strip_prefix('.') == Some(domain);
                address.is_none() && (domain.ends_with(suffix.as_str()) || is_the_domain) && is_at(port)
            }
        }
    }
}

/// Parses the value of a proxy variable: a URL, or a host with an optional port.
///
/// Source: golang.org/x/net `http/httpproxy/proxy.go`, `parseProxy`.
fn proxy_url(text: &str) -> Option<Url> {
    let complete = Url::parse(text).ok().filter(Url::has_host);
    complete.or_else(|| Url::parse(&format!("http://{text}")).ok())
}

/// Requests another tunnel to `url` from `proxy`, and returns the reason if the proxy rejects it.
///
/// Source: Go net/http/transport.go, `dialConn`.
pub(super) async fn why_no_tunnel(proxy: &Url, url: &Url) -> Option<String> {
    let (host, port) = (proxy.host_str()?.trim_matches(['[', ']']), proxy.port_or_known_default()?);
    let mut stream = match TcpStream::connect((host, port)).await {
        Ok(stream) => BufReader::new(stream),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            let mut addresses = tokio::net::lookup_host((host, port)).await.ok()?;
            let address = addresses.next()?;
            return Some(format!("proxyconnect tcp: dial tcp {address}: connect: connection refused"));
        }
        Err(_other) => return None,
    };
    let to = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    let mut head = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
    if !proxy.username().is_empty() || proxy.password().is_some() {
        let user = [proxy.username(), proxy.password().unwrap_or_default()].map(percent_decoded).join(&b':');
        head.extend(["Proxy-Authorization: Basic ", &STANDARD.encode(user), "\r\n"]);
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await.ok()?;
    let mut line = String::new();
    (&mut stream).take(STATUS_LINE).read_line(&mut line).await.ok()?;
    let (_, status) = line.trim_end().split_once(' ')?;
    let (code, text) = status.split_once(' ').unwrap_or((status, "unknown status code"));
    (code != "200").then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::new(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn chosen(proxies: &Proxies, url: &str) -> Option<String> {
        proxies.for_url(&Url::parse(url).unwrap()).unwrap().map(String::from)
    }

    #[test]
    fn the_proxy_depends_on_the_scheme_and_lowercase_names_win() {
        let proxies = proxies(&[
            ("HTTPS_PROXY", "upper:1"),
            ("https_proxy", "lower:2"),
            ("HTTP_PROXY", "http://plain"),
        ]);
        assert_eq!(chosen(&proxies, "https://hook.test/").as_deref(), Some("http://lower:2/"));
        assert_eq!(chosen(&proxies, "http://hook.test/").as_deref(), Some("http://plain/"));
        assert_eq!(chosen(&self::proxies(&[]), "https://hook.test/"), None);
    }

    #[test]
    fn loopback_addresses_use_no_proxy() {
        let proxies = proxies(&[("HTTPS_PROXY", "http://proxy:1")]);
        for host in ["localhost", "127.0.0.1:8443", "127.9.9.9", "[::1]:8443"] {
            assert_eq!(chosen(&proxies, &format!("https://{host}/")), None, "{host}");
        }
        assert!(chosen(&proxies, "https://10.0.0.1/").is_some());
    }

    #[test]
    fn exceptions_are_networks_addresses_and_domains_with_their_ports() {
        let rows = [
            ("*", "a.test", true),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("fd00::/8", "[fd00::1]", true),
            ("10.1.2.3:443", "10.1.2.3", true),
            ("10.1.2.3:8443", "10.1.2.3", false),
            ("[fd00::1]:443", "[fd00::1]", true),
            ("fd00::1", "[fd00::1]", true),
            ("a.test", "a.test", true),
            ("a.test", "b.a.test", true),
            ("a.test", "ba.test", false),
            (".a.test", "a.test", false),
            ("*.a.test", "b.a.test", true),
            ("*.a.test", "a.test", false),
            ("x, A.Test:443 ", "a.test", true),
            ("a.test:8443", "a.test", false),
            ("", "a.test", false),
            (":443", "a.test", false),
        ];
        for (list, host, is_direct) in rows {
            let proxies = proxies(&[("HTTPS_PROXY", "http://proxy:1"), ("NO_PROXY", list)]);
            let found = chosen(&proxies, &format!("https://{host}/"));
            assert_eq!(found.is_none(), is_direct, "{list} {host}");
        }
    }

    #[test]
    fn networks_in_both_variables_are_exceptions() {
        let proxies = proxies(&[
            ("https_proxy", "http://proxy:1"),
            ("no_proxy", "10.0.0.0/8,a.test"),
            ("NO_PROXY", "11.0.0.0/8,b.test"),
        ]);
        for (host, is_direct) in [("10.1.1.1", true), ("11.1.1.1", true), ("a.test", true), ("b.test", false)]
        {
            assert_eq!(chosen(&proxies, &format!("https://{host}/")).is_none(), is_direct, "{host}");
        }
    }

    #[test]
    fn proxies_other_than_http_are_rejected() {
        for proxy in ["socks5://proxy:1", "https://proxy:1"] {
            let proxies = proxies(&[("HTTPS_PROXY", proxy)]);
            let url = Url::parse("https://hook.test/").unwrap();
            assert!(proxies.for_url(&url).is_err(), "{proxy}");
            assert_eq!(chosen(&proxies, "https://127.0.0.1/"), None, "{proxy}");
        }
    }
}
