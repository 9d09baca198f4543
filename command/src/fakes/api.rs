//! Reads, applies, lists, and deletes objects in a cluster as JSON.

use harness::json;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

use super::names::NAME;
use crate::Failure;
use crate::cluster_client::with_causes;

/// A client for the API of a cluster.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
}

/// A response from the cluster's API server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) code: StatusCode,
    /// The object or `Status`; a string if the response is not JSON.
    pub(crate) body: Value,
}

/// A kind of object that belongs to deployed fakes, or that controllers create for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    group_version: &'static str,
    /// The resource name in paths.
    pub(crate) plural: &'static str,
    namespaced: bool,
}

const fn kind(
    group_version: &'static str,
    name: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> Kind {
    Kind { name, group_version, plural, namespaced }
}

impl Kind {
    pub(crate) const NAMESPACE: Self = kind("v1", "Namespace", "namespaces", false);
    pub(crate) const SECRET: Self = kind("v1", "Secret", "secrets", true);
    pub(crate) const CONFIG_MAP: Self = kind("v1", "ConfigMap", "configmaps", true);
    pub(crate) const DEPLOYMENT: Self = kind("apps/v1", "Deployment", "deployments", true);
    pub(crate) const SERVICE: Self = kind("v1", "Service", "services", true);
    pub(crate) const POD: Self = kind("v1", "Pod", "pods", true);
    pub(crate) const REPLICA_SET: Self = kind("apps/v1", "ReplicaSet", "replicasets", true);
    pub(crate) const ENDPOINT_SLICE: Self =
        kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true);
    pub(crate) const EVENT: Self = kind("v1", "Event", "events", true);
    pub(crate) const MUTATING: Self = kind(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
    );
    pub(crate) const VALIDATING: Self = kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
    );

    pub(crate) const VALIDATING_POLICY: Self = kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        false,
    );
    pub(crate) const VALIDATING_BINDING: Self = kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        false,
    );
    pub(crate) const MUTATING_POLICY: Self = kind(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        false,
    );
    pub(crate) const MUTATING_BINDING: Self = kind(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        false,
    );
    pub(crate) const CUSTOM_RESOURCE_DEFINITION: Self =
        kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false);

    /// Returns the kind of an object in a manifest.
    ///
    /// # Panics
    /// Panics if manifests never contain objects of this kind.
    fn for_object(object: &Value) -> Self {
        [
            Self::NAMESPACE,
            Self::SECRET,
            Self::CONFIG_MAP,
            Self::DEPLOYMENT,
            Self::SERVICE,
            Self::MUTATING,
            Self::VALIDATING,
        ]
        .into_iter()
        .find(|kind| object["kind"] == kind.name)
        .unwrap_or_else(|| panic!("no manifest has the kind {}", object["kind"]))
    }

    /// Returns the path of the collection, in `namespace` if the kind is namespaced.
    pub(crate) fn collection(self, namespace: &str) -> String {
        let prefix = if self.group_version.contains('/') { "apis" } else { "api" };
        let namespace = if self.namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        format!("/{prefix}/{}/{namespace}{}", self.group_version, self.plural)
    }

    /// Returns the API path of an object in a manifest.
    pub(crate) fn path_of(object: &Value) -> String {
        let text = |field: &str| json::text(object, &["metadata", field]);
        Self::for_object(object).path(text("namespace"), text("name"))
    }

    /// Returns the path of an object.
    pub(crate) fn path(self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }
}

impl Answer {
    /// Returns the `message` of a Status, the `error` of the admin endpoint, or the complete text.
    pub(crate) fn message(&self) -> String {
        let texts = [json::at(&self.body, &["message"]), json::at(&self.body, &["error"]), &self.body];
        let message = texts.into_iter().find_map(Value::as_str).unwrap_or_default().trim();
        if message.is_empty() { self.code.to_string() } else { message.to_owned() }
    }
}

