//! Creates the remarks of a report: warnings and notes about the run as a whole.

use std::collections::{BTreeMap, BTreeSet};

use harness::verify::report::{Remark, Report};
use harness::verify::{NEVER_CHANGED, NONE_CHANGED, Severity, send};

use super::text::{CheckCounts, several_objects};
use crate::ExitCode;
use crate::baseline::stale;
use crate::diagnostic::several;
use crate::explain_error::{self, WebhookPlace};
use crate::failure_cause::brief;
use crate::verdict::{self, most};
use crate::verify::objects::NOT_REPRESENTATIVE;

/// The maximum number of checks to list by ID; any other checks are only counted.
pub(super) const MAX_IDS: usize = 10;

/// The ID of the check that examines every response.
const ENVELOPE: &str = "V22";

/// Returns all remarks, for the formats that do not have other places for them.
///
/// They include the reasons for the exit status `code`.
pub(super) fn all(report: &Report, code: ExitCode) -> Vec<Remark> {
    let mut all = Vec::new();
    all.extend(interrupted(report));
    all.extend(limits(report));
    all.extend(left_out(report));
    for entry in &report.stale {
        let message = format!("{} ({}:{})", stale(entry), entry.place.file, entry.place.line);
        all.push(Remark { severity: Severity::Warning, message, help: Vec::new() });
    }
    let unexercised = CheckCounts::new(report, false).unexercised;
    if !unexercised.is_empty() {
        let text =
            format!("{} not exercised: {}", listed(&unexercised), unexercised_reason(report, &unexercised));
        all.push(Remark::new(Severity::Note, &text));
    }
    if code == ExitCode::NotChecked {
        for (checks, webhook, reason) in incomplete(report) {
            let message = format!("{} could not be completed for {webhook}: {reason}", listed(&checks));
            all.push(Remark { severity: Severity::Warning, message, help: Vec::new() });
        }
    }
    all
}

/// Returns the remark about a run that was interrupted.
pub(super) fn interrupted(report: &Report) -> Option<Remark> {
    report.interrupted.then(|| Remark {
        severity: Severity::Warning,
        message: format!("the run was interrupted after {}", several(report.objects, "object")),
        help: vec!["this report contains only the findings so far".to_owned()],
    })
}

/// Returns the remarks about conditions that limit the whole report.
pub(super) fn limits(report: &Report) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut remark = |severity: Severity, text: &str| remarks.push(Remark::new(severity, text));
    for (reason, webhooks) in &report.unreached {
        remark(Severity::Warning, &format!("could not reach {}: {reason}", webhooks.join(", ")));
    }
    for (webhook, reason) in report.unanswered() {
        remarks.push(unanswered(report, webhook, reason));
    }
    for (webhook, count, reason) in report.invalid_responses() {
        let count = several(count, "call");
        let cause = brief(report, webhook, reason);
        let has_run = report.checks.iter().any(|check| check.id == ENVELOPE && check.skipped.is_none());
        let help = if has_run {
            Vec::new()
        } else {
            vec!["run with --check V22 to examine the responses".to_owned()]
        };
        let message = format!("{webhook}: {count} did not return a valid response: {cause}");
        remarks.push(Remark { severity: Severity::Warning, message, help });
    }
    remarks
        .extend(report.failed_calls().map(|(webhook, count, reason)| failed(report, webhook, count, reason)));
    let mut remark = |severity: Severity, text: &str| remarks.push(Remark::new(severity, text));
    for (webhook, what) in report.unseen() {
        remark(Severity::Warning, &format!("{webhook}: {what}"));
    }
    for (webhook, _) in report.webhooks.iter().filter(|(_, tried)| tried.cannot_change()) {
        let what = "the rules match only DELETE, and the API server rejects patches on DELETE: the webhook cannot change \
                    an object";
        remark(Severity::Note, &format!("{webhook}: {what}"));
    }
    for request in &report.unserved {
        let what = format!("the API server behind the webhooks does not serve {request}");
        remark(Severity::Warning, &what);
    }
    for (webhook, caveat) in &report.caveats {
        remark(Severity::Note, &format!("{webhook}: {caveat}"));
    }
    let mut dry_runs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (webhook, reason) in verdict::unobserved_dry_runs(report) {
        dry_runs.entry(reason).or_default().push(webhook);
    }
    for (reason, webhooks) in dry_runs {
        let webhooks = webhooks.join(", ");
        remark(Severity::Note, &format!("{webhooks}: dry runs were not checked: {reason}"));
    }
    remarks
}

/// Returns the remarks about objects that were not sent. Those about objects of the user are warnings.
pub(super) fn left_out(report: &Report) -> impl Iterator<Item = Remark> {
    report.left_out.iter().map(|(reason, count)| {
        let severity = if reason == NOT_REPRESENTATIVE { Severity::Note } else { Severity::Warning };
        let mut remark = Remark::new(severity, &format!("{} skipped: {reason}", several_objects(*count)));
        if reason.starts_with("no resource has the kind ") {
            let help = "correct its apiVersion or kind, or pass its CustomResourceDefinition with -c";
            remark.help.push(help.to_owned());
        }
        remark
    })
}

