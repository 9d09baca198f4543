//! L10: no configuration is there twice.

use std::collections::BTreeMap;

use kubernetes_types::json::text;

use crate::check::{Audience, Check, Probe, Severity, Violation};
use crate::lint::{Defect, Manifests};

pub(super) const CHECK: Check = Check {
    id: "L10",
    title: "no two configurations of one kind have the same name",
    severity: Severity::Error,
    why: "Configurations are not in a namespace: of two with one name, for example of two installations of the same \
          chart, the one that is applied later replaces the other, whose webhooks are no longer called.",
    source: "kubernetes pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go",
    audience: Audience::All,
    probe: Probe::Manifests(run),
};

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut seen = BTreeMap::new();
    let mut defects = Vec::new();
    for (position, configuration) in manifests.configurations() {
        let (kind, name) = (text(configuration, &["kind"]), text(configuration, &["metadata", "name"]));
        if !name.is_empty() && seen.insert((kind, name), position).is_some() {
            let message = format!("it replaces an earlier {kind} {name:?} of the manifests");
            let violation = Violation::new("the same name", message).at("metadata.name");
            defects.push(Defect { position, violation });
        }
    }
    defects
}
