//! The report of a verification: the data behind every output format and the input for merging shards.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::Severity;
use super::comparison::Difference;
use super::sample_request::SampleRequest;
pub use super::tried::Tried;

/// The version of this document. It increases when a member changes its meaning or is removed.
pub const VERSION: u32 = 2;

/// The maximum number of objects that a finding names.
pub(super) const MAX_EXAMPLES: usize = 5;

/// The subject of a result that is not about a single webhook.
pub const TOGETHER: &str = "all webhooks together";

/// The report of a verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The value of [`VERSION`].
    pub version: u32,
    /// The number of corpus objects tried.
    pub objects: u64,
    /// The number of calls to webhooks.
    pub calls: u64,
    /// The number of objects left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// The part of the corpus that was tried; `None` if the whole corpus was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Whether the run was interrupted before it finished, so that findings may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The known locations of the webhooks' declarations, by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locations: BTreeMap<String, Location>,
    /// The servers of the webhooks, by `CONFIGURATION/WEBHOOK`: host and port of a URL or a service. Findings
    /// about webhooks of one server may have the same cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, String>,
    /// The addresses at which the webhooks were called (`HOST:PORT`), by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, String>,
    /// Caveats about all results of a webhook, by `CONFIGURATION/WEBHOOK`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caveats: BTreeMap<String, String>,
    /// The call counts of the webhooks, by `CONFIGURATION/WEBHOOK`; empty if no check tried objects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub webhooks: BTreeMap<String, Tried>,
    /// Baseline entries without a matching finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<StaleEntry>,
    /// The distinct requests of the webhooks that their API server does not serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Unserved>,
    /// The webhooks (`CONFIGURATION/WEBHOOK`) that could not be called when the checks started, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreached: BTreeMap<String, Vec<String>>,
    /// Every check by id, including skipped checks.
    pub checks: Vec<CheckReport>,
}

/// A baseline entry without a matching finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleEntry {
    /// The id of the check.
    pub check: String,
    /// The kind of the finding.
    pub kind: String,
    /// The webhook, as `CONFIGURATION/WEBHOOK` or [`TOGETHER`].
    pub webhook: String,
    /// The field; empty if the entry does not name one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Whether the check still has a finding of this kind, but in fields that the entry does not name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_fields: bool,
    /// The location of the entry.
    pub place: Location,
}

/// A request of a webhook that its API server does not serve but a cluster might.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unserved {
    /// The verb, such as `list` or `watch`.
    pub verb: String,
    /// The resource, such as `apps/v1 deployments/status`, or the path if it has no resource.
    pub resource: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// The message of the response.
    pub message: String,
}

impl std::fmt::Display for Unserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, resource, status, message } = self;
        write!(f, "{verb} {resource}: {status} {message}")
    }
}

/// A part of a corpus: each object whose position is a multiple of `count`, starting with the object at `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// The number of this shard, starting with 1.
    pub index: u32,
    /// The total number of shards.
    pub count: u32,
}

/// A location in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// The file name as given on the command line.
    pub file: String,
    /// The line, starting with 1.
    pub line: u64,
}

/// The report of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The stable id, such as `V01`.
    pub id: String,
    /// The name of the check and what must hold.
    pub title: String,
    /// The severity of the check's findings, unless a finding overrides it.
    pub severity: Severity,
    /// The reason for the check.
    pub why: String,
    /// The change that fixes a finding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// The source of the rule.
    pub source: String,
    /// The reason why the user skipped the check; `None` if the check ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The results: one entry for each webhook, or one entry for all webhooks together.
    pub results: Vec<CheckResult>,
    /// The findings, most severe first. Webhooks with the same cause share one finding.
    pub findings: Vec<Finding>,
}

/// The result of one check for one webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// `CONFIGURATION/WEBHOOK`, or [`TOGETHER`].
    pub webhook: String,
    /// The overall verdict.
    pub verdict: Tally,
    /// The number of objects (or of runs, for checks without objects) for which the assertion held.
    pub held: u64,
    /// Whether the check was not run for a reason outside the webhook, and was not requested by id: an option
    /// was missing, or the webhook responds too fast for the check.
    #[serde(default)]
    pub unequipped: bool,
    /// The reasons why the check could not be run, with counts.
    pub not_checked: BTreeMap<String, u64>,
    /// The reasons why the check did not apply, with counts.
    pub not_applicable: BTreeMap<String, u64>,
    /// Measurements, such as latencies and remaining days.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The overall verdict of a check about a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "a reader must know them all")]
pub enum Tally {
    /// There is a finding.
    Found,
    /// The assertion held at least once and never failed.
    Passed,
    /// The check applied but could not be run.
    NotChecked,
    /// The check did not apply.
    NotApplicable,
}

/// A finding of a check: violations with one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The kind of violation, independent of the object.
    pub kind: String,
    /// The severity.
    pub severity: Severity,
    /// The message with names and values, for one of the webhooks.
    pub message: String,
    /// The webhooks that show the finding (`CONFIGURATION/WEBHOOK` or [`TOGETHER`]), each with the number of objects.
    pub webhooks: BTreeMap<String, u64>,
    /// The first objects that show the finding, as `NAMESPACE/NAME` with their kinds.
    pub examples: Vec<String>,
    /// The smallest object that still shows the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// The differences between the expected and the actual object.
    pub differences: Vec<Difference>,
    /// The fields that are part of the finding's identity, as patterns without list positions and keys, such as
    /// `spec.containers.image`; of all objects that show the finding.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fields: BTreeSet<String>,
    /// The properties of the request that differ from the creation of the object by an ordinary user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The findings of this and other checks that have the same cause and are not listed separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Consequence>,
    /// The reviews that reproduce the finding, in order.
    pub steps: Vec<Step>,
    /// The requests that reproduce the finding, in order, if an API server can receive them.
    ///
    /// A proof is created from these requests. They are not serialized.
    #[serde(skip)]
    pub requests: Vec<SampleRequest>,
    /// Whether the finding contains masked Secret values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// The reason for which the baseline accepts the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The folder that contains the proof, if a proof was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// A finding that follows from another finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consequence {
    /// The id of the check.
    pub check: String,
    /// The kind of the finding.
    pub kind: String,
    /// The severity.
    pub severity: Severity,
    /// The message.
    pub message: String,
    /// The webhooks that show it.
    pub webhooks: BTreeSet<String>,
    /// The fields that are part of its identity.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fields: BTreeSet<String>,
}

