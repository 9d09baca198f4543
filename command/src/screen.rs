//! Writes everything that the command prints to standard output and standard error.
//!
//! Standard output is either text for people, which cannot control a terminal, or a document for programs. The command
//! fails if it cannot write to standard output, unless the reader closed the pipe early, as `head` does.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::LazyLock;

use indicatif::MultiProgress;

use crate::Failure;

/// Prints a status line on standard error, formatted as by `format!`.
macro_rules! status {
    ($($arguments:tt)*) => {
        $crate::screen::print_status(&format!($($arguments)*))
    };
}
pub(crate) use status;

/// The progress bars on standard error. They are hidden while the command prints something else.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Prints `text` on standard output for people. `text` must contain its newlines.
///
/// Styles are kept if the terminal shows colors. Other escape sequences are printed as text.
///
/// # Errors
/// Returns an error if standard output cannot be written to. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(&output::styled(text))
}

/// Prints a document for programs on standard output without changes.
///
/// # Errors
/// Returns an error if standard output cannot be written to. A closed pipe is not an error.
pub(crate) fn print_document(text: &str) -> Result<(), Failure> {
    outcome(without_bars(|| {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    }))
}

fn write(text: &str) -> Result<(), Failure> {
    outcome(without_bars(|| {
        let mut out = anstream::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    }))
}

/// Hides the progress bars while `write` runs.
///
/// `write` must lock a stream only after this call, because the thread that draws the bars locks the bars first.
fn without_bars(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    BARS.suspend(write)
}

fn outcome(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(format!("cannot write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints `line` on standard error; ignores errors, because there is no other place to report them.
pub(crate) fn print_status(line: &str) {
    prompt(&format!("{line}\n"));
}

/// Prints the error that ends the command.
pub(crate) fn report(failure: &Failure) {
    print_status(&format!("error: {}", output::lines(&failure.to_string())));
}

/// Prints `text` on standard error without a trailing newline.
pub(crate) fn prompt(text: &str) {
    let text = output::styled(text);
    let _: io::Result<()> = without_bars(|| {
        let mut out = anstream::stderr().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    });
}

/// Returns the progress bars, so that the caller can add a bar.
pub(crate) fn bars() -> &'static MultiProgress {
    &BARS
}

/// Returns whether standard error is a terminal that can redraw a line.
pub(crate) fn redraws() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The symbols in front of passed and failed items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The symbol for passed items.
    pub(crate) passed: &'static str,
    /// The symbol for failed items.
    pub(crate) failed: &'static str,
}

impl Marks {
    /// The symbols for terminals that show colors.
    pub(crate) const UNICODE: Self = Self { passed: "\u{2714}", failed: "\u{2718}" };
    /// The symbols for scenarios and steps in files, pipes, and plain terminals.
    pub(crate) const ASCII: Self = Self { passed: "ok", failed: "FAIL" };
    /// The symbols for decisions of webhooks in files, pipes, and plain terminals.
    pub(crate) const ASCII_DECISIONS: Self = Self { passed: "ok", failed: "x" };

    /// Returns the marks for standard output: `plain` if colors are off, otherwise [`Self::UNICODE`].
    pub(crate) fn of_stdout(plain: Self) -> Self {
        let choice = anstream::AutoStream::choice(&io::stdout());
        if choice == anstream::ColorChoice::Never { plain } else { Self::UNICODE }
    }

    /// Returns the width of the column that contains the marks.
    pub(crate) fn width(self) -> usize {
        self.passed.chars().count().max(self.failed.chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        assert!(outcome(Err(ErrorKind::BrokenPipe.into())).is_ok());
        let failure = outcome(Err(io::Error::from(ErrorKind::StorageFull))).unwrap_err();
        assert_eq!(failure.to_string(), "cannot write to standard output: no storage space");
        assert_eq!(failure.code, crate::ExitCode::Environment);
    }
}
