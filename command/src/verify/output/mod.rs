//! Writes reports and determines the exit status.

pub(crate) mod annotations;
mod junit;
mod markdown;
mod order;
mod remarks;
pub(crate) mod sarif;
mod table;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

use harness::verify::report::{CheckReport, Finding, Location, Report, Tally};
use harness::verify::{Severity, without_positions};

use self::markdown::differences;
use super::VERIFY;
use crate::baseline::{Accepting, BaselineOptions};
use crate::check_help::is_verbose_note;
pub(crate) use crate::diagnostic::word;
use crate::github;
use crate::html_report::HtmlFile;
use crate::machine_readable::{json, yaml};
use crate::report_file::{ReportFile, SummaryFile};
use crate::{ExitCode, Failure, screen};

/// The options for the output of a report.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Outputs {
    /// Print the report in this format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(super) output: Format,

    /// List every check with its result, including those that passed, do not apply, or could not run, and show minor
    /// notes
    #[arg(short, long, visible_alias = "checks")]
    pub(super) verbose: bool,

    /// Write a JUnit report with a suite for each check and a case for each webhook
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Write a SARIF 2.1.0 report for code scanning
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,

    /// Write an HTML page with the verdicts, the findings, and all results
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write a summary in Markdown [default in a GitHub workflow: `$GITHUB_STEP_SUMMARY`]
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,

    #[command(flatten)]
    baseline: BaselineOptions,

    /// Show the values of Secrets on standard output, in reports, and in proofs instead of masking them
    #[arg(long)]
    show_secrets: bool,

    /// Exit with status 1 only for findings of at least this severity. With `never`, a run that completes exits with
    /// status 0, even if there are findings or checks that could not be completed
    #[arg(long, value_enum, value_name = "SEVERITY", default_value = "warning")]
    fail_on: FailOn,
}

/// The format of a report on standard output. `admit lint` has the same formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text.
    Text,
    /// The complete report as JSON.
    Json,
    /// The complete report as YAML.
    Yaml,
    /// A summary in Markdown.
    Markdown,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit: a suite for each check.
    Junit,
}

/// The findings that count as failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    Note,
    Warning,
    Error,
    Never,
}

impl FailOn {
    pub(crate) fn includes(self, severity: Severity) -> bool {
        match self {
            Self::Note => true,
            Self::Warning => severity >= Severity::Warning,
            Self::Error => severity >= Severity::Error,
            Self::Never => false,
        }
    }

    fn exit_code(self, report: &Report) -> ExitCode {
        if self == Self::Never {
            return ExitCode::Ok;
        }
        let mut counted =
            report.new_findings().filter(|(check, finding)| !is_verbose_note(&check.id, &finding.kind));
        if counted.any(|(_, finding)| self.includes(finding.severity)) {
            return ExitCode::Failed;
        }
        if report.has_untried() {
            return ExitCode::NothingRun;
        }
        if report.incomplete().next().is_some() {
            return ExitCode::NotChecked;
        }
        let ran = [Tally::Passed, Tally::Found, Tally::NotExercised];
        if ran.into_iter().all(|tally| report.count(tally) == 0) {
            return ExitCode::NothingRun;
        }
        ExitCode::Ok
    }
}

/// The output files. They are created before the first call, so that an unwritable path is reported immediately.
#[derive(Debug)]
pub(super) struct Files {
    junit: Option<ReportFile>,
    sarif: Option<ReportFile>,
    html: Option<HtmlFile>,
    summary: SummaryFile,
    baseline: Accepting,
}

impl Outputs {
    /// Masks the values of Secrets unless the user requests them. Must be called before the report is written.
    pub(super) fn mask(&self, report: &mut Report) {
        if !self.show_secrets {
            report.mask_secrets();
        }
    }

    /// Creates the files of the output options, so that a file that cannot be written fails before the checks run.
    pub(super) fn create(&self) -> Result<Files, Failure> {
        Ok(Files {
            junit: ReportFile::create_if_requested(self.junit.as_deref())?,
            sarif: ReportFile::create_if_requested(self.sarif.as_deref())?,
            html: HtmlFile::create(self.html.as_deref())?,
            summary: SummaryFile::create(self.summary.as_deref())?,
            baseline: self.baseline.open(&VERIFY)?,
        })
    }

