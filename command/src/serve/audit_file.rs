//! The file of `--audit-log`: one event a line, and which events are in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::json::set;
use harness::server::{AuditPolicy, AuditSink};
use serde_json::{Map, Value};

use super::line_file::LineFile;
use super::log::Log;
use crate::{Failure, documents};

/// What is written, under the names that kube-apiserver has for its flags, but for the file itself.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditFlags {
    /// Append audit.k8s.io/v1 Events to this file, one per line; without a policy one per request, at level Request
    #[arg(long = "audit-log", visible_alias = "audit-log-path", id = "audit_log", value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the events that this audit.k8s.io/v1 Policy selects
    #[arg(long = "audit-policy-file", value_name = "FILE", requires = "audit_log")]
    policy: Option<PathBuf>,
    /// Leave the objects out of events that are larger than --audit-log-truncate-max-event-size
    #[arg(long = "audit-log-truncate-enabled", id = "truncates", requires = "audit_log")]
    truncates: bool,
    /// The size of an event in bytes above which its objects are left out; events that are still larger are not written
    #[arg(
        long = "audit-log-truncate-max-event-size",
        value_name = "BYTES",
        default_value_t = 102_400,
        requires = "truncates"
    )]
    max_event_size: usize,
}

impl AuditFlags {
    /// The policy, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub(crate) fn policy(&self) -> Result<Option<AuditPolicy>, Failure> {
        self.policy.as_deref().map(policy).transpose()
    }

    /// The file, if there is to be one.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(&self, log: Log) -> Result<Option<AuditFile>, Failure> {
        let most = self.truncates.then_some(self.max_event_size);
        self.log.as_deref().map(|path| AuditFile::open(path, most, log)).transpose()
    }
}

/// The policy of `--audit-policy-file`.
///
/// # Errors
/// It cannot be read, or is none.
pub(crate) fn policy(path: &Path) -> Result<AuditPolicy, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("--audit-policy-file {}: {why}", path.display()))
    };
    let bytes = output::read(path).map_err(|error| wrong(&error))?;
    let text = documents::text(bytes, path.display())?;
    let document = serde_saphyr::from_str(&text).map_err(|error| wrong(&error))?;
    AuditPolicy::parse(&document).map_err(|why| wrong(&why))
}

/// A file that takes events; readable by its owner alone, since requests hold secrets.
#[derive(Clone, Debug)]
pub(crate) struct AuditFile {
    lines: LineFile,
    /// How many bytes an event may have.
    most: Option<usize>,
    /// Where it is said that events are lost.
    log: Log,
}

impl AuditFile {
    /// Opens the file to append to it, and makes it if there is none.
    pub(crate) fn open(path: &Path, most: Option<usize>, log: Log) -> Result<Self, Failure> {
        Ok(Self { lines: LineFile::open("audit log", path, log)?, most, log })
    }

    /// Writes each event at once: whoever waits for its line finds it whole, and memory holds no queue.
    pub(crate) fn sink(&self) -> AuditSink {
        let Self { lines, most, log } = self.clone();
        Arc::new(move |event: &Value| {
            let mut line = event.to_string();
            line.push('\n');
            if let Some(most) = most
                && line.len() > most
            {
                match truncated(event, most) {
                    Some(shorter) => line = shorter,
                    None => return log.error("an audit event is too large even after truncating"),
                }
            }
            lines.write(&line);
        })
    }

    /// Whether every event was written.
    ///
    /// # Errors
    /// One was not.
    pub(crate) fn is_whole(&self) -> Result<(), Failure> {
        self.lines.is_whole("events")
    }
}

/// The line of an event without its objects; none if it is still too large.
///
/// Source: apiserver plugin/pkg/audit/truncate/truncate.go.
fn truncated(event: &Value, most: usize) -> Option<String> {
    let mut event = event.clone();
    let members = event.as_object_mut()?;
    if members.get("level").is_none_or(|level| level == "Metadata") {
        return None;
    }
    members.remove("requestObject");
    members.remove("responseObject");
    members.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    set(&mut event, &["annotations", "audit.k8s.io/truncated"], "true");
    let line = format!("{event}\n");
    (line.len() <= most).then_some(line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::super::log::TEXT;
    use super::*;

    #[test]
    fn events_are_appended_one_a_line_for_the_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        for number in [1, 2] {
            AuditFile::open(&path, None, TEXT).unwrap().sink()(&json!({"a": number, "b": "x\ny"}));
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"a\":1,\"b\":\"x\\ny\"}\n{\"a\":2,\"b\":\"x\\ny\"}\n"
        );
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_event_that_cannot_be_written_is_a_failure() {
        let log = AuditFile::open(Path::new("/dev/full"), None, TEXT).unwrap();
        log.is_whole().unwrap();
        log.sink()(&json!({}));
        log.sink()(&json!({}));
        assert_eq!(
            log.is_whole().unwrap_err().to_string(),
            "2 events are missing in the audit log /dev/full: No space left on device (os error 28)"
        );
    }

    #[test]
    fn half_a_line_of_a_killed_server_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "{\"a\":1}\n{\"a\":").unwrap();
        AuditFile::open(&path, None, TEXT).unwrap().sink()(&json!({"a": 2}));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"a\":2}\n");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let failure = AuditFile::open(Path::new("/nowhere/audit.log"), None, TEXT).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "cannot write the audit log /nowhere/audit.log: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_large_event_loses_its_objects_and_a_larger_one_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let sink = AuditFile::open(&path, Some(150), TEXT).unwrap().sink();
        let long = "x".repeat(200);
        sink(&json!({"level": "Request", "auditID": "a", "requestObject": {"a": long}}));
        sink(&json!({"level": "RequestResponse", "auditID": "b", "requestURI": long}));
        sink(&json!({"level": "Metadata", "auditID": "c", "annotations": {"a": long}}));
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"annotations\":{\"audit.k8s.io/truncated\":\"true\"},\"auditID\":\"a\",\"level\":\"Request\"}\n"
        );
    }
}
