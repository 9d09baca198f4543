//! L10: configurations have unique names.

use std::collections::BTreeMap;

use kubernetes_types::json::text;

use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L10",
    title: "duplicate names: no two configurations of one kind have the same name",
    severity: Severity::Error,
    why: "Configurations are cluster-scoped: if two have the same name, for example from two installations \
          of one chart, the one applied later replaces the other, whose webhooks are no longer called.",
    help: "Rename one of the configurations.",
    source: "kubernetes pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Configurations, run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut seen = BTreeMap::new();
    let mut defects = Vec::new();
    for (position, configuration) in manifests.configurations() {
        let (kind, name) = (text(configuration, &["kind"]), text(configuration, &["metadata", "name"]));
        if !name.is_empty() && seen.insert((kind, name), position).is_some() {
            let message = format!("the configuration replaces an earlier {kind} {name:?} in the manifests");
            let violation = Violation::new("duplicate name", message).at("metadata.name");
            defects.push(Defect { position, violation });
        }
    }
    defects
}
