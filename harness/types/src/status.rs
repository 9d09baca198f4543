//! Builds the `v1 Status` that the server returns for errors.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A `v1 Status`.
///
/// Source: apimachinery pkg/apis/meta/v1/types.go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The string `Status`; empty only in a timeout response.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The string `v1`; empty if `kind` is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// An empty `ListMeta`.
    pub metadata: Value,
    /// The outcome: `Success` or `Failure`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The machine-readable reason, such as `NotFound`; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The object that the error is about, and the individual causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP status code.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(code: &i32) -> bool {
    *code == 0
}

/// The `details` of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The object's kind or resource: the server uses either.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's UID.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The causes, one for each invalid field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// The number of seconds to wait before a retry; zero if unspecified.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: i32,
}

/// An item of `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// The machine-readable reason, such as `FieldValueRequired`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The human-readable message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field's path, such as `webhooks[0].name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A validation error in an object. A 422 response lists these errors.
///
/// Source: apimachinery pkg/util/validation/field/errors.go.
/// Rule: VLD-01.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// The reason for the error, such as `FieldValueRequired` or `FieldValueInvalid`.
    pub reason: &'static str,
    /// The field's path, such as `spec.containers[0].name`.
    pub field: String,
    /// The error message, with the invalid value: `Invalid value: "x": must be …`.
    pub detail: String,
}

/// The maximum number of errors in one response.
///
/// kube-apiserver limits only the size of the body. Each byte of a body can cause an error of a few hundred bytes.
pub const MAX_ERRORS: usize = 100_000;

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}

impl FieldError {
    fn new(reason: &'static str, field: impl Into<String>, detail: String) -> Self {
        Self { reason, field: field.into(), detail }
    }

    /// Creates an error for a missing field. `why` may be empty.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let text =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self::new("FieldValueRequired", field, text)
    }

    /// Creates an error for an invalid value. `value` must be formatted: strings in quotes. `why` may be empty.
    pub fn invalid(field: impl Into<String>, value: impl fmt::Display, why: impl fmt::Display) -> Self {
        let mut text = format!("Invalid value: {value}: {why}");
        if text.ends_with(": ") && why.to_string().is_empty() {
            text.truncate(text.len() - 2);
        }
        Self::new("FieldValueInvalid", field, text)
    }

    /// Creates an error for an invalid value that is not included in the message.
    pub fn invalid_unshown(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {why}"))
    }

    /// Creates an error for a value that is not supported.
    ///
    /// `value` and the list `supported` must be formatted: strings in quotes.
    pub fn not_supported(
        field: impl Into<String>,
        value: impl fmt::Display,
        supported: impl fmt::Display,
    ) -> Self {
        let text = format!("Unsupported value: {value}: supported values: {supported}");
        Self::new("FieldValueNotSupported", field, text)
    }

    /// Creates an error for a duplicate value. `value` must be formatted: strings in quotes.
    pub fn duplicate(field: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    /// Creates an error for a reference to a missing object. `value` must be formatted: strings in quotes.
    pub fn not_found(field: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    /// Creates an error for a duplicate value that is not included in the message.
    pub(crate) fn duplicate_unshown(field: impl Into<String>) -> Self {
        Self::new("FieldValueDuplicate", field, "Duplicate value".to_owned())
    }

    /// Creates an error for a forbidden field, or for a field with a forbidden value. `why` may be empty.
    pub fn forbidden(field: impl Into<String>, why: impl fmt::Display) -> Self {
        let text = format!("Forbidden: {why}");
        let text = text.strip_suffix(": ").map(str::to_owned).unwrap_or(text);
        Self::new("FieldValueForbidden", field, text)
    }

    /// Creates an error for a value that the server cannot process.
    pub fn internal(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new("InternalError", field, format!("Internal error: {why}"))
    }

    /// Creates an error for a list of more than `limit` items.
    pub fn too_many(field: impl Into<String>, count: impl fmt::Display, limit: impl fmt::Display) -> Self {
        let limit = limit.to_string();
        let items = if limit == "1" { "item" } else { "items" };
        let text = format!("Too many: {count}: must have at most {limit} {items}");
        Self::new("FieldValueTooMany", field, text)
    }

    /// Creates an error for a string of more than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: impl fmt::Display) -> Self {
        let limit = limit.to_string();
        let bytes = if limit == "1" { "byte" } else { "bytes" };
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {limit} {bytes}"))
    }

    /// Creates an error for a value of the wrong type. `value` must be formatted: strings in quotes.
    pub(crate) fn type_invalid(
        field: impl Into<String>,
        value: impl fmt::Display,
        why: impl fmt::Display,
    ) -> Self {
        Self { reason: "FieldValueTypeInvalid", ..Self::invalid(field, value, why) }
    }
}

