//! Reports errors in fakes files.

use std::fmt;

use serde_saphyr::Location;

use crate::behavior::Behavior;
use crate::suggestion::plain_yaml_message;

/// An error in a fakes file, with its line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    file: String,
    line: u64,
    column: u64,
    message: String,
    quoted: String,
}

impl std::error::Error for FileError {}

impl FileError {
    pub(super) fn at(file: &str, text: &str, place: Location, message: String) -> Self {
        let (line, column) = (place.line(), place.column());
        let index = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        let quoted = index.and_then(|index| text.lines().nth(index)).unwrap_or_default();
        Self { file: file.to_owned(), line, column, message, quoted: quoted.chars().take(200).collect() }
    }

    pub(super) fn unreadable(file: &str, text: &str, error: &serde_saphyr::Error) -> Self {
        let place = error.location().unwrap_or(Location::UNKNOWN);
        let message = error.without_snippet().to_string();
        let suffix = format!(" at line {}, column {}", place.line(), place.column());
        let message = message.strip_suffix(&suffix).map(str::to_owned).unwrap_or(message);
        let message = needed_parameters(&message, text, place.line(), place.column())
            .unwrap_or_else(|| plain_yaml_message(&message));
        Self::at(file, text, place, message)
    }
}

/// Explains the YAML error `message` of a behavior whose value is not a map of its parameters.
///
/// `line` and `column` are the place of the error in `text`, counted from 1. Returns `None` for other errors.
pub fn needed_parameters(message: &str, text: &str, line: u64, column: u64) -> Option<String> {
    if message != "expected mapping start" {
        return None;
    }
    let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let before: String = line.chars().take(usize::try_from(column).ok()?.checked_sub(1)?).collect();
    let key = before.trim_end().strip_suffix(':')?.rsplit(['{', ' ', ',']).next()?;
    let parameters = Behavior::parameters(key)?;
    Some(format!("`{key}` needs a map of its parameters: expected {parameters}"))
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, quoted } = self;
        if *line == 0 {
            return write!(f, "{file}: {message}");
        }
        write!(f, "{file}:{line}:{column}: {message}")?;
        // The quoted line shows the field, which the messages about values do not contain.
        if quoted.trim().is_empty() { Ok(()) } else { write!(f, "\n  {line} | {quoted}") }
    }
}