    /// Applies the baseline, writes all reports, and returns the exit status.
    pub(super) fn write(&self, files: Files, report: &mut Report) -> Result<ExitCode, Failure> {
        files.baseline.apply(report)?;
        let code = self.fail_on.exit_code(report);
        report.remarks = remarks::all(report, code);
        let complete = match self.output {
            Format::Json => Some(json(report)?),
            Format::Yaml => Some(yaml(report)?),
            Format::Text | Format::Markdown | Format::Sarif | Format::Junit => None,
        };
        let hidden = if self.verbose { 0 } else { hide_verbose_notes(report) };
        let report = &*report;
        // A file that cannot be written does not prevent the other reports.
        let junit = files.junit.map_or(Ok(()), |file| file.write(&junit::document(report, self.fail_on)?));
        let sarif = files.sarif.map_or(Ok(()), |file| file.write(&sarif::document(report)));
        let html = files.html.map_or(Ok(()), |file| file.write("admit verify", &json(report)?));
        if github::annotates() {
            // A workflow reads both streams, and standard output may contain a report.
            screen::prompt(&annotations::commands(report));
        }
        let summary = files.summary.write(|| markdown::summary(report, self.fail_on));
        match self.output {
            Format::Text => screen::print(&text::text(report, self.verbose, code, hidden))?,
            Format::Json | Format::Yaml => screen::print_document(&complete.unwrap_or_default())?,
            Format::Markdown => screen::print_document(&markdown::summary(report, self.fail_on))?,
            Format::Sarif => screen::print_document(&sarif::document(report))?,
            Format::Junit => screen::print_document(&junit::document(report, self.fail_on)?)?,
        }
        for written in [junit, sarif, html, summary] {
            written?;
        }
        Ok(code)
    }
}

/// Removes the notes that only `-v` shows, and returns their number.
fn hide_verbose_notes(report: &mut Report) -> usize {
    let mut hidden = 0;
    for check in &mut report.checks {
        let count = check.findings.len();
        check.findings.retain(|finding| !is_verbose_note(&check.id, &finding.kind));
        if check.findings.len() == count {
            continue;
        }
        hidden += count - check.findings.len();
        for result in &mut check.results {
            let has_finding = check.findings.iter().any(|it| it.webhooks.contains_key(&result.webhook));
            if result.verdict == Tally::Found && !has_finding {
                result.verdict = Tally::Passed;
            }
        }
    }
    hidden
}

/// Returns `the same for A, B` for the other webhooks with the same finding, or `None` if there are none.
fn others(finding: &Finding) -> Option<String> {
    let others: Vec<&str> = finding.webhooks.keys().skip(1).map(String::as_str).collect();
    (!others.is_empty()).then(|| format!("the same for {}", others.join(", ")))
}

/// Returns the caveats that apply to a finding, one sentence each.
fn caveats(report: &Report, finding: &Finding) -> Vec<String> {
    let told = |webhook: &String| {
        let told = |(name, caveat): (&str, &str)| {
            if name == finding.webhook() { caveat.to_owned() } else { format!("{name}: {caveat}") }
        };
        report.caveats(webhook).map(told).collect::<Vec<String>>()
    };
    finding.webhooks.keys().flat_map(told).collect()
}

/// Returns the objects with a finding, such as `A, B and 3 more`, or `None` for a finding without objects.
fn examples(finding: &Finding) -> Option<String> {
    if finding.examples.is_empty() {
        return None;
    }
    // Webhooks share the objects of a finding, so their counts must not be added.
    let objects = finding.webhooks.values().copied().max().unwrap_or_default();
    let more = objects.saturating_sub(finding.examples.len() as u64);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Some(format!("{}{more}", finding.examples.join(", ")))
}

/// Returns the other checks that fail for the same reason as a finding of `check`, such as `V04, V08`, or `None` if there
/// are none.
fn consequences(check: &CheckReport, finding: &Finding) -> Option<String> {
    let checks = finding.consequences.iter().map(|consequence| consequence.check.as_str());
    let others: BTreeSet<&str> = checks.filter(|id| *id != check.id).collect();
    (!others.is_empty()).then(|| others.into_iter().collect::<Vec<_>>().join(", "))
}

