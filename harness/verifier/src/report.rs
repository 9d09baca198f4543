//! Defines the report of a verification run, the source of every output format and of merged reports.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::comparison::Difference;
pub use super::interaction::{Interaction, Relation};
pub use super::recorder::Unserved;
pub use super::remark::Remark;
use super::sample_request::SampleRequest;
pub use super::tried::Tried;
use super::violation::Severity;

/// The version of the report format. It increases when a member is removed or changes its meaning.
pub const VERSION: u32 = 2;

/// The maximum number of objects that a finding names.
pub(super) const MAX_EXAMPLES: usize = 5;

/// The name that replaces the webhook in a result about all webhooks together.
pub const TOGETHER: &str = "all webhooks together";

/// The report of a verification run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of the report format; [`VERSION`] in new reports.
    pub version: u32,
    /// The number of objects of the corpus that were sent to webhooks.
    pub objects: u64,
    /// The number of calls to webhooks.
    pub calls: u64,
    /// The number of objects that were omitted, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// The part of the corpus that was checked; `None` if the complete corpus was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Whether the run was interrupted before it finished, so that findings may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The known locations of the webhooks' declarations, by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locations: BTreeMap<String, Location>,
    /// The server of each webhook, as the host and port of its URL or Service, by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, String>,
    /// The URL at which each webhook was called, without a query, by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, String>,
    /// A caveat about all results of a webhook, by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caveats: BTreeMap<String, String>,
    /// The call counts of each webhook, by `CONFIGURATION/WEBHOOK`.
    ///
    /// If no check sent objects, contains only the webhooks that returned an invalid response.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub webhooks: BTreeMap<String, Tried>,
    /// The baseline entries that do not match a finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<StaleEntry>,
    /// What mutating webhooks do differently after another one, sorted by webhook; empty if V06 did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<Interaction>,
    /// The distinct requests of the webhooks that their API server does not serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Unserved>,
    /// The webhooks (`CONFIGURATION/WEBHOOK`) that could not be called when the checks started, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreached: BTreeMap<String, Vec<String>>,
    /// The options that the user passed and that the advice in the report depends on, such as `-f`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub options: BTreeSet<String>,
    /// The warnings and notes about the run as a whole, in the order in which they are displayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// The reports of all checks, including skipped checks, sorted by ID.
    pub checks: Vec<CheckReport>,
}

/// A baseline entry that does not match a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleEntry {
    /// The ID of the check.
    pub check: String,
    /// The kind of the finding.
    pub kind: String,
    /// The webhook, as `CONFIGURATION/WEBHOOK` or [`TOGETHER`].
    pub webhook: String,
    /// The field of the entry; empty if the entry is not about a field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Whether the check still has a finding of this kind, but in fields that the entry does not contain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_fields: bool,
    /// The location of the entry in the baseline.
    pub place: Location,
}

/// A part of the corpus: one of every `count` objects, starting with the object at position `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// The number of this shard, starting with 1.
    pub index: u32,
    /// The total number of shards.
    pub count: u32,
}

/// The file and the line of a declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// The file name as given on the command line.
    pub file: String,
    /// The line, starting with 1.
    pub line: u64,
}

/// The results of one check for all webhooks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The stable ID, such as `V01`.
    pub id: String,
    /// The name and the assertion of the check.
    pub title: String,
    /// The severity of the check's findings, unless a finding overrides it.
    pub severity: Severity,
    /// The reason why the check exists.
    pub why: String,
    /// The advice on how to fix a finding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// The source of the rule that the check tests.
    pub source: String,
    /// The URL of the documentation; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
    /// The reason why the user skipped the check; `None` if the check ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The results: one for each webhook, or one for all webhooks together.
    pub results: Vec<CheckResult>,
    /// The findings, sorted by descending severity. Webhooks with the same cause share a finding.
    pub findings: Vec<Finding>,
}

/// The result of a check for one webhook, or for all webhooks together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// The webhook as `CONFIGURATION/WEBHOOK`, or [`TOGETHER`].
    pub webhook: String,
    /// The overall verdict of the check about the webhook.
    pub verdict: Tally,
    /// The number of objects or, if the check does not examine objects, of runs for which the assertion held.
    pub held: u64,
    /// Whether the check could not run for a reason other than the webhook, and was not requested by ID.
    ///
    /// For example, an option was missing, or the webhook responds too fast for the check.
    #[serde(default)]
    pub unequipped: bool,
    /// The reasons why the check could not be completed, with counts.
    pub not_checked: BTreeMap<String, u64>,
    /// For each reason that concerns an object, the first object that could not be checked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_checked_objects: BTreeMap<String, String>,
    /// The reasons why the check did not apply, with counts.
    pub not_applicable: BTreeMap<String, u64>,
    /// What did not occur although the check judges it, such as a denial, with counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_exercised: BTreeMap<String, u64>,
    /// Measurements, such as latencies and remaining days.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The overall verdict of a check about a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "a reader must know them all")]
