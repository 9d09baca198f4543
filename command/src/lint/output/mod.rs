//! What `admit lint` prints.

mod junit;
mod sarif;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use harness::verify::report::StaleEntry;
use harness::verify::{Check, Severity};
use output::OneLine;
use serde::Serialize;

use crate::Failure;
use crate::baseline::stale;
use crate::verify::output::{self as shared, FailOn, cell, line, word};

/// The version of [`Report`] and of the list. It grows when a member changes its meaning or goes.
pub(super) const VERSION: u32 = 1;
const FAINT: Style = Style::new().dimmed();
const STALE: Style = AnsiColor::Yellow.on_default();

/// The format of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A line for each finding: the file and line, the severity and check, the webhook and field, the message
    Text,
    /// All of it
    Json,
    /// A Markdown table
    Markdown,
    /// JUnit: a suite for each check
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// What was found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) version: u32,
    pub(super) configurations: usize,
    pub(super) findings: Vec<Finding>,
    pub(super) not_checked: Vec<NotChecked>,
    pub(super) skipped: Vec<Skipped>,
    /// Entries of the baseline of which nothing is found any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stale: Vec<StaleEntry>,
    /// The checks that were made.
    #[serde(skip)]
    pub(super) checks: Vec<&'static Check>,
    /// The names of configurations that no webhook could be read from.
    #[serde(skip)]
    pub(super) unreadable: Vec<String>,
}

/// One thing that is wrong.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) severity: Severity,
    /// The file as it was given, or `STDIN`.
    pub(super) file: String,
    pub(super) line: u64,
    /// `CONFIGURATION/WEBHOOK`, or the configuration alone.
    pub(super) webhook: String,
    /// The path of the field; empty for all of the configuration.
    pub(super) field: String,
    pub(super) kind: String,
    pub(super) message: String,
    /// The page of the documentation.
    pub(super) page: &'static str,
    /// Why it is accepted, if a baseline says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accepted: Option<String>,
}

/// What could not be checked.
#[derive(Debug, Serialize)]
pub(super) struct NotChecked {
    pub(super) check: &'static str,
    pub(super) webhook: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
    pub(super) reason: String,
}

/// A check that the user left out.
#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    pub(super) check: &'static str,
    pub(super) reason: String,
}

/// The report in this format.
pub(super) fn document(report: &Report, format: Format, fail_on: FailOn) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(text(report)),
        Format::Json => json(report),
        Format::Markdown => Ok(markdown(report)),
        Format::Junit => junit::document(report, fail_on),
        Format::Sarif => Ok(sarif::document(report)),
    }
}

/// A value as JSON, with the end of the line.
pub(super) fn json(value: &impl Serialize) -> Result<String, Failure> {
    Ok(shared::json(value)? + "\n")
}

impl Report {
    /// The findings that no baseline accepts.
    pub(super) fn new_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.accepted.is_none())
    }

    /// The findings that the baseline accepts, with the reason.
    fn accepted(&self) -> impl Iterator<Item = (&Finding, &str)> {
        self.findings.iter().filter_map(|finding| Some((finding, finding.accepted.as_deref()?)))
    }
}

impl Finding {
    /// `WEBHOOK FIELD: MESSAGE`.
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

fn text(report: &Report) -> String {
    let mut text = String::new();
    for finding in report.new_findings() {
        let style = match finding.severity {
            Severity::Error => AnsiColor::Red.on_default().bold(),
            Severity::Warning => AnsiColor::Yellow.on_default(),
            Severity::Note => FAINT,
        };
        let (severity, check) = (word(finding.severity), finding.check);
        let (place, told) = (format!("{}:{}", finding.file, finding.line), finding.sentence());
        let _ = writeln!(text, "{}: {style}{severity}[{check}]{style:#} {}", OneLine(place), OneLine(told));
    }
    for (finding, reason) in report.accepted() {
        let place = OneLine(format!("{}:{}", finding.file, finding.line));
        let told = OneLine(format!("{} ({reason})", finding.sentence()));
        let _ = writeln!(text, "{place}: {FAINT}accepted[{}]{FAINT:#} {told}", finding.check);
    }
    for entry in &report.stale {
        let place = OneLine(format!("{}:{}", entry.place.file, entry.place.line));
        let _ = writeln!(text, "{place}: {STALE}stale[{}]{STALE:#} {}", entry.check, OneLine(stale(entry)));
    }
    for unchecked in &report.not_checked {
        let place = match (&unchecked.file, unchecked.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            _ => String::new(),
        };
        let (place, told) = (OneLine(place), OneLine(unchecked.sentence()));
        let _ = writeln!(text, "{place}{FAINT}not checked[{}]{FAINT:#} {told}", unchecked.check);
    }
    for Skipped { check, reason } in &report.skipped {
        let _ = writeln!(text, "{FAINT}skipped[{check}]{FAINT:#} {}", OneLine(reason));
    }
    let _ = writeln!(text, "{}", counts(report));
    text
}

fn several(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// `3 findings (1 error, 2 notes), 4 accepted in 2 configurations; 1 not checked, 0 skipped`.
fn counts(report: &Report) -> String {
    let as_bad = |severity| report.new_findings().filter(|finding| finding.severity == severity).count();
    let severities = [Severity::Error, Severity::Warning, Severity::Note];
    let counts = severities.map(|severity| (as_bad(severity), word(severity)));
    let parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| several(*count, word)).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let accepted = match report.accepted().count() {
        0 => String::new(),
        accepted => format!(", {accepted} accepted"),
    };
    format!(
        "{}{parts}{accepted} in {}; {} not checked, {} skipped",
        several(report.new_findings().count(), "finding"),
        several(report.configurations, "configuration"),
        report.not_checked.len(),
        report.skipped.len()
    )
}

fn markdown(report: &Report) -> String {
    let mut text = format!("## admit lint\n\n{}\n", counts(report));
    if report.new_findings().next().is_some() {
        text.push_str("\n| place | severity | check | finding |\n|---|---|---|---|\n");
    }
    for finding in report.new_findings() {
        let place = cell(&format!("{}:{}", finding.file, finding.line));
        let (severity, check, page) = (word(finding.severity), finding.check, finding.page);
        let _ =
            writeln!(text, "| {place} | {severity} | [{check}]({page}) | {} |", cell(&finding.sentence()));
    }
    if report.accepted().next().is_some() {
        text.push_str(
            "\n### Accepted by the baseline\n\n| place | check | finding | reason |\n|---|---|---|---|\n",
        );
    }
    for (finding, reason) in report.accepted() {
        let place = cell(&format!("{}:{}", finding.file, finding.line));
        let (check, page, told) = (finding.check, finding.page, cell(&finding.sentence()));
        let _ = writeln!(text, "| {place} | [{check}]({page}) | {told} | {} |", cell(reason));
    }
    for entry in &report.stale {
        let (file, at, told) = (line(&entry.place.file), entry.place.line, line(&stale(entry)));
        let _ = writeln!(text, "\n> **Stale** {file}:{at}: {told}");
    }
    for unchecked in &report.not_checked {
        let _ = writeln!(text, "\n> **Not checked** {} {}", unchecked.check, line(&unchecked.sentence()));
    }
    for Skipped { check, reason } in &report.skipped {
        let _ = writeln!(text, "\n> **Skipped** {check}: {}", line(reason));
    }
    text
}

#[cfg(test)]
mod tests;
