//! Runs an API server for the webhooks under test and records their requests.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use harness::json::text;
use harness::server::{ApiServer, Authentication, Options};
use harness::verify::{Recorder, shape};
use http::StatusCode;
use kubernetes_api_listener::{Credentials, Listener, Socket};
use serde_json::{Value, json};

use crate::Failure;
use crate::serve::administrator;
use crate::serve::kubeconfig::{self, Kubeconfig};

/// An API server that records requests and runs until it is dropped. Dropping it also removes its kubeconfig.
pub(crate) struct RecordingServer {
    /// The recorder of the requests to the server.
    pub(crate) recorder: Recorder,
    kubeconfig: PathBuf,
    _listener: Listener,
}

impl Drop for RecordingServer {
    fn drop(&mut self) {
        Kubeconfig::remove(&self.kubeconfig);
    }
}

impl RecordingServer {
    /// Starts the server on `listen` with `objects` as its content, and writes a kubeconfig for the webhooks.
    ///
    /// # Errors
    /// Returns an error if the server rejects an object, cannot listen on the address, or cannot write the kubeconfig.
    pub(crate) fn start<'a>(
        listen: SocketAddr,
        kubeconfig_out: &Path,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Self, Failure> {
        let server = ApiServer::new(Options::default());
        fill(&server, objects)?;
        let socket = Socket::bind(listen)?;
        let credentials = Credentials::new(socket.address()).map_err(Failure::environment)?;
        let kubeconfig = Kubeconfig {
            server: kubeconfig::client_url(socket.address()),
            certificate_authority: credentials.certificate_authority_pem().to_owned(),
            token: kubeconfig::random_token()?,
        };
        kubeconfig.write(kubeconfig_out)?;
        let authentication = Authentication::BearerToken { token: kubeconfig.token, user: administrator() };
        let recorder = Recorder::default();
        let told = recorder.clone();
        let authenticator = server.authenticator(authentication.clone());
        let router =
            server.router(authentication).layer(middleware::from_fn(move |request: Request, next: Next| {
                let (method, uri) = (request.method().clone(), request.uri().clone());
                let query = uri.query().unwrap_or_default();
                let may_create = told.request(method.as_str(), uri.path(), query);
                let told = told.clone();
                async move {
                    let response = next.run(request).await;
                    let status = response.status();
                    if may_create {
                        told.answer(uri.path(), status.as_u16());
                    }
                    let is_creation = may_create && status == StatusCode::CREATED;
                    if !is_creation && !status.is_client_error() && !status.is_server_error() {
                        return response;
                    }
                    let (parts, body) = response.into_parts();
                    // The server already holds the complete response in memory.
                    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
                    if is_creation {
                        // A response in protobuf does not name its object.
                        if let Ok(object) = serde_json::from_slice::<Value>(&bytes) {
                            told.created(uri.path(), &object);
                        }
                    } else {
                        let query = uri.query().unwrap_or_default();
                        told.refused(method.as_str(), uri.path(), query, status.as_u16(), &message(&bytes));
                    }
                    Response::from_parts(parts, Body::from(bytes))
                }
            }));
        let tls = Arc::new(credentials.server_config(None).map_err(Failure::environment)?);
        let listener = Listener::start(socket, tls, router, authenticator, None)?;
        Ok(Self { recorder, kubeconfig: kubeconfig_out.to_owned(), _listener: listener })
    }
}

/// The namespaces that every API server creates.
///
/// Source: kubernetes pkg/controlplane/controller/systemnamespaces.
pub(super) const KNOWN_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Returns the objects that must exist in a cluster before the objects of the corpus.
///
/// These are the namespaces of the corpus, the service account `default` in each of them, and the service accounts that
/// Pods and Pod templates name.
///
/// Objects in `around` already exist and are omitted.
pub(super) fn required<'a>(
    corpus: impl IntoIterator<Item = Value>,
    around: impl IntoIterator<Item = &'a Value>,
    default_namespace: &str,
) -> Vec<Value> {
    let mut namespaces = BTreeSet::from([default_namespace.to_owned()]);
    let mut accounts = BTreeSet::new();
    let mut known = BTreeSet::new();
    for object in around {
        let metadata = |field: &str| text(object, &["metadata", field]).to_owned();
        known.insert((text(object, &["kind"]).to_owned(), metadata("namespace"), metadata("name")));
        match text(object, &["kind"]) {
            "Namespace" => namespaces.insert(metadata("name")),
            _ => namespaces.insert(metadata("namespace")),
        };
    }
    for object in corpus {
        let namespace = match text(&object, &["metadata", "namespace"]) {
            "" => default_namespace,
            namespace => namespace,
        };
        namespaces.insert(namespace.to_owned());
        let account = shape::pod_spec(&object)
            .and_then(|spec| object.pointer(&format!("{spec}/serviceAccountName"))?.as_str());
        accounts.extend(account.map(|account| (namespace.to_owned(), account.to_owned())));
    }
    namespaces.remove("");
    accounts.extend(namespaces.iter().map(|namespace| (namespace.clone(), "default".to_owned())));
    let is_known = |kind: &str, namespace: &str, name: &str| {
        known.contains(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
    };
    let missing = namespaces
        .iter()
        .filter(|name| !KNOWN_NAMESPACES.contains(&name.as_str()) && !is_known("Namespace", "", name));
    let missing =
        missing.map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let accounts = accounts.iter().filter(|(namespace, name)| !is_known("ServiceAccount", namespace, name));
    let accounts = accounts.map(|(namespace, name)| {
        let metadata = json!({"namespace": namespace, "name": name});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    });
    missing.chain(accounts).collect()
}

/// Returns the message of a `Status`, or the complete body if it is not a `Status`.
fn message(bytes: &[u8]) -> String {
    let status: Option<Value> = serde_json::from_slice(bytes).ok();
    let message = status.as_ref().and_then(|status| status["message"].as_str());
    message.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), str::to_owned)
}

/// Stores `objects` in the server.
///
/// Custom resource definitions and Namespaces are stored first, because other objects may depend on them.
fn fill<'a>(server: &ApiServer, objects: impl IntoIterator<Item = &'a Value>) -> Result<(), Failure> {
    let rank = |object: &&Value| match text(object, &["kind"]) {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        _ => 2,
    };
    let mut objects: Vec<&Value> = objects.into_iter().collect();
    objects.sort_by_key(rank);
    for object in objects {
        server.put(object.clone()).map_err(|status| {
            let (kind, name) = (text(object, &["kind"]), text(object, &["metadata", "name"]));
            Failure::usage(format!(
                "--api-server-out: the {kind} `{name}` cannot be stored: {}",
                status.message
            ))
        })?;
    }
    Ok(())
}
