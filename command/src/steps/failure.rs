//! Defines the error of a failed step.

use std::error::Error;
use std::fmt;

/// The prefix of a message line that suggests how to fix the failure.
pub(crate) const HELP: &str = "help: ";

/// The prefix of a message line that explains the failure.
pub(crate) const NOTE: &str = "note: ";

/// The reason why a step failed.
///
/// Lines of the message that begin with [`HELP`] or [`NOTE`] are shown below the message.
pub(crate) struct StepFailure(String);

/// The result of a step or of a part of it.
pub(crate) type Outcome<T = ()> = Result<T, StepFailure>;

impl StepFailure {
    /// Creates a failure with the message `message`.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(output::without_error_numbers(&message.to_string()).into_owned())
    }

    /// Returns the failure with a line of help. The run shows this line separately from the message.
    pub(crate) fn with_help(self, help: Option<impl fmt::Display>) -> Self {
        match help {
            Some(help) => Self(format!("{}\n{HELP}{help}", self.0)),
            None => self,
        }
    }

    /// Returns the failure with `what`, the action that failed, as a prefix of the message.
    pub(crate) fn during(self, what: impl fmt::Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl<E: Error> From<E> for StepFailure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !message.contains(&cause_text) {
                message = format!("{message}: {cause_text}");
            }
            source = cause.source();
        }
        Self::new(message)
    }
}

impl fmt::Display for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
