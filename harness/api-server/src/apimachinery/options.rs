//! Parses `CreateOptions`, `UpdateOptions`, and `DeleteOptions` from the query and the body.

use std::num::{IntErrorKind, ParseIntError};

use kubernetes_types::json::set;
use kubernetes_types::status::{FieldError, Status};
use serde_json::{Map, Value, json};

use super::query::Query;
use crate::apimachinery::metadata;

/// The API group of the options.
pub(crate) const GROUP: &str = "meta.k8s.io";

/// The fields of `DeleteOptions`; other fields are ignored.
///
/// Source: apimachinery pkg/apis/meta/v1/types.go, `DeleteOptions`.
const DELETE_OPTIONS_FIELDS: [&str; 8] = [
    "kind",
    "apiVersion",
    "gracePeriodSeconds",
    "preconditions",
    "orphanDependents",
    "propagationPolicy",
    "dryRun",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
];

#[derive(Clone, Debug)]
pub(crate) struct RequestOptions {
    /// The options in the form in which `request.options` of an `AdmissionReview` contains them.
    pub(crate) document: Value,
    pub(crate) dry_run: bool,
}

/// Returns the options of a create, an update, or a patch.
///
/// `kind` is `CreateOptions`, `UpdateOptions`, or `PatchOptions`.
///
/// Admission receives the options of a patch as `UpdateOptions`.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `patchToUpdateOptions`; apimachinery
/// pkg/apis/meta/v1/validation/validation.go.
/// Rule: REQ-12.
///
/// # Errors
/// Returns 422 for an invalid value.
pub(crate) fn of_write(kind: &str, query: &Query) -> Result<RequestOptions, Box<Status>> {
    of_kind(kind, query, false)
}

/// Returns the options of a server-side apply. An apply requires a field manager.
///
/// Rule: APY-04.
///
/// # Errors
/// Returns 422 for an invalid value or a missing field manager.
pub(crate) fn of_apply(query: &Query) -> Result<RequestOptions, Box<Status>> {
    of_kind("PatchOptions", query, true)
}

fn of_kind(kind: &str, query: &Query, is_apply: bool) -> Result<RequestOptions, Box<Status>> {
    let shown = if kind == "PatchOptions" { "UpdateOptions" } else { kind };
    let mut document = json!({"kind": shown, "apiVersion": "meta.k8s.io/v1"});
    let mut errors = Vec::new();
    let dry_run = dry_run(query.all("dryRun"), &mut errors);
    if !query.all("dryRun").is_empty() {
        set(&mut document, &["dryRun"], json!(query.all("dryRun")));
    }
    let manager = query.first("fieldManager").unwrap_or_default();
    let mut managers = Vec::new();
    if is_apply && manager.is_empty() {
        managers.push(FieldError::required("fieldManager", "is required for apply patch"));
    } else if kind == "PatchOptions" && !is_apply && query.first("force").is_some() {
        managers.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    managers.extend(metadata::manager_errors(manager, "fieldManager"));
    errors.splice(0..0, managers);
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.first(field).filter(|value| !value.is_empty()) {
            set(&mut document, &[field], value);
        }
    }
    let validation = query.first("fieldValidation").unwrap_or_default();
    if !["", "Ignore", "Strict", "Warn"].contains(&validation) {
        errors.push(FieldError::not_supported(
            "fieldValidation",
            Value::from(validation),
            "\"\", \"Ignore\", \"Strict\", \"Warn\"",
        ));
    }
    if errors.is_empty() {
        Ok(RequestOptions { document, dry_run })
    } else {
        Err(Box::new(Status::invalid(GROUP, kind, "", &errors)))
    }
}