impl Api {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Sends a request and returns the response, regardless of its status.
    ///
    /// # Errors
    /// Returns an error if the cluster did not respond.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Answer, Failure> {
        let mut request =
            Request::builder().method(&method).uri(path).header(header::ACCEPT, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let failure = |error: &dyn std::error::Error| {
            Failure::environment(format!("{method} {path}: {}", with_causes(error)))
        };
        let request = request.body(Body::from(body)).map_err(|error| failure(&error))?;
        let (parts, body) = self.client.send(request).await.map_err(|error| failure(&error))?.into_parts();
        let bytes = body.collect().await.map_err(|error| failure(&error))?.to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answer { code: parts.status, body })
    }

    /// Returns the object at `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the cluster did not respond or rejected the request.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        let answer = self.send(Method::GET, path, &[], Vec::new()).await?;
        match answer.code {
            StatusCode::NOT_FOUND => Ok(None),
            _ => succeeded(answer, || format!("cannot read {path}")).map(Some),
        }
    }

    /// Lists the objects of `kind` that match `label_selector`.
    ///
    /// # Errors
    /// Returns an error if the cluster did not respond or rejected the request.
    pub(crate) async fn list(
        &self,
        kind: Kind,
        namespace: &str,
        label_selector: &str,
    ) -> Result<Vec<Value>, Failure> {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("labelSelector", label_selector)
            .finish();
        let path = format!("{}?{query}", kind.collection(namespace));
        let answer = self.send(Method::GET, &path, &[], Vec::new()).await?;
        let mut list = succeeded(answer, || format!("cannot list {}", kind.plural))?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Applies an object with server-side apply and force.
    ///
    /// # Errors
    /// Returns an error if the cluster did not respond or rejected the request.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Value, Failure> {
        self.apply_with(object, "").await
    }

    /// Applies an object as a dry run.
    ///
    /// # Errors
    /// Returns an error if the cluster did not respond or rejected the request.
    pub(crate) async fn apply_dry_run(&self, object: &Value) -> Result<Value, Failure> {
        self.apply_with(object, "&dryRun=All").await
    }

    async fn apply_with(&self, object: &Value, options: &str) -> Result<Value, Failure> {
        let path = Kind::path_of(object);
        let uri = format!("{path}?fieldManager={NAME}&force=true{options}");
        let content_type = ("content-type", "application/apply-patch+yaml");
        let answer = self.send(Method::PATCH, &uri, &[content_type], object.to_string().into_bytes()).await?;
        succeeded(answer, || format!("cannot apply {path}"))
    }

    /// Deletes the object at `path`; returns whether it existed.
    ///
    /// # Errors
    /// Returns an error if the cluster did not respond or rejected the request.
    pub(crate) async fn delete(&self, path: &str) -> Result<bool, Failure> {
        let background = br#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}"#;
        let content_type = ("content-type", "application/json");
        let answer = self.send(Method::DELETE, path, &[content_type], background.to_vec()).await?;
        match answer.code {
            StatusCode::NOT_FOUND => Ok(false),
            _ => succeeded(answer, || format!("cannot delete {path}")).map(|_| true),
        }
    }
}

fn succeeded(answer: Answer, what: impl FnOnce() -> String) -> Result<Value, Failure> {
    if answer.code.is_success() {
        return Ok(answer.body);
    }
    Err(Failure::environment(format!("{}: {} {}", what(), answer.code.as_u16(), answer.message())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_the_api() {
        assert_eq!(Kind::NAMESPACE.path("", "demo"), "/api/v1/namespaces/demo");
        assert_eq!(Kind::SECRET.path("demo", "one"), "/api/v1/namespaces/demo/secrets/one");
        assert_eq!(Kind::DEPLOYMENT.collection("demo"), "/apis/apps/v1/namespaces/demo/deployments");
        assert_eq!(
            Kind::MUTATING.collection("demo"),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        );
    }
}
