//! Formats and prints the report of `admit lint`.

mod junit;
pub(super) mod markdown;
mod sarif;
mod text;

use harness::verify::report::StaleEntry;
use harness::verify::{Check, Severity};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::baseline;
use crate::check_help::{is_verbose_note, linted};
use crate::diagnostic::{self, several};
use crate::machine_readable;
use crate::verify::output::annotations::stale_entries;
use crate::verify::output::{FailOn, Format};
use crate::{Failure, github, screen};

/// The result of a run of `admit lint`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) version: u32,
    pub(super) configurations: usize,
    pub(super) findings: Vec<Finding>,
    pub(super) not_checked: Vec<NotChecked>,
    pub(super) skipped: Vec<Skipped>,
    /// The entries of the baseline that no longer match a finding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stale: Vec<StaleEntry>,
    /// The number of notes that only `-v` shows and that were removed from the findings.
    #[serde(skip)]
    pub(super) hidden_notes: usize,
    /// The names of the configurations, in file order.
    #[serde(skip)]
    pub(super) names: Vec<String>,
    /// What the checks are about: `configuration`, or `object` if there are policies or bindings.
    #[serde(skip)]
    pub(super) unit: &'static str,
    /// The checks that ran.
    #[serde(skip)]
    pub(super) checks: Vec<&'static Check>,
    /// The IDs of the checks that do not apply to any of the objects.
    #[serde(skip)]
    pub(super) not_applicable: BTreeSet<&'static str>,
    /// The names of configurations whose webhooks could not be read.
    #[serde(skip)]
    pub(super) unreadable: Vec<String>,
}

/// A problem that a check found in a configuration, with its location.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) severity: Severity,
    /// The file path as specified by the user, or `STDIN`.
    pub(super) file: String,
    pub(super) line: u64,
    /// The webhook as `CONFIGURATION/WEBHOOK`, or only the configuration for a finding about the whole configuration.
    pub(super) webhook: String,
    /// The path of the field; empty for the whole configuration.
    pub(super) field: String,
    pub(super) kind: String,
    pub(super) message: String,
    /// The name of the other policy, if the finding is about a pair of policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) other: Option<String>,
    /// The reason why the finding matters.
    #[serde(skip)]
    pub(super) why: &'static str,
    /// The advice on how to fix the finding.
    pub(super) help: Cow<'static, str>,
    /// The page of the Kubernetes documentation about the check.
    pub(super) page: &'static str,
    /// The text of the line in the file.
    #[serde(skip)]
    pub(super) source: Option<String>,
    /// The reason in the baseline for accepting the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accepted: Option<String>,
    /// Whether this run adds the finding to the baseline.
    #[serde(skip)]
    pub(super) added: bool,
}

/// A check that could not be completed.
#[derive(Debug, Serialize)]
pub(super) struct NotChecked {
    pub(super) check: &'static str,
    pub(super) webhook: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
    pub(super) reason: String,
    /// Whether the reason is that the API server rejects the configuration.
    #[serde(skip)]
    pub(super) is_rejected: bool,
}

/// A check that the user skipped.
#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    pub(super) check: &'static str,
    pub(super) reason: String,
}

/// Prints the report in `format`. If `lists_checks` is set, the text format includes the result of each check.
pub(super) fn print(
    report: &Report,
    format: Format,
    fail_on: FailOn,
    lists_checks: bool,
) -> Result<(), Failure> {
    if format == Format::Text {
        return screen::print(&text::text(report, lists_checks));
    }
    screen::print_document(&document(report, format, fail_on)?)
}

/// Formats the report. Only the format JUnit depends on `fail_on`.
pub(super) fn document(report: &Report, format: Format, fail_on: FailOn) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(text::text(report, false)),
        Format::Json => machine_readable::json(report),
        Format::Yaml => machine_readable::yaml(report),
        Format::Markdown => Ok(markdown::summary(report)),
        Format::Junit => junit::document(report, fail_on),
        Format::Sarif => Ok(sarif::document(report)),
    }
}

/// Returns a GitHub workflow command for each finding, one per line.
pub(super) fn annotations(report: &Report) -> String {
    let shown = report.new_findings().filter(|finding| !finding.is_verbose_note());
    let findings = shown.map(|finding| {
        let title = match linted(finding.check) {
            Some(check) => github::check_title(check.id, check.title),
            None => finding.check.to_owned(),
        };
        // Standard input is not a file of the repository.
        let place = (finding.file != "STDIN").then_some((finding.file.as_str(), finding.line));
        github::command(finding.severity, place, &title, &finding.advice())
    });
    findings.collect::<String>() + &stale_entries(&report.stale)
}

impl Report {
    /// Returns the findings that the baseline does not accept.
    pub(super) fn new_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.accepted.is_none())
    }

    /// Removes and counts the notes that only `-v` shows.
    pub(super) fn hide_verbose_notes(&mut self) {
        let count = self.findings.len();
        self.findings.retain(|finding| !finding.is_verbose_note());
        self.hidden_notes = count - self.findings.len();
    }

    /// Returns the findings that this run adds to the baseline.
    fn added(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.added)
    }

    /// Returns the findings that the baseline accepts, each with its reason.
    fn accepted(&self) -> impl Iterator<Item = (&Finding, &str)> {
        self.findings.iter().filter_map(|finding| Some((finding, finding.accepted.as_deref()?)))
    }
}

impl Finding {
    /// Returns whether only `-v` shows the finding.
    pub(super) fn is_verbose_note(&self) -> bool {
        is_verbose_note(self.check, &self.kind)
    }

    /// Formats a finding as `WEBHOOK FIELD: MESSAGE`, followed by the advice on how to fix it on another line.
    fn advice(&self) -> String {
        format!("{}\nhelp: {}", self.sentence(), self.help)
    }

    /// Formats a finding as `WEBHOOK FIELD: MESSAGE`.
    fn sentence(&self) -> String {
        let about = [self.webhook.as_str(), self.field.as_str()];
        let about: Vec<&str> = about.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}: {}", about.join(" "), self.message)
    }
}

impl NotChecked {
    fn sentence(&self) -> String {
        if self.webhook.is_empty() {
            self.reason.clone()
        } else {
            format!("{}: {}", self.webhook, self.reason)
        }
    }
}

/// Returns a summary such as `3 findings (1 error, 2 notes), 4 accepted in 2 configurations`.
fn counts(report: &Report) -> String {
    let parts = diagnostic::counts(report.new_findings().map(|finding| finding.severity));
    let parts = if parts.is_empty() { String::new() } else { format!(" ({parts})") };
    let accepted = baseline::counts(report.accepted().count(), report.added().count());
    let hidden = crate::diagnostic::hidden_notes(report.hidden_notes);
    format!(
        "{}{parts}{accepted} in {}{hidden}",
        several(report.new_findings().count(), "finding"),
        several(report.configurations, report.unit),
    )
}

#[cfg(test)]
mod tests;
