//! L17: the mutations of policies can be applied.

use super::mutation_trial::trial;
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity};
use crate::manifests::{About, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L17",
    title: "mutations: the mutations of a mutating policy can be applied to every object that the policy matches",
    severity: Severity::Error,
    why: "kube-apiserver accepts policies whose mutations cannot be applied. For example, an applyConfiguration sets a \
          field that the kind does not have, or an atomic field, such as the command of a container or a nodeSelector. \
          Other examples are a type name that does not match the path of the object, and a JSON patch that sets a field \
          whose parent is missing. When kube-apiserver applies the policy, it rejects the request, or skips the mutation \
          if failurePolicy is Ignore.",
    help: "Use a mutation with patchType JSONPatch for an atomic field.",
    source: "apiserver pkg/admission/plugin/policy/mutating/patch/smd.go and json_patch.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::MutatingPolicies, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let cluster_fixture = &manifests.cluster_fixture;
    manifests.policies().examine(|object| {
        trial(object, cluster_fixture).map(|trial| trial.failing.clone()).unwrap_or_default()
    })
}
