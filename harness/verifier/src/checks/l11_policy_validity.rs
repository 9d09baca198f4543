//! L11: the API server accepts the admission policies and their bindings.

use kubernetes_types::status::StatusCause;

use crate::check::{
    Audience, CORRECT_AS_THE_MESSAGE_SAYS, Check, Defect, Probe, Repeatability, Severity, Violation,
};
use crate::manifests::{About, Manifests};
use crate::operand_types;
use crate::policies::PolicyObject;
use crate::wrong_type;

pub(super) const CHECK: Check = Check {
    id: "L11",
    title: "policy validity: the API server accepts the admission policies and their bindings",
    severity: Severity::Error,
    why: "A policy or binding that the API server rejects is never stored, so requests are not checked, or an \
          older version stays in effect. Policies with expressions that do not compile are rejected. The message \
          is the API server's own.",
    help: CORRECT_AS_THE_MESSAGE_SAYS,
    source: "kubernetes pkg/apis/admissionregistration/validation/validation.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Policies, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    manifests.policies().examine(violations)
}

fn violations(object: &PolicyObject) -> impl Iterator<Item = Violation> {
    let what = if object.is_binding() { "binding" } else { "policy" };
    let rejected = move |kind: &str, error: &str, field: &str| {
        let message = format!("the API server rejects the {what}: {error}");
        let violation = Violation::new(kind, message).at(field);
        match operand_types::advice(error) {
            Some(advice) => violation.with_help(advice),
            None => violation,
        }
    };
    let version = object.old_version.as_ref().map(|version| {
        let message = format!(
            "Kubernetes 1.37 does not serve {version} by default; the checks read the {what} as \
             admissionregistration.k8s.io/v1"
        );
        let violation = Violation::new("version", message).with_severity(Severity::Note).at("apiVersion");
        violation
            .with_help("Set apiVersion to admissionregistration.k8s.io/v1 if all of your clusters serve it.")
    });
    let undecodable = object.undecodable.as_ref().map(|status| {
        let field = wrong_type::field(&object.object, "", &status.message).unwrap_or_default();
        rejected("cannot be decoded", &status.message, &field)
    });
    let unknown = object.unknown_fields.iter().map(move |field| {
        // Only strict validation, which kubectl requests, rejects unknown fields.
        let message =
            format!("kubectl cannot apply the {what}: strict decoding error: unknown field \"{field}\"");
        let violation = Violation::new("unknown field", message).at(field);
        violation.with_help("Correct the spelling, or remove the field.")
    });
    let invalid = object.invalid.iter().map(move |StatusCause { message, field, .. }| {
        rejected("invalid", &format!("{field}: {message}"), field)
    });
    version.into_iter().chain(undecodable).chain(unknown).chain(invalid)
}
