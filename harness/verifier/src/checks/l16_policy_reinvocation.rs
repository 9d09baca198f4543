//! L16: a mutating policy that is applied again does not change its own result.

use super::mutation_trial::trial;
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity};
use crate::manifests::{About, Manifests};

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
    probe: Probe::Manifests(About::MutatingPolicies, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let cluster_fixture = &manifests.cluster_fixture;
    manifests.policies().examine(|object| trial(object, cluster_fixture)?.changing_again.clone())
}
