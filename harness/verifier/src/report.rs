//! What a verification found, as data: the contract of every report, and what shards are merged from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::Severity;
use super::comparison::Difference;
use super::shown::ShownRequest;

/// The version of this document. It grows when a member changes its meaning or goes.
pub const VERSION: u32 = 2;

/// How many objects a finding names.
pub(super) const MOST_EXAMPLES: usize = 5;

/// What a result is about that is not about one webhook.
pub const TOGETHER: &str = "all webhooks together";

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// How many objects of the corpus were tried.
    pub objects: u64,
    /// How many calls were made to webhooks.
    pub calls: u64,
    /// Objects that were left out, counted by the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Which part of the corpus this is; none if it is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Where the webhooks are declared, by `CONFIGURATION/WEBHOOK`, as far as that is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locations: BTreeMap<String, Location>,
    /// What serves the webhooks, by `CONFIGURATION/WEBHOOK`: the host and port of a URL, or those of a service. Findings
    /// about webhooks that are served together may have one cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, String>,
    /// What is to be kept in mind with everything that is said of a webhook, by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caveats: BTreeMap<String, String>,
    /// What the webhooks were asked in all, by `CONFIGURATION/WEBHOOK`; nothing if no check tried objects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub webhooks: BTreeMap<String, Tried>,
    /// Entries of the baseline of which nothing is found any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<StaleEntry>,
    /// What the webhooks asked of the API server behind them and did not get, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Unserved>,
    /// The webhooks, as `CONFIGURATION/WEBHOOK`, that could not be called when the checks began, by what kept them from it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreached: BTreeMap<String, Vec<String>>,
    /// Every check, also those that were skipped, by id.
    pub checks: Vec<CheckReport>,
}

/// An entry of a baseline of which nothing is found any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleEntry {
    /// The id of the check.
    pub check: String,
    /// The kind of the finding.
    pub kind: String,
    /// The webhook, as `CONFIGURATION/WEBHOOK` or [`TOGETHER`].
    pub webhook: String,
    /// Where the entry stands.
    pub place: Location,
}

/// A request to the API server behind the webhooks that it does not serve, and a cluster might.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unserved {
    /// Such as `list` and `watch`.
    pub verb: String,
    /// `apps/v1 deployments/status`, or the path if it is that of no resource.
    pub resource: String,
    /// The HTTP status of the answer.
    pub status: u16,
    /// What it says.
    pub message: String,
}

impl std::fmt::Display for Unserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, resource, status, message } = self;
        write!(f, "{verb} {resource}: {status} {message}")
    }
}

/// How much was tried of a webhook, in requests as an API server makes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// Whether it may change objects.
    pub mutating: bool,
    /// How often it was called.
    pub called: u64,
    /// How often it answered with a patch.
    pub patched: u64,
    /// How many objects of the corpus it answered to as they are created.
    #[serde(default)]
    pub objects: u64,
    /// How many of them it denied, by the reason; the object's name is `NAME` there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub denied: BTreeMap<String, u64>,
    /// The keys of labels that its objectSelector names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selects: Vec<String>,
}

/// A part of a corpus: every `count`th object, beginning with the one at `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// Which one, from 1.
    pub index: u32,
    /// Of how many.
    pub count: u32,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// The file as it was given to the command.
    pub file: String,
    /// The line on which it begins, from 1.
    pub line: u64,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The stable id, such as `V01`.
    pub id: String,
    /// What must hold.
    pub title: String,
    /// How bad it is if it does not.
    pub severity: Severity,
    /// Why it matters.
    pub why: String,
    /// Where the rule comes from.
    pub source: String,
    /// Why the user left it out; none if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// One entry for each webhook; one for all together where the check is about that.
    pub results: Vec<CheckResult>,
    /// What is wrong, the worst first: one entry for one cause, however many webhooks show it.
    pub findings: Vec<Finding>,
}

