//! Creates the report for `--sarif`. Rules are checks, results are findings, and locations are webhook entries.
//!
//! Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0; GitHub's documentation, "SARIF support
//! for code scanning", for what is shown there.

use std::collections::BTreeMap;

use harness::json::set;
use harness::verify::Severity;
use harness::verify::report::{CheckReport, Finding, Location, Report, Tally};
use serde_json::{Value, json};

use super::{details, differences, help};
use crate::baseline::stale;
use crate::check_help;
use crate::github::relative;
use crate::verdict::most;

/// Returns the SARIF log as JSON.
pub(super) fn document(report: &Report) -> String {
    let is_complete = !report.interrupted && report.incomplete().next().is_none();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "admit verify",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": report.checks.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "utf16CodeUnits",
            "invocations": [{
                "executionSuccessful": is_complete,
                "toolExecutionNotifications": notifications(report),
            }],
            "results": results(report),
        }],
    });
    output::json(&format!("{log:#}\n")).into_owned()
}

fn rule(check: &CheckReport) -> Value {
    let advice = if check.help.is_empty() { String::new() } else { format!("{}\n\n", check.help) };
    let text = |quote: &str| {
        format!(
            "{advice}{}\n\nSource: {}\n\nIf the webhook is meant to behave like this, accept the finding in a \
             baseline ({quote}--baseline FILE{quote}) or skip the check ({quote}--skip {}=REASON{quote}).",
            check.why, check.source, check.id
        )
    };
    json!({
        "id": check.id,
        "name": check.title,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.why},
        "help": {"text": text(""), "markdown": text("`")},
        "helpUri": check_help::url(&check.id),
        "defaultConfiguration": {"level": level(check.severity), "enabled": check.skipped.is_none()},
        "properties": {"tags": ["kubernetes", "admission-webhook"]},
    })
}

fn level(severity: Severity) -> &'static str {
    super::word(severity)
}

fn results(report: &Report) -> Vec<Value> {
    let mut results = Vec::new();
    for (index, check) in report.checks.iter().enumerate() {
        results.extend(check.findings.iter().map(|finding| result(report, (index, check), finding)));
    }
    results
}

fn result(report: &Report, (index, check): (usize, &CheckReport), finding: &Finding) -> Value {
    let webhook = finding.webhook();
    let mut text = format!("{webhook}: {}", finding.message);
    for more in help(check, finding).into_iter().chain(details(report, check, finding)) {
        text = format!("{text}\n{more}");
    }
    if !finding.differences.is_empty() {
        text = format!("{text}\n{}", differences(&finding.differences).trim_end());
    }
    let places: BTreeMap<&str, &Location> = report.places(finding).collect();
    let location = |webhook: &str| {
        let mut location = json!({"logicalLocations": [{"fullyQualifiedName": webhook}]});
        if let Some(place) = places.get(webhook) {
            let uri = uri(&relative(&place.file));
            let physical = json!({"artifactLocation": {"uri": uri}, "region": {"startLine": place.line}});
            set(&mut location, &["physicalLocation"], physical);
        }
        location
    };
    let mut result = json!({
        "ruleId": check.id,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": text},
        "locations": [location(webhook)],
        // The fingerprint excludes the object and the line, so that a finding stays the same when they change.
        "partialFingerprints": {"admitFinding/v1": fingerprint(check, finding)},
        "occurrenceCount": finding.count().max(1),
    });
    if let Some(reason) = &finding.accepted {
        let suppression = json!({"kind": "external", "status": "accepted", "justification": reason});
        set(&mut result, &["suppressions"], json!([suppression]));
    }
    // One fix may suffice for all webhooks, while several `locations` would mean that each of them needs a fix.
    let others: Vec<Value> = finding.webhooks.keys().skip(1).map(|webhook| location(webhook)).collect();
    if !others.is_empty() {
        set(&mut result, &["relatedLocations"], others);
    }
    result
}

/// Returns the fingerprint of a finding. It identifies the finding across runs.
fn fingerprint(check: &CheckReport, finding: &Finding) -> String {
    let fingerprint = format!("{} {} {}", check.id, finding.webhook(), finding.kind);
    let fields: Vec<&str> = finding.fields.iter().map(String::as_str).collect();
    if fields.is_empty() { fingerprint } else { format!("{fingerprint}: {}", fields.join(", ")) }
}

/// Returns notifications about checks that readers must not consider passed.
fn notifications(report: &Report) -> Vec<Value> {
    let notification = |check: &CheckReport, level: &str, text: String| json!({"level": level, "message": {"text": text}, "associatedRule": {"id": check.id}});
    let mut notifications: Vec<Value> = report
        .stale
        .iter()
        .map(|entry| json!({"level": "warning", "message": {"text": stale(entry)}, "associatedRule": {"id": entry.check}}))
        .collect();
    for check in &report.checks {
        if let Some(reason) = &check.skipped {
            notifications.push(notification(check, "note", format!("{} was skipped: {reason}", check.id)));
        }
        for result in check.results.iter().filter(|result| result.verdict == Tally::NotChecked) {
            let reason = most(&result.not_checked);
            let text = format!("{} could not be checked for {}: {reason}", check.id, result.webhook);
            notifications.push(notification(check, "warning", text));
        }
    }
    notifications
}

/// Converts a path to a URI.
pub(crate) fn uri(path: &str) -> String {
    use std::fmt::Write as _;
    let mut uri = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    if path.starts_with('/') { format!("file://{uri}") } else { uri }
}
