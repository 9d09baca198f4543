//! L03: the configuration is of a version that is served.

use kubernetes_admission::config;

use crate::check::{Audience, Check, Probe, Severity, Violation};
use crate::lint::{Defect, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L03",
    title: "the configuration is of v1: v1beta1 has other defaults, and is not served since 1.22",
    severity: Severity::Error,
    why: "No API server since Kubernetes 1.22 serves v1beta1: kubectl says `no matches for kind`. A new version in the \
          first line is not all: failurePolicy, matchPolicy and timeoutSeconds have other defaults in v1, and \
          sideEffects and admissionReviewVersions have none.",
    source: "Deprecated API Migration Guide, v1.22; kubernetes \
             pkg/apis/admissionregistration/{v1,v1beta1}/defaults.go",
    audience: Audience::All,
    probe: Probe::Manifests(run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (position, configuration) in
        manifests.configurations().filter(|(_, configuration)| config::is_v1beta1(configuration))
    {
        let mut told = |violation: Violation, field: &str| {
            defects.push(Defect { position, violation: violation.at(field) });
        };
        let message = "admissionregistration.k8s.io/v1beta1 is not served since Kubernetes 1.22; the other checks read \
                       the configuration with the defaults of v1beta1";
        told(Violation::new("v1beta1", message), "apiVersion");
        for differing in config::v1_differences(configuration) {
            let message = format!("{differing}: write {} to keep it in v1", differing.v1beta1);
            let violation = Violation::new("another default in v1", message);
            told(violation.with_severity(Severity::Warning), &differing.field);
        }
        for error in config::v1_errors(configuration) {
            let message = format!("v1 refuses it: {error}");
            let violation = Violation::new("invalid in v1", message);
            told(violation.with_severity(Severity::Warning), &error.field);
        }
    }
    defects
}