pub enum Tally {
    /// The check has a finding.
    Found,
    /// The assertion held at least once and never failed.
    Passed,
    /// The check applied but could not be completed.
    NotChecked,
    /// The behavior that the check judges did not occur.
    NotExercised,
    /// The check did not apply.
    NotApplicable,
}

/// A finding of a check. It combines the violations that have the same cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The kind of violation. It does not depend on the object.
    pub kind: String,
    /// The severity of the finding.
    pub severity: Severity,
    /// The message, including names and values. It describes the violation by one of the webhooks with the finding.
    pub message: String,
    /// The webhooks with the finding (`CONFIGURATION/WEBHOOK` or [`TOGETHER`]), each with the number of objects.
    pub webhooks: BTreeMap<String, u64>,
    /// The first objects with the finding, as `NAMESPACE/NAME` with their kinds.
    pub examples: Vec<String>,
    /// The smallest object with the finding, if the finding is about an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// The differences between the expected and the actual object.
    pub differences: Vec<Difference>,
    /// The fields that are part of the finding's identity, from all objects with the finding.
    ///
    /// The fields are patterns without list positions and keys, such as `spec.containers.image`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fields: BTreeSet<String>,
    /// How the request differs from the creation of the object by an ordinary user, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The reason why the finding matters, if it differs from the reason of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The advice on how to fix the finding, if it differs from the advice of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The findings of this and other checks that have the same cause and are not listed separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Consequence>,
    /// The reviews that reproduce the finding, in order.
    pub steps: Vec<Step>,
    /// The requests that reproduce the finding, in order, if an API server can receive the requests.
    ///
    /// Proofs are created from these requests. The requests are not serialized.
    #[serde(skip)]
    pub requests: Vec<SampleRequest>,
    /// Whether the finding contains masked Secret values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// The reason why the baseline accepts the finding, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// Whether this run adds the finding to the baseline.
    #[serde(skip)]
    pub added: bool,
    /// The folder that contains the proof, if the user requested proofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// A finding that follows from another finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consequence {
    /// The ID of the check.
    pub check: String,
    /// The kind of the finding.
    pub kind: String,
    /// The severity of the finding.
    pub severity: Severity,
    /// The message of the finding.
    pub message: String,
    /// The webhooks with the finding.
    pub webhooks: BTreeSet<String>,
    /// The fields that are part of the finding's identity.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fields: BTreeSet<String>,
    /// The reason in the baseline, if the baseline accepts the finding, even if it does not accept the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
}

/// A review that was sent to a webhook, and the reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The webhook, as `CONFIGURATION/WEBHOOK`.
    pub webhook: String,
    /// Whether the webhook is built into admit and represents another webhook.
    #[serde(rename = "foreign")]
    pub is_other: bool,
    /// How the review was sent if it bypassed the dispatcher because no API server sends such a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<Request>,
    /// The `AdmissionReview` that was sent; a string if it is not JSON.
    pub review: Value,
    /// The HTTP status of the reply; `None` if there is no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of the reply, as a string if it is not JSON, or the reason why there is no reply.
    pub reply: Value,
}

/// The HTTP method and content type of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The HTTP method of the request.
    pub method: String,
    /// The `Content-Type` header; empty if the request does not have a body.
    pub content_type: String,
}

impl CheckResult {
    /// Returns the overall verdict for the counts.
    pub(super) fn tally(&self, has_findings: bool) -> Tally {
        if has_findings {
            Tally::Found
        } else if self.held > 0 {
            Tally::Passed
        } else if !self.not_checked.is_empty() {
            Tally::NotChecked
        } else if !self.not_exercised.is_empty() {
            Tally::NotExercised
        } else {
            Tally::NotApplicable
        }
    }
}

impl Finding {
    /// Returns the alphabetically first webhook with the finding.
    pub fn webhook(&self) -> &str {
        self.webhooks.keys().next().map_or(TOGETHER, String::as_str)
    }

    /// Returns the number of objects with the finding, summed over the webhooks.
    pub fn count(&self) -> u64 {
        self.webhooks.values().sum()
    }

    /// Returns the size of the finding's object in bytes, or `None` if the finding is not about an object.
    pub(super) fn size(&self) -> Option<usize> {
        self.object.as_ref().map(|object| object.to_string().len())
    }

