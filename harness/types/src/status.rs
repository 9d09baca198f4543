//! What the server answers instead of an object: a `v1 Status`.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A `v1 Status`, as the API returns it for an error.
///
/// Source: apimachinery pkg/apis/meta/v1/types.go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Status` on the way to a client, who is not told only where the request's time is up.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `v1` where `kind` is there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// An empty `ListMeta`.
    pub metadata: Value,
    /// `Success` or `Failure`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For machines, such as `NotFound`; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Which object, and the single causes.
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

/// `details` of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The object's kind, or its resource: the server itself is not of one mind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry for each thing that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds to wait before the next try; zero for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: i32,
}

/// One of `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// For machines, such as `FieldValueRequired`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field's path, such as `webhooks[0].name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// One thing that is wrong with an object: a line of a 422.
///
/// Source: apimachinery pkg/util/validation/field/errors.go.
/// Rule: VLD-01.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// `FieldValueRequired`, `FieldValueInvalid`, `FieldValueNotSupported`, `FieldValueDuplicate`,
    /// `FieldValueForbidden` …: the reason of the cause.
    pub reason: &'static str,
    /// The field's path.
    pub field: String,
    /// What is wrong, with the bad value, as in `Invalid value: "x": must be …`.
    pub detail: String,
}

/// How many errors one answer can list. kube-apiserver has no limit but that of the body, of which each byte can be an
/// error of some hundred bytes.
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

    /// A field that must be there; `why` may be empty.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let text =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self::new("FieldValueRequired", field, text)
    }

    /// A value that is wrong; `value` as it is shown, a text with its quotes. `why` may be empty.
    pub fn invalid(field: impl Into<String>, value: impl fmt::Display, why: impl fmt::Display) -> Self {
        let mut text = format!("Invalid value: {value}: {why}");
        if text.ends_with(": ") && why.to_string().is_empty() {
            text.truncate(text.len() - 2);
        }
        Self::new("FieldValueInvalid", field, text)
    }

    /// A value that is wrong and is not shown.
    pub fn invalid_unshown(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {why}"))
    }

    /// A value that is none of a few; each is shown as it is, a text with its quotes.
    pub fn not_supported(
        field: impl Into<String>,
        value: impl fmt::Display,
        supported: impl fmt::Display,
    ) -> Self {
        let text = format!("Unsupported value: {value}: supported values: {supported}");
        Self::new("FieldValueNotSupported", field, text)
    }

    /// A value that is there twice; as it is shown, a text with its quotes.
    pub fn duplicate(field: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    /// A value that refers to nothing; as it is shown, a text with its quotes.
    pub fn not_found(field: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    /// A value that is there twice and is not shown.
    pub(crate) fn duplicate_unshown(field: impl Into<String>) -> Self {
        Self::new("FieldValueDuplicate", field, "Duplicate value".to_owned())
    }

    /// A field that must not be there, or not so; `why` may be empty.
    pub fn forbidden(field: impl Into<String>, why: impl fmt::Display) -> Self {
        let text = format!("Forbidden: {why}");
        let text = text.strip_suffix(": ").map(str::to_owned).unwrap_or(text);
        Self::new("FieldValueForbidden", field, text)
    }

    /// A value that the server cannot work with.
    pub fn internal(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new("InternalError", field, format!("Internal error: {why}"))
    }

    /// A list of more than `limit` items.
    pub fn too_many(field: impl Into<String>, count: impl fmt::Display, limit: impl fmt::Display) -> Self {
        let limit = limit.to_string();
        let items = if limit == "1" { "item" } else { "items" };
        let text = format!("Too many: {count}: must have at most {limit} {items}");
        Self::new("FieldValueTooMany", field, text)
    }

    /// A text of more than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: impl fmt::Display) -> Self {
        let limit = limit.to_string();
        let bytes = if limit == "1" { "byte" } else { "bytes" };
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {limit} {bytes}"))
    }

    /// A value of another type; as it is shown, a text with its quotes.
    pub(crate) fn type_invalid(
        field: impl Into<String>,
        value: impl fmt::Display,
        why: impl fmt::Display,
    ) -> Self {
        Self { reason: "FieldValueTypeInvalid", ..Self::invalid(field, value, why) }
    }
}

