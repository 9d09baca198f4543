//! L03: the configuration uses a served version.

use kubernetes_admission::config;

use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L03",
    title: "API version: the configuration uses v1; v1beta1 has other defaults and is not served since 1.22",
    severity: Severity::Error,
    why: "No API server since Kubernetes 1.22 serves v1beta1: kubectl reports `no matches for kind`. \
          Changing apiVersion is not enough: failurePolicy, matchPolicy, and timeoutSeconds have other \
          defaults in v1, and sideEffects and admissionReviewVersions do not have a default.",
    help: "Set apiVersion to admissionregistration.k8s.io/v1, and set the fields that the messages name.",
    source: "Deprecated API Migration Guide, v1.22; kubernetes \
             pkg/apis/admissionregistration/{v1,v1beta1}/defaults.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Configurations, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (position, configuration) in
        manifests.configurations().filter(|(_, configuration)| config::is_v1beta1(configuration))
    {
        let mut report = |violation: Violation, field: &str| {
            defects.push(Defect { position, violation: violation.at(field) });
        };
        let message = "admissionregistration.k8s.io/v1beta1 is not served since Kubernetes 1.22; the other \
                       checks use the defaults of v1beta1";
        report(Violation::new("v1beta1", message), "apiVersion");
        for differing in config::v1_differences(configuration) {
            let message = format!("{differing}: set {} to keep the behavior in v1", differing.v1beta1);
            let violation = Violation::new("different default in v1", message);
            report(violation.with_severity(Severity::Warning), &differing.field);
        }
        for error in config::v1_errors(configuration) {
            let message = format!("v1 rejects the configuration: {error}");
            let violation = Violation::new("invalid in v1", message);
            report(violation.with_severity(Severity::Warning), &error.field);
        }
    }
    defects
}
