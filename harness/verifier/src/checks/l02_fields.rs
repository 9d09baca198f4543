//! L02: the configuration has only fields of the API.

use crate::check::{Audience, Check, Probe, Severity, Violation};
use crate::lint::{Defect, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L02",
    title: "the configuration has only fields that the API has",
    severity: Severity::Error,
    why: "A field with a typo is an error for kubectl, which asks for strict validation. Clients that do not, such as \
          controllers and Helm before 4, get a warning at most: the field is dropped and its default takes effect, so \
          that failPolicy: Ignore is failurePolicy: Fail.",
    source: "KEP-2885; apiserver pkg/endpoints/handlers/create.go",
    audience: Audience::All,
    probe: Probe::Manifests(run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (position, configuration) in manifests.configurations() {
        // Both versions have the same fields, but for matchConditions.
        let mut object = configuration.clone();
        if let Some(version) = object.get_mut("apiVersion") {
            *version = "admissionregistration.k8s.io/v1".into();
        }
        for field in manifests.cluster_fixture.unknown_fields(&object).unwrap_or_default() {
            let message =
                format!("the API server refuses it: strict decoding error: unknown field \"{field}\"");
            defects.push(Defect { position, violation: Violation::new("unknown field", message).at(field) });
        }
    }
    defects
}
