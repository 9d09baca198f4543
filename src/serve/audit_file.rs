//! The file of `--audit-log`: one event a line.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use harness::server::AuditSink;
use serde_json::Value;

use crate::Failure;

/// A file that takes events; readable by its owner alone, since requests hold secrets.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
}

impl AuditFile {
    /// Opens the file to append to it, and makes it if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file = file.map_err(|error| {
            Failure::environment(format!("cannot write the audit log {}: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes each event at once: whoever waits for its line finds it whole, and memory holds no queue.
    pub(crate) fn into_sink(self) -> AuditSink {
        let Self { path, file } = self;
        let file = Mutex::new(Some(file));
        Arc::new(move |event: &Value| {
            let mut line = event.to_string();
            line.push('\n');
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(open) = file.as_mut() else { return };
            if let Err(error) = open.write_all(line.as_bytes()) {
                anstream::eprintln!("error: the audit log {} ends here: {error}", path.display());
                *file = None;
            }
        })
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
            AuditFile::open(&path).unwrap().into_sink()(&json!({"a": number, "b": "x\ny"}));
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"a\":1,\"b\":\"x\\ny\"}\n{\"a\":2,\"b\":\"x\\ny\"}\n"
        );
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
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
