//! Selects audit events and writes them to the file of `--audit-log`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::json::set;
use harness::server::{AuditPolicy, AuditSink};
use serde_json::{Map, Value};

use super::line_file::LineFile;
use super::log::Log;
use crate::{Failure, documents};

/// The options for the audit log. They are named as in kube-apiserver, except for `--audit-log`.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditFlags {
    /// Append audit.k8s.io/v1 Events to this file, one per line; without a policy, one per request at level Request
    #[arg(long = "audit-log", visible_alias = "audit-log-path", id = "audit_log", value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write only the events that this audit.k8s.io/v1 Policy selects
    #[arg(long = "audit-policy-file", value_name = "FILE", requires = "audit_log")]
    policy: Option<PathBuf>,
    /// Remove the objects from events larger than --audit-log-truncate-max-event-size
    #[arg(long = "audit-log-truncate-enabled", id = "truncates", requires = "audit_log")]
    truncates: bool,
    /// Remove the objects from events larger than this number of bytes; events that are still larger are dropped
    #[arg(
        long = "audit-log-truncate-max-event-size",
        value_name = "BYTES",
        default_value_t = 102_400,
        requires = "truncates"
    )]
    max_event_size: usize,
}

impl AuditFlags {
    /// Reads the audit policy, if `--audit-policy-file` is set.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a policy.
    pub(crate) fn policy(&self) -> Result<Option<AuditPolicy>, Failure> {
        self.policy.as_deref().map(policy).transpose()
    }

    /// Opens the audit log, if `--audit-log` is set.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub(crate) fn open(&self, log: Log) -> Result<Option<AuditFile>, Failure> {
        let max_event_size = self.truncates.then_some(self.max_event_size);
        self.log.as_deref().map(|path| AuditFile::open(path, max_event_size, log)).transpose()
    }
}

/// Reads the policy of `--audit-policy-file`.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a policy.
pub(crate) fn policy(path: &Path) -> Result<AuditPolicy, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("--audit-policy-file {}: {why}", path.display()))
    };
    let bytes = output::read_for_server(path).map_err(|error| wrong(&error))?;
    let text = documents::text(bytes, path.display())?;
    let document = serde_saphyr::from_str(&text).map_err(|error| wrong(&error))?;
    AuditPolicy::parse(&document).map_err(|why| wrong(&why))
}

/// A file for audit events. Only its owner can read it, because requests may contain secrets.
#[derive(Clone, Debug)]
pub(crate) struct AuditFile {
    lines: LineFile,
    /// The maximum size of an event, in bytes, if large events are truncated.
    max_event_size: Option<usize>,
    /// The log for errors about lost events.
    log: Log,
}

impl AuditFile {
    /// Opens the file for appending, and creates it if necessary.
    pub(crate) fn open(path: &Path, max_event_size: Option<usize>, log: Log) -> Result<Self, Failure> {
        Ok(Self { lines: LineFile::open("audit log", path, log)?, max_event_size, log })
    }

    /// Returns a sink that writes each event immediately, so that lines are complete and no queue is needed.
    pub(crate) fn sink(&self) -> AuditSink {
        let Self { lines, max_event_size, log } = self.clone();
        Arc::new(move |event: &Value| {
            let mut line = event.to_string();
            line.push('\n');
            if let Some(max_event_size) = max_event_size
                && line.len() > max_event_size
            {
                match truncated(event, max_event_size) {
                    Some(shorter) => line = shorter,
                    None => return log.error("an audit event is too large even after truncating"),
                }
            }
            lines.write(&line);
        })
    }

    /// Checks that every event was written.
    ///
    /// # Errors
    /// Returns an error if an event could not be written.
    pub(crate) fn check_complete(&self) -> Result<(), Failure> {
        self.lines.check_complete("events")
    }
}

/// Returns the line of an event without its objects, or `None` if the line is still too large.
///
/// Source: apiserver plugin/pkg/audit/truncate/truncate.go.
fn truncated(event: &Value, max_event_size: usize) -> Option<String> {
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
    (line.len() <= max_event_size).then_some(line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::super::log::TEXT;
    use super::*;

    #[test]
    fn events_are_appended_as_lines_readable_only_by_the_owner() {
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
        log.check_complete().unwrap();
        log.sink()(&json!({}));
        log.sink()(&json!({}));
        assert_eq!(
            log.check_complete().unwrap_err().to_string(),
            "2 events are missing in the audit log /dev/full: No space left on device"
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
            "cannot write the audit log /nowhere/audit.log: No such file or directory"
        );
    }

    #[test]
    fn a_large_event_loses_its_objects_and_a_larger_one_is_dropped() {
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
