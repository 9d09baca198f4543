//! Keeps an HTTP client for each `clientConfig` and route, so that connections are reused.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use kubernetes_admission::config::{ClientConfig, Phase, ServiceReference, WebhookTarget};
use kubernetes_types::status::Unsupported;
use rustls::pki_types::ServerName;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use super::address::Destination;
use super::credentials::{FromPlugin, UserError, WebhookCredentials};
use super::dial::Dialer;
use super::failure::SendError;
use super::http_client::{HttpClient, Response};
use super::proxy::{self, Proxies, ProxyRoute};
use super::target::{Target, path_at};
use super::tls::{self, Identity};
use super::{ServiceResolver, failure};

/// The maximum number of clients to keep.
const MAX_CLIENTS: usize = 200;

/// The reason why a client cannot be created, or why a call failed.
#[derive(Debug)]
pub(super) enum Error {
    /// No client can be created; contains the message.
    Client(String),
    /// The call failed; contains the message.
    Transport(String),
    Unsupported(Unsupported),
}

impl From<UserError> for Error {
    fn from(error: UserError) -> Self {
        match error {
            UserError::Client(text) => Self::Client(text),
            UserError::Request(text) => Self::Transport(text),
            UserError::Unsupported(what) => Self::Unsupported(what),
        }
    }
}

/// The route to a webhook.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Route {
    /// The addresses of a service, which may change. Empty for a URL: its host is resolved for each connection.
    addresses: Vec<SocketAddr>,
    versions: Versions,
    identity: Option<Identity>,
    proxy: Option<ProxyRoute>,
}

/// The key of a client in [`Clients`].
type Key = (ClientConfig, Route);

/// Values that are cached in the configuration of a webhook.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) destination: Destination,
    last: Mutex<Option<Last>>,
}

/// The client of the last call.
struct Last {
    /// The collection that contains the client.
    owner: Weak<Mutex<Clients>>,
    ca_bundle: Vec<u8>,
    route: Route,
    /// A weak reference, so that the client is dropped when the collection evicts it.
    http: Weak<HttpClient>,
}

impl fmt::Debug for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Last").finish_non_exhaustive()
    }
}

