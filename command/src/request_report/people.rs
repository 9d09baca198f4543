//! Formats reports as text.

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::Style;
use harness::chain::Verdict;
use harness::verify::similar_name::similar_field;
use output::{OneLine, lines, one_line};
use serde_json::Value;

use super::difference::Change;
use super::rejection::{self, Places};
use super::steps::{By, Step};
use super::webhooks::{CallReport, ConditionReport, Outcome, Skipped, WebhookReport};
use super::{Report, condition, conversions, invalid_object, policies};
use crate::screen::Marks;
use crate::style::{BAD, FAINT, GOOD, NOT_DONE, brief};
use crate::unknown_fields::unknown_field;
use crate::yaml_types;

/// Formats the report of a request: the decision, the calls, and their changes.
///
/// `places` are the locations of the webhooks and policies.
pub(crate) fn text(report: &Report, verbose: bool, marks: Marks, places: &Places) -> String {
    let mut text = String::new();
    let diagnostic = condition::diagnostic(report, places)
        .or_else(|| rejection::diagnostic(report, places))
        .or_else(|| invalid_object::diagnostic(report, places));
    if let Some(diagnostic) = diagnostic {
        diagnostic.write(&mut text);
    } else {
        let style = style(report.verdict());
        let _ = writeln!(text, "{style}{}{style:#}", decision(&report.decision.message));
        if let Some(help) = yaml_types::help(&report.decision.message, None) {
            let _ = writeln!(text, "  {FAINT}= help:{FAINT:#} {help}");
        }
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "{NOT_DONE}Warning:{NOT_DONE:#} {}", OneLine(warning));
        if let Some(similar) =
            unknown_field(warning).and_then(|path| similar_field(&report.request.kind, path))
        {
            let _ = writeln!(text, "  {FAINT}= help:{FAINT:#} did you mean {similar}?");
        }
    }
    for note in &report.notes {
        let _ = writeln!(text, "{FAINT}note: {}{FAINT:#}", OneLine(note));
    }
    webhooks(&mut text, report, marks);
    policies::lines(&mut text, &report.policies, marks);
    conversions::lines(&mut text, &report.conversions, marks);
    difference(&mut text, report, verbose);
    if verbose && !report.audit_annotations.is_empty() {
        let _ = writeln!(text, "\nAudit annotations");
        for (key, value) in &report.audit_annotations {
            let _ = writeln!(text, "  {}: {}", OneLine(key), OneLine(value));
        }
    }
    text.push('\n');
    text
}

/// Formats kubectl's message, and escapes characters that control a terminal.
///
/// Line breaks are kept only between the causes of an invalid object.
fn decision(message: &str) -> String {
    one_line(message).replace("\\n* ", "\n* ")
}

/// Returns a summary: the number of requests with each outcome.
pub(crate) fn summary(reports: &[Report]) -> String {
    let count = |verdict: Verdict| reports.iter().filter(|report| report.verdict() == verdict).count();
    let counts: Vec<String> = [
        (Verdict::Admitted, "admitted"),
        (Verdict::Denied, "denied"),
        (Verdict::Undecided, "undecided"),
        (Verdict::Unsupported, "not supported"),
        (Verdict::Conditional, "conditional"),
    ]
    .into_iter()
    .map(|(verdict, name)| (count(verdict), name))
    .filter(|(count, name)| *count > 0 || ["admitted", "denied"].contains(name))
    .map(|(count, name)| format!("{count} {name}"))
    .collect();
    let all_admitted = reports.iter().all(|report| report.verdict() == Verdict::Admitted);
    let style = if all_admitted { GOOD } else { BAD };
    format!("{style}{}{style:#}\n", counts.join(", "))
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Admitted => GOOD,
        Verdict::Denied => BAD,
        Verdict::Undecided | Verdict::Unsupported | Verdict::Conditional => NOT_DONE,
    }
}

