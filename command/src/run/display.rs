//! Prints scenarios and their steps on the terminal while they run, and the progress.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use output::OneLine;

use super::record::{Attempt, Outcome, Record, ScenarioRecord, StepOutcome};
use crate::Failure;
use crate::narrator::{Note, NoteKind};
use crate::progress::ProgressReporter;
use crate::request_report::cut;
use crate::screen::{self, Marks};
use crate::style::{BAD, FAINT, GOOD, NOT_DONE, brief};

/// The scenarios and steps that the display shows.
///
/// A failed scenario is shown with its steps; the error at the end of the run explains the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Every scenario with its steps and their notes.
    Steps,
    /// One line for each scenario that passes.
    Scenarios,
    /// No scenarios; the errors at the end of the run name the failed scenarios.
    Failures,
}

/// Writes scenarios to standard output, and the progress to standard error.
#[derive(Debug)]
pub(crate) struct Display {
    detail: Detail,
    marks: Marks,
    reporter: ProgressReporter,
    heading: Option<(String, Option<usize>)>,
    /// The first error while writing to standard output.
    error: Option<Failure>,
}

const STRONG: Style = Style::new().bold();
/// The maximum number of characters of a note that the error at the end of the run repeats.
const MAX_REPEATED: usize = 80;
const TOLD: Style = AnsiColor::Cyan.on_default();

impl Display {
    /// Creates a display with the given level of detail.
    pub(crate) fn new(detail: Detail) -> Self {
        let reporter = ProgressReporter::new(detail == Detail::Failures);
        Self { detail, marks: Marks::of_stdout(Marks::ASCII), reporter, heading: None, error: None }
    }

    /// Creates a display that shows only failed scenarios and no progress.
    #[cfg(test)]
    pub(super) fn quiet() -> Self {
        Self::new(Detail::Failures)
    }

    /// Shows the scenario at `position` in the record, unless the level of detail hides it.
    pub(crate) fn scenario(&mut self, record: &Record, position: usize) {
        let Some(scenario) = record.scenarios().get(position) else { return };
        if self.detail == Detail::Failures {
            return;
        }
        let mut text = self.heading(scenario);
        let has_steps = self.detail == Detail::Steps || scenario.outcome == Outcome::Failed;
        text.push_str(&scenario_text(scenario, self.marks, has_steps));
        self.print(&text);
    }

    /// Prints `text`, which must end with a newline; [`Self::outcome`] returns the error, if any.
    pub(crate) fn print(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = screen::print(text).err();
        }
    }

    /// Returns the first error while writing to standard output, if any.
    pub(crate) fn outcome(&mut self) -> Result<(), Failure> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Reports the number of scenarios that have ended.
    pub(crate) fn progress(&self, record: &Record, running: &[usize]) {
        let counts = record.counts();
        let all = record.scenarios().len() - counts.skipped;
        let mut detail = if counts.failed > 0 { format!("{} failed", counts.failed) } else { String::new() };
        if let Some(oldest) = running.first().and_then(|position| record.scenarios().get(*position)) {
            let gap = if detail.is_empty() { "" } else { "; " };
            let _ = write!(detail, "{gap}{}", oldest.planned.name);
            if let Some(step) = oldest.running_step() {
                let _ = write!(detail, ": {} {}", step.keyword, step.text);
            }
        }
        let done = (counts.passed + counts.failed) as u64;
        self.reporter.report("running scenarios", done, Some(all as u64), &detail);
    }

    /// Reports a condition that the run waits for before the first scenario starts.
    pub(crate) fn wait(&self, what: &str) {
        self.reporter.report(what, 0, None, "");
    }

    /// Removes the progress bar.
    pub(crate) fn end_progress(&self) {
        self.reporter.finish();
    }

    /// Returns the heading lines above the first scenario of a feature or rule.
    pub(super) fn heading(&mut self, scenario: &ScenarioRecord) -> String {
        let planned = &scenario.planned;
        let rule = planned.rule.as_ref();
        let (same_feature, same_rule) = match &self.heading {
            Some((path, line)) => (*path == planned.key.path, *line == rule.map(|rule| rule.line)),
            None => (false, false),
        };
        let mut text = String::new();
        if !same_feature {
            let gap = if self.heading.is_some() { "\n" } else { "" };
            let (feature, path) = (OneLine(&planned.feature), OneLine(&planned.key.path));
            let _ = writeln!(text, "{gap}{STRONG}Feature: {feature}{STRONG:#}  {FAINT}{path}{FAINT:#}");
        }
        if let Some(rule) = rule
            && !(same_feature && same_rule)
        {
            let _ = writeln!(text, "  {STRONG}Rule: {}{STRONG:#}", OneLine(&rule.name));
        }
        self.heading = Some((planned.key.path.clone(), rule.map(|rule| rule.line)));
        text
    }
}

pub(super) fn scenario_text(scenario: &ScenarioRecord, marks: Marks, has_steps: bool) -> String {
    let mut text = String::new();
    let mark = mark(marks, scenario.outcome == Outcome::Passed);
    let (name, duration) = (OneLine(&scenario.planned.name), brief(scenario.duration()));
    let _ = write!(text, "    {mark} {name}  {FAINT}{duration}{FAINT:#}");
    if scenario.is_flaky() {
        let _ = write!(text, "  {NOT_DONE}flaky: attempt {} passed{NOT_DONE:#}", scenario.attempts.len());
    }
    text.push('\n');
    if has_steps && let Some(attempt) = scenario.attempts.last() {
        attempt_text(&mut text, scenario, attempt, marks);
    }
    text
}

fn attempt_text(text: &mut String, scenario: &ScenarioRecord, attempt: &Attempt, marks: Marks) {
    let failure = (scenario.outcome == Outcome::Failed).then(|| scenario.failure());
    let line = |note: &Note| {
        let is_in_error = failure.as_ref().is_some_and(|failure| failure.shows(note));
        match note.kind {
            NoteKind::Whole => None,
            // A scenario that passes expects the rejection.
            NoteKind::Help if failure.is_none() || is_in_error => None,
            NoteKind::Event | NoteKind::Cause if is_in_error => Some(cut(&note.text, MAX_REPEATED)),
            NoteKind::Event | NoteKind::Cause | NoteKind::Help => Some(note.text.clone()),
        }
    };
    for (planned, step) in scenario.planned.steps.iter().zip(&attempt.steps) {
        let sentence = OneLine(format!("{} {}", planned.keyword, planned.text));
        let _ = match &step.outcome {
            StepOutcome::NotReached => writeln!(text, "        {FAINT}- {sentence}{FAINT:#}"),
            StepOutcome::Passed => writeln!(text, "      {} {sentence}", mark(marks, true)),
            StepOutcome::Failed(_) => writeln!(text, "      {} {sentence}", mark(marks, false)),
        };
        for line in &planned.argument {
            let _ = writeln!(text, "            {FAINT}{}{FAINT:#}", OneLine(line));
        }
        for line in step.told.iter().filter_map(line) {
            note_text(text, &line);
        }
    }
}

fn note_text(text: &mut String, note: &str) {
    let _ = writeln!(text, "          {TOLD}{}{TOLD:#}", OneLine(note));
}

fn mark(marks: Marks, good: bool) -> String {
    if good { format!("{GOOD}{}{GOOD:#}", marks.passed) } else { format!("{BAD}{}{BAD:#}", marks.failed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_of_a_webhook_are_removed() {
        let said = "denied: \u{1b}[2J\nall passed";
        let mut text = String::new();
        note_text(&mut text, said);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(text.trim(), r"denied: \u{1b}[2J\nall passed");
    }
}
