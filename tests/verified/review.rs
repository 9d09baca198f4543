//! Represents the reviews of findings: `NAME/review.yaml`.

use std::fs;

use serde::Deserialize;

use super::found::{Finding, VerificationFindings};
use super::manifest::Manifest;

/// An opinion on findings, by a reviewer who has read the webhook's source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opinion {
    /// The IDs of the checks.
    pub(crate) checks: Vec<String>,
    /// The kinds of the findings; empty for all kinds of the checks.
    #[serde(default)]
    kinds: Vec<String>,
    /// The webhooks, as `CONFIGURATION/WEBHOOK`; empty for all.
    #[serde(default)]
    webhooks: Vec<String>,
    pub(crate) is: Judgment,
    /// The file and the function in the webhook's source that cause the finding.
    pub(crate) place: String,
    /// The reasons for the judgment, in sentences.
    pub(crate) why: String,
}

/// The judgment of a finding.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Judgment {
    /// The behavior is clearly unintended.
    Defect,
    /// The behavior is intended, and the finding describes a consequence of it.
    Design,
    /// The configuration that the project provides could avoid the finding.
    Configuration,
}

/// Reads the opinions on the findings for a webhook.
pub(crate) fn read(manifest: &Manifest) -> Vec<Opinion> {
    let path = manifest.folder().join("review.yaml");
    let text = fs::read_to_string(&path).expect("there is a review.yaml");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Opinion {
    /// Returns whether the opinion is about `finding`.
    pub(crate) fn is_about(&self, finding: &Finding) -> bool {
        let lists = |list: &[String], texts: &[String]| {
            list.is_empty() || texts.iter().all(|text| list.contains(text))
        };
        self.checks.contains(&finding.check)
            && lists(&self.kinds, std::slice::from_ref(&finding.kind))
            && lists(&self.webhooks, &finding.webhooks)
    }
}

/// Returns messages about findings without an opinion, and opinions without a finding.
pub(crate) fn departures(opinions: &[Opinion], found: &VerificationFindings, name: &str) -> Vec<String> {
    let unseen =
        found.findings.iter().filter(|finding| !opinions.iter().any(|opinion| opinion.is_about(finding)));
    let unseen = unseen.map(|Finding { check, webhooks, kind, .. }| {
        format!("{name}/review.yaml says nothing of {check} {kind} ({})", webhooks.join(", "))
    });
    let gone =
        opinions.iter().filter(|opinion| !found.findings.iter().any(|finding| opinion.is_about(finding)));
    let gone = gone.map(|opinion| {
        format!("{name}/review.yaml speaks of {:?} {:?}, which is not found", opinion.checks, opinion.kinds)
    });
    unseen.chain(gone).collect()
}
