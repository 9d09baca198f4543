//! Starts the API server for tests, and its webhooks.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use certs::CertificateAuthority;
use fake_webhooks::{FakesFile, Fleet, Log};
use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};
use http::Method;
use kube::client::ClientBuilder;
use serde_json::{Value, json};
use tower::layer::layer_fn;

use crate::LOOPBACK;
use crate::audit_log::{AuditIndex, AuditLog};
use crate::client::Recording;
use crate::endpoint::Endpoint;
use crate::envtest::{Envtest, Settings};
use crate::error::Error;
use crate::manifests::{self, Manifest};
use crate::marker;
use crate::record::{Call, Recorder, RequestTrace, SentRequest};
use crate::service_name::ServiceName;

/// The API server that a test runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// The in-process API server of admit.
    #[default]
    InProcess,
    /// etcd and kube-apiserver from KUBEBUILDER_ASSETS.
    Envtest,
}

impl Backend {
    /// Returns the available backends: in process, and kube-apiserver if KUBEBUILDER_ASSETS is set.
    pub fn available() -> Vec<Self> {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(|_| Self::Envtest);
        [Self::InProcess].into_iter().chain(assets).collect()
    }
}

/// The settings of a [`TestServer`].
#[derive(Debug, Default)]
pub struct Builder {
    backend: Backend,
    webhooks: Vec<(String, Router)>,
    manifests: Vec<PathBuf>,
    fakes: Vec<PathBuf>,
}

impl Builder {
    /// Sets the backend; the default is [`Backend::InProcess`].
    #[must_use]
    pub fn on(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// Serves a webhook, such as an [`axum::Router`] or another tower service, as the Service `NAMESPACE/NAME`.
    ///
    /// Configurations whose `clientConfig.service` refers to the Service get the webhook's `caBundle` and port.
    #[must_use]
    pub fn webhook<S>(mut self, service: &str, webhook: S) -> Self
    where
        S: tower::Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        self.webhooks.push((service.to_owned(), Router::new().fallback_service(webhook)));
        self
    }

    /// Creates the objects in a file, or in all YAML and JSON files in a folder.
    ///
    /// Namespaces and custom resource definitions are created first, webhook configurations last. Missing namespaces
    /// are created, and Services of webhooks under test are omitted.
    #[must_use]
    pub fn manifests(mut self, path: impl AsRef<Path>) -> Self {
        self.manifests.push(path.as_ref().to_owned());
        self
    }

    /// Serves the webhooks in a fakes file (see `admit fakes`) and creates their configurations.
    #[must_use]
    pub fn fakes(mut self, path: impl AsRef<Path>) -> Self {
        self.fakes.push(path.as_ref().to_owned());
        self
    }

    /// Starts the server and the webhooks, creates the objects, and waits until the server uses the configurations.
    ///
    /// # Errors
    /// Returns an error, with the path of the file, if a server does not start or an object cannot be created.
    pub async fn start(self) -> Result<TestServer, Error> {
        let mut objects = Vec::new();
        for path in &self.manifests {
            manifests::read(path, &mut objects)?;
        }
        let authority = CertificateAuthority::new("admit-testing");
        let authority = authority.map_err(|error| Error::Certificate(error.to_string()))?;
        let recorder = Arc::new(Recorder::default());
        let mut endpoints = Vec::new();
        for (service, webhook) in self.webhooks {
            let service: ServiceName = service.parse()?;
            let endpoint = Endpoint::start(&service, webhook, &authority, Arc::clone(&recorder)).await?;
            endpoints.push((service, endpoint));
        }
        let fakes = start_fakes(&self.fakes).await?;
        let configurations = fakes.iter().flat_map(Fleet::configurations).cloned();
        objects.extend(configurations.map(|object| Manifest { file: PathBuf::from("fakes"), object }));
        let servers = Servers::start(self.backend).await?;
        let setup = Setup { client: servers.client(None)?, backend: self.backend, authority: &authority };
        setup.create(objects, &endpoints).await?;
        let client = servers.client(Some(&recorder))?;
        Ok(TestServer { client, recorder, servers, _endpoints: endpoints, _fakes: fakes })
    }
}