impl Status {
    /// Creates a failure with a code, a reason, and a message.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: "Status".to_owned(),
            api_version: "v1".to_owned(),
            metadata: json!({}),
            status: "Failure".to_owned(),
            message: message.into(),
            reason: reason.to_owned(),
            details: None,
            code: i32::from(code),
        }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(StatusDetails {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..StatusDetails::default()
        });
        self
    }

    /// Creates a 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    /// Creates a 404: the object does not exist. `resource` is the plural name of the resource.
    ///
    /// Source: apimachinery pkg/api/errors/errors.go, `NewNotFound`.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", group_resource(group, resource));
        Self::failure(404, "NotFound", message).about(group, resource, name)
    }

    /// Creates a 409: the object already exists.
    ///
    /// Source: `NewAlreadyExists`.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", group_resource(group, resource));
        Self::failure(409, "AlreadyExists", message).about(group, resource, name)
    }

    /// Creates a 409: the name that the server generated from `generateName` already exists.
    ///
    /// Source: `NewGenerateNameConflict`.
    /// Rule: CHN-05.
    pub fn generate_name_conflict(group: &str, resource: &str, name: &str) -> Self {
        let mut status = Self::already_exists(group, resource, name);
        status.message += ", the server was not able to generate a unique name for the object";
        if let Some(details) = &mut status.details {
            details.retry_after_seconds = 1;
        }
        status
    }

    /// Creates a 409: another request has changed the object in the meantime.
    ///
    /// Source: `NewConflict`.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", group_resource(group, resource));
        Self::failure(409, "Conflict", message).about(group, resource, name)
    }

    /// Creates a 403: the user lacks permission, or an admission plugin rejects the request.
    ///
    /// The message omits an empty name and an empty resource.
    ///
    /// Source: `NewForbidden`.
    /// Rule: MC-12, NEW-11.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let resource_text = group_resource(group, resource);
        let message = if resource.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource_text} is forbidden: {why}")
        } else {
            format!("{resource_text} \"{name}\" is forbidden: {why}")
        };
        Self::failure(403, "Forbidden", message).about(group, resource, name)
    }

    /// Creates a 422 that lists the errors of an object, or a 501 if there are too many errors to list.
    ///
    /// Source: `NewInvalid`.
    /// Rule: VLD-01.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        if errors.len() > MAX_ERRORS {
            let what = format!("objects with more than {MAX_ERRORS} errors");
            return Self::unsupported(&Unsupported { what });
        }
        let kind_text = group_resource(group, kind);
        let message = if errors.is_empty() {
            format!("{kind_text} \"{name}\" is invalid")
        } else {
            let list = aggregate(errors.iter().map(ToString::to_string));
            format!("{kind_text} \"{name}\" is invalid: {list}")
        };
        let mut status = Self::failure(422, "Invalid", message).about(group, kind, name);
        if let Some(details) = &mut status.details {
            details.causes = errors
                .iter()
                .map(|error| StatusCause {
                    reason: error.reason.to_owned(),
                    message: error.detail.clone(),
                    field: error.field.clone(),
                })
                .collect();
        }
        status
    }

    /// Creates a 500 `InternalError`: `Internal error occurred: <message>`.
    ///
    /// Source: `NewInternalError`.
    pub fn internal_error(message: &str) -> Self {
        let mut status = Self::failure(500, "InternalError", format!("Internal error occurred: {message}"));
        status.details = Some(StatusDetails {
            causes: vec![StatusCause { message: message.to_owned(), ..StatusCause::default() }],
            ..StatusDetails::default()
        });
        status
    }

    /// Creates a 504 `Timeout`: `Timeout: <message>`.
    ///
    /// Source: `NewTimeoutError`.
    pub fn timeout(message: &str) -> Self {
        let mut status = Self::failure(504, "Timeout", format!("Timeout: {message}"));
        status.details = Some(StatusDetails::default());
        status
    }

    /// Creates a 429: the server is overloaded. The client may retry after the given number of seconds.
    ///
    /// Source: apimachinery pkg/api/errors/errors.go, `NewTooManyRequests`; for the message, apiserver
    /// pkg/server/filters/priority-and-fairness.go, `tooManyRequests`.
    pub fn too_many_requests(retry_after_seconds: i32) -> Self {
        let message = "Too many requests, please try again later.";
        let details = StatusDetails { retry_after_seconds, ..StatusDetails::default() };
        Self { details: Some(details), ..Self::failure(429, "TooManyRequests", message) }
    }

    /// Creates a 501: admit does not support a feature of kube-apiserver. kube-apiserver never returns this Status.
    pub fn unsupported(what: &Unsupported) -> Self {
        Self::failure(501, "NotImplemented", format!("{UNSUPPORTED_PREFIX}{}", what.what))
    }
}

/// The prefix of all messages from [`Status::unsupported`].
pub const UNSUPPORTED_PREFIX: &str = "admit does not support this: ";

/// A feature of kube-apiserver that admit does not support. admit reports it instead of guessing a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported: {what}")]
pub struct Unsupported {
    /// The feature, as it appears in error messages, such as `match conditions (webhook "x")`.
    pub what: String,
}

/// Combines the distinct errors into one message; empty if there are none.
///
/// Source: apimachinery pkg/util/errors/errors.go, `aggregate.Error`.
pub fn aggregate(errors: impl IntoIterator<Item = String>) -> String {
    let errors: Vec<String> = errors.into_iter().collect();
    let mut seen = HashSet::new();
    let different: Vec<&str> =
        errors.iter().map(String::as_str).filter(|error| seen.insert(*error)).collect();
    match different.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Formats a resource with its group, such as `widgets.example.com`; for the core group, returns only the resource.
pub fn group_resource(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
