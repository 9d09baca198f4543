//! Restricts the admission policies of a scenario to its namespaces, and waits until the server applies the policies.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::api;
use super::configuration::ROOT;
use super::failure::{Outcome, StepFailure};
use super::names::SCENARIO_LABEL;
use super::webhook::merge;
use super::world::World;
use crate::target::TargetKind;

/// The maximum time to wait until the server applies a policy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The kinds of policies and of their bindings.
const POLICIES: [&str; 2] = ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"];
const BINDINGS: [&str; 2] = ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"];

/// Returns whether `object` is an admission policy or a binding.
pub(super) fn is_policy(object: &Value) -> bool {
    let kind = text(object, "/kind");
    POLICIES.contains(&kind) || BINDINGS.contains(&kind)
}

/// Returns the kind of the bindings of a kind of policies, or `None` if `kind` is not a kind of policies.
pub(super) fn binding_kind(kind: &str) -> Option<&'static str> {
    POLICIES.iter().zip(BINDINGS).find_map(|(policy, binding)| (*policy == kind).then_some(binding))
}

/// Returns the string at `pointer`, or an empty string.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl World {
    /// Renames a policy or a binding, and limits the policy to the scenario's namespaces: scenarios share a server.
    pub(super) fn confine_policy(&self, object: &mut Value) {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let rename = |name: &mut Value| {
            if let Some(text) = name.as_str() {
                *name = json!(format!("{}.{text}", self.names.id()));
            }
        };
        if let Some(name) = object.pointer_mut("/metadata/name") {
            rename(name);
        }
        if POLICIES.contains(&kind.as_str()) {
            let own = json!({"namespaceSelector": {"matchLabels": {SCENARIO_LABEL: self.names.id()}}});
            merge(object, &json!({"spec": {"matchConstraints": own}}));
        } else if let Some(policy) = object.pointer_mut("/spec/policyName") {
            rename(policy);
        }
    }

    /// Waits until the server applies all policies of a type that exist so far.
    ///
    /// The server refreshes all of them together, so it is sufficient to wait for a policy that is created last. Its
    /// param is a `ConfigMap` that is created after all other params.
    ///
    /// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`.
    pub(super) async fn wait_for_policies(&mut self, of: PolicyType) -> Outcome {
        if matches!(self.target()?.kind, TargetKind::InProcess) {
            return Ok(());
        }
        let name = format!("marker-{}", uuid::Uuid::new_v4().simple());
        let config_maps = format!("/api/v1/namespaces/{}/configmaps", self.namespace().await?);
        let param = format!("{name}-param");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": param}});
        api::send(self.client()?, Method::POST, &config_maps, Some(&object)).await?.successful()?;
        for (kind, plural, spec) in of.marker(&name, &param) {
            let mut object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": name}, "spec": spec,
            });
            self.confine_policy(&mut object);
            let collection = format!("{ROOT}/{plural}");
            api::send(self.client()?, Method::POST, &collection, Some(&object)).await?.successful()?;
            self.remove_unless_own(format!("{collection}/{}.{name}", self.names.id()));
        }
        let path = format!("{config_maps}?dryRun=All");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let started = tokio::time::Instant::now();
        loop {
            let answer = api::send(self.client()?, Method::POST, &path, Some(&object)).await?;
            // Another policy can also deny the object. The causes contain the denials of all mutating policies.
            let is_marker = answer.body.to_string().contains(&format!(".{name}'"));
            if is_marker && !answer.code.is_success() {
                return Ok(());
            }
            if started.elapsed() > TIMEOUT {
                let seconds = TIMEOUT.as_secs();
                return Err(StepFailure::new(format!(
                    "the server did not apply the admission policies within {seconds} s"
                )));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A type of policies. The server refreshes the policies of each type separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyType {
    Validating,
    Mutating,
}

impl PolicyType {
    /// Returns the types of the policies and bindings in `objects`.
    pub(super) fn of_objects(objects: &[Value]) -> Vec<Self> {
        let has = |of: &Self| {
            let kind_of = |object: &Value| object.get("kind").and_then(Value::as_str).map(str::to_owned);
            objects.iter().filter_map(kind_of).any(|kind| of.kinds().contains(&kind.as_str()))
        };
        [Self::Validating, Self::Mutating].into_iter().filter(has).collect()
    }

    /// Returns the kind of the policies and the kind of the bindings.
    fn kinds(self) -> [&'static str; 2] {
        match self {
            Self::Validating => ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
            Self::Mutating => ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"],
        }
    }

    /// Returns a policy that denies the creation of the `ConfigMap` `name`, and its binding.
    ///
    /// Each consists of the kind, the resource, and the spec.
    fn marker(self, name: &str, param: &str) -> [(&'static str, &'static str, Value); 2] {
        let rules = json!([{
            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "resourceNames": [name],
        }]);
        let param_kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let constraints = json!({"resourceRules": rules});
        let param_ref = json!({"name": param, "parameterNotFoundAction": "Allow"});
        let (policy, binding, [policies, bindings]) = match self {
            Self::Validating => (
                json!({
                    "paramKind": param_kind, "matchConstraints": constraints,
                    "validations": [{"expression": "false"}],
                }),
                json!({"policyName": name, "paramRef": param_ref, "validationActions": ["Deny"]}),
                ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
            ),
            Self::Mutating => {
                let expression = "[JSONPatch{op: 'remove', path: '/missing'}]";
                let policy = json!({
                    "paramKind": param_kind, "matchConstraints": constraints, "reinvocationPolicy": "Never",
                    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
                });
                let binding = json!({"policyName": name, "paramRef": param_ref});
                (policy, binding, ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"])
            }
        };
        let [kind, binding_kind] = self.kinds();
        [(kind, policies, policy), (binding_kind, bindings, binding)]
    }
}