/// Returns the other violations of `check` that a finding contains, such as `uid when it denies`, or `None` if there are
/// none.
fn same_check(check: &CheckReport, finding: &Finding) -> Option<String> {
    const MAX_KINDS: usize = 3;
    let own = finding.consequences.iter().filter(|consequence| consequence.check == check.id);
    let kinds: BTreeSet<&str> = own.map(|consequence| consequence.kind.as_str()).collect();
    let more = match kinds.len().saturating_sub(MAX_KINDS) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let named = kinds.iter().take(MAX_KINDS).copied().collect::<Vec<_>>().join(", ");
    (!kinds.is_empty()).then(|| format!("{named}{more}"))
}

/// A finding that the baseline accepts.
struct AcceptedFinding<'a> {
    check: &'a str,
    webhooks: String,
    /// The kind of the finding and the fields that are part of its identity, such as `not idempotent: spec.volumes`.
    what: String,
    /// The reason in the baseline, and the cause if it is a new finding.
    reason: String,
    /// Whether this run adds the finding to the baseline.
    added: bool,
}

/// Returns the findings that the baseline accepts, including those that are consequences of new findings.
fn accepted(report: &Report) -> Vec<AcceptedFinding<'_>> {
    let names = |webhooks: &mut dyn Iterator<Item = &String>| {
        webhooks.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let mut accepted = Vec::new();
    for (check, finding) in report.findings() {
        if let Some(reason) = &finding.accepted {
            accepted.push(AcceptedFinding {
                check: &check.id,
                webhooks: names(&mut finding.webhooks.keys()),
                what: kind_and_fields(&finding.kind, &finding.fields),
                reason: reason.clone(),
                added: finding.added,
            });
            continue;
        }
        let known = finding.consequences.iter().filter_map(|it| Some((it, it.accepted.as_ref()?)));
        accepted.extend(known.map(|(it, reason)| AcceptedFinding {
            check: &it.check,
            webhooks: names(&mut it.webhooks.iter()),
            what: kind_and_fields(&it.kind, &it.fields),
            reason: format!("{reason}; this run reports it as a consequence of {}", check.id),
            added: false,
        }));
    }
    accepted
}

fn kind_and_fields(kind: &str, fields: &BTreeSet<String>) -> String {
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    if fields.is_empty() { kind.to_owned() } else { format!("{kind}: {}", fields.join(", ")) }
}

/// Returns the fields in which only other objects have the finding.
fn other_fields(finding: &Finding) -> Option<String> {
    const MAX_FIELDS: usize = 20;
    let shown: BTreeSet<String> =
        finding.differences.iter().map(|difference| without_positions(&difference.path)).collect();
    // The differences of some findings do not have fields of their own.
    if shown.is_disjoint(&finding.fields) {
        return None;
    }
    let others: Vec<&str> = finding.fields.difference(&shown).map(String::as_str).collect();
    let more = others.len().saturating_sub(MAX_FIELDS);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let named = others.iter().take(MAX_FIELDS).copied().collect::<Vec<_>>().join(", ");
    (!others.is_empty()).then(|| format!("{named}{more}"))
}

/// Returns the locations of the webhooks that a finding is about, each once.
fn locations<'a>(report: &'a Report, finding: &'a Finding) -> Vec<&'a Location> {
    let mut locations: Vec<&Location> = Vec::new();
    for (_, location) in report.places(finding) {
        if !locations.contains(&location) {
            locations.push(location);
        }
    }
    locations
}

/// Returns the advice on how to fix a finding, such as `help: set the field`, or `None` if there is none.
fn help(check: &CheckReport, finding: &Finding) -> Option<String> {
    let help = check.help_of(finding);
    (!help.is_empty()).then(|| format!("help: {help}"))
}

/// Returns the lines that follow the message of a finding.
///
/// The lines contain other webhooks, objects, other fields, the request, other checks, and caveats.
fn details(report: &Report, check: &CheckReport, finding: &Finding) -> Vec<String> {
    let objects = examples(finding).map(|objects| format!("for {objects}"));
    let fields = other_fields(finding).map(|fields| format!("other fields, in other objects: {fields}"));
    let request = finding.request.as_ref().map(|request| format!("request: {request}"));
    let same_check = same_check(check, finding).map(|kinds| format!("same cause: {kinds}"));
    let consequences = consequences(check, finding).map(|checks| format!("also fails: {checks}"));
    let caveats = caveats(report, finding).into_iter().map(|caveat| format!("caveat: {caveat}"));
    let facts = [others(finding), objects, fields, request, same_check, consequences];
    facts.into_iter().flatten().chain(caveats).collect()
}

#[cfg(test)]
mod tests;