/// Appends the webhooks that were called in each round, and the webhooks that were not called.
fn webhooks(text: &mut String, report: &Report, marks: Marks) {
    if report.webhooks.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nWebhooks");
    let pad = marks.width();
    let width = report.webhooks.iter().map(|webhook| webhook.name.chars().count()).max().unwrap_or_default();
    for (phase, round, heading) in policies::ROUNDS {
        let mut lines = String::new();
        for webhook in report.webhooks.iter().filter(|webhook| webhook.is(phase)) {
            let mut calls = report.calls.iter().filter(|call| {
                call.phase == phase
                    && call.round == round
                    && call.webhook == webhook.name
                    && call.configuration == webhook.configuration
            });
            // Webhooks that were not called in the first round are not considered in the second.
            let is_asked_for =
                |skipped: &&Skipped| round == 1 || webhook.called || !skipped.compared.is_empty();
            let skipped =
                webhook.skipped.iter().filter(|skipped| skipped.round == round).filter(is_asked_for);
            if let Some(call) = calls.next() {
                // The diagnostic contains the hint of the decisive call.
                let has_hint = !rejection::decisive_call(report).is_some_and(|it| std::ptr::eq(it, call));
                self::call(&mut lines, call, width, marks, has_hint);
                conditions(&mut lines, webhook, round);
            }
            for skipped in skipped {
                let (name, reason) = (OneLine(&webhook.name), OneLine(&skipped.reason));
                let line = format!("{name:width$}  not called: {reason}");
                let _ = if skipped.has_failed() {
                    writeln!(lines, "    {BAD}{:<pad$}{BAD:#} {line}", marks.failed)
                } else {
                    writeln!(lines, "    {FAINT}{:<pad$} {line}{FAINT:#}", "-")
                };
                for compared in skipped.compared.iter().filter(|compared| !skipped.reason.contains(*compared))
                {
                    let _ = writeln!(lines, "        {FAINT}{}{FAINT:#}", OneLine(compared));
                }
                conditions(&mut lines, webhook, round);
            }
            if !webhook.is_considered() && round == 1 {
                let line = format!("{:width$}  not reached", OneLine(&webhook.name));
                let _ = writeln!(lines, "    {FAINT}{:<pad$} {line}{FAINT:#}", "-");
            }
        }
        if !lines.is_empty() {
            let _ = write!(text, "  {heading}\n{lines}");
        }
    }
}

/// Appends each match condition with its value or error, and its cost.
fn conditions(text: &mut String, webhook: &WebhookReport, round: usize) {
    for condition in webhook.conditions.iter().filter(|condition| condition.round == round) {
        let ConditionReport { name, error, cost, .. } = condition;
        let value = condition.value.map_or_else(|| format!("error: {error}"), |value| value.to_string());
        let line = format!("condition {name} (cost {cost}): {}", value.replace('\n', " "));
        let _ = writeln!(text, "        {FAINT}{}{FAINT:#}", OneLine(line));
    }
}

fn call(text: &mut String, call: &CallReport, width: usize, marks: Marks, has_hint: bool) {
    let (style, mark, what) = match call.outcome {
        Outcome::Allowed => (GOOD, marks.passed, allowed(call)),
        Outcome::Denied => (BAD, marks.failed, denied(call)),
        Outcome::FailedOpen => (NOT_DONE, "!", format!("failed open: {}", call.message)),
        Outcome::FailedClosed => (BAD, marks.failed, format!("failed: {}", call.message)),
        Outcome::Refused => (BAD, marks.failed, format!("rejected by the API server: {}", call.message)),
        Outcome::Unknown => (NOT_DONE, "?", "the cluster would call it: response unknown".to_owned()),
    };
    let pad = marks.width();
    let took = brief(Duration::from_secs_f64(call.duration_ms / 1e3));
    let is_called = call.outcome != Outcome::Unknown;
    let took = if is_called { format!("{FAINT}{took}{FAINT:#}  ") } else { String::new() };
    let _ = writeln!(
        text,
        "    {style}{mark:<pad$}{style:#} {:width$}  {took}{}",
        OneLine(&call.webhook),
        OneLine(what)
    );
    if has_hint && !call.hint.is_empty() {
        let _ = writeln!(text, "        {}", OneLine(&call.hint));
    }
    for note in call.notes.iter().filter(|_| has_hint) {
        let _ = writeln!(text, "        {NOT_DONE}note:{NOT_DONE:#} {}", OneLine(note));
    }
    if has_hint && !call.error_body.is_empty() {
        let _ = writeln!(text, "        response: {}", OneLine(&call.error_body));
    }
    for warning in &call.warnings {
        let _ = writeln!(text, "        {NOT_DONE}warns:{NOT_DONE:#} {}", OneLine(warning));
    }
}

