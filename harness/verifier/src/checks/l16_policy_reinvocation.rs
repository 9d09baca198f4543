//! L16: a mutating policy that is applied again does not change its own result.

use kubernetes_admission::config::ReinvocationPolicy;
use kubernetes_admission::policy::MutatingPolicy;
use kubernetes_api_server::ClusterFixture;

use super::policy_examples::{example_requests, mutated, without_params};
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::Manifests;
use crate::policies::Parsed;

pub(super) const CHECK: Check = Check {
    id: "L16",
    title: "policy idempotence: a mutating policy with reinvocationPolicy IfNeeded does not change its own result",
    severity: Severity::Warning,
    why: "kube-apiserver applies a policy with reinvocationPolicy IfNeeded again after any change, including a change \
          by the policy itself. A JSON patch that appends to a list then appends twice.",
    help: "Add a match condition or a test operation that skips objects that already have the change, or \
           use reinvocationPolicy Never.",
    source: "KEP-3962, Reinvocation; apiserver pkg/admission/plugin/policy/mutating/dispatcher.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    manifests.policies().examine(|object| match &object.parsed {
        Some(Parsed::Mutating(policy)) if policy.reinvocation_policy == ReinvocationPolicy::IfNeeded => {
            changed_again(policy, &manifests.cluster_fixture)
        }
        _ => None,
    })
}

/// Reports a mutation that changes an object to which the policy has been applied.
fn changed_again(policy: &MutatingPolicy, cluster_fixture: &ClusterFixture) -> Option<Violation> {
    let policy = without_params(policy);
    example_requests(cluster_fixture).find_map(|request| {
        let (first, request) = mutated(&policy, request, cluster_fixture)?;
        if first.mutations.iter().any(|mutation| mutation.outcome.is_err()) {
            return None;
        }
        let (operation, resource) = (request.operation, request.resource.group_resource());
        let (second, _) = mutated(&policy, request, cluster_fixture)?;
        let index = second.mutations.iter().position(|mutation| mutation.outcome == Ok(true))?;
        let message = format!(
            "the mutation changes its own result, for example on {operation} of {resource}: with reinvocationPolicy \
             IfNeeded, it is applied twice"
        );
        Some(Violation::new("not idempotent", message).at(format!("spec.mutations[{index}]")))
    })
}
