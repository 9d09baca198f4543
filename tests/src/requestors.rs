//! Creates clients that authenticate as service accounts of a case and impersonate users.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::case::Requestor;
use crate::names::Names;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::transport::Message;

/// The clients of a run, in addition to the administrator's client.
#[derive(Default)]
pub(crate) struct Requestors {
    clients: BTreeMap<Requestor, kube::Client>,
}

impl Requestors {
    /// Returns the client of a requestor. Its user is different in each run.
    ///
    /// # Errors
    /// Returns an error if the service account or the pod does not exist, or does not get a token.
    pub(crate) async fn client(
        &mut self,
        requestor: &Requestor,
        server: &Server,
        names: &Names,
    ) -> Result<kube::Client, ServerError> {
        if let Some(client) = self.clients.get(requestor) {
            return Ok(client.clone());
        }
        let namespace = names.namespace();
        let root = format!("/api/v1/namespaces/{namespace}");
        let Requestor { service_account, pod } = requestor;
        let pod = match pod.as_str() {
            "" => None,
            name => Some(found(server, &format!("{root}/pods/{name}")).await?),
        };
        let path = format!("{root}/serviceaccounts/{service_account}/token");
        let token = token(server, &path, pod.as_ref()).await?;
        let client =
            server.target().client_of(service_account, &token).map_err(ServerError::ClusterFixture)?;
        self.clients.insert(requestor.clone(), client.clone());
        Ok(client)
    }
}

async fn token(server: &Server, path: &str, pod: Option<&Value>) -> Result<String, ServerError> {
    let mut request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    if let Some(pod) = pod {
        let metadata = &pod["metadata"];
        request["spec"]["boundObjectRef"] =
            json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]});
    }
    let made = server.make(path, request).await?;
    Ok(made.pointer("/status/token").and_then(Value::as_str).unwrap_or_default().to_owned())
}

async fn found(server: &Server, path: &str) -> Result<Value, ServerError> {
    let answer = server.ask(Message::new(Method::GET, path, None)).await?;
    if answer.is_success() {
        return Ok(answer.body);
    }
    Err(ServerError::Refused { what: format!("reading {path}"), answer: answer.recorded().to_string() })
}
