//! L17: apply configurations do not set atomic fields.

use kubernetes_admission::policy::MutatingPolicy;
use kubernetes_api_server::ClusterFixture;

use super::policy_examples::{example_requests, mutated, without_params};
use crate::check::{Audience, Check, Defect, Probe, Severity, Violation};
use crate::manifests::Manifests;
use crate::policies::Parsed;

pub(super) const CHECK: Check = Check {
    id: "L17",
    title: "apply configurations: the applyConfiguration of a mutating policy does not set atomic lists, maps, or \
            structs",
    severity: Severity::Error,
    why: "kube-apiserver accepts a policy whose applyConfiguration sets an atomic field, such as the command of \
          a container or a nodeSelector. When it applies the policy, it rejects the request, or skips the mutation if \
          failurePolicy is Ignore.",
    help: "Use a mutation with patchType JSONPatch for the field.",
    source: "apiserver pkg/admission/plugin/policy/mutating/patch/smd.go",
    audience: Audience::Policies,
    probe: Probe::Manifests(run),
};

/// The beginning of kube-apiserver's error message.
const ATOMIC: &str = "may not mutate atomic arrays, maps or structs";

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    manifests.policies().examine(|object| match &object.parsed {
        Some(Parsed::Mutating(policy)) => atomic(policy, &manifests.cluster_fixture),
        _ => Vec::new(),
    })
}

/// Reports the mutations that set atomic fields of an example.
fn atomic(policy: &MutatingPolicy, cluster_fixture: &ClusterFixture) -> Vec<Violation> {
    let policy = without_params(policy);
    let mut violations: Vec<Violation> = Vec::new();
    for request in example_requests(cluster_fixture) {
        let Some((record, request)) = mutated(&policy, request, cluster_fixture) else { continue };
        for (index, mutation) in record.mutations.iter().enumerate() {
            let field = format!("spec.mutations[{index}].applyConfiguration.expression");
            let Err(error) = &mutation.outcome else { continue };
            if !error.contains(ATOMIC) || violations.iter().any(|known| known.field == field) {
                continue;
            }
            let message =
                format!("on {} of {}: {error}", request.operation, request.resource.group_resource());
            violations.push(Violation::new("atomic field", message).at(field));
        }
    }
    violations
}
