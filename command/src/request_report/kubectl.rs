//! Formats the result of a request as kubectl does.

use std::fmt::Write as _;

use harness::attributes::Operation;
use harness::chain::{Sent, Verdict};
use harness::status::Status;
use serde::Deserialize as _;
use serde_json::Value;

use super::RequestReport;

/// Returns kubectl's output for the provisional verdict, such as `pod/web created (server dry run)` or `Error from server
/// (Forbidden): …`.
pub(super) fn message(request: &RequestReport, sent: &Sent, file: &str) -> String {
    if sent.provisional == Verdict::Admitted { success(request, sent) } else { failure(request, sent, file) }
}

/// Returns kubectl's output for an admitted request.
///
/// Source: kubectl pkg/cmd/{create,replace,delete,scale}; cli-runtime pkg/printers/name.go.
fn success(request: &RequestReport, sent: &Sent) -> String {
    let kind = &request.kind;
    let mut resource = kind.kind.to_lowercase();
    if !kind.group.is_empty() {
        let _ = write!(resource, ".{}", kind.group);
    }
    let answered = sent.body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let name = if request.name.is_empty() { answered } else { &request.name };
    let dry_run = if request.dry_run { " (server dry run)" } else { "" };
    let done = match (request.operation, request.subresource.as_str()) {
        (Operation::Delete, _) if name.is_empty() => {
            return format!("{resource}: collection deleted{dry_run}");
        }
        (_, "") if request.patch.is_some() => "patched".to_owned(),
        (_, subresource) if request.patch.is_some() => format!("{subresource} patched"),
        (Operation::Create, "") => "created".to_owned(),
        (Operation::Update, "") => "replaced".to_owned(),
        (Operation::Update, "scale") => "scaled".to_owned(),
        (Operation::Create, "eviction") => "evicted".to_owned(),
        (Operation::Delete, _) => {
            let from = match request.namespace.as_str() {
                "" => String::new(),
                namespace => format!(" from {namespace} namespace"),
            };
            return format!("{resource} \"{name}\" deleted{from}{dry_run}");
        }
        (Operation::Connect, subresource) => format!("{subresource} admitted"),
        (Operation::Create, subresource) => format!("{subresource} created"),
        (Operation::Update, subresource) => format!("{subresource} replaced"),
    };
    format!("{resource}/{name} {done}{dry_run}")
}

/// Returns kubectl's error for a request that was not admitted.
///
/// Source: kubectl pkg/cmd/util/helpers.go, `checkErr`, `StandardErrorMessage` and `AddSourceToErr`.
fn failure(request: &RequestReport, sent: &Sent, file: &str) -> String {
    if sent.code == 0 {
        return "no response: the client disconnected, or the server stopped".to_owned();
    }
    let Ok(status) = Status::deserialize(&sent.body) else {
        return if sent.body.is_null() {
            format!("Error from server: HTTP {}", sent.code)
        } else {
            sent.body.to_string()
        };
    };
    if status.reason == "Invalid"
        && let Some(details) = &status.details
    {
        let mut text = format!("The {} \"{}\" is invalid", details.kind, details.name);
        let causes: Vec<String> = details
            .causes
            .iter()
            .map(|cause| {
                if cause.field.is_empty() {
                    cause.message.clone()
                } else {
                    format!("{}: {}", cause.field, cause.message)
                }
            })
            .collect();
        match causes.as_slice() {
            [] => {}
            [cause] => {
                let _ = write!(text, ": {cause}");
            }
            causes => {
                text.push_str(": ");
                for cause in causes {
                    let _ = write!(text, "\n* {cause}");
                }
            }
        }
        return text;
    }
    let reason = match status.reason.as_str() {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    if file.is_empty() {
        return format!("Error from server{reason}: {}", status.message);
    }
    let doing = match request.operation {
        Operation::Create => "creating",
        Operation::Update => "replacing",
        Operation::Delete => "deleting",
        Operation::Connect => return format!("Error from server{reason}: {}", status.message),
    };
    format!("Error from server{reason}: error when {doing} \"{file}\": {}", status.message)
}
