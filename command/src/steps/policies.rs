//! Restricts the admission policies of a scenario to its namespaces, and waits until the server applies the policies.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::api;
use super::failure::{Outcome, StepFailure};
use super::names::SCENARIO_LABEL;
use super::webhook::merge;
use super::world::World;
use crate::fakes::Kind;
use crate::target::{PolicyType, RUN_LABEL, TargetKind};

/// The maximum time to wait until the server applies a policy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The version of policies and bindings.
const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The advice if the server does not apply a policy with params.
const UNWATCHED: &str = "kube-apiserver stops watching ConfigMaps if the last policy with ConfigMap params is deleted: \
                         if such a policy was deleted, restart kube-apiserver";

/// Returns the type of a policy or a binding, or `None` if `object` is another object.
pub(super) fn type_of(object: &Value) -> Option<PolicyType> {
    PolicyType::of_kind(text(object, "/kind"))
}

/// Returns the types of the policies and bindings in `objects`.
pub(super) fn types_of(objects: &[Value]) -> BTreeSet<PolicyType> {
    objects.iter().filter_map(type_of).collect()
}

/// Returns the kind of the bindings of a kind of policies, or `None` if `kind` is not a kind of policies.
pub(super) fn binding_kind(kind: &str) -> Option<&'static str> {
    let kinds = PolicyType::ALL.into_iter().map(PolicyType::kinds);
    kinds.into_iter().find_map(|[policy, binding]| (policy.name == kind).then_some(binding.name))
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
        if binding_kind(&kind).is_some() {
            let own = json!({"namespaceSelector": {"matchLabels": {SCENARIO_LABEL: self.names.id()}}});
            merge(object, &json!({"spec": {"matchConstraints": own}}));
        } else if let Some(policy) = object.pointer_mut("/spec/policyName") {
            rename(policy);
        }
    }

    /// Prepares the run for a policy or a binding that the scenario creates.
    ///
    /// kube-apiserver shares its watch on `ConfigMap`s between all policies, and does not restart it: after the last
    /// policy with `ConfigMap` params is removed, the server does not find the params of later policies. Therefore, the
    /// run keeps a policy with `ConfigMap` params until it ends. Each type of policies needs its own.
    ///
    /// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`, `calculatePolicyData`.
    pub(super) async fn prepare_for_policy(&self, of: PolicyType) -> Outcome {
        let target = self.target()?;
        if matches!(target.kind, TargetKind::InProcess) {
            return Ok(());
        }
        target.policies.record(of);
        if self.has_config_map_params(of) {
            target.policies.keeper(of).get_or_try_init(|| self.create_keeper(of)).await?;
        }
        Ok(())
    }

    /// Returns whether a policy of the scenario has the param kind `ConfigMap`.
    fn has_config_map_params(&self, of: PolicyType) -> bool {
        let mut policies = self.policies.iter().filter(|object| type_of(object) == Some(of));
        policies.any(|policy| policy.pointer("/spec/paramKind") == Some(&config_map_kind()))
    }

    /// Creates a policy with `ConfigMap` params that does not match any request, and its binding.
    async fn create_keeper(&self, of: PolicyType) -> Outcome {
        let run = &self.target()?.run;
        let name = format!("admit-run-{run}-keep-params");
        let [(policy_kind, mut policy), binding] = marker(of, &name, Some(&name));
        let constraints = json!({
            "matchPolicy": "Exact", "namespaceSelector": {"matchLabels": {SCENARIO_LABEL: name}},
        });
        merge(&mut policy, &json!({"failurePolicy": "Ignore", "matchConstraints": constraints}));
        for (kind, spec) in [(policy_kind, policy), binding] {
            let object = object(kind, &name, run, &spec);
            let answer = api::send(self.client()?, Method::POST, &kind.collection(""), Some(&object)).await?;
            // A binding may be missing if an earlier attempt failed.
            let made = answer.successful_or_exists();
            made.map_err(|failure| failure.during(format!("creating the {} {name}", kind.name)))?;
        }
        Ok(())
    }

    /// Waits until the server applies all existing policies of a type.
    ///
    /// The server refreshes all of them together, so it is sufficient to wait for a policy that is created last. If
    /// the scenario has params, the policy has a param that is created after all other params. The policy matches only
    /// in the marker namespace, because the server reports only the first denial: the policies are in random order, and
    /// a policy of the scenario may deny the same request.
    ///
    /// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go` and
    /// `pkg/admission/plugin/policy/validating/dispatcher.go`.
    pub(super) async fn wait_for_policies(&mut self, of: PolicyType) -> Outcome {
        if matches!(self.target()?.kind, TargetKind::InProcess) {
            return Ok(());
        }
        let name = format!("{}.marker-{}", self.names.id(), uuid::Uuid::new_v4().simple());
        self.create_marker_namespace().await?;
        let namespace = self.marker_namespace()?;
        let config_maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        let param = self.has_config_map_params(of).then(|| format!("{name}-param"));
        if let Some(param) = &param {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": param}});
            api::send(self.client()?, Method::POST, &config_maps, Some(&object)).await?.successful()?;
            self.remove_unless_own(format!("{config_maps}/{param}"));
        }
        let [(policy_kind, mut policy), binding] = marker(of, &name, param.as_deref());
        let selector = json!({"matchLabels": {SCENARIO_LABEL: namespace}});
        merge(&mut policy, &json!({"matchConstraints": {"namespaceSelector": selector}}));
        for (kind, spec) in [(policy_kind, policy), binding] {
            let object = object(kind, &name, &self.target()?.run, &spec);
            let collection = kind.collection("");
            api::send(self.client()?, Method::POST, &collection, Some(&object)).await?.successful()?;
            self.remove_unless_own(format!("{collection}/{name}"));
        }
        let path = format!("{config_maps}?dryRun=All");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let started = tokio::time::Instant::now();
        loop {
            let answer = api::send(self.client()?, Method::POST, &path, Some(&object)).await?;
            let is_marker = answer.body.to_string().contains(&format!("'{name}'"));
            if is_marker && !answer.code.is_success() {
                return Ok(());
            }
            if started.elapsed() > TIMEOUT {
                let seconds = TIMEOUT.as_secs();
                let message = format!("the server did not apply the admission policies within {seconds} s");
                return Err(StepFailure::new(message).with_help(param.map(|_| UNWATCHED)));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Returns a policy or a binding with the label of the run.
fn object(kind: Kind, name: &str, run: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": kind.name,
        "metadata": {"name": name, "labels": {RUN_LABEL: run}}, "spec": spec,
    })
}

/// Returns a policy that denies the creation of the `ConfigMap` `name`, and its binding.
///
/// Each consists of the kind and the spec. If `param` is the name of a `ConfigMap`, the policy denies only after the
/// server knows this `ConfigMap`.
fn marker(of: PolicyType, name: &str, param: Option<&str>) -> [(Kind, Value); 2] {
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "resourceNames": [name],
    }]);
    let constraints = json!({"resourceRules": rules});
    let (mut policy, mut binding) = match of {
        PolicyType::Validating => (
            json!({"matchConstraints": constraints, "validations": [{"expression": "false"}]}),
            json!({"policyName": name, "validationActions": ["Deny"]}),
        ),
        PolicyType::Mutating => {
            let expression = "[JSONPatch{op: 'remove', path: '/missing'}]";
            let policy = json!({
                "matchConstraints": constraints, "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            });
            (policy, json!({"policyName": name}))
        }
    };
    if let Some(param) = param {
        merge(&mut policy, &json!({"paramKind": config_map_kind()}));
        merge(&mut binding, &json!({"paramRef": {"name": param, "parameterNotFoundAction": "Allow"}}));
    }
    let [policy_kind, kind_of_binding] = of.kinds();
    [(policy_kind, policy), (kind_of_binding, binding)]
}

/// Returns the `paramKind` of policies whose params are `ConfigMap`s.
fn config_map_kind() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap"})
}