/// What one check found about one webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// `CONFIGURATION/WEBHOOK`, or [`TOGETHER`].
    pub webhook: String,
    /// The sum of it.
    pub verdict: Tally,
    /// For how many objects (or, without objects, how often) the assertion held.
    pub held: u64,
    /// Whether it was not checked for no fault of the webhook, and nobody asked for the check by its id: an option was not
    /// given that would make it possible, or the webhook is too quick for anything to be seen.
    #[serde(default)]
    pub unequipped: bool,
    /// Why the check could not look, and how often.
    pub not_checked: BTreeMap<String, u64>,
    /// Why there was nothing to look at, and how often.
    pub not_applicable: BTreeMap<String, u64>,
    /// What was measured, such as latencies and days left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The sum of a check about a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "a reader must know them all")]
pub enum Tally {
    /// Something is wrong.
    Found,
    /// The assertion held at least once, and never failed.
    Passed,
    /// It could be about something, and could not be told.
    NotChecked,
    /// There was nothing that it could be about.
    NotApplicable,
}

/// One thing that is wrong: one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What is wrong, in words that do not depend on the object.
    pub kind: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, with names and values, as one of the webhooks shows it.
    pub message: String,
    /// The webhooks that show it, as `CONFIGURATION/WEBHOOK` or [`TOGETHER`]: for how many objects each. Never empty.
    pub webhooks: BTreeMap<String, u64>,
    /// The first of the objects, as `NAMESPACE/NAME` with their kinds.
    pub examples: Vec<String>,
    /// The smallest object that still shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// What differs.
    pub differences: Vec<Difference>,
    /// The reviews that show it, in order.
    pub steps: Vec<Step>,
    /// The requests that show it, in order, as far as an API server can get them: what a proof is made of. Not in the
    /// document.
    #[serde(skip)]
    pub requests: Vec<ShownRequest>,
    /// Whether values of Secrets are masked in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Why it is accepted, if a baseline says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The folder with the proof, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// One review and what came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The webhook, as `CONFIGURATION/WEBHOOK`.
    pub webhook: String,
    /// Whether it is one of admit's own that plays the part of another webhook.
    #[serde(rename = "foreign")]
    pub is_other: bool,
    /// How it was sent, if that was past the dispatcher: a request that no API server makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<Request>,
    /// The `AdmissionReview` that was sent; a text if it is no JSON.
    pub review: Value,
    /// The HTTP status of the reply; none without a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of the reply, or why there is none: JSON where it is JSON, else a text.
    pub reply: Value,
}

/// How something was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The `Content-Type`; empty without a body.
    pub content_type: String,
}

impl CheckResult {
    /// The sum of what was seen.
    pub(super) fn tally(held: u64, findings: usize, not_checked: usize) -> Tally {
        if findings > 0 {
            Tally::Found
        } else if held > 0 {
            Tally::Passed
        } else if not_checked > 0 {
            Tally::NotChecked
        } else {
            Tally::NotApplicable
        }
    }
}

impl Finding {
    /// The first of the webhooks by name.
    pub fn webhook(&self) -> &str {
        self.webhooks.keys().next().map_or(TOGETHER, String::as_str)
    }

    /// For how many objects it was seen, added up over the webhooks.
    pub fn count(&self) -> u64 {
        self.webhooks.values().sum()
    }

    /// How large the object is that shows it; none if it is about no object.
    pub(super) fn size(&self) -> Option<usize> {
        self.object.as_ref().map(|object| object.to_string().len())
    }
}

impl CheckReport {
    /// The findings that a webhook shows, the worst first; with [`TOGETHER`], those about all webhooks.
    pub fn findings_of(&self, webhook: &str) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.webhooks.contains_key(webhook))
    }
}

impl Tried {
    fn unseen(&self, name: &str, objects: u64) -> Option<String> {
        let what = match self {
            Self { called: 0, .. } => {
                format!("it was called for none of {objects} objects: nothing was tried")
            }
            Self { mutating: true, patched: 0, called, .. } => {
                format!(
                    "it was called {called} times and never changed an object: nothing that it does was seen"
                )
            }
            Self { .. } => return None,
        };
        let mut hint = "give objects that it acts on (-f), or the built-in ones what it looks for (--annotation, --label)".to_owned();
        if !self.selects.is_empty() {
            let _ = write!(hint, "; its objectSelector names {}", self.selects.join(", "));
        }
        // The keys that a product has for its own begin with its domain.
        let labels: Vec<&str> = name.rsplit('/').next().unwrap_or_default().rsplitn(3, '.').collect();
        if let [last, domain, _] = labels.as_slice() {
            let _ = write!(hint, "; such keys often begin with its domain, as in {domain}.{last}/inject");
        }
        Some(format!("{what}; {hint}"))
    }
}

