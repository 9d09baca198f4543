//! L02: the configuration has only fields of the API.

use kubernetes_api_server::ClusterFixture;
use serde_json::Value;

use super::l01_validity::undecodable_field;
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L02",
    title: "unknown configuration fields: the configuration has only fields of the API",
    severity: Severity::Error,
    why: "A misspelled field is an error for kubectl, which requests strict validation. Other clients, such \
          as controllers and Helm before 4, get at most a warning: the field is dropped and its default \
          takes effect, so that failPolicy: Ignore means failurePolicy: Fail.",
    help: "Correct the spelling, or remove the field.",
    source: "KEP-2885; apiserver pkg/endpoints/handlers/create.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Configurations, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (position, configuration) in manifests.configurations() {
        // Both versions have the same fields except matchConditions.
        let mut object = configuration.clone();
        if let Some(version) = object.get_mut("apiVersion") {
            *version = "admissionregistration.k8s.io/v1".into();
        }
        for field in unknown_fields(object, &manifests.cluster_fixture) {
            let message = format!(
                "kubectl cannot apply the configuration: strict decoding error: unknown field \"{field}\""
            );
            defects.push(Defect { position, violation: Violation::new("unknown field", message).at(field) });
        }
    }
    defects
}

/// Returns the unknown fields of a configuration, without the values that cannot be decoded.
fn unknown_fields(mut configuration: Value, cluster_fixture: &ClusterFixture) -> Vec<String> {
    loop {
        let status = match cluster_fixture.unknown_fields(&configuration) {
            Ok(fields) => return fields,
            Err(status) => status,
        };
        // Null stands for an unset field, and keeps the positions in lists.
        let field = undecodable_field(&configuration, &status.message, cluster_fixture);
        match configuration.pointer_mut(&field).filter(|value| !value.is_null()) {
            Some(value) => *value = Value::Null,
            None => return Vec::new(),
        }
    }
}