    /// Adds the fields and consequences of `other`. If its object is smaller, also takes over the other properties.
    ///
    /// Keeps the webhooks and examples of `self`.
    pub(super) fn absorb(&mut self, mut other: Self) {
        self.fields.append(&mut other.fields);
        for consequence in std::mem::take(&mut other.consequences) {
            let same =
                |known: &Consequence| (&known.check, &known.kind) == (&consequence.check, &consequence.kind);
            match self.consequences.iter_mut().find(|known| same(known)) {
                Some(known) => {
                    known.fields.extend(consequence.fields);
                    known.webhooks.extend(consequence.webhooks);
                }
                None => self.consequences.push(consequence),
            }
        }
        if other.size() < self.size() {
            *self = Self {
                webhooks: std::mem::take(&mut self.webhooks),
                examples: std::mem::take(&mut self.examples),
                fields: std::mem::take(&mut self.fields),
                consequences: std::mem::take(&mut self.consequences),
                ..other
            };
        }
    }
}

impl CheckReport {
    /// Returns the findings of a webhook, sorted by descending severity; for [`TOGETHER`], of all webhooks together.
    pub fn findings_of(&self, webhook: &str) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.webhooks.contains_key(webhook))
    }
}

impl Shard {
    /// Returns whether the shard includes the object at `position` in the corpus, counted from 0.
    pub fn includes(self, position: u64) -> bool {
        position % u64::from(self.count) + 1 == u64::from(self.index)
    }
}

/// Formats the shard as in the command-line option, such as `3/16`.
impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Report {
    /// Returns the location where a webhook is declared; for [`TOGETHER`], the location of the first webhook.
    pub fn location_of(&self, webhook: &str) -> Option<&Location> {
        if webhook == TOGETHER { self.locations.values().next() } else { self.locations.get(webhook) }
    }

    /// Returns the webhooks that a finding is about, each with the location of its declaration.
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

    /// Returns the caveats about a webhook's results; for [`TOGETHER`], the caveats about all webhooks.
    pub fn caveats(&self, webhook: &str) -> impl Iterator<Item = (&str, &str)> {
        let concerns = move |name: &str| name == webhook || webhook == TOGETHER;
        self.caveats
            .iter()
            .filter(move |(name, _)| concerns(name))
            .map(|(name, caveat)| (name.as_str(), caveat.as_str()))
    }

    /// Records in one place why webhooks could not be called, instead of in each check that called them.
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

    /// Returns the webhooks that never returned a valid response, each with the most frequent reason.
    ///
    /// Webhooks in [`Self::unreached`] are omitted.
    pub fn unanswered(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_reached = |name: &String| !self.unreached.values().any(|webhooks| webhooks.contains(name));
        let webhooks = self.webhooks.iter().filter(move |(name, _)| is_reached(name));
        webhooks.filter_map(|(name, tried)| Some((name.as_str(), tried.unanswered()?)))
    }

    /// Returns the webhooks that were never called, and the mutating webhooks that never changed an object.
    ///
    /// Each webhook has a sentence that suggests a fix.
    pub fn unseen(&self) -> Vec<(&str, String)> {
        let webhooks = self.webhooks.iter();
        webhooks
            .filter(|(name, tried)| tried.called > 0 || self.is_untried(name))
            .filter_map(|(name, tried)| Some((name.as_str(), self.unseen_of(name, tried)?)))
            .collect()
    }

    /// Returns whether the user passed `option`.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.contains(option)
    }

    /// Returns whether a webhook was never called although objects were sent.
    ///
    /// Returns `false` for a shard, because it may not contain objects for a webhook.
    pub fn has_untried(&self) -> bool {
        self.shard.is_none() && self.webhooks.keys().any(|name| self.is_untried(name))
    }

    /// Returns the finding whose consequences include the findings of `check` for the webhook. Returns `None` if no such
    /// finding exists, or if `check` lists findings for the webhook itself.
    pub fn cause_of(&self, check: &CheckReport, webhook: &str) -> Option<(&CheckReport, &Finding)> {
        if check.findings_of(webhook).next().is_some() {
            return None;
        }
        self.findings().find(|(_, finding)| {
            let is_it = |it: &Consequence| it.check == check.id && it.webhooks.contains(webhook);
            finding.consequences.iter().any(is_it)
        })
    }

    /// Returns all findings, each with its check.
    pub fn findings(&self) -> impl Iterator<Item = (&CheckReport, &Finding)> {
        self.checks.iter().flat_map(|check| check.findings.iter().map(move |finding| (check, finding)))
    }

    /// Returns the findings that the baseline does not accept, each with its check.
    pub fn new_findings(&self) -> impl Iterator<Item = (&CheckReport, &Finding)> {
        self.findings().filter(|(_, finding)| finding.accepted.is_none())
    }

    /// Returns the number of check results with the given verdict.
    pub fn count(&self, verdict: Tally) -> usize {
        let results = self.checks.iter().flat_map(|check| &check.results);
        results.filter(|result| result.verdict == verdict).count()
    }
}
