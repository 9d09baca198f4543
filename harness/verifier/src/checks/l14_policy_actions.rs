//! L14: violations of policies reach the client.

use kubernetes_admission::config::FailurePolicy;
use kubernetes_admission::policy::ValidationAction;

use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};
use crate::policies::{Parsed, Policies, PolicyObject};

pub(super) const CHECK: Check = Check {
    id: "L14",
    title: "validation actions: violations of a policy deny requests or warn clients, even if an expression fails",
    severity: Severity::Note,
    why: "With only the action Audit, a violation appears only in the audit log, which many clusters do not keep. With \
          failurePolicy Ignore, a request is admitted if an expression fails, for example because it reads a field \
          that the object does not have: a client can then bypass the check.",
    help: "Add Deny or Warn to validationActions, or set failurePolicy to Fail.",
    source: "apiserver pkg/admission/plugin/policy/validating/dispatcher.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Policies, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let policies = manifests.policies();
    policies.examine(|object| violation(object, policies))
}

fn violation(object: &PolicyObject, policies: &Policies) -> Option<Violation> {
    const FIELD: &str = "spec.validationActions";
    let Some(Parsed::ValidatingBinding(binding)) = &object.parsed else { return None };
    if binding.validation_actions == [ValidationAction::Audit] {
        let message = "violations appear only in the audit log: requests are admitted without a warning";
        return Some(Violation::new("only Audit", message).at(FIELD));
    }
    let mut definitions = policies.policies_of(object).filter_map(PolicyObject::definition);
    if !binding.validation_actions.contains(&ValidationAction::Deny)
        || !definitions.any(|policy| policy.failure_policy == FailurePolicy::Ignore)
    {
        return None;
    }
    let message = format!(
        "the binding denies violations, but the failurePolicy of the policy {} is Ignore: a request for which \
         an expression fails is admitted",
        object.policy_name()
    );
    let violation = Violation::new("Deny with failurePolicy Ignore", message).at(FIELD);
    Some(violation.with_help("Set failurePolicy to Fail if no expression fails for a valid object."))
}