async fn start_fakes(files: &[PathBuf]) -> Result<Option<Fleet>, Error> {
    let mut read = Vec::new();
    for file in files {
        let failed = |message: String| Error::Manifest { file: file.clone(), message };
        let text = output::read(file).map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8(text).map_err(|error| failed(error.to_string()))?;
        let parsed = FakesFile::parse(&text, &file.display().to_string());
        read.push(parsed.map_err(|error| Error::Setup(error.to_string()))?);
    }
    if read.is_empty() {
        return Ok(None);
    }
    let started = Fleet::start(&read, &(Arc::new(|_: &str| ()) as Log)).await;
    started.map(Some).map_err(|error| Error::Setup(error.to_string()))
}

/// A running API server and its audit log.
#[derive(Debug)]
struct Servers {
    api_server: RunningApiServer,
    audit: AuditLog,
}

#[derive(Debug)]
enum RunningApiServer {
    InProcess(ApiServer),
    Envtest(Box<Envtest>),
}

impl Servers {
    async fn start(backend: Backend) -> Result<Self, Error> {
        match backend {
            Backend::InProcess => {
                let events = AuditIndex::default();
                let recorded = events.clone();
                let server = ApiServer::new(Options {
                    audit: Some(Arc::new(move |event| recorded.record(event))),
                    ..Options::default()
                });
                let api_server = RunningApiServer::InProcess(server);
                Ok(Self { api_server, audit: AuditLog::recorded(events) })
            }
            Backend::Envtest => {
                let mut settings = Settings::default();
                // As in process and in controller-runtime's envtest, because no controller creates service accounts.
                settings.flags.push("--disable-admission-plugins=ServiceAccount".to_owned());
                let envtest = Envtest::start(settings, |_| ()).await?;
                let audit = AuditLog::follow_from_end(envtest.audit_log());
                let audit = audit.map_err(|error| Error::Setup(format!("no audit log: {error}")))?;
                Ok(Self { api_server: RunningApiServer::Envtest(Box::new(envtest)), audit })
            }
        }
    }

    /// Creates a client in the group `system:masters`. Its requests are recorded if `recorder` is set.
    fn client(&self, recorder: Option<&Arc<Recorder>>) -> Result<kube::Client, Error> {
        match &self.api_server {
            RunningApiServer::InProcess(server) => {
                let inner = server.router(Authentication::Always(admin()));
                Ok(match recorder.cloned() {
                    None => kube::Client::new(inner, "default"),
                    Some(recorder) => kube::Client::new(Recording { inner, recorder }, "default"),
                })
            }
            RunningApiServer::Envtest(envtest) => {
                let failed = |error: kube::Error| Error::Setup(format!("no client: {error}"));
                let builder = ClientBuilder::try_from(envtest.config().clone()).map_err(failed)?;
                Ok(match recorder {
                    None => builder.build(),
                    Some(recorder) => {
                        let record = |inner| Recording { inner, recorder: Arc::clone(recorder) };
                        builder.with_layer(&layer_fn(record)).build()
                    }
                })
            }
        }
    }
}

/// Returns the user of [`Envtest::config`], including the UID, because reviews contain the UID.
fn admin() -> UserInfo {
    UserInfo {
        username: "admin".to_owned(),
        uid: "admin".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    }
}

/// Prepares the server before the test starts.
struct Setup<'a> {
    client: kube::Client,
    backend: Backend,
    authority: &'a CertificateAuthority,
}

const CONFIGURATIONS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

