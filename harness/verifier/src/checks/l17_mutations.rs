//! L17: the mutations of policies can be applied.

use kubernetes_admission::config::FailurePolicy;
use kubernetes_admission::policy::{ExpressionPart, MutatingPolicy, PatchType, PolicyRun};
use kubernetes_api_server::ClusterFixture;

use super::match_conditions::CORRECT_NAME;
use super::policy_examples::{example_requests, mutated, without_params};
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::Manifests;
use crate::policies::Parsed;

pub(super) const CHECK: Check = Check {
    id: "L17",
    title: "mutations: the mutations of a mutating policy can be applied to every object that the policy matches",
    severity: Severity::Error,
    why: "kube-apiserver accepts policies whose mutations cannot be applied. An applyConfiguration may set a field that \
          the kind does not have, or an atomic field, such as the command of a container or a nodeSelector. A JSON \
          patch may set a field whose parent an object does not have. When kube-apiserver applies the policy, it \
          rejects the request, or skips the mutation if failurePolicy is Ignore.",
    help: "Use a mutation with patchType JSONPatch for an atomic field.",
    source: "apiserver pkg/admission/plugin/policy/mutating/patch/smd.go and json_patch.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(run),
};

/// The parts of kube-apiserver's error messages that a finding is about.
mod errors {
    pub(super) const ATOMIC: &str = "may not mutate atomic arrays, maps or structs";
    pub(super) const UNDECLARED: &str = "field not declared in schema";
    pub(super) const MISSING_PATH: &str = "doc is missing path";
}

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    manifests.policies().examine(|object| match &object.parsed {
        Some(Parsed::Mutating(policy)) => failing(policy, &manifests.cluster_fixture),
        _ => Vec::new(),
    })
}

/// Reports the mutations that cannot be applied to an example.
fn failing(policy: &MutatingPolicy, cluster_fixture: &ClusterFixture) -> Vec<Violation> {
    let follows = match policy.definition.failure_policy {
        FailurePolicy::Fail => "the request is rejected",
        FailurePolicy::Ignore => "the mutation is skipped",
    };
    // The path of an operation may depend on the params.
    let has_params = policy.definition.param_kind.is_some();
    let policy = without_params(policy);
    let mut violations: Vec<Violation> = Vec::new();
    for request in example_requests(cluster_fixture) {
        let Some((record, request)) = mutated(&policy, request, cluster_fixture) else { continue };
        for (index, (mutation, applied)) in policy.mutations.iter().zip(&record.mutations).enumerate() {
            let part = match mutation.patch_type {
                PatchType::ApplyConfiguration => "applyConfiguration",
                PatchType::JsonPatch => "jsonPatch",
            };
            let field = format!("spec.mutations[{index}].{part}.expression");
            let Err(error) = &applied.outcome else { continue };
            if !has_value(&record, index) || violations.iter().any(|known| known.field == field) {
                continue;
            }
            let message = format!(
                "on {} of {}: {error}; {follows}",
                request.operation,
                request.resource.group_resource()
            );
            let violation = if error.contains(errors::ATOMIC) {
                Violation::new("atomic field", message)
            } else if error.contains(errors::UNDECLARED) {
                Violation::new("unknown field", message).with_help(CORRECT_NAME)
            } else if error.contains(errors::MISSING_PATH) && !has_params {
                let help = "Add the parent first if the object does not have it, or use patchType ApplyConfiguration.";
                Violation::new("missing parent", message).with_help(help)
            } else {
                continue;
            };
            violations.push(violation.at(field));
        }
    }
    violations
}

/// Returns whether the expression of a mutation has a value. L15 reports expressions that fail.
fn has_value(record: &PolicyRun, index: usize) -> bool {
    let part = ExpressionPart::Mutation(index);
    record.expressions.iter().any(|evaluated| evaluated.part == part && evaluated.value.is_ok())
}
