//! What a person thinks of the findings: `NAME/review.yaml`.

use std::fs;

use serde::Deserialize;

use super::found::{Finding, Found};
use super::manifest::Manifest;

/// What somebody who read the webhook's source thinks of findings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opinion {
    /// The checks' ids.
    pub(crate) checks: Vec<String>,
    /// The kinds of the findings; all of the checks' if there is none.
    #[serde(default)]
    kinds: Vec<String>,
    /// The webhooks, as `CONFIGURATION/WEBHOOK`; all of them if there is none.
    #[serde(default)]
    webhooks: Vec<String>,
    /// What it is.
    pub(crate) is: Judgment,
    /// The file and function that it comes from.
    pub(crate) place: String,
    /// Why it is so: sentences.
    pub(crate) why: String,
}

/// What a finding is, said fairly.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Judgment {
    /// Nobody can have meant it.
    Defect,
    /// It is meant so, and has the consequence all the same.
    Design,
    /// The configuration that the project ships could say otherwise.
    Configuration,
}

/// What was written about a webhook.
pub(crate) fn read(manifest: &Manifest) -> Vec<Opinion> {
    let path = manifest.folder().join("review.yaml");
    let text = fs::read_to_string(&path).expect("there is a review.yaml");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Opinion {
    /// Whether it is about `finding`.
    pub(crate) fn is_about(&self, finding: &Finding) -> bool {
        let lists = |list: &[String], texts: &[String]| {
            list.is_empty() || texts.iter().all(|text| list.contains(text))
        };
        self.checks.contains(&finding.check)
            && lists(&self.kinds, std::slice::from_ref(&finding.kind))
            && lists(&self.webhooks, &finding.webhooks)
    }
}

/// Findings that nobody has looked at, and opinions about what is not found any more.
pub(crate) fn departures(opinions: &[Opinion], found: &Found, name: &str) -> Vec<String> {
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
