//! Writes files line by line.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::log::Log;
use crate::Failure;

/// A file that is written line by line. Only its owner can read it.
#[derive(Clone, Debug)]
pub(crate) struct LineFile {
    /// The name of the file in messages, such as `audit log`.
    what: &'static str,
    path: PathBuf,
    state: Arc<Mutex<State>>,
    /// The log for errors about lost lines.
    log: Log,
}

#[derive(Debug)]
struct State {
    file: File,
    /// The number of lines that could not be written.
    lost: u64,
    /// Whether the last line could not be written.
    is_failing: bool,
    /// The reason why the first lost line could not be written.
    reason: String,
}

impl State {
    /// Writes a complete line or nothing. After a failed write, first removes the incomplete line.
    fn write(&mut self, path: &Path, line: &str) -> std::io::Result<()> {
        if self.is_failing {
            output::truncate_to_last_line(&self.file, path)?;
        }
        self.file.write_all(line.as_bytes())
    }
}

impl LineFile {
    /// Opens the file for appending, and creates it if it does not exist.
    ///
    /// Removes an incomplete last line, which a killed server may have left, so that it does not corrupt the next line.
    pub(crate) fn open(what: &'static str, path: &Path, log: Log) -> Result<Self, Failure> {
        let failure = |error: std::io::Error| {
            Failure::environment(format!("cannot write the {what} {}: {error}", path.display()))
        };
        let file = output::open_to_append(path).map_err(failure)?;
        let cut_off = output::truncate_to_last_line(&file, path).map_err(failure)?;
        if cut_off > 0 {
            log.info(&format!("the {what} {} ended within a line: removed {cut_off} bytes", path.display()));
        }
        let state = State { file, lost: 0, is_failing: false, reason: String::new() };
        Ok(Self { what, path: path.to_owned(), state: Arc::new(Mutex::new(state)), log })
    }

    /// Writes `line` immediately and without a queue. The line must end with a newline.
    ///
    /// A line that cannot be written is counted as lost. The next call tries to write again.
    pub(crate) fn write(&self, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (what, path) = (self.what, self.path.display());
        match state.write(&self.path, line) {
            Ok(()) => {
                if std::mem::take(&mut state.is_failing) {
                    self.log
                        .info(&format!("writing the {what} {path} again: {} lines are missing", state.lost));
                }
            }
            Err(error) => {
                state.lost += 1;
                if !state.is_failing {
                    let message = format!("cannot write the {what} {path}: {error}");
                    self.log.error(&output::without_error_numbers(&message));
                }
                if state.lost == 1 {
                    state.reason = error.to_string();
                }
                state.is_failing = true;
            }
        }
    }

    /// Checks that every line was written; `what` names the content of the lines in the error, such as `events`.
    ///
    /// # Errors
    /// Returns an error if a line could not be written.
    pub(crate) fn check_complete(&self, what: &str) -> Result<(), Failure> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lost == 0 {
            return Ok(());
        }
        let (file, path) = (self.what, self.path.display());
        Err(Failure::environment(format!(
            "{} {what} are missing in the {file} {path}: {}",
            state.lost, state.reason
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_again_once_writing_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let file = LineFile::open("audit log", &path, super::super::log::TEXT).unwrap();
        let replace =
            |file: &LineFile, other: File| std::mem::replace(&mut file.state.lock().unwrap().file, other);
        file.write("one\n");
        // A file that is open for reading only rejects writes.
        let writable = replace(&file, File::open(&path).unwrap());
        file.write("lost\n");
        replace(&file, writable);
        // The rest of a line that was written only in part.
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"lo").unwrap();
        file.write("two\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        let why = file.check_complete("events").unwrap_err().to_string();
        assert!(why.starts_with("1 events are missing in the audit log "), "{why}");
    }
}
