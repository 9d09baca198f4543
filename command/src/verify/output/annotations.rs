//! Formats findings as GitHub workflow commands. GitHub shows them next to the lines of the configuration.

use std::fmt::Write as _;

use harness::verify::Severity;
use harness::verify::report::{Location, Report, StaleEntry};

use super::{details, help, locations};
use crate::baseline::stale;
use crate::check_help::is_verbose_note;
use crate::github::{check_title, command, relative};

/// Returns a workflow command for each finding, one per line.
pub(super) fn commands(report: &Report) -> String {
    let mut text = String::new();
    for (check, finding) in report.new_findings() {
        if is_verbose_note(&check.id, &finding.kind) {
            continue;
        }
        let mut places = locations(report, finding).into_iter();
        let place = places.next().map(|place| (place.file.as_str(), place.line));
        let title = check_title(&check.id, &check.title);
        let mut message = format!("{}: {}", finding.webhook(), finding.message);
        if let Some(help) = help(check, finding) {
            let _ = write!(message, "\n{help}");
        }
        for detail in details(report, check, finding) {
            let _ = write!(message, "\n{detail}");
        }
        for Location { file, line } in places {
            let _ = write!(message, "\nalso at {}:{line}", relative(file));
        }
        text.push_str(&command(finding.severity, place, &title, &message));
    }
    text + &stale_entries(&report.stale)
}

/// Returns the commands for baseline entries that do not match a finding.
pub(crate) fn stale_entries(entries: &[StaleEntry]) -> String {
    let entries = entries.iter().map(|entry| {
        let place = Some((entry.place.file.as_str(), entry.place.line));
        command(Severity::Warning, place, "stale baseline entry", &stale(entry))
    });
    entries.collect()
}
