//! The text of an expression, and errors with positions in the text.

use std::fmt;
use std::sync::Arc;

/// The maximum number of errors that are shown. The remaining errors are only counted.
///
/// Source: cel-go common/errors.go.
const MAX_ERRORS_SHOWN: usize = 100;

/// The maximum length, in bytes, of a line that an error shows.
///
/// Source: cel-go common/error.go.
const MAX_SNIPPET_LENGTH: usize = 16_384;

/// The text of an expression, with positions in code points.
#[derive(Clone, Debug)]
pub(crate) struct Source<'t> {
    pub(crate) text: &'t str,
    /// Whether the text is ASCII, so that each code point is one byte.
    ascii: bool,
    /// The start of each line, as a code point index and a byte offset.
    lines: Vec<(u32, u32)>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let ascii = text.is_ascii();
        let mut lines = vec![(0, 0)];
        let mut code_point = 0;
        for (byte, letter) in text.char_indices() {
            code_point += 1;
            if letter == '\n' {
                lines.push((code_point, narrow(byte + 1)));
            }
        }
        Self { text, ascii, lines }
    }

    /// Returns the index of the code point at a byte offset.
    pub(crate) fn code_point(&self, byte: usize) -> u32 {
        if self.ascii {
            return narrow(byte);
        }
        let line = self.lines.partition_point(|(_, start)| *start as usize <= byte).saturating_sub(1);
        let (code_points, start) = self.lines.get(line).copied().unwrap_or_default();
        let before = self.text.get(start as usize..byte).unwrap_or_default();
        code_points + narrow(before.chars().count())
    }

    /// Returns the line and the column of a code point, both starting with 1.
    pub(crate) fn position(&self, code_point: u32) -> (u32, u32) {
        let line = self.lines.partition_point(|(start, _)| *start <= code_point).max(1);
        let start = self.lines.get(line - 1).map_or(0, |(start, _)| *start);
        (narrow(line), code_point - start + 1)
    }

    /// Returns the text of a line by its number, starting with 1.
    fn line(&self, line: u32) -> Option<&'t str> {
        if self.text.is_empty() {
            return None;
        }
        let index = (line as usize).checked_sub(1)?;
        let start = self.lines.get(index)?.1 as usize;
        let end = self.lines.get(index + 1).map_or(self.text.len(), |(_, next)| *next as usize - 1);
        self.text.get(start..end)
    }
}

/// Converts a length to 32 bits. The length fits, because expressions are limited to 100,000 code points.
pub(crate) fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// An error in an expression with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issue {
    /// The line and the column in code points, both starting with 1, or `None` for errors without a position. In an
    /// empty expression, the column is 0.
    pub position: Option<(u32, u32)>,
    /// The message, without the position.
    pub message: String,
    /// The field, if the error is that an object type does not declare it.
    pub undefined_field: Option<UndefinedField>,
}

/// A field that an expression reads and that the object type does not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndefinedField {
    /// The name of the object type.
    pub object: Arc<str>,
    /// The name of the field.
    pub field: Arc<str>,
    /// Whether the expression only tests whether the field exists, with `has` or `.?`.
    pub is_tested: bool,
}

/// Collects the errors of an expression.
#[derive(Debug, Default)]
pub(crate) struct Issues {
    found: Vec<Issue>,
    count: usize,
}

impl Issues {
    /// Adds an error at a code point, or without a position.
    pub(crate) fn add(&mut self, source: &Source<'_>, code_point: Option<u32>, message: impl Into<String>) {
        self.add_at(code_point.map(|code_point| source.position(code_point)), message);
    }

    /// Adds an error at a line and column, or without a position.
    pub(crate) fn add_at(&mut self, position: Option<(u32, u32)>, message: impl Into<String>) {
        self.count += 1;
        if self.count <= MAX_ERRORS_SHOWN {
            self.found.push(Issue { position, message: message.into(), undefined_field: None });
        }
    }

    /// Adds an error about a field that an object type does not declare.
    pub(crate) fn add_undefined(
        &mut self,
        source: &Source<'_>,
        code_point: Option<u32>,
        message: String,
        undefined: UndefinedField,
    ) {
        let shown = self.found.len();
        self.add(source, code_point, message);
        if let Some(issue) = self.found.get_mut(shown) {
            issue.undefined_field = Some(undefined);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Creates a report of the errors, sorted by their position in the text.
    ///
    /// Source: cel-go common/errors.go, `ToDisplayString`.
    pub(crate) fn into_report(mut self, source: &Source<'_>) -> IssueReport {
        self.found.sort_by_key(|issue| issue.position);
        let mut lines: Vec<_> = self.found.iter().map(|issue| shown(issue, source)).collect();
        if self.count > MAX_ERRORS_SHOWN {
            lines.push(format!("{} more errors were truncated", self.count - MAX_ERRORS_SHOWN));
        }
        IssueReport { issues: self.found, text: lines.join("\n") }
    }
}

/// The errors of an expression. `Display` writes the text that kube-apiserver shows after `compilation failed: `.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssueReport {
    /// The errors, sorted by their position in the text; at most 100.
    pub issues: Vec<Issue>,
    text: String,
}

impl fmt::Display for IssueReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Formats an error with its line and a caret below its position.
///
/// In the caret line, each non-ASCII character before the position becomes a full-width dot.
///
/// Source: cel-go common/error.go.
fn shown(issue: &Issue, source: &Source<'_>) -> String {
    let Some((line, column)) = issue.position else {
        return format!("ERROR: <input>:-1:0: {}", issue.message);
    };
    let head = format!("ERROR: <input>:{line}:{column}: {}", issue.message);
    let Some(text) = source.line(line).filter(|text| text.len() <= MAX_SNIPPET_LENGTH) else { return head };
    let mut letters = text.chars();
    let mut pointer = String::new();
    for letter in letters.by_ref().take((column as usize).saturating_sub(1)) {
        pointer.push(if letter.is_ascii() { '.' } else { '．' });
    }
    pointer.push(if letters.next().is_none_or(|letter| letter.is_ascii()) { '^' } else { '＾' });
    format!("{head}\n | {}\n | {pointer}", text.replace('\t', " "))
}

#[cfg(test)]
mod tests {
    use super::{Issues, Source};

    fn report(text: &str, places: &[Option<u32>]) -> String {
        let source = Source::new(text);
        let mut issues = Issues::default();
        for (index, place) in places.iter().enumerate() {
            issues.add(&source, *place, format!("e{index}"));
        }
        issues.into_report(&source).to_string()
    }

    #[test]
    fn errors_come_in_the_order_of_the_text_with_a_caret() {
        assert_eq!(
            report("a\n\tbé+", &[Some(5), Some(0), Some(4), None]),
            "ERROR: <input>:-1:0: e3\n\
             ERROR: <input>:1:1: e1\n | a\n | ^\n\
             ERROR: <input>:2:3: e2\n |  bé+\n | ..＾\n\
             ERROR: <input>:2:4: e0\n |  bé+\n | ..．^"
        );
    }

    #[test]
    fn an_empty_text_is_not_shown() {
        assert_eq!(report("", &[Some(0)]), "ERROR: <input>:1:1: e0");
    }

    #[test]
    fn more_than_a_hundred_errors_are_counted() {
        let text = report("a", &[Some(0); 102]);
        assert_eq!(text.lines().last(), Some("2 more errors were truncated"));
        assert_eq!(text.matches("ERROR").count(), 100);
    }
}
