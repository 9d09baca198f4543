//! The API server that stands behind the webhooks and writes down what they do.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{self, Next};
use harness::server::{ApiServer, Authentication, Options};
use harness::verify::Recorder;
use serde_json::Value;

use crate::Failure;
use crate::serve::{Kubeconfig, Listener, administrator, listener, tls};

/// A server that runs until it is dropped.
pub(crate) struct RecordingServer {
    /// What it was asked.
    pub(crate) recorder: Recorder,
    _listener: Listener,
}

impl RecordingServer {
    /// Starts it on `listen`, with `objects` as what the cluster has, and writes a kubeconfig for the webhooks.
    ///
    /// # Errors
    /// An object that the server does not take, by name; an address or a file that cannot be used.
    pub(crate) fn start<'a>(
        listen: SocketAddr,
        kubeconfig_out: &Path,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Self, Failure> {
        let server = ApiServer::new(Options::default());
        fill(&server, objects)?;
        let socket = listener::bind(listen)?;
        let credentials = tls::Credentials::new(socket.address())?;
        let kubeconfig = Kubeconfig {
            server: tls::client_url(socket.address()),
            certificate_authority: credentials.certificate_authority_pem().to_owned(),
            token: tls::random_token()?,
        };
        kubeconfig.write(kubeconfig_out)?;
        let authentication = Authentication::BearerToken { token: kubeconfig.token, user: administrator() };
        let recorder = Recorder::default();
        let told = recorder.clone();
        let router =
            server.router(authentication).layer(middleware::from_fn(move |request: Request, next: Next| {
                let uri = request.uri();
                let may_create =
                    told.request(request.method().as_str(), uri.path(), uri.query().unwrap_or_default());
                let told = told.clone();
                async move {
                    let response = next.run(request).await;
                    if may_create {
                        told.answer(response.status().as_u16());
                    }
                    response
                }
            }));
        let listener = Listener::start(socket, Arc::new(credentials.server_config()?), router)?;
        Ok(Self { recorder, _listener: listener })
    }
}

/// Puts `objects` into the server, definitions of custom resources first: the others may be of those kinds.
fn fill<'a>(server: &ApiServer, objects: impl IntoIterator<Item = &'a Value>) -> Result<(), Failure> {
    let (definitions, others): (Vec<&Value>, Vec<&Value>) =
        objects.into_iter().partition(|object| object["kind"] == "CustomResourceDefinition");
    for object in definitions.into_iter().chain(others) {
        server.put(object.clone()).map_err(|status| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            Failure::usage(format!(
                "--api-server-out: the {kind} `{name}` cannot be there: {}",
                status.message
            ))
        })?;
    }
    Ok(())
}