/// Returns the options of a delete: the body, or the query if there is no body.
///
/// Source: apiserver pkg/endpoints/handlers/delete.go.
///
/// # Errors
/// Returns 400 for a body of a different kind, or 422 for an invalid value.
pub(crate) fn of_delete(body: Option<Value>, query: &Query) -> Result<RequestOptions, Box<Status>> {
    let mut members = match body {
        Some(Value::Object(members)) => members,
        Some(_) | None => of_delete_query(query)?,
    };
    let kind = members.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions").to_owned();
    if kind != "DeleteOptions" {
        let version = members.get("apiVersion").and_then(Value::as_str).unwrap_or("v1");
        return Err(Box::new(Status::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        ))));
    }
    members.insert("kind".to_owned(), kind.into());
    members.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    members.retain(|member, value| !is_empty(value) && DELETE_OPTIONS_FIELDS.contains(&member.as_str()));
    let mut errors = Vec::new();
    let policy = members.get("propagationPolicy").and_then(Value::as_str);
    if let (Some(policy), Some(_)) = (policy, members.get("orphanDependents")) {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", Value::from(policy), why));
    }
    if let Some(policy) = policy.filter(|policy| !["Foreground", "Background", "Orphan"].contains(policy)) {
        errors.push(FieldError::not_supported(
            "propagationPolicy",
            Value::from(policy),
            "\"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        ));
    }
    let wanted: Vec<String> = members
        .get("dryRun")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|value| value.as_str().unwrap_or_default().to_owned())
        .collect();
    let dry_run = dry_run(&wanted, &mut errors);
    errors.extend(unsafe_deletion_errors(&members));
    if errors.is_empty() {
        Ok(RequestOptions { document: Value::Object(members), dry_run })
    } else {
        Err(Box::new(Status::invalid(GROUP, "DeleteOptions", "", &errors)))
    }
}

fn of_delete_query(query: &Query) -> Result<Map<String, Value>, Box<Status>> {
    let mut members = Map::new();
    if !query.all("dryRun").is_empty() {
        members.insert("dryRun".to_owned(), json!(query.all("dryRun")));
    }
    if let Some(policy) = query.first("propagationPolicy") {
        members.insert("propagationPolicy".to_owned(), policy.into());
    }
    if let Some(text) = query.first("gracePeriodSeconds") {
        let seconds = text.parse::<i64>().map_err(|error| not_an_integer(text, &error))?;
        members.insert("gracePeriodSeconds".to_owned(), seconds.into());
    }
    for name in ["orphanDependents", UNSAFE_DELETION] {
        if let Some(value) = truth(query, name) {
            members.insert(name.to_owned(), value.into());
        }
    }
    Ok(members)
}

fn dry_run(values: &[String], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| value != "All") {
        errors.push(FieldError::not_supported("dryRun", json!(values), "\"All\""));
    }
    !values.is_empty()
}

/// Parses a boolean query parameter; `None` if absent.
///
/// Source: apimachinery pkg/runtime/conversion.go, `Convert_Slice_string_To_bool`.
pub(crate) fn truth(query: &Query, name: &str) -> Option<bool> {
    query.first(name).map(|value| !value.eq_ignore_ascii_case("false") && value != "0")
}

/// Returns the `timeoutSeconds` and the `limit` of a collection request; 0 if absent.
///
/// kube-apiserver parses these parameters before all others.
///
/// # Errors
/// Returns 400 for a value that is not a 64-bit integer.
///
/// Source: apimachinery `pkg/apis/meta/v1/zz_generated.conversion.go`, `autoConvert_url_Values_To_v1_ListOptions`.
/// Rule: LST-12.
pub(crate) fn timeout_and_limit(query: &Query) -> Result<(i64, i64), Box<Status>> {
    let integer = |field| {
        let integer = |text: &str| text.parse::<i64>().map_err(|error| not_an_integer(text, &error));
        query.first(field).map_or(Ok(0), integer)
    };
    Ok((integer("timeoutSeconds")?, integer("limit")?))
}

/// Builds the 400 for a query parameter that is not a 64-bit integer.
fn not_an_integer(text: &str, error: &ParseIntError) -> Box<Status> {
    let why = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        IntErrorKind::Empty | IntErrorKind::InvalidDigit | IntErrorKind::Zero | _ => "invalid syntax",
    };
    let text = Value::from(text);
    Box::new(Status::bad_request(format!("strconv.ParseInt: parsing {text}: {why}")))
}

/// The name of the delete option that requests unsafe deletion.
pub(crate) const UNSAFE_DELETION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Returns whether delete options request unsafe deletion.
pub(crate) fn requests_unsafe_deletion(options: &Map<String, Value>) -> bool {
    options.get(UNSAFE_DELETION) == Some(&Value::Bool(true))
}

/// Returns an error for each option that conflicts with unsafe deletion.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateIgnoreStoreReadError`.
/// Rule: REQ-23.
fn unsafe_deletion_errors(options: &Map<String, Value>) -> Vec<FieldError> {
    if !requests_unsafe_deletion(options) {
        return Vec::new();
    }
    let others = ["propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"];
    let others = others.iter().filter(|other| options.contains_key(**other));
    others
        .map(|other| {
            FieldError::invalid(UNSAFE_DELETION, true, format!("cannot be set together with .{other}"))
        })
        .collect()
}
