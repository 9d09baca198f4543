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
use crate::transport::{Answer, Message, send};

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
    ["validating", "mutating"].iter().any(|of| request.resource.contains(&format!("/v1/{of}admissionpolic")))
}

/// Returns whether a write request may change the effect of policies.
///
/// This is the case if it writes a policy, a binding, or an object that may be a param.
pub(crate) fn affects_policies(case: &Case, request: &Request) -> bool {
    is_about_policies(request)
        || case.cluster.iter().any(|object| object.pointer("/spec/paramKind").is_some())
}

/// The types of policies, which the server refreshes separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PolicyType {
    Validating,
    Mutating,
}

impl PolicyType {
    /// Returns the kind and the collection of the policies, and the kind and the collection of their bindings.
    fn kinds(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Validating => [
                ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
                ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
            ],
            Self::Mutating => [
                ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
                ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
            ],
        }
    }

    /// Returns whether the marker policy was applied to the request with this answer.
    fn is_applied(self, answer: &Answer) -> bool {
        match self {
            Self::Validating => answer.status == 422,
            Self::Mutating => answer.body.pointer("/metadata/annotations/applied").is_some(),
        }
    }
}

/// Waits until the server applies all policies that exist so far. Returns the paths of helper objects.
///
/// The function creates another policy, binding, and `ConfigMap`. A refresh that uses them also uses all earlier
/// policies and bindings. A watch that has reported the `ConfigMap` has also reported all earlier ones, which may be
/// params.
///
/// # Errors
/// Returns an error if this policy does not take effect.
pub(crate) async fn settle(case: &Case, server: &Server) -> Result<Vec<String>, ServerError> {
    if !server.is_shared() {
        return Ok(Vec::new());
    }
    let mut made = settle_type(PolicyType::Validating, case, server).await?;
    if has_mutating(case) {
        made.extend(settle_type(PolicyType::Mutating, case, server).await?);
    }
    Ok(made)
}

/// Returns whether a case has mutating policies.
fn has_mutating(case: &Case) -> bool {
    case.cluster.iter().any(|object| object["kind"] == "MutatingAdmissionPolicy")
        || case
            .requests
            .iter()
            .any(|request| request.value.resource.contains("/v1/mutatingadmissionpolicies"))
}

async fn settle_type(of: PolicyType, case: &Case, server: &Server) -> Result<Vec<String>, ServerError> {
    let name = format!("{MARKER}-{}", uuid::Uuid::new_v4().simple());
    let param = format!("{name}-param");
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": param}});
    server.make(config_maps, object).await?;
    let mut made = vec![format!("{config_maps}/{param}")];
    for (collection, object) in policy_and_binding(of, KEPT, &config_maps_named(KEPT), KEPT) {
        let answer = send(server.client(), Message::new(Method::POST, &collection, Some(object))).await?;
        if !answer.is_success() && answer.status != 409 {
            let what = format!("creating {collection}/{KEPT}");
            return Err(ServerError::Refused { what, answer: answer.recorded().to_string() });
        }
    }
    let custom = if of == PolicyType::Mutating { custom_kinds(case) } else { Vec::new() };
    for (index, kind) in custom.iter().enumerate() {
        let name = format!("{name}-{index}");
        for (collection, object) in policy_and_binding(of, &name, &kind.rule(&name), &param) {
            server.make(&collection, object).await?;
            made.push(format!("{collection}/{name}"));
        }
    }
    for (collection, object) in policy_and_binding(of, &name, &config_maps_named(&name), &param) {
        server.make(&collection, object).await?;
        made.push(format!("{collection}/{name}"));
    }
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    wait(server, &format!("{config_maps}?dryRun=All"), &object, |answer| of.is_applied(answer)).await?;
    // kube-apiserver reads the schemas of custom resources every five seconds, and mutates no objects before that.
    for (index, kind) in custom.iter().enumerate() {
        let object = json!({
            "apiVersion": format!("{}/{}", kind.group, kind.version), "kind": kind.kind,
            "metadata": {"name": format!("{name}-{index}")},
        });
        wait(server, &format!("{}?dryRun=All", kind.path()), &object, |answer| answer.status != 503).await?;
    }
    Ok(made)
}

/// Creates `object` until the answer is the expected one.
async fn wait(
    server: &Server,
    path: &str,
    object: &Value,
    is_expected: impl Fn(&Answer) -> bool,
) -> Result<(), ServerError> {
    let started = tokio::time::Instant::now();
    loop {
        let answer = send(server.client(), Message::new(Method::POST, path, Some(object.clone()))).await?;
        if is_expected(&answer) {
            return Ok(());
        }
        if started.elapsed() > TIMEOUT {
            let what = "waiting until the server applies the policies".to_owned();
            return Err(ServerError::Refused { what, answer: answer.recorded().to_string() });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A version of a custom resource that a case defines.
struct CustomKind {
    group: String,
    version: String,
    plural: String,
    kind: String,
    is_namespaced: bool,
}

impl CustomKind {
    fn rule(&self, name: &str) -> Value {
        json!({
            "operations": ["CREATE"], "apiGroups": [self.group], "apiVersions": [self.version],
            "resources": [self.plural], "resourceNames": [name],
        })
    }

    fn path(&self) -> String {
        let namespace = if self.is_namespaced { "namespaces/default/" } else { "" };
        format!("/apis/{}/{}/{namespace}{}", self.group, self.version, self.plural)
    }
}

/// Returns the served versions of the custom resources that a case defines.
fn custom_kinds(case: &Case) -> Vec<CustomKind> {
    let definitions = case.cluster.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    let kinds = definitions.flat_map(|definition| {
        let text =
            |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
        versions.filter(|version| version["served"] == true).map(move |version| CustomKind {
            group: text("/spec/group"),
            version: version["name"].as_str().unwrap_or_default().to_owned(),
            plural: text("/spec/names/plural"),
            kind: text("/spec/names/kind"),
            is_namespaced: text("/spec/scope") == "Namespaced",
        })
    });
    kinds.collect()
}

/// Returns a rule for the creation of the `ConfigMap` `name`.
fn config_maps_named(name: &str) -> Value {
    json!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "resourceNames": [name],
    })
}

/// Returns a policy with this rule, and its binding, each with the path of its collection.
fn policy_and_binding(of: PolicyType, name: &str, rule: &Value, param: &str) -> [(String, Value); 2] {
    let mut policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule]},
    });
    let mut binding = json!({
        "policyName": name,
        "paramRef": {"name": param, "namespace": "default", "parameterNotFoundAction": "Allow"},
    });
    match of {
        PolicyType::Validating => {
            policy["validations"] = json!([{"expression": "false"}]);
            binding["validationActions"] = json!(["Deny"]);
        }
        PolicyType::Mutating => {
            let expression = "Object{metadata: Object.metadata{annotations: {'applied': 'yes'}}}";
            policy["reinvocationPolicy"] = json!("Never");
            policy["mutations"] = json!([{
                "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
            }]);
        }
    }
    let object = |(kind, plural): (&str, &str), spec: Value| {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        (format!("{ROOT}/{plural}"), object)
    };
    let [policies, bindings] = of.kinds();
    [object(policies, policy), object(bindings, binding)]
}
