//! What a person sees while scenarios run: each scenario with its steps, and a line that says how far we are.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::record::{Attempt, Outcome, Record, ScenarioRecord, StepOutcome};

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Every scenario with its steps and what they told.
    Everything,
    /// Only scenarios that failed.
    Failures,
}

/// Writes scenarios to the standard output, and a progress line to the standard error if that is a terminal.
#[derive(Debug)]
pub(crate) struct Display {
    detail: Detail,
    progress: ProgressLine,
    heading: Option<(String, Option<usize>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressLine {
    Off,
    Hidden,
    Drawn,
}

/// Green, for what holds.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Red, for what does not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Yellow, for what was not looked at.
pub(crate) const NOT_DONE: Style = AnsiColor::Yellow.on_default();
/// For what is there to be found, not to be read.
pub(crate) const FAINT: Style = Style::new().dimmed();
const STRONG: Style = Style::new().bold();
const TOLD: Style = AnsiColor::Cyan.on_default();

impl Display {
    /// A display that has shown nothing yet.
    pub(crate) fn new(detail: Detail) -> Self {
        let progress = if std::io::stderr().is_terminal() { ProgressLine::Hidden } else { ProgressLine::Off };
        Self { detail, progress, heading: None }
    }

    /// Shows the scenario at `position`.
    pub(crate) fn scenario(&mut self, record: &Record, position: usize) {
        let Some(scenario) = record.scenarios().get(position) else { return };
        if self.detail == Detail::Failures && scenario.outcome != Outcome::Failed {
            return;
        }
        let mut text = self.heading(scenario);
        text.push_str(&scenario_text(scenario));
        self.print(&text);
    }

    /// Says one line beside the scenarios.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        anstream::eprintln!("{line}");
    }

    /// Shows `text`, which ends with a line end.
    pub(crate) fn print(&mut self, text: &str) {
        self.clear();
        let mut out = anstream::stdout().lock();
        // A reader that has gone away is no reason to stop: the exit status still counts.
        let _: std::io::Result<()> = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Draws the progress line again.
    pub(crate) fn progress(&mut self, record: &Record, running: &[usize]) {
        if self.progress == ProgressLine::Off {
            return;
        }
        let counts = record.counts();
        let all = record.scenarios().len() - counts.skipped;
        let mut line = format!(
            "{}/{all} scenarios, {:.1} s",
            counts.passed + counts.failed,
            record.elapsed().as_secs_f64()
        );
        if counts.failed > 0 {
            let _ = write!(line, ", {} failed", counts.failed);
        }
        if let Some(oldest) = running.first().and_then(|position| record.scenarios().get(*position)) {
            let _ = write!(line, " \u{b7} {}", oldest.planned.name);
        }
        self.draw(&line);
    }

    /// Says what is being waited for before the first scenario.
    pub(crate) fn wait(&mut self, what: &str) {
        match self.progress {
            ProgressLine::Off => {}
            ProgressLine::Hidden | ProgressLine::Drawn => self.draw(what),
        }
    }

    /// Takes the progress line away for good.
    pub(crate) fn end_progress(&mut self) {
        self.clear();
        self.progress = ProgressLine::Off;
    }

    fn draw(&mut self, line: &str) {
        let line: String = line.chars().take(LINE_WIDTH).collect();
        self.clear();
        anstream::eprint!("{FAINT}{line}{FAINT:#}");
        self.progress = ProgressLine::Drawn;
    }

    fn clear(&mut self) {
        if self.progress == ProgressLine::Drawn {
            // Not through anstream: the line must go also where colors are off.
            let _: std::io::Result<()> = std::io::stderr().write_all(b"\r\x1b[K");
            self.progress = ProgressLine::Hidden;
        }
    }

    /// The lines above the first scenario of a feature or rule.
    fn heading(&mut self, scenario: &ScenarioRecord) -> String {
        let planned = &scenario.planned;
        let rule = planned.rule.as_ref();
        let (same_feature, same_rule) = match &self.heading {
            Some((path, line)) => (*path == planned.key.path, *line == rule.map(|rule| rule.line)),
            None => (false, false),
        };
        let mut text = String::new();
        if !same_feature {
            let gap = if self.heading.is_some() { "\n" } else { "" };
            let path = &planned.key.path;
            let _ =
                writeln!(text, "{gap}{STRONG}Feature: {}{STRONG:#}  {FAINT}{path}{FAINT:#}", planned.feature);
        }
        if let Some(rule) = rule
            && !(same_feature && same_rule)
        {
            let _ = writeln!(text, "  {STRONG}Rule: {}{STRONG:#}", rule.name);
        }
        self.heading = Some((planned.key.path.clone(), rule.map(|rule| rule.line)));
        text
    }
}

fn scenario_text(scenario: &ScenarioRecord) -> String {
    let mut text = String::new();
    let mark = mark(scenario.outcome == Outcome::Passed);
    let _ =
        write!(text, "    {mark} {}  {FAINT}{}{FAINT:#}", scenario.planned.name, brief(scenario.duration()));
    if scenario.is_flaky() {
        let _ = write!(text, "  {NOT_DONE}flaky: attempt {} passed{NOT_DONE:#}", scenario.attempts.len());
    }
    text.push('\n');
    if let Some(attempt) = scenario.attempts.last() {
        attempt_text(&mut text, scenario, attempt);
    }
    text
}

fn attempt_text(text: &mut String, scenario: &ScenarioRecord, attempt: &Attempt) {
    for (planned, step) in scenario.planned.steps.iter().zip(&attempt.steps) {
        let sentence = format!("{} {}", planned.keyword, planned.text);
        let _ = match &step.outcome {
            StepOutcome::NotReached => writeln!(text, "        {FAINT}- {sentence}{FAINT:#}"),
            StepOutcome::Passed => writeln!(text, "      {} {sentence}", mark(true)),
            StepOutcome::Failed(_) => writeln!(text, "      {} {sentence}", mark(false)),
        };
        for line in &planned.argument {
            let _ = writeln!(text, "            {FAINT}{line}{FAINT:#}");
        }
        told(text, &step.told);
        if let StepOutcome::Failed(message) = &step.outcome {
            let _ =
                writeln!(text, "          {FAINT}{}:{}{FAINT:#}", scenario.planned.key.path, planned.line);
            indented(text, message, BAD);
        }
    }
    if let Some(trouble) = &attempt.trouble {
        let key = &scenario.planned.key;
        let _ = writeln!(text, "          {FAINT}{}:{}{FAINT:#}", key.path, key.line);
        indented(text, trouble, BAD);
    }
}

fn told(text: &mut String, lines: &[String]) {
    for line in lines {
        indented(text, &output::one_line(line), TOLD);
    }
}

fn indented(text: &mut String, message: &str, style: Style) {
    for line in output::lines(message).lines() {
        let _ = writeln!(text, "          {style}{line}{style:#}");
    }
}

fn mark(good: bool) -> String {
    if good { format!("{GOOD}\u{2714}{GOOD:#}") } else { format!("{BAD}\u{2718}{BAD:#}") }
}

/// A duration as a person says it: `12 ms`, `1.4 s`.
pub(crate) fn brief(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

const LINE_WIDTH: usize = 78;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_webhook_says_cannot_steer_a_terminal() {
        let said = "denied: \u{1b}[2J\nall passed";
        let mut text = String::new();
        told(&mut text, &[said.to_owned()]);
        indented(&mut text, said, BAD);
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        assert_eq!(lines, [r"denied: \u{1b}[2J\nall passed", r"denied: \u{1b}[2J", "all passed"]);
    }
}
