//! Summarizes reports in HTML without scripts.

use std::fmt::Write as _;

use harness::verify::Severity;
use harness::verify::report::{Remark, Report as Verification};

use super::document::{Attempt, Content, Document, Feature, Lint, Run, Scenario};
use super::markup::{escape, paragraph, table};
use crate::diagnostic::{several, word};
use crate::request_report::{Places, Report as Request, people};
use crate::screen::Marks;
use crate::verdict::verdict_summaries;

/// The maximum number of requests for which the summary contains the text of `admit review -v`.
const MAX_TEXTS: usize = 10;

/// The maximum number of rows in a table.
const MAX_ROWS: usize = 2_000;

impl Content {
    /// Returns the command that produced the report.
    pub(super) fn command(&self) -> &'static str {
        match self {
            Self::Run(_) => "admit run",
            Self::Review(_) => "admit review",
            Self::Verify(_) => "admit verify",
            Self::Lint(_) => "admit lint",
        }
    }
}

/// Returns a section for each report.
pub(super) fn summary(documents: &[Document]) -> String {
    let mut html = String::new();
    for document in documents {
        let (command, name) = (document.content.command(), &document.name);
        let heading = if name == command { command.to_owned() } else { format!("{command}: {name}") };
        html.push_str("<section>\n");
        if documents.len() > 1 {
            let _ = writeln!(html, "<h2>{}</h2>", escape(&heading));
        }
        match &document.content {
            Content::Run(run) => run_summary(&mut html, run),
            Content::Review(requests) => review_summary(&mut html, requests),
            Content::Verify(report) => verify_summary(&mut html, report),
            Content::Lint(lint) => lint_summary(&mut html, lint),
        }
        html.push_str("</section>\n");
    }
    html
}

/// Returns the operation, the resource, and the object of a request, such as `CREATE pods default/web`.
pub(super) fn about(request: &Request) -> String {
    let facts = request.facts();
    format!("{} {} {}", facts.operation, facts.resource, facts.object).trim_end().to_owned()
}

fn review_summary(html: &mut String, requests: &[Request]) {
    paragraph(html, &plain(&people::summary(requests)));
    let rows: Vec<[String; 5]> = requests
        .iter()
        .take(MAX_ROWS)
        .enumerate()
        .map(|(index, request)| {
            let facts = request.facts();
            let number = if facts.number > 0 { facts.number } else { index + 1 }.to_string();
            [number, about(request), facts.user, facts.decision, facts.webhooks.join(", ")]
        })
        .collect();
    table(html, "Requests", ["Number", "Request", "User", "Decision", "Called webhooks"], &rows);
    left_out(html, requests.len(), "request");
    if requests.len() <= MAX_TEXTS {
        for request in requests {
            let text = plain(&people::text(request, true, Marks::ASCII_DECISIONS, &Places::default()));
            let (about, text) = (escape(&about(request)), escape(&text));
            let _ = writeln!(html, "<h3>{about}</h3>\n<pre tabindex=\"0\">{text}</pre>");
        }
    }
}

/// Removes terminal styles.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn run_summary(html: &mut String, run: &Run) {
    let counts = &run.counts;
    let mut parts = vec![format!("{} passed", counts.passed), format!("{} failed", counts.failed)];
    let others = [(counts.skipped, "skipped"), (counts.not_run, "not run"), (counts.flaky, "flaky")];
    parts
        .extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    paragraph(
        html,
        &format!(
            "{} of {} on target {} in {:.1} s",
            parts.join(", "),
            several(run.features.len(), "feature"),
            run.target,
            run.seconds
        ),
    );
    for warning in &run.warnings {
        paragraph(html, &format!("warning: {warning}"));
    }
    let failed: Vec<[String; 3]> = run
        .features
        .iter()
        .flat_map(|feature| feature.all().map(move |scenario| (feature, scenario)))
        .filter(|(_, scenario)| scenario.status == "failed")
        .map(|(feature, scenario)| {
            let place = format!("{}:{}", feature.path, scenario.line);
            [scenario.name.clone(), place, scenario.failure()]
        })
        .collect();
    table(html, "Failed scenarios", ["Scenario", "Place", "Message"], &failed);
    let features: Vec<[String; 4]> = run
        .features
        .iter()
        .map(|feature| {
            let count =
                |status: &str| feature.all().filter(|scenario| scenario.status == status).count().to_string();
            [feature.name.clone(), feature.path.clone(), count("passed"), count("failed")]
        })
        .collect();
    table(html, "Features", ["Feature", "File", "Passed", "Failed"], &features);
}

