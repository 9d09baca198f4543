//! Formats findings in the style of rustc diagnostics.

use std::fmt::{Display, Write as _};

use anstyle::{AnsiColor, Style};
use harness::verify::Severity;
use output::{OneLine, one_line};

pub(crate) use crate::style::{BAD, GOOD};

/// The style of warnings and of incomplete checks.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const NOTE: Style = AnsiColor::Cyan.on_default().bold();
/// The style of the frame: arrows, bars, and line numbers.
const FRAME: Style = AnsiColor::Blue.on_default().bold();
const BOLD: Style = Style::new().bold();

/// The column at which long notes are wrapped.
const WIDTH: usize = 100;

/// A finding with its location, lines, and notes.
#[derive(Debug)]
pub(crate) struct Diagnostic {
    severity: Severity,
    code: String,
    message: String,
    places: Vec<Place>,
    body: Vec<(Option<char>, String)>,
    notes: Vec<(&'static str, NoteText)>,
}

/// A location, with the text of its line if known.
#[derive(Debug)]
struct Place {
    file: String,
    line: u64,
    source: Option<String>,
}

/// How the text of a note is printed.
#[derive(Debug)]
enum NoteText {
    /// A sentence. Its lines are wrapped.
    Wrapped(String),
    /// Lines that are printed unchanged.
    Lines(String),
}

impl Diagnostic {
    /// Creates a finding with `message`. Lines after the first are printed below the location.
    pub(crate) fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            severity,
            code: String::new(),
            message: message.into(),
            places: Vec::new(),
            body: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the ID of the check.
    pub(crate) fn code(mut self, code: &str) -> Self {
        code.clone_into(&mut self.code);
        self
    }

    /// Adds a location.
    pub(crate) fn place(mut self, file: &str, line: u64) -> Self {
        self.places.push(Place { file: file.to_owned(), line, source: None });
        self
    }

    /// Sets the text of the line at the location that was added last.
    pub(crate) fn source(mut self, line: Option<&str>) -> Self {
        if let Some(place) = self.places.last_mut() {
            place.source = line.map(str::to_owned);
        }
        self
    }

    /// Adds a line below the location; the sign `-` marks a removed line, and `+` an added one.
    pub(crate) fn line(&mut self, sign: Option<char>, line: impl Into<String>) {
        self.body.push((sign, line.into()));
    }

    /// Adds a note below the finding; `label` is a word such as `help`.
    pub(crate) fn note(&mut self, label: &'static str, text: impl Into<String>) {
        self.notes.push((label, NoteText::Wrapped(text.into())));
    }

    /// Adds a note whose lines are not wrapped, such as a message that contains an object.
    pub(crate) fn block(&mut self, label: &'static str, text: &str) {
        self.notes.push((label, NoteText::Lines(text.to_owned())));
    }

    /// Appends the finding to `text`, with a trailing newline.
    pub(crate) fn write(&self, text: &mut String) {
        let style = style(self.severity);
        let code = if self.code.is_empty() { String::new() } else { format!("[{}]", self.code) };
        let word = word(self.severity);
        let mut lines = self.message.trim_end().lines();
        let message = OneLine(lines.next().unwrap_or_default());
        let _ = writeln!(text, "{style}{word}{code}{style:#}{BOLD}: {message}{BOLD:#}");
        let details: Vec<&str> = lines.map(str::trim_end).collect();
        let sources = || self.places.iter().filter_map(|place| Some((place.line, place.source.as_ref()?)));
        let width = sources().map(|(line, _)| line.to_string().len()).max().unwrap_or(1);
        let margin = " ".repeat(width);
        for Place { file, line, .. } in &self.places {
            let _ = writeln!(text, "{margin}{FRAME}-->{FRAME:#} {}:{line}", OneLine(file));
        }
        let has_body = sources().next().is_some() || !self.body.is_empty() || !details.is_empty();
        if has_body {
            let _ = writeln!(text, "{margin} {FRAME}|{FRAME:#}");
        }
        for (line, source) in sources() {
            let source = cut(&one_line(source.trim_end()));
            let _ = writeln!(text, "{FRAME}{line:width$} |{FRAME:#} {source}");
        }
        for line in &details {
            let _ = writeln!(text, "{margin} {FRAME}|{FRAME:#}   {}", OneLine(line));
        }
        for (sign, line) in &self.body {
            let line = OneLine(line);
            let _ = match sign {
                Some(sign) => {
                    let style = if *sign == '-' { BAD } else { GOOD };
                    writeln!(text, "{margin} {FRAME}|{FRAME:#} {style}{sign} {line}{style:#}")
                }
                None => writeln!(text, "{margin} {FRAME}|{FRAME:#}   {line}"),
            };
        }
        if has_body && !self.notes.is_empty() {
            let _ = writeln!(text, "{margin} {FRAME}|{FRAME:#}");
        }
        for (label, note) in &self.notes {
            let indent = margin.len() + label.len() + 5;
            let note = match note {
                NoteText::Wrapped(note) => wrapped(&one_line(note), WIDTH.saturating_sub(indent)),
                NoteText::Lines(lines) => lines.lines().map(|line| one_line(line).into_owned()).collect(),
            };
            let note = note.join(&format!("\n{}", " ".repeat(indent)));
            let _ = writeln!(text, "{margin} {FRAME}={FRAME:#} {BOLD}{label}{BOLD:#}: {note}");
        }
    }
}

pub(crate) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => WARNING,
        Severity::Note => NOTE,
    }
}

