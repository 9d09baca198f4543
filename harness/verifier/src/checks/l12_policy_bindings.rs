//! L12: bindings fit the policies and params that they name.

use kubernetes_admission::policy::{Binding, Definition, ParamKind};
use kubernetes_types::json::text;
use serde_json::Value;

use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};
use crate::policies::{Policies, PolicyObject};
use crate::similar_name::{most_similar, suggestion};

pub(super) const CHECK: Check = Check {
    id: "L12",
    title: "policy bindings: each policy has a binding, and each binding fits its policy and its params",
    severity: Severity::Warning,
    why: "A policy without a binding has no effect, and neither does a binding whose policyName is misspelled: the \
          API server accepts both. If a paramRef is invalid, or if it selects no object and parameterNotFoundAction is \
          Deny, each request that the policy matches is rejected, unless failurePolicy is Ignore. If a binding does not \
          have a paramRef, params is null in all expressions.",
    help: "Correct the name, or add the missing object.",
    source: "apiserver pkg/admission/plugin/policy/generic/{policy_source,policy_dispatcher}.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Policies, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let policies = manifests.policies();
    policies.examine(|object| {
        if object.is_binding() { binding(object, policies, manifests) } else { unbound(object, policies) }
    })
}

/// Reports a policy that no binding names.
fn unbound(policy: &PolicyObject, policies: &Policies) -> Option<Violation> {
    let name = policy.name();
    if name.is_empty() || policies.bindings_of(policy).next().is_some() {
        return None;
    }
    let is_binding = |other: &PolicyObject| other.is_binding() && other.policy_kind() == policy.kind();
    let has_bindings = policies.objects.iter().any(is_binding);
    let (severity, which) = if has_bindings {
        (Severity::Warning, "no binding in the files has")
    } else {
        // Bindings are often installed separately.
        (Severity::Note, "the files do not contain a binding with")
    };
    let message = format!("{which} the policyName {name}: without a binding, the policy has no effect");
    let violation = Violation::new("no binding", message).with_severity(severity).at("metadata.name");
    Some(violation.with_help("Add a binding with this policyName."))
}

fn binding(object: &PolicyObject, policies: &Policies, manifests: &Manifests<'_>) -> Option<Violation> {
    let name = object.policy_name();
    if name.is_empty() {
        return None;
    }
    let Some(policy) = policies.policies_of(object).next() else {
        let kind = object.policy_kind();
        let mut objects = policies.objects.iter();
        let has_policies = objects.clone().any(|other| other.kind() == kind);
        let other = objects.find(|other| !other.is_binding() && other.name() == name).map(PolicyObject::kind);
        let severity = if has_policies || other.is_some() { Severity::Warning } else { Severity::Note };
        let message = if let Some(other) = other {
            format!("{name} is a {other}: a {} is only for a {kind}", object.kind())
        } else {
            let names = policies.objects.iter().filter(|other| other.kind() == kind).map(PolicyObject::name);
            let suggestion = suggestion(most_similar(name, names));
            format!("the files do not contain a {kind} named {name}{suggestion}")
        };
        let violation = Violation::new("no policy", message).with_severity(severity);
        return Some(violation.at("spec.policyName"));
    };
    params(policy.definition()?, object.binding()?, policy, manifests)
}

/// Reports a `paramRef` that does not fit the `paramKind` of the policy, or that names an object that is not in the
/// files.
fn params(
    definition: &Definition,
    binding: &Binding,
    policy: &PolicyObject,
    manifests: &Manifests<'_>,
) -> Option<Violation> {
    const FIELD: &str = "spec.paramRef";
    let (kind, reference) = match (&definition.param_kind, &binding.param_ref) {
        (None, None) => return None,
        (None, Some(_)) => {
            let message =
                format!("the policy {} does not have a paramKind: paramRef has no effect", definition.name);
            let violation = Violation::new("paramRef without paramKind", message).at(FIELD);
            return Some(violation.with_help("Remove paramRef, or add a paramKind to the policy."));
        }
        (Some(kind), None) => return without_params(kind, definition, policy),
        (Some(kind), Some(reference)) => (kind, reference),
    };
    let Some(served) = manifests.cluster_fixture.resource_of(&kind.kind) else {
        let message = format!(
            "Kubernetes 1.37 does not serve the paramKind {} {}, and no CustomResourceDefinition in the files adds it",
            kind.kind.api_version(),
            kind.kind.kind
        );
        let violation =
            Violation::new("paramKind not served", message).with_severity(Severity::Note).at(FIELD);
        return Some(
            violation.with_help("Add the CustomResourceDefinition to the files to check the params."),
        );
    };
    if !served.namespaced && !reference.namespace.is_empty() {
        let message = format!(
            "{} is cluster-scoped: kube-apiserver cannot apply the policy, because paramRef has a namespace",
            kind.kind.kind
        );
        let violation = Violation::new("namespace of a cluster-scoped param", message);
        let violation = violation.with_severity(Severity::Error).at("spec.paramRef.namespace");
        return Some(violation.with_help("Remove the namespace."));
    }
    let is_param = |object: &&Value| {
        let namespace = text(object, &["metadata", "namespace"]);
        text(object, &["apiVersion"]).split('/').count() == kind.kind.api_version().split('/').count()
            && group(text(object, &["apiVersion"])) == kind.kind.group
            && text(object, &["kind"]) == kind.kind.kind
            && text(object, &["metadata", "name"]) == reference.name
            // The namespace of an object without one depends on the client.
            && (reference.namespace.is_empty() || namespace.is_empty() || namespace == reference.namespace)
    };
    if reference.name.is_empty() || manifests.objects.iter().any(|object| is_param(&object)) {
        return None;
    }
    let follows = if reference.denies_if_not_found {
        "the policy cannot be applied, because parameterNotFoundAction is Deny"
    } else {
        "the policy has no effect, because parameterNotFoundAction is Allow"
    };
    let message = format!(
        "the files do not contain the {} {}: if it does not exist, {follows}",
        kind.kind.kind, reference.name
    );
    Some(Violation::new("no param", message).with_severity(Severity::Note).at("spec.paramRef.name"))
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Reports a binding that does not select params for a policy that uses params.
fn without_params(kind: &ParamKind, definition: &Definition, policy: &PolicyObject) -> Option<Violation> {
    // A policy that compares params with null works without params.
    let text = policy.object.to_string();
    if ["params == null", "params != null", "null == params", "null != params", "params?."]
        .iter()
        .any(|guard| text.contains(guard))
    {
        return None;
    }
    let message = format!(
        "the policy {} has the paramKind {}, but the binding does not have a paramRef: params is null",
        definition.name, kind.kind.kind
    );
    let violation = Violation::new("no paramRef", message).at("spec");
    Some(violation.with_help("Add a paramRef, or compare params with null in the expressions."))
}
