//! Waits until kube-apiserver applies the admission policies that a case writes.
//!
//! The server reads policies, bindings, and params through watches. It uses new policies and bindings after its next
//! refresh, which happens every second.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::case::{Case, Request};
use crate::names::MARKER;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::transport::{Message, send};

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";
/// The maximum time to wait until a policy takes effect.
///
/// A refresh takes longer while other policies have an unknown `paramKind`, because kube-apiserver discovers all
/// resources again for each of them.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The name of a policy that is never removed. Its params are objects of the kind `ConfigMap`.
///
/// kube-apiserver stops watching these objects when the last such policy is removed, and never watches them again.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`, `ensureParamsForPolicyLocked`.
const KEPT: &str = "keeps-the-watch-of-params";

/// Returns whether an object is an admission policy or a binding.
pub(crate) fn is_policy(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| kind.contains("AdmissionPolicy"))
}

/// Returns whether a request is about admission policies or bindings.
pub(crate) fn is_about_policies(request: &Request) -> bool {
    request.resource.contains("/v1/validatingadmissionpolic")
}

/// Returns whether a write request may change the effect of policies.
///
/// This is the case if it writes a policy, a binding, or an object that may be a param.
pub(crate) fn affects_policies(case: &Case, request: &Request) -> bool {
    is_about_policies(request)
        || case.cluster.iter().any(|object| object.pointer("/spec/paramKind").is_some())
}

/// Waits until the server applies all policies that exist so far. Returns the paths of helper objects.
///
/// The function creates another policy, binding, and `ConfigMap`. A refresh that uses them also uses all earlier
/// policies and bindings. A watch that has reported the `ConfigMap` has also reported all earlier ones, which may be
/// params.
///
/// # Errors
/// Returns an error if this policy does not take effect.
pub(crate) async fn settle(server: &Server) -> Result<Vec<String>, ServerError> {
    if !server.is_shared() {
        return Ok(Vec::new());
    }
    let name = format!("{MARKER}-{}", uuid::Uuid::new_v4().simple());
    let param = format!("{name}-param");
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": param}});
    server.make(config_maps, object).await?;
    let mut made = vec![format!("{config_maps}/{param}")];
    for (collection, object) in policy_and_binding(KEPT, "true", KEPT) {
        let answer = send(server.client(), Message::new(Method::POST, &collection, Some(object))).await?;
        if !answer.is_success() && answer.status != 409 {
            let what = format!("creating {collection}/{KEPT}");
            return Err(ServerError::Refused { what, answer: answer.recorded().to_string() });
        }
    }
    for (collection, object) in policy_and_binding(&name, "false", &param) {
        server.make(&collection, object).await?;
        made.push(format!("{collection}/{name}"));
    }
    let started = tokio::time::Instant::now();
    loop {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let path = format!("{config_maps}?dryRun=All");
        let answer = send(server.client(), Message::new(Method::POST, &path, Some(object))).await?;
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

/// Returns a policy for the creation of the `ConfigMap` `name`, and its binding, each with its collection path.
fn policy_and_binding(name: &str, expression: &str, param: &str) -> [(String, Value); 2] {
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "resourceNames": [name],
    }]);
    let policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}],
    });
    let binding = json!({
        "policyName": name, "validationActions": ["Deny"],
        "paramRef": {"name": param, "namespace": "default", "parameterNotFoundAction": "Allow"},
    });
    let object = |kind: &str, plural: &str, spec: Value| {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        (format!("{ROOT}/{plural}"), object)
    };
    [
        object("ValidatingAdmissionPolicy", "validatingadmissionpolicies", policy),
        object("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", binding),
    ]
}