/// Returns the number of findings by severity, such as `2 errors, 1 note`, or an empty string if there are none.
pub(crate) fn counts(severities: impl IntoIterator<Item = Severity>) -> String {
    let severities: Vec<Severity> = severities.into_iter().collect();
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    let counts = all.map(|wanted| (severities.iter().filter(|found| **found == wanted).count(), wanted));
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, severity)| several(count, word(severity))).collect::<Vec<_>>().join(", ")
}

/// Returns the end of a summary line: the number of notes that only `-v` shows; empty if there are none.
pub(crate) fn hidden_notes(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; 1 minor note (-v shows it)".to_owned(),
        _ => format!("; {count} minor notes (-v shows them)"),
    }
}

/// Returns a count with a singular or plural noun, such as `1 error` or `2 errors`.
pub(crate) fn several<N: Copy + Display + PartialEq + From<u8>>(count: N, word: &str) -> String {
    format!("{count} {word}{}", if count == N::from(1) { "" } else { "s" })
}

/// Truncates a line after [`WIDTH`] characters and marks the cut with `...`.
fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH).and_then(|(end, _)| line.get(..end)) {
        Some(begin) => format!("{begin}..."),
        None => line.to_owned(),
    }
}

/// Breaks `text` at spaces into lines of at most `width` characters, unless a word is longer.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[track_caller]
    fn check(diagnostic: &Diagnostic, expected: &expect_test::Expect) {
        let mut text = String::new();
        diagnostic.write(&mut text);
        expected.assert_eq(&anstream::adapter::strip_str(&text).to_string());
    }

    #[test]
    fn a_finding_has_the_shape_of_a_diagnostic_of_rustc() {
        let mut found = Diagnostic::new(Severity::Error, "no served resource `pod`")
            .code("L04")
            .place("deploy/webhook.yaml", 12)
            .source(Some("    resources: [pod]\n"));
        found.note("help", "use the plural name ".repeat(8).trim_end());
        found.note("docs", "admit lint --explain L04");
        check(
            &found,
            &expect![[r"
                error[L04]: no served resource `pod`
                  --> deploy/webhook.yaml:12
                   |
                12 |     resources: [pod]
                   |
                   = help: use the plural name use the plural name use the plural name use the plural name use the
                           plural name use the plural name use the plural name use the plural name
                   = docs: admit lint --explain L04
            "]],
        );
    }

    #[test]
    fn several_locations_precede_their_lines() {
        let found = Diagnostic::new(Severity::Warning, "matches every resource")
            .place("webhook.yaml", 9)
            .source(Some("  resources: ['*']"))
            .place("webhook.yaml", 104)
            .source(Some("  resources: ['*/*']"))
            .place("other.yaml", 3);
        check(
            &found,
            &expect![[r"
                warning: matches every resource
                   --> webhook.yaml:9
                   --> webhook.yaml:104
                   --> other.yaml:3
                    |
                  9 |   resources: ['*']
                104 |   resources: ['*/*']
            "]],
        );
    }

    #[test]
    fn differences_are_lines_of_a_diff_without_a_line_number() {
        let mut found = Diagnostic::new(Severity::Note, "changes\u{1b}[2J\nmore").place("a\nb.yaml", 7);
        found.line(None, "spec.replicas");
        found.line(Some('-'), "1");
        found.line(Some('+'), "2\u{202e}");
        check(
            &found,
            &expect![[r"
                note: changes\u{1b}[2J
                 --> a\nb.yaml:7
                  |
                  |   more
                  |   spec.replicas
                  | - 1
                  | + 2\u{202e}
            "]],
        );
    }

    #[test]
    fn counts_name_the_worst_first() {
        let found = [Severity::Note, Severity::Error, Severity::Note];
        assert_eq!(counts(found), "1 error, 2 notes");
        assert_eq!(counts([]), "");
    }
}
