//! Files that get a line at a time.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::log::Log;
use crate::Failure;

/// A file that takes lines; readable by its owner alone.
#[derive(Clone, Debug)]
pub(crate) struct LineFile {
    /// What the file is, such as `audit log`.
    what: &'static str,
    path: PathBuf,
    state: Arc<Mutex<State>>,
    /// Where it is said that lines are lost.
    log: Log,
}

#[derive(Debug)]
enum State {
    Open(File),
    /// A line could not be written, and none is after it: why.
    Ended(String),
}

impl LineFile {
    /// Opens the file to append to it, and makes it if there is none.
    pub(crate) fn open(what: &'static str, path: &Path, log: Log) -> Result<Self, Failure> {
        let file = output::open_to_append(path).map_err(|error| {
            Failure::environment(format!("cannot write the {what} {}: {error}", path.display()))
        })?;
        Ok(Self { what, path: path.to_owned(), state: Arc::new(Mutex::new(State::Open(file))), log })
    }

    /// Writes a line, which ends with a line break, at once: memory holds no queue.
    pub(crate) fn write(&self, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Open(file) = &mut *state else { return };
        if let Err(error) = file.write_all(line.as_bytes()) {
            self.log.error(&format!("the {} {} ends here: {error}", self.what, self.path.display()));
            *state = State::Ended(error.to_string());
        }
    }

    /// Whether every line was written; `what` names those that are missing, such as `events`.
    ///
    /// # Errors
    /// One was not.
    pub(crate) fn is_whole(&self, what: &str) -> Result<(), Failure> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(_) => Ok(()),
            State::Ended(why) => Err(Failure::environment(format!(
                "{what} are missing at the end of the {} {}: {why}",
                self.what,
                self.path.display()
            ))),
        }
    }
}
