//! Waits until kube-apiserver has processed the custom resource definitions that a case writes.
//!
//! After the server has answered the request, its controllers accept the names, write the status, and delete the
//! objects.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::case::{Case, Request, Verb};
use crate::names::Names;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::transport::{Answer, Message, send};

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const RESOURCE: &str = "apiextensions.k8s.io/v1/customresourcedefinitions";
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
const TIMEOUT: Duration = Duration::from_secs(30);

/// The definitions that the requests of a case have created.
#[derive(Debug)]
pub(crate) struct Definitions {
    names: Vec<String>,
    /// Whether the webhooks of the case would be called for an additional definition.
    is_watched: bool,
}

/// The point at which to wait for the controllers.
///
/// If the webhooks see definitions, the controllers' writes cause calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the calls are read, if the webhooks see definitions.
    BeforeCalls,
    /// After the calls are read, if the webhooks do not see definitions.
    AfterCalls,
}

impl Definitions {
    /// Creates the value for `case`, without definitions.
    pub(crate) fn for_case(case: &Case) -> Self {
        let is_meant = |webhook: &crate::case::Webhook| {
            let rules = webhook.fields.get("rules").map(Value::to_string).unwrap_or_default();
            rules.contains("customresourcedefinitions")
        };
        Self { names: Vec::new(), is_watched: case.webhooks.iter().any(is_meant) }
    }

    /// Waits after a request that may have changed a definition or its objects. Returns the paths of helper objects.
    ///
    /// # Errors
    /// Returns an error if the server does not become idle.
    pub(crate) async fn settle(
        &mut self,
        moment: Moment,
        server: &Server,
        names: &Names,
        request: &Request,
        answer: &Answer,
    ) -> Result<Vec<String>, ServerError> {
        if self.is_watched != (moment == Moment::BeforeCalls) {
            return Ok(Vec::new());
        }
        let is_write = !matches!(request.verb, Verb::Get | Verb::Watch);
        if !is_write || !answer.is_success() || request.dry_run {
            return Ok(Vec::new());
        }
        let is_definition = request.resource == RESOURCE;
        if is_definition && request.verb == Verb::Create {
            self.names.extend(answer.body["metadata"]["name"].as_str().map(str::to_owned));
        }
        let mut made: Vec<String> = Vec::new();
        if is_definition {
            made.extend(self.names.iter().map(|name| format!("{PATH}/{name}")));
        }
        for name in &self.names {
            self.wait(server, name, is_settled).await?;
        }
        if is_definition && !self.is_watched {
            made.push(self.wait_for_a_later_one(server, names).await?);
            for name in &self.names {
                self.wait(server, name, is_settled).await?;
            }
        }
        Ok(made)
    }

    /// Creates another definition and waits until it is established.
    ///
    /// Watch events arrive in order, so by then, the server has processed all earlier definitions.
    async fn wait_for_a_later_one(&self, server: &Server, names: &Names) -> Result<String, ServerError> {
        let group = format!("m{}.{}.example.com", uuid::Uuid::new_v4().simple(), names.id());
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("markers.{group}")},
            "spec": {
                "group": group, "scope": "Cluster", "names": {"plural": "markers", "kind": "Marker"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        });
        server.make(PATH, definition).await?;
        let name = format!("markers.{group}");
        self.wait(server, &name, is_settled).await?;
        Ok(format!("{PATH}/{name}"))
    }

    async fn wait(
        &self,
        server: &Server,
        name: &str,
        is_settled: fn(&Value, &[Value]) -> bool,
    ) -> Result<(), ServerError> {
        let started = tokio::time::Instant::now();
        loop {
            let get = |path: String| send(server.client(), Message::new(Method::GET, path, None));
            let answer = get(format!("{PATH}/{name}")).await?;
            if answer.status == 404 {
                return Ok(());
            }
            let spec = &answer.body["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let version =
                spec["versions"].as_array().and_then(|all| all.iter().find(|it| it["served"] == true));
            let version = version.map(|version| text(&version["name"])).unwrap_or_default();
            let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
            let objects = get(format!("/apis/{group}/{version}/{plural}")).await?;
            let objects = objects.body["items"].as_array().cloned().unwrap_or_default();
            if is_settled(&answer.body, &objects) {
                return Ok(());
            }
            if started.elapsed() > TIMEOUT {
                let what = format!("waiting for the controllers of the server to finish with {name}");
                return Err(ServerError::Refused { what, answer: answer.recorded().to_string() });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns whether the controllers have finished processing a definition whose objects are `objects`.
fn is_settled(definition: &Value, objects: &[Value]) -> bool {
    let is_deleting = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    let has_finalizer = |name: &str| {
        definition["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|it| it == name))
    };
    if is_deleting(definition) && has_finalizer(FINALIZER) {
        return !objects.is_empty() && objects.iter().all(is_deleting);
    }
    let condition = |kind: &str| {
        let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
        conditions.find(|it| it["type"] == kind)
    };
    let status = |kind: &str| condition(kind).map(|it| it["status"] == "True");
    let has_invalid_bundle = || condition("Established").is_some_and(|it| it["reason"] == "InvalidCABundle");
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let is_judged = !(group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io"))
        || status("KubernetesAPIApprovalPolicyConformant").is_some();
    let is_named = match status("NamesAccepted") {
        // A client may have removed the conditions.
        None => definition["spec"]["names"] == definition["status"]["acceptedNames"],
        Some(true) => status("Established") == Some(true) || has_invalid_bundle(),
        Some(false) => true,
    };
    is_judged && is_named
}