impl Shard {
    /// Whether the object at `position` in the corpus, from 0, belongs to it.
    pub fn includes(self, position: u64) -> bool {
        position % u64::from(self.count) + 1 == u64::from(self.index)
    }
}

/// As the command line writes it: `3/16`.
impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Report {
    /// Where a webhook is declared; for [`TOGETHER`] the first of all.
    pub fn location_of(&self, webhook: &str) -> Option<&Location> {
        if webhook == TOGETHER { self.locations.values().next() } else { self.locations.get(webhook) }
    }

    /// Where the webhooks are declared that a finding is about, the first one first: of one about all webhooks together,
    /// the first that it speaks of.
    pub fn places<'a>(&'a self, finding: &'a Finding) -> impl Iterator<Item = (&'a str, &'a Location)> {
        let spoken_of = || {
            let called = finding.steps.iter().map(|step| step.webhook.as_str());
            let named = self.locations.keys().map(String::as_str);
            let mut named = named.filter(|name| finding.message.contains(name));
            let mut called = called.filter(|name| self.locations.contains_key(*name));
            called.next().or_else(|| named.next())
        };
        finding.webhooks.keys().filter_map(move |webhook| {
            let declared = match webhook.as_str() {
                TOGETHER => spoken_of().unwrap_or(TOGETHER),
                webhook => webhook,
            };
            Some((webhook.as_str(), self.location_of(declared)?))
        })
    }

    /// What is to be kept in mind with a result about this webhook: with one about all together, what concerns any.
    pub fn caveats(&self, webhook: &str) -> impl Iterator<Item = (&str, &str)> {
        let concerns = move |name: &str| name == webhook || webhook == TOGETHER;
        self.caveats
            .iter()
            .filter(move |(name, _)| concerns(name))
            .map(|(name, caveat)| (name.as_str(), caveat.as_str()))
    }

    /// Says once of webhooks why they could not be called: the checks that failed to do so have the same reason for all.
    pub fn note_unreached(&mut self, unreached: BTreeMap<String, Vec<String>>) {
        for (reason, webhooks) in &unreached {
            let results = self.checks.iter_mut().flat_map(|check| &mut check.results);
            for result in results.filter(|result| webhooks.contains(&result.webhook)) {
                let (calls, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    std::mem::take(&mut result.not_checked)
                        .into_iter()
                        .partition(|(why, _)| why.contains("failed to call webhook"));
                result.not_checked = others;
                if !calls.is_empty() {
                    *result.not_checked.entry(reason.clone()).or_default() += calls.values().sum::<u64>();
                }
            }
        }
        self.unreached = unreached;
    }

    /// What nothing was seen of, by `CONFIGURATION/WEBHOOK`: webhooks that were never called, and mutating ones that never
    /// changed an object; a sentence each, with what to try.
    pub fn unseen(&self) -> Vec<(&str, String)> {
        let webhooks = self.webhooks.iter();
        webhooks
            .filter_map(|(name, tried)| Some((name.as_str(), tried.unseen(name, self.objects)?)))
            .collect()
    }

    /// Whether a webhook was never called, though objects were to be tried. A part of a corpus need not have any for each.
    pub fn has_untried(&self) -> bool {
        self.shard.is_none() && self.webhooks.values().any(|tried| tried.called == 0)
    }

    /// All findings, with the check.
    pub fn findings(&self) -> impl Iterator<Item = (&CheckReport, &Finding)> {
        self.checks.iter().flat_map(|check| check.findings.iter().map(move |finding| (check, finding)))
    }

    /// The findings that no baseline accepts, with the check.
    pub fn new_findings(&self) -> impl Iterator<Item = (&CheckReport, &Finding)> {
        self.findings().filter(|(_, finding)| finding.accepted.is_none())
    }

    /// How many pairs of check and webhook ended so.
    pub fn count(&self, verdict: Tally) -> usize {
        let results = self.checks.iter().flat_map(|check| &check.results);
        results.filter(|result| result.verdict == verdict).count()
    }
}
