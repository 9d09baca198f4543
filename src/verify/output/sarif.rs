//! The report of `--sarif`: rules are checks, results are findings, and the place is the webhook's entry.
//!
//! Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0; GitHub's documentation, "SARIF support
//! for code scanning", for what is shown there.

use harness::verify::Severity;
use harness::verify::report::{CheckReport, CheckResult, Finding, Report, Tally};
use serde_json::{Value, json};

use super::{caveats, differences, examples, page, relative, table};

/// The log as JSON.
pub(super) fn document(report: &Report) -> String {
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "admit verify",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": report.checks.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "utf16CodeUnits",
            "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": notifications(report)}],
            "results": results(report),
        }],
    });
    format!("{log:#}\n")
}

fn rule(check: &CheckReport) -> Value {
    let silence = format!("--skip {}=REASON", check.id);
    json!({
        "id": check.id,
        "name": check.title,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.why},
        "help": {
            "text": format!("{}\n\nSource: {}\n\nLeave it out: {silence}", check.why, check.source),
            "markdown": format!("{}\n\nSource: {}\n\nLeave it out: `{silence}`", check.why, check.source),
        },
        "helpUri": page(&check.id),
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
        for result in &check.results {
            for finding in &result.findings {
                results.push(self::result(report, (index, check), result, finding));
            }
        }
    }
    results
}

fn result(
    report: &Report,
    (index, check): (usize, &CheckReport),
    result: &CheckResult,
    finding: &Finding,
) -> Value {
    let mut text = format!("{}: {}", result.webhook, finding.message);
    if let Some(examples) = examples(finding) {
        text = format!("{text}\n{examples}");
    }
    for caveat in caveats(report, &result.webhook) {
        text = format!("{text}\n{caveat}");
    }
    if !finding.differences.is_empty() {
        text = format!("{text}\n{}", differences(&finding.differences).trim_end());
    }
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": result.webhook}]});
    if let Some(place) = report.location(result) {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": uri(&relative(&place.file))},
            "region": {"startLine": place.line},
        });
    }
    json!({
        "ruleId": check.id,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": text},
        "locations": [location],
        // Neither the object nor the line: a finding is the same one after both have changed.
        "partialFingerprints": {"admitFinding/v1": format!("{} {} {}", check.id, result.webhook, finding.kind)},
        "occurrenceCount": finding.count.max(1),
    })
}

/// What nobody may take for passed.
fn notifications(report: &Report) -> Vec<Value> {
    let notification = |check: &CheckReport, level: &str, text: String| json!({"level": level, "message": {"text": text}, "associatedRule": {"id": check.id}});
    let mut notifications = Vec::new();
    for check in &report.checks {
        if let Some(reason) = &check.skipped {
            notifications.push(notification(check, "note", format!("{} was skipped: {reason}", check.id)));
        }
        for result in check.results.iter().filter(|result| result.verdict == Tally::NotChecked) {
            let reason = table::most(&result.not_checked);
            let text = format!("{} could not be checked for {}: {reason}", check.id, result.webhook);
            notifications.push(notification(check, "warning", text));
        }
    }
    notifications
}

/// A relative path as a URI.
fn uri(path: &str) -> String {
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