impl Feature {
    /// Returns the scenarios of the feature and of its rules.
    fn all(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.iter().chain(self.rules.iter().flat_map(|rule| &rule.scenarios))
    }
}

impl Scenario {
    /// Returns the reason why the last attempt failed.
    fn failure(&self) -> String {
        let Some(Attempt { trouble, steps }) = self.attempts.last() else { return String::new() };
        let step = steps.iter().find_map(|step| {
            Some(format!("{} {}: {}", step.keyword.trim(), step.text, step.message.as_ref()?))
        });
        step.or_else(|| trouble.clone()).unwrap_or_default()
    }
}

fn verify_summary(html: &mut String, report: &Verification) {
    paragraph(html, &format!("{}, {}", several(report.objects, "object"), several(report.calls, "call")));
    let rows: Vec<[String; 3]> = verdict_summaries(report)
        .into_iter()
        .map(|verdict| {
            let findings = crate::diagnostic::counts(verdict.findings);
            [verdict.webhook, verdict.words, findings]
        })
        .collect();
    table(html, "Verdicts", ["Webhook", "Verdict", "Findings"], &rows);
    let remarks: Vec<[String; 3]> = report
        .remarks
        .iter()
        .take(MAX_ROWS)
        .map(|Remark { severity, message, help }| {
            [word(*severity).to_owned(), message.clone(), help.join("; ")]
        })
        .collect();
    table(html, "Warnings and notes", ["Severity", "Warning or note", "What to do"], &remarks);
    let mut findings: Vec<(Severity, [String; 4])> = report
        .new_findings()
        .map(|(check, finding)| {
            let webhooks: Vec<&str> = finding.webhooks.keys().map(String::as_str).collect();
            let severity = finding.severity;
            let row =
                [check.id.clone(), word(severity).to_owned(), webhooks.join(", "), finding.message.clone()];
            (severity, row)
        })
        .collect();
    findings.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
    let count = findings.len();
    let rows: Vec<[String; 4]> = findings.into_iter().map(|(_, row)| row).take(MAX_ROWS).collect();
    table(html, "Findings", ["Check", "Severity", "Webhooks", "Finding"], &rows);
    left_out(html, count, "finding");
    let accepted = || {
        report.findings().filter_map(|(check, finding)| Some((check, finding, finding.accepted.as_ref()?)))
    };
    let rows: Vec<[String; 3]> = accepted()
        .take(MAX_ROWS)
        .map(|(check, finding, reason)| [check.id.clone(), finding.message.clone(), reason.clone()])
        .collect();
    table(html, "Accepted findings", ["Check", "Finding", "Reason"], &rows);
    left_out(html, accepted().count(), "accepted finding");
}

fn lint_summary(html: &mut String, lint: &Lint) {
    let new = || lint.findings.iter().filter(|finding| finding.accepted.is_none());
    let accepted = lint.findings.len() - new().count();
    paragraph(
        html,
        &format!(
            "{}, {accepted} accepted in {}; {} not checked",
            several(new().count(), "finding"),
            several(lint.configurations, "object"),
            lint.not_checked.len()
        ),
    );
    let mut findings: Vec<_> = new().collect();
    findings.sort_by_key(|finding| {
        ["error", "warning"].iter().position(|it| *it == finding.severity).unwrap_or(2)
    });
    let rows: Vec<[String; 5]> = findings
        .into_iter()
        .take(MAX_ROWS)
        .map(|finding| {
            let place = format!("{}:{}", finding.file, finding.line);
            let about = format!("{} {}", finding.webhook, finding.field);
            [finding.check.clone(), finding.severity.clone(), place, about, finding.message.clone()]
        })
        .collect();
    table(html, "Findings", ["Check", "Severity", "Place", "Webhook and field", "Finding"], &rows);
    left_out(html, new().count(), "finding");
}

/// Writes the number of rows that were omitted from a table, if any.
fn left_out(html: &mut String, count: usize, what: &str) {
    if let Some(more) = count.checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        paragraph(html, &format!("{} more", several(more, what)));
    }
}