impl Status {
    /// A failure with a code, a reason and a message.
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

    /// 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    /// 404: the object does not exist. `resource` is the plural.
    ///
    /// Source: apimachinery pkg/api/errors/errors.go, `NewNotFound`.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", group_resource(group, resource));
        Self::failure(404, "NotFound", message).about(group, resource, name)
    }

    /// 409: there is one already. Source: `NewAlreadyExists`.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", group_resource(group, resource));
        Self::failure(409, "AlreadyExists", message).about(group, resource, name)
    }

    /// 409: the name that the server made of a `generateName` is taken. Source: `NewGenerateNameConflict`.
    /// Rule: CHN-05.
    pub fn generate_name_conflict(group: &str, resource: &str, name: &str) -> Self {
        let mut status = Self::already_exists(group, resource, name);
        status.message += ", the server was not able to generate a unique name for the object";
        if let Some(details) = &mut status.details {
            details.retry_after_seconds = 1;
        }
        status
    }

    /// 409: somebody else was faster. Source: `NewConflict`.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", group_resource(group, resource));
        Self::failure(409, "Conflict", message).about(group, resource, name)
    }

    /// 403: the user may not do it, or an admission plugin says no. The name is left out of the message when it is empty,
    /// and so is the resource, which a path may not have.
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

    /// 422: the object is invalid, for these reasons. 501 if they are too many to be listed. Source: `NewInvalid`.
    /// Rule: VLD-01.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        if errors.len() > MAX_ERRORS {
            let what = format!("refusing an object for more than {MAX_ERRORS} errors");
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

    /// 500 `InternalError`: `Internal error occurred: <message>`. Source: `NewInternalError`.
    pub fn internal_error(message: &str) -> Self {
        let mut status = Self::failure(500, "InternalError", format!("Internal error occurred: {message}"));
        status.details = Some(StatusDetails {
            causes: vec![StatusCause { message: message.to_owned(), ..StatusCause::default() }],
            ..StatusDetails::default()
        });
        status
    }

    /// 504 `Timeout`: `Timeout: <message>`. Source: `NewTimeoutError`.
    pub fn timeout(message: &str) -> Self {
        let mut status = Self::failure(504, "Timeout", format!("Timeout: {message}"));
        status.details = Some(StatusDetails::default());
        status
    }

    /// 429: the server has more to do than it can; the client may try again after so many seconds.
    ///
    /// Source: apimachinery pkg/api/errors/errors.go, `NewTooManyRequests`; the words are those of apiserver
    /// pkg/server/filters/priority-and-fairness.go, `tooManyRequests`.
    pub fn too_many_requests(retry_after_seconds: i32) -> Self {
        let message = "Too many requests, please try again later.";
        let details = StatusDetails { retry_after_seconds, ..StatusDetails::default() };
        Self { details: Some(details), ..Self::failure(429, "TooManyRequests", message) }
    }

    /// 501: kube-apiserver can do this and admit does not imitate it. Not a Status of Kubernetes.
    pub fn unsupported(what: &Unsupported) -> Self {
        Self::failure(501, "NotImplemented", format!("{NOT_IMITATED}{}", what.what))
    }
}

/// How the message of every [`Status::unsupported`] begins.
pub const NOT_IMITATED: &str = "admit does not imitate this: ";

/// Something that kube-apiserver does and admit does not imitate: said, never guessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported: {what}")]
pub struct Unsupported {
    /// What is not imitated, as a fragment: `match conditions (webhook "x")`.
    pub what: String,
}

/// Several errors as one text, each once: `[a, b]`, one without brackets, and nothing if there are none.
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

/// `widgets.example.com`; the core group has no name.
pub fn group_resource(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