/// A review and its reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The webhook, as `CONFIGURATION/WEBHOOK`.
    pub webhook: String,
    /// Whether the webhook belongs to admit and represents another webhook.
    #[serde(rename = "foreign")]
    pub is_other: bool,
    /// How the review was sent, if it bypassed the dispatcher because no API server sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<Request>,
    /// The `AdmissionReview` that was sent; a string if it is not JSON.
    pub review: Value,
    /// The HTTP status of the reply; `None` if there is no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of the reply, or the reason why there is no reply; a string if it is not JSON.
    pub reply: Value,
}

/// The HTTP properties of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The HTTP method of the request.
    pub method: String,
    /// The `Content-Type`; empty if there is no body.
    pub content_type: String,
}

impl CheckResult {
    /// Returns the overall verdict.
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
    /// Returns the alphabetically first webhook that shows the finding.
    pub fn webhook(&self) -> &str {
        self.webhooks.keys().next().map_or(TOGETHER, String::as_str)
    }

    /// Returns the number of objects that show the finding, summed over the webhooks.
    pub fn count(&self) -> u64 {
        self.webhooks.values().sum()
    }

    /// Returns the size of the finding's object; `None` if the finding is not about an object.
    pub(super) fn size(&self) -> Option<usize> {
        self.object.as_ref().map(|object| object.to_string().len())
    }
}

impl CheckReport {
    /// Returns the findings of a webhook, most severe first; for [`TOGETHER`], the findings about all webhooks.
    pub fn findings_of(&self, webhook: &str) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.webhooks.contains_key(webhook))
    }
}

impl Shard {
    /// Returns whether the shard includes the object at `position` in the corpus, starting with 0.
    pub fn includes(self, position: u64) -> bool {
        position % u64::from(self.count) + 1 == u64::from(self.index)
    }
}

/// Formats the shard as on the command line, such as `3/16`.
impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Report {
    /// Returns where a webhook is declared; for [`TOGETHER`], where the first webhook is declared.
    pub fn location_of(&self, webhook: &str) -> Option<&Location> {
        if webhook == TOGETHER { self.locations.values().next() } else { self.locations.get(webhook) }
    }

    /// Returns the declarations of the webhooks of a finding, each with its location.
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

    /// Returns the caveats about a webhook's results; for [`TOGETHER`], the caveats of every webhook.
    pub fn caveats(&self, webhook: &str) -> impl Iterator<Item = (&str, &str)> {
        let concerns = move |name: &str| name == webhook || webhook == TOGETHER;
        self.caveats
            .iter()
            .filter(move |(name, _)| concerns(name))
            .map(|(name, caveat)| (name.as_str(), caveat.as_str()))
    }

    /// Records once why webhooks could not be called, because all checks that called them have the same reason.
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

    /// Returns the webhooks that did not return any valid response, with the reason of most failures.
    ///
    /// Webhooks in [`Self::unreached`] are left out.
    pub fn unanswered(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_reached = |name: &String| !self.unreached.values().any(|webhooks| webhooks.contains(name));
        let webhooks = self.webhooks.iter().filter(move |(name, _)| is_reached(name));
        webhooks.filter_map(|(name, tried)| Some((name.as_str(), tried.unanswered()?)))
    }

    /// Returns the webhooks that were never called, and the mutating webhooks that never changed an object.
    ///
    /// Each has a sentence that suggests what to try.
    pub fn unseen(&self) -> Vec<(&str, String)> {
        let webhooks = self.webhooks.iter();
        webhooks
            .filter_map(|(name, tried)| Some((name.as_str(), tried.unseen(name, self.objects)?)))
            .collect()
    }

    /// Returns whether a webhook was never called although objects were tried. A shard may have no objects
    /// for a webhook.
    pub fn has_untried(&self) -> bool {
        self.shard.is_none() && self.webhooks.values().any(|tried| tried.called == 0)
    }

    /// Returns the finding that explains why a check found something about a webhook, if the check does not list its
    /// own finding.
    pub fn cause_of(&self, check: &str, webhook: &str) -> Option<(&CheckReport, &Finding)> {
        self.findings().find(|(_, finding)| {
            let is_it = |it: &Consequence| it.check == check && it.webhooks.contains(webhook);
            finding.consequences.iter().any(is_it)
        })
    }

    /// Returns all findings with their checks.
    pub fn findings(&self) -> impl Iterator<Item = (&CheckReport, &Finding)> {
        self.checks.iter().flat_map(|check| check.findings.iter().map(move |finding| (check, finding)))
    }

    /// Returns the findings that no baseline accepts, with their checks.
    pub fn new_findings(&self) -> impl Iterator<Item = (&CheckReport, &Finding)> {
        self.findings().filter(|(_, finding)| finding.accepted.is_none())
    }

    /// Returns the number of check results with this verdict.
    pub fn count(&self, verdict: Tally) -> usize {
        let results = self.checks.iter().flat_map(|check| &check.results);
        results.filter(|result| result.verdict == verdict).count()
    }
}