impl Prepared {
    pub(super) fn new(target: &WebhookTarget) -> Self {
        Self { destination: Destination::new(target), last: Mutex::default() }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Versions {
    #[default]
    Http1,
    Http1And2,
}

/// The collection of clients, with at most [`MAX_CLIENTS`].
///
/// Rule: HTTP-22.
pub(super) struct Connections {
    services: Arc<dyn ServiceResolver>,
    credentials: WebhookCredentials,
    proxies: Proxies,
    clients: Arc<Mutex<Clients>>,
}

#[derive(Default)]
struct Clients {
    by_key: HashMap<Key, Arc<HttpClient>>,
    oldest_first: VecDeque<Key>,
}

/// An HTTP client for one call, with the route to the webhook and the caller's credentials.
pub(super) struct Client {
    http: Arc<HttpClient>,
    /// The headers that contain the caller's credentials.
    credentials: HeaderMap,
    route: Route,
    /// The credential plugin to notify if the webhook rejects the credentials.
    plugin: Option<FromPlugin>,
}

impl Client {
    /// Takes the client's route, so that another connection can be opened to diagnose a failed call.
    pub(super) fn take_diagnostic_connection(&mut self) -> DiagnosticConnection {
        DiagnosticConnection(std::mem::take(&mut self.route))
    }

    /// Takes the plugin that printed the credentials.
    pub(super) fn take_plugin(&mut self) -> Option<FromPlugin> {
        self.plugin.take()
    }

    /// Sends `body` to `target` with the headers that all requests have. `complete` can add more headers.
    pub(super) async fn send(
        self,
        method: &Method,
        target: &Result<Target, String>,
        body: Bytes,
        complete: impl FnOnce(&mut HeaderMap),
    ) -> Result<Response, SendError> {
        let target = target.as_ref().map_err(|error| SendError::Url(error.clone()))?;
        let mut request = Request::new(body.into());
        request.method_mut().clone_from(method);
        let headers = request.headers_mut();
        headers.reserve(HEADERS);
        headers.extend(target.authorization.clone().map(|value| (header::AUTHORIZATION, value)));
        headers.extend(self.credentials);
        headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        complete(headers);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        self.http.send(request, target).await
    }
}

/// The value of the `Accept` header of each request.
pub(super) const ACCEPT: &str = "application/json, */*";
pub(super) const USER_AGENT: &str = "kube-apiserver-admission";
/// The number of headers that most requests have.
const HEADERS: usize = 8;

/// The route of a failed call. Another connection over this route can show why the call failed.
pub(super) struct DiagnosticConnection(Route);

impl DiagnosticConnection {
    /// Returns the error that the server sends immediately after the handshake, if any.
    ///
    /// In TLS 1.3, the server rejects the client's certificate only after the handshake.
    pub(super) async fn why_it_ends(self, config: &ClientConfig, url: &str) -> Option<Error> {
        let Self(Route { addresses, identity, proxy: None, .. }) = self else { return None };
        let url = Url::parse(url).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        let tcp = match addresses.as_slice() {
            [] => TcpStream::connect((host.as_str(), url.port_or_known_default()?)).await.ok()?,
            addresses => TcpStream::connect(addresses).await.ok()?,
        };
        let tls = tls::client_config(&config.ca_bundle, &["http/1.1"], identity.as_ref()).ok()?;
        let name = ServerName::try_from(host).ok()?;
        // The server's alert may arrive before or after the library considers the handshake complete.
        let error = match TlsConnector::from(Arc::new(tls)).connect(name, tcp).await {
            Ok(mut stream) => stream.read(&mut [0]).await.err()?,
            Err(error) => error,
        };
        let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        Some(Error::Transport(failure::tls(error)))
    }

    /// Returns the reason why the proxy did not connect to the webhook, if the proxy failed.
    pub(super) async fn why_no_tunnel(self, url: &str) -> Option<Error> {
        let ProxyRoute { proxy, service } = self.0.proxy?;
        let to = service.map_or_else(|| Url::parse(url).ok(), Some)?;
        proxy::why_no_tunnel(&proxy, &to).await.map(Error::Transport)
    }
}

impl Connections {
    pub(super) fn new(services: Arc<dyn ServiceResolver>) -> Self {
        let proxies = Proxies::from_environment();
        Self { services, credentials: WebhookCredentials::default(), proxies, clients: Arc::default() }
    }

    pub(super) fn with_credentials(self, credentials: WebhookCredentials) -> Self {
        Self { credentials, ..self }
    }

    /// Returns the client for a request to `url`, which is the URL of `config` or a redirect from it.
    ///
    /// Source: apiserver pkg/util/webhook/client.go, `HookClient`; client-go transport/transport.go, `TLSConfigFor`.
    /// Rule: HTTP-13, NEW-06.
    pub(super) async fn client(
        &self,
        (config, prepared): (&ClientConfig, &Prepared),
        phase: Option<Phase>,
        url: &str,
    ) -> Result<Client, Error> {
        let user = phase.and_then(|phase| self.credentials.for_phase(phase).user(&config.target));
        let identity = user.map(|user| user.identity()).transpose()?.flatten();
        let plugin = match user {
            Some(user) => {
                check_bundle_of(config)?;
                user.ask_plugin(self.credentials.plugins(), config).await?
            }
            None => None,
        };
        let identity = identity.or_else(|| plugin.as_ref()?.identity().cloned());
        let (service, versions) = match &config.target {
            WebhookTarget::Service(service) => (Some(service), Versions::Http1),
            WebhookTarget::Url(_) if prepared.destination.is_loopback => (None, Versions::Http1And2),
            WebhookTarget::Url(_) => (None, Versions::Http1),
        };
        // A redirect may lead to a different host.
        let is_there = prepared.destination.service().is_some_and(|service| path_at(url, service).is_some());
        let route = match service.filter(|_| is_there) {
            Some(service) => self.to_service(service).await,
            None => self.proxy(url).map(|proxy| (Vec::new(), proxy.map(ProxyRoute::from))),
        };
        let (addresses, proxy) = route.or_else(|error| check_bundle_of(config).and(Err(error)))?;
        let route = Route { addresses, versions, identity, proxy };
        let http = self.http((config, prepared), &route).map_err(Error::Client)?;
        // As in Go's client, certificate errors come first.
        let credentials = user.map(|user| user.headers(plugin.as_ref())).transpose()?.unwrap_or_default();
        Ok(Client { http, credentials, route, plugin })
    }

    /// Returns the client of the last call if nothing has changed since then; otherwise, looks it up or creates it.
    fn http(
        &self,
        (config, prepared): (&ClientConfig, &Prepared),
        route: &Route,
    ) -> Result<Arc<HttpClient>, String> {
        let owner = Arc::downgrade(&self.clients);
        let is_same = |last: &&Last| {
            last.owner.ptr_eq(&owner) && last.route == *route && last.ca_bundle == config.ca_bundle
        };
        if let Some(http) = prepared.last().as_ref().filter(is_same).and_then(|last| last.http.upgrade()) {
            return Ok(http);
        }
        let http = self.known_or_built(&(config.clone(), route.clone()))?;
        let (ca_bundle, known) = (config.ca_bundle.clone(), Arc::downgrade(&http));
        *prepared.last() = Some(Last { owner, ca_bundle, route: route.clone(), http: known });
        Ok(http)
    }

    fn known_or_built(&self, key: &Key) -> Result<Arc<HttpClient>, String> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(http) = clients.by_key.get(key) {
            return Ok(Arc::clone(http));
        }
        let http = Arc::new(build(key)?);
        if clients.oldest_first.len() == MAX_CLIENTS
            && let Some(oldest) = clients.oldest_first.pop_front()
        {
            clients.by_key.remove(&oldest);
        }
        clients.oldest_first.push_back(key.clone());
        clients.by_key.insert(key.clone(), Arc::clone(&http));
        Ok(http)
    }

    /// Returns the host and port of a service.
    pub(super) fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String> {
        self.services.resolve(service)
    }

    /// Returns whether environment variables configure any proxies.
    pub(super) fn have_proxies(&self) -> bool {
        !self.proxies.is_empty()
    }

    fn proxy(&self, url: &str) -> Result<Option<Url>, Error> {
        if !self.have_proxies() {
            return Ok(None);
        }
        Url::parse(url).map_or(Ok(None), |url| self.proxies.for_url(&url)).map_err(Error::Unsupported)
    }

    /// Returns the addresses of a service, or the proxy for calls to the service.
    ///
    /// As in kube-apiserver, the resolved address determines the proxy, not the host in the URL.
    ///
    /// Source: apiserver pkg/util/webhook/client.go, `resolvingRoundTripper`.
    async fn to_service(
        &self,
        service: &ServiceReference,
    ) -> Result<(Vec<SocketAddr>, Option<ProxyRoute>), Error> {
        let (host, port) = self.resolve(service).map_err(Error::Transport)?;
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let resolved = format!("https://{bracketed}:{port}/");
        if let Some(proxy) = self.proxy(&resolved)? {
            return Ok((Vec::new(), Some(ProxyRoute { proxy, service: Url::parse(&resolved).ok() })));
        }
        let mut addresses: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), port))
            .await
            .map_err(|error| Error::Transport(format!("dial tcp: lookup {host}: {error}")))?
            .collect();
        addresses.sort_unstable();
        Ok((addresses, None))
    }
}

/// Checks that the CA bundle of `config` can be parsed.
///
/// Go's client parses the bundle before it runs a credential plugin or resolves the Service. Here, [`build`] parses the
/// bundle; this function is called only if another error would otherwise be reported first.
fn check_bundle_of(config: &ClientConfig) -> Result<(), Error> {
    if config.ca_bundle.is_empty() {
        return Ok(());
    }
    tls::bundle(&config.ca_bundle).map(drop).map_err(Error::Client)
}

fn build((config, Route { addresses, versions, identity, proxy }): &Key) -> Result<HttpClient, String> {
    let protocols: &[&str] = match versions {
        Versions::Http1 => &["http/1.1"],
        Versions::Http1And2 => &["h2", "http/1.1"],
    };
    let tls = tls::client_config(&config.ca_bundle, protocols, identity.as_ref())?;
    Ok(HttpClient::new(Dialer::new(tls, addresses, proxy.as_ref())?))
}