impl Setup<'_> {
    async fn create(
        &self,
        mut objects: Vec<Manifest>,
        endpoints: &[(ServiceName, Endpoint)],
    ) -> Result<(), Error> {
        let is_ours = |manifest: &Manifest| {
            let is = |(service, _): &(ServiceName, Endpoint)| {
                manifest.text("/metadata/namespace") == service.namespace
                    && manifest.text("/metadata/name") == service.name
            };
            manifest.is("", "Service") && endpoints.iter().any(is)
        };
        objects.retain(|manifest| !is_ours(manifest));
        objects.sort_by_key(rank);
        for (service, _) in endpoints {
            self.create_service(service).await?;
        }
        let is_configuration =
            |manifest: &Manifest, kind: &str| manifest.is("admissionregistration.k8s.io", kind);
        for manifest in
            objects.iter().filter(|it| !CONFIGURATIONS.iter().any(|kind| is_configuration(it, kind)))
        {
            manifests::create(&self.client, manifest).await?;
        }
        // Validating webhooks come first, so that mutating webhooks do not affect the marker object.
        for kind in CONFIGURATIONS {
            let mut of_kind = objects.iter().filter(|it| is_configuration(it, kind)).peekable();
            if of_kind.peek().is_none() {
                continue;
            }
            for manifest in of_kind {
                let mut manifest = manifest.clone();
                point_at(&mut manifest.object, endpoints, self.authority);
                manifests::create(&self.client, &manifest).await?;
            }
            match self.backend {
                Backend::InProcess => {} // uses a configuration when its request is answered
                Backend::Envtest => marker::wait_until_used(&self.client, kind, self.authority).await?,
            }
        }
        Ok(())
    }

    /// Creates an `ExternalName` Service that points to this machine; the API server uses the Service's name for TLS.
    ///
    /// Source: apiserver pkg/util/proxy/proxy.go, `ResolveCluster`.
    async fn create_service(&self, service: &ServiceName) -> Result<(), Error> {
        manifests::create_namespace(&self.client, &service.namespace).await?;
        let object = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": service.namespace, "name": service.name},
            "spec": {"type": "ExternalName", "externalName": LOOPBACK.to_string()},
        });
        manifests::create(&self.client, &Manifest { file: PathBuf::from("service"), object }).await
    }
}

/// Returns the position of an object in the creation order: namespaces and custom resource definitions come first.
fn rank(manifest: &Manifest) -> u8 {
    if manifest.is("", "Namespace") {
        0
    } else if manifest.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        1
    } else {
        2
    }
}

/// Sets the port and the `caBundle` of each `clientConfig` whose Service is under test.
fn point_at(
    configuration: &mut Value,
    endpoints: &[(ServiceName, Endpoint)],
    authority: &CertificateAuthority,
) {
    let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        let Some(client_config) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) else {
            continue;
        };
        let Some(service) = client_config.get_mut("service").and_then(Value::as_object_mut) else { continue };
        let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let found = endpoints.iter().find(|(it, _)| it.namespace == namespace && it.name == name);
        if let Some((_, endpoint)) = found {
            service.insert("port".to_owned(), endpoint.port().into());
            let bundle = BASE64_STANDARD.encode(authority.certificate_pem());
            client_config.insert("caBundle".to_owned(), bundle.into());
        }
    }
}

/// An API server with the webhooks under test behind their Services. It stops when dropped.
pub struct TestServer {
    client: kube::Client,
    recorder: Arc<Recorder>,
    // The API server is stopped before the webhooks.
    servers: Servers,
    _endpoints: Vec<(ServiceName, Endpoint)>,
    _fakes: Option<Fleet>,
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl TestServer {
    /// Returns a builder with default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a client in the group `system:masters` with the namespace `default`.
    ///
    /// The client's requests are recorded and not retried.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Returns the requests of [`Self::client`], oldest first, with the calls that they caused.
    pub async fn requests(&self) -> Vec<RequestTrace> {
        let mut traces = Vec::new();
        for request in self.recorder.requests() {
            traces.push(self.trace(request).await);
        }
        traces
    }

    /// Returns the newest request that is not a GET.
    pub async fn last_write(&self) -> Option<RequestTrace> {
        let request = self.recorder.requests().into_iter().rfind(|request| request.method != Method::GET)?;
        Some(self.trace(request).await)
    }

    /// Returns all calls to the webhooks under test, in order of arrival.
    ///
    /// This includes calls that were not caused by [`Self::client`], for example for objects in manifests.
    pub fn calls(&self) -> Vec<Call> {
        self.recorder.calls()
    }

    async fn trace(&self, request: SentRequest) -> RequestTrace {
        // A request in progress does not have an audit event yet.
        let annotations = match request.status {
            Some(_) => self.servers.audit.annotations(&request.audit_id).await,
            None => None,
        };
        RequestTrace {
            calls: self.recorder.calls_of(&request),
            method: request.method,
            path: request.path,
            status: request.status,
            annotations: annotations.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_names_are_namespace_and_name() {
        assert_eq!("demo/webhook".parse::<ServiceName>().unwrap().to_string(), "demo/webhook");
        for text in
            ["", "webhook", "demo/", "/webhook", "demo/webhook/x", "demo.svc/webhook", "demo/127.0.0.1"]
        {
            let error = text.parse::<ServiceName>().unwrap_err().to_string();
            assert_eq!(error, format!("invalid Service `{text}`: must be NAMESPACE/NAME"));
        }
    }
}
