//! Finds admission policies without a binding, and bindings without their policy.

use harness::event::Phase;
use harness::json::text;
use serde_json::Value;

/// A policy without a binding, or a binding whose policy does not exist. Neither has an effect on requests.
#[derive(Clone, Debug)]
pub(crate) struct UnboundPolicy {
    /// The phase of the policy.
    pub(crate) phase: Phase,
    /// The name of the policy, or `spec.policyName` of the binding.
    pub(crate) policy: String,
    /// The name of the binding; `None` for a policy without a binding.
    pub(crate) binding: Option<String>,
    /// The reason why the policy or the binding has no effect.
    pub(crate) reason: String,
}

/// The source of the objects, which the reasons name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// The objects that the steps of a scenario create.
    Scenario,
    /// The objects in the files of `-c` and `--with`.
    With,
}

/// The phases of policies, with the kinds of their policies and bindings.
const KINDS: [(Phase, &str, &str); 2] = [
    (Phase::Mutating, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    (Phase::Validating, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
];

/// Returns each policy in `objects` without a binding, and each binding without a policy.
pub(crate) fn unbound(objects: &[&Value], source: Source) -> Vec<UnboundPolicy> {
    let mut found = Vec::new();
    for (phase, kind, binding_kind) in KINDS {
        let of_kind = |kind: &str| -> Vec<&Value> {
            let objects = objects.iter().copied();
            objects.filter(|object| text(object, &["kind"]) == kind).collect()
        };
        let policies = texts(of_kind(kind), &["metadata", "name"]);
        let bindings = texts(of_kind(binding_kind), &["metadata", "name"]);
        let bound = texts(of_kind(binding_kind), &["spec", "policyName"]);
        for policy in policies.iter().filter(|policy| !bound.contains(policy)) {
            let reason = match source {
                Source::Scenario => {
                    format!("no {binding_kind} of the scenario has the policyName \"{policy}\"")
                }
                Source::With => {
                    format!("no {binding_kind} in the files has the policyName \"{policy}\"")
                }
            };
            found.push(UnboundPolicy { phase, policy: (*policy).to_owned(), binding: None, reason });
        }
        for (binding, policy) in bindings.iter().zip(&bound) {
            if !policies.contains(policy) {
                let reason = match source {
                    Source::Scenario => format!("the scenario does not create the {kind} \"{policy}\""),
                    Source::With => {
                        format!("the files do not contain the {kind} \"{policy}\"")
                    }
                };
                let (policy, binding) = ((*policy).to_owned(), Some((*binding).to_owned()));
                found.push(UnboundPolicy { phase, policy, binding, reason });
            }
        }
    }
    found
}

/// Returns the string at `path` of each object.
fn texts<'a>(objects: Vec<&'a Value>, path: &[&str]) -> Vec<&'a str> {
    objects.into_iter().map(|object| text(object, path)).collect()
}