fn allowed(call: &CallReport) -> String {
    match (&call.patch, call.changed) {
        (None, _) => "allowed".to_owned(),
        (Some(_), false) => "allowed, with a patch that changes nothing".to_owned(),
        (Some(_), true) if call.changes.is_empty() => {
            "allowed, but the API server drops all changes of the patch".to_owned()
        }
        (Some(_), true) => {
            const MAX_SHOWN: usize = 3;
            let mut paths: Vec<&str> = call.changes.iter().map(|change| change.path.as_str()).collect();
            let more = paths.len().saturating_sub(MAX_SHOWN);
            paths.truncate(MAX_SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("allowed, changed {}{more}", paths.join(", "))
        }
    }
}

/// Formats a denial without the webhook's name, because the message of the decision already contains the name.
fn denied(call: &CallReport) -> String {
    let message = call.message.split_once("denied the request").map_or(call.message.as_str(), |(_, why)| why);
    format!("denied{message}")
}

/// Appends the changes to the object.
fn difference(text: &mut String, report: &Report, verbose: bool) {
    let (shown, hidden): (Vec<&Step>, Vec<&Step>) =
        report.steps.iter().partition(|step| verbose || matches!(step.by, By::Webhook | By::Policy));
    if report.steps.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nObject");
    for step in shown {
        let _ = writeln!(text, "  {}", OneLine(heading(step)));
        for change in &step.changes {
            self::change(text, change);
        }
    }
    let fields =
        |by: By| hidden.iter().filter(|step| step.by == by).map(|step| step.changes.len()).sum::<usize>();
    let all = [
        (fields(By::Defaults), "defaults"),
        (fields(By::Plugin), "plugins"),
        (fields(By::Server), "the server"),
    ];
    let hidden: Vec<String> = all
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, by)| format!("{count} {} by {by}", if count == 1 { "change" } else { "changes" }))
        .collect();
    if !hidden.is_empty() {
        let _ = writeln!(text, "  {FAINT}{} (-v shows them){FAINT:#}", hidden.join(", "));
    }
}

fn heading(step: &Step) -> String {
    let round = if step.round == 2 { ", second round" } else { "" };
    match step.by {
        By::Defaults => "defaults".to_owned(),
        By::Server => "the server".to_owned(),
        By::Plugin | By::Webhook => format!("{}{round}", step.name),
        By::Policy => format!("{}{round}", policies::full_name(&step.name, &step.binding, &step.param)),
    }
}

fn change(text: &mut String, change: &Change) {
    let path = &one_line(&change.path);
    let _ = match (&change.from, &change.to) {
        (None, Some(to)) => value(text, GOOD, '+', path, to),
        (Some(from), None) => value(text, BAD, '-', path, from),
        (Some(from), Some(to)) if is_short(from) && is_short(to) => {
            writeln!(
                text,
                "    {NOT_DONE}~{NOT_DONE:#} {path}: {BAD}{}{BAD:#} -> {GOOD}{}{GOOD:#}",
                OneLine(from),
                OneLine(to)
            )
        }
        (Some(from), Some(to)) => {
            value(text, BAD, '-', path, from).and_then(|()| value(text, GOOD, '+', path, to))
        }
        (None, None) => Ok(()),
    };
}

/// Appends a field and its value, either on one line or as YAML below the path.
fn value(text: &mut String, style: Style, sign: char, path: &str, value: &Value) -> std::fmt::Result {
    if is_short(value) {
        return writeln!(text, "    {style}{sign} {path}: {}{style:#}", OneLine(value));
    }
    writeln!(text, "    {style}{sign} {path}:{style:#}")?;
    let yaml = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    for line in lines(&yaml).lines() {
        writeln!(text, "    {style}{sign}   {line}{style:#}")?;
    }
    Ok(())
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
