//! The file of `--audit-log`: one event a line.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use harness::server::AuditSink;
use serde_json::Value;

use crate::Failure;

/// A file that takes events; readable by its owner alone, since requests hold secrets.
#[derive(Clone, Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug)]
enum Log {
    Open(File),
    /// An event could not be written, and none is after it: why.
    Ended(String),
}

impl AuditFile {
    /// Opens the file to append to it, and makes it if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let file = output::open_to_append(path).map_err(|error| {
            Failure::environment(format!("cannot write the audit log {}: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), log: Arc::new(Mutex::new(Log::Open(file))) })
    }

    /// Writes each event at once: whoever waits for its line finds it whole, and memory holds no queue.
    pub(crate) fn sink(&self) -> AuditSink {
        let Self { path, log } = self.clone();
        Arc::new(move |event: &Value| {
            let mut line = event.to_string();
            line.push('\n');
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let Log::Open(file) = &mut *log else { return };
            if let Err(error) = file.write_all(line.as_bytes()) {
                anstream::eprintln!("error: the audit log {} ends here: {error}", path.display());
                *log = Log::Ended(error.to_string());
            }
        })
    }

    /// Whether every event was written.
    ///
    /// # Errors
    /// One was not.
    pub(crate) fn is_whole(&self) -> Result<(), Failure> {
        match &*self.log.lock().unwrap_or_else(PoisonError::into_inner) {
            Log::Open(_) => Ok(()),
            Log::Ended(why) => Err(Failure::environment(format!(
                "events are missing at the end of the audit log {}: {why}",
                self.path.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_appended_one_a_line_for_the_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        for number in [1, 2] {
            AuditFile::open(&path).unwrap().sink()(&json!({"a": number, "b": "x\ny"}));
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"a\":1,\"b\":\"x\\ny\"}\n{\"a\":2,\"b\":\"x\\ny\"}\n"
        );
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_event_that_cannot_be_written_is_a_failure() {
        let log = AuditFile::open(Path::new("/dev/full")).unwrap();
        log.is_whole().unwrap();
        log.sink()(&json!({}));
        log.sink()(&json!({}));
        assert_eq!(
            log.is_whole().unwrap_err().to_string(),
            "events are missing at the end of the audit log /dev/full: No space left on device (os error 28)"
        );
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let failure = AuditFile::open(Path::new("/nowhere/audit.log")).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "cannot write the audit log /nowhere/audit.log: No such file or directory (os error 2)"
        );
    }
}
