//! Formats findings as GitHub workflow commands, which show them next to the lines of the configuration.
//!
//! Source: GitHub's documentation, "Workflow commands for GitHub Actions"; actions/toolkit packages/core/src/command.ts
//! for what is escaped.

use std::fmt::Write as _;

use harness::verify::Severity;
use harness::verify::report::Report;

use super::{details, relative};
use crate::baseline::stale;

/// Returns a workflow command for each finding, each on a line.
pub(super) fn commands(report: &Report) -> String {
    let mut text = String::new();
    for (check, finding) in report.new_findings() {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let place = report.places(finding).next().map_or_else(String::new, |(_, location)| {
            format!("file={},line={},", property(&relative(&location.file)), location.line)
        });
        let title = property(&format!("{} {}", check.id, check.title));
        let mut message = format!("{}: {}", finding.webhook(), finding.message);
        for detail in details(report, finding) {
            let _ = write!(message, "\n{detail}");
        }
        let _ = writeln!(text, "::{command} {place}title={title}::{}", data(&message));
    }
    for entry in &report.stale {
        let (file, line) = (property(&relative(&entry.place.file)), entry.place.line);
        let _ = writeln!(
            text,
            "::warning file={file},line={line},title=stale baseline entry::{}",
            data(&stale(entry))
        );
    }
    text
}

fn data(text: &str) -> String {
    output::lines(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