/// Returns the remark about a webhook whose calls all failed, most of them for `reason`.
fn unanswered(report: &Report, webhook: &str, reason: &str) -> Remark {
    let cause = brief(report, webhook, reason);
    let url = report.addresses.get(webhook).filter(|url| !cause.contains(url.as_str()));
    let at = url.map(|url| format!(" at {url}")).unwrap_or_default();
    let message = format!("{webhook}: the webhook did not return a valid response to any call{at}: {cause}");
    let help = match help_on_failure(report, &cause) {
        "" => help_on_reason(report, webhook, reason),
        help => help.to_owned(),
    };
    let help = Some(help).filter(|help| !help.is_empty()).into_iter().collect();
    Remark { severity: Severity::Warning, message, help }
}

/// Returns the remark about a webhook that responded, but not to `count` calls, most of them for `reason`.
fn failed(report: &Report, webhook: &str, count: u64, reason: &str) -> Remark {
    let cause = brief(report, webhook, reason);
    let object = report.webhooks.get(webhook).and_then(|tried| tried.failed_objects.get(reason));
    let first = object.map(|object| format!(", first for {object}")).unwrap_or_default();
    let message = format!("{webhook}: {} failed without a response{first}: {cause}", several(count, "call"));
    let help =
        Some(help_on_reason(report, webhook, reason)).filter(|help| !help.is_empty()).into_iter().collect();
    Remark { severity: Severity::Warning, message, help }
}

/// Returns the advice of `explain-error` about a failed call; may be empty.
fn help_on_reason(report: &Report, webhook: &str, reason: &str) -> String {
    let message = format!("failed calling webhook \"{webhook}\": {reason}");
    let place = report.addresses.get(webhook).map_or(WebhookPlace::Unknown, |url| WebhookPlace::of_url(url));
    explain_error::advice(&message, place).map(|advice| advice.help()).unwrap_or_default()
}

/// Returns the advice about options for a webhook that never returned a valid response; may be empty.
///
/// The advice does not name options that the user passed.
fn help_on_failure(report: &Report, cause: &str) -> &'static str {
    let has_ca_file = report.has_option("--ca-file");
    if cause.contains("connection refused") {
        if report.has_option("--wait") {
            "the webhook listened before the checks began: check whether it stopped"
        } else {
            "start the webhook before the run, or add --wait SECONDS to wait until it listens"
        }
    } else if cause.contains("certificate signed by unknown authority") {
        if has_ca_file {
            "the file passed with --ca-file must contain the certificate of the authority that signed the webhook's certificate"
        } else {
            "correct the caBundle of the configuration, or pass --ca-file FILE if it is filled in during deployment, for \
             example by cert-manager"
        }
    } else if cause.contains("unable to load root certificates") {
        if has_ca_file {
            "the file passed with --ca-file must contain a certificate in PEM format"
        } else {
            "the caBundle of the configuration is not a PEM certificate; if it is a placeholder that cert-manager replaces \
             in a cluster, pass --ca-file FILE with the certificate of the webhook's authority"
        }
    } else if cause.contains("expected response.uid") {
        "copy request.uid to response.uid, also in denials and in responses about errors"
    } else {
        ""
    }
}

/// Returns what did not occur in the run although the checks `ids` judge it, and what to do.
pub(super) fn unexercised_reason(report: &Report, ids: &[&str]) -> String {
    let checks = report.checks.iter().filter(|check| ids.contains(&check.id.as_str()));
    let results = checks.flat_map(|check| &check.results);
    let reasons: BTreeSet<&str> =
        results.flat_map(|result| result.not_exercised.keys()).map(String::as_str).collect();
    let lacks = |word: &str| reasons.iter().any(|reason| reason.contains(word));
    let objects = match (lacks("denied"), lacks("patch") || lacks("changed")) {
        (true, true) => "objects that the webhook denies and objects that it changes",
        (true, false) => "an object that the webhook denies",
        (false, _) => "objects that the webhook changes",
    };
    let is_redundant = |reason: &str| reason == NONE_CHANGED && reasons.contains(NEVER_CHANGED);
    let reasons: Vec<&str> = reasons.iter().copied().filter(|reason| !is_redundant(reason)).collect();
    // At most one reason is about denials, and one about changes.
    let advice = if report.has_option("-f") {
        send(objects, true)
    } else {
        format!("in a separate run, use --check {} and -f with {objects}", ids.join(","))
    };
    format!("{}; {advice}", reasons.join(" and "))
}

/// Returns the reasons why the run is incomplete: the checks, the webhook, and the reason with its first object.
pub(super) fn incomplete(report: &Report) -> Vec<(Vec<&str>, &str, String)> {
    let mut reasons: Vec<(Vec<&str>, &str, String)> = Vec::new();
    for (check, result) in report.incomplete() {
        let most = most(&result.not_checked);
        let object = result.not_checked_objects.get(&most);
        let first = object.map(|object| format!(" (first for {object})")).unwrap_or_default();
        let reason = format!("{}{first}", brief(report, &result.webhook, &most));
        let same = |known: &&mut (Vec<&str>, &str, String)| known.1 == result.webhook && known.2 == reason;
        match reasons.iter_mut().find(same) {
            Some((checks, ..)) => checks.push(&check.id),
            None => reasons.push((vec![&check.id], &result.webhook, reason)),
        }
    }
    reasons
}

/// Returns the IDs of checks, or their number if there are many.
pub(super) fn listed(checks: &[&str]) -> String {
    if checks.len() > MAX_IDS { several(checks.len(), "check") } else { checks.join(", ") }
}
