//! Creates the SARIF report. Its rules are the checks, and its results are the findings with their lines.
//!
//! Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.

use harness::json::set;
use harness::verify::Check;
use serde_json::{Value, json};

use super::{Finding, Report};
use crate::baseline::stale;
use crate::github::relative;
use crate::lint::page;
use crate::verify::output::{sarif, word};

/// Returns the SARIF log as JSON.
pub(super) fn document(report: &Report) -> String {
    let checks = report.checks.as_slice();
    let notification = |check: &str, text: String| json!({"level": "note", "message": {"text": text}, "associatedRule": {"id": check}});
    let unchecked = report.not_checked.iter().map(|unchecked| {
        notification(
            unchecked.check,
            format!("{} could not be checked for {}", unchecked.check, unchecked.sentence()),
        )
    });
    let skipped = report.skipped.iter().map(|skipped| {
        notification(skipped.check, format!("{} was skipped: {}", skipped.check, skipped.reason))
    });
    let stale = report.stale.iter().map(
        |entry| json!({"level": "warning", "message": {"text": stale(entry)}, "associatedRule": {"id": entry.check}}),
    );
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "admit lint",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": checks.iter().map(|check| rule(check)).collect::<Vec<_>>(),
            }},
            "columnKind": "utf16CodeUnits",
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": stale.chain(unchecked).chain(skipped).collect::<Vec<_>>(),
            }],
            "results": report.findings.iter().map(|finding| result(finding, checks)).collect::<Vec<_>>(),
        }],
    });
    output::json(&format!("{log:#}\n")).into_owned()
}

fn rule(check: &'static Check) -> Value {
    let help = format!("{}\n\n{}\n\nSource: {}\n\n{}", check.help, check.why, check.source, page(check));
    json!({
        "id": check.id,
        "name": check.title,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.why},
        "help": {"text": help, "markdown": help},
        "helpUri": page(check),
        "defaultConfiguration": {"level": word(check.severity)},
        "properties": {"tags": ["kubernetes", "admission-webhook"]},
    })
}

fn result(finding: &Finding, checks: &[&'static Check]) -> Value {
    let name = format!("{} {}", finding.webhook, finding.field);
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": name.trim()}]});
    // Standard input is not an artifact.
    if finding.file != "STDIN" {
        let uri = sarif::uri(&relative(&finding.file));
        let physical = json!({"artifactLocation": {"uri": uri}, "region": {"startLine": finding.line}});
        set(&mut location, &["physicalLocation"], physical);
    }
    let mut result = json!({
        "ruleId": finding.check,
        "ruleIndex": checks.iter().position(|check| check.id == finding.check),
        "level": word(finding.severity),
        "message": {"text": finding.advice()},
        "locations": [location],
        // The fingerprint excludes the line, so that a finding stays the same if it moves.
        "partialFingerprints": {
            "admitFinding/v1": format!("{} {} {} {}", finding.check, finding.webhook, finding.field, finding.kind),
        },
    });
    if let Some(reason) = &finding.accepted {
        let suppression = json!({"kind": "external", "status": "accepted", "justification": reason});
        set(&mut result, &["suppressions"], json!([suppression]));
    }
    result
}
