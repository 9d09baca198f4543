//! Waits until kube-apiserver applies the admission policies that a case writes.
//!
//! The server reads policies and bindings with watches, and uses them at its next refresh, which happens every second.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::case::{Request, Verb};
use crate::names::MARKER;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::transport::{Answer, Message, send};

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns whether an object is an admission policy or a binding.
pub(crate) fn is_policy(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| kind.contains("AdmissionPolicy"))
}

/// Returns whether a request has changed an admission policy or a binding.
pub(crate) fn has_changed_policies(request: &Request, answer: &Answer) -> bool {
    let is_read = matches!(request.verb, Verb::Get | Verb::Watch);
    !is_read
        && answer.is_success()
        && !request.dry_run
        && request.resource.contains("/v1/validatingadmissionpolic")
}

/// Waits until the server applies all policies that exist so far. Returns the paths of helper objects.
///
/// A refresh that uses a later policy and a later binding also uses all earlier ones.
///
/// # Errors
/// Returns an error if the later policy does not take effect.
pub(crate) async fn settle(server: &Server) -> Result<Vec<String>, ServerError> {
    if !server.is_shared() {
        return Ok(Vec::new());
    }
    let name = format!("{MARKER}-{}", uuid::Uuid::new_v4().simple());
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "resourceNames": [name],
    }]);
    let policy = json!({
        "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "false"}],
    });
    let binding = json!({"policyName": name, "validationActions": ["Deny"]});
    let mut made = Vec::new();
    for (kind, plural, spec) in [
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", policy),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", binding),
    ] {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        let collection = format!("{ROOT}/{plural}");
        server.make(&collection, object).await?;
        made.push(format!("{collection}/{name}"));
    }
    let started = tokio::time::Instant::now();
    loop {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
        let answer = send(server.client(), Message::new(Method::POST, path, Some(object))).await?;
        if answer.status == 422 {
            return Ok(made);
        }
        if started.elapsed() > TIMEOUT {
            let what = "waiting until the server applies the policies".to_owned();
            return Err(ServerError::Refused { what, answer: answer.recorded().to_string() });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
