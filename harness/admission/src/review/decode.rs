//! Decodes the bytes of a reply into an object of a known kind, as the API machinery does.

use kubernetes_types::json::json_type;
use kubernetes_types::json_text;
use kubernetes_types::quoting::quote;
use serde_json::{Map, Value};

pub use crate::attributes::GroupVersionKind;
use crate::yaml;

/// The reason why a reply cannot be decoded into the expected object: Go's error message.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodeError {
    text: String,
}

impl DecodeError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Returns the error message.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// A decoded object, with the `apiVersion` and `kind` that the document specifies.
#[derive(Debug)]
pub struct Document {
    /// The fields of the object.
    pub fields: Map<String, Value>,
    /// The `apiVersion` and `kind` that the document specifies.
    pub claimed: GroupVersionKind,
}

/// Decodes `body` as JSON if it starts with a brace, otherwise as YAML.
///
/// Source: apimachinery pkg/runtime/serializer/recognizer/recognizer.go; pkg/runtime/serializer/json/{json,meta}.go.
/// Rule: RSP-01, RSP-03.
///
/// # Errors
/// Returns Go's error if the body is not an object, or if its `apiVersion` or `kind` cannot be read.
pub fn document(body: &[u8]) -> Result<Document, DecodeError> {
    let value = if body.trim_ascii_start().starts_with(b"{") { json(body)? } else { yaml(body)? };
    let claimed = type_meta(&value)?;
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    Ok(Document { fields, claimed })
}

/// Returns the `apiVersion` and `kind` of `document`. Null is treated as an empty object.
///
/// # Errors
/// Returns [`DecodeError`] if the document is not an object, or if one of the two fields is not a string.
///
/// Source: apimachinery pkg/runtime/serializer/json/meta.go, `Interpret`.
pub fn type_meta(document: &Value) -> Result<GroupVersionKind, DecodeError> {
    let fields = match document {
        Value::Object(fields) => fields,
        Value::Null => return Ok(GroupVersionKind::default()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err(not_an_object(other));
        }
    };
    let text = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err(DecodeError::new(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field \
             .{field} of type string",
            json_type(other),
        ))),
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    if api_version.matches('/').count() > 1 {
        return Err(DecodeError::new(format!("unexpected GroupVersion string: {api_version}")));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Ok(GroupVersionKind::new(group, version, kind))
}

/// Decodes `body` into an object of the kind `expected`.
///
/// `kinds` are the kinds of the same group that the webhook client's scheme has in v1 and v1beta1.
///
/// Source: apimachinery pkg/runtime/serializer/versioning/versioning.go; pkg/runtime/error.go; pkg/runtime/scheme.go.
/// Rule: RSP-04, RSP-05.
pub(super) fn review(
    body: &[u8],
    expected: &GroupVersionKind,
    kinds: &[&str],
) -> Result<Document, DecodeError> {
    let document = document(body)?;
    if document.claimed == *expected {
        return Ok(document);
    }
    let meant = with_defaults(&document.claimed, expected);
    if meant == *expected {
        return Ok(document);
    }
    Err(DecodeError::new(match go_package(&meant, &expected.group, kinds) {
        Some(package) => format!(
            "converting ({package}.{}) to ({}.{}): unknown conversion",
            meant.kind, expected.version, expected.kind,
        ),
        None => not_registered(&meant),
    }))
}

/// Returns `claimed` with its missing parts filled in from `defaults`.
///
/// Source: apimachinery pkg/runtime/serializer/json/json.go, `gvkWithDefaults`.
pub fn with_defaults(claimed: &GroupVersionKind, defaults: &GroupVersionKind) -> GroupVersionKind {
    let mut meant = claimed.clone();
    if meant.kind.is_empty() {
        meant.kind.clone_from(&defaults.kind);
    }
    if meant.version.is_empty() && meant.group.is_empty() {
        meant.group.clone_from(&defaults.group);
        meant.version.clone_from(&defaults.version);
    }
    meant
}

/// Returns the error for a `kind` that a scheme does not contain.
///
/// Source: apimachinery pkg/runtime/error.go, `notRegisteredErr`.
pub fn not_registered(kind: &GroupVersionKind) -> String {
    let unknown = if kind.version == "__internal" {
        format!("the internal version of group {}", quote(&kind.group))
    } else {
        format!("version {}", quote(&kind.api_version()))
    };
    let kind = quote(&kind.kind);
    format!("no kind {kind} is registered for {unknown} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// Returns the Go package of `kind` in a scheme that has `kinds` of `group` in v1 and v1beta1; `None` for other kinds.
///
/// Some kinds, such as `Status`, have the same package in all versions.
///
/// Source: apiserver pkg/util/webhook/client.go; apimachinery pkg/apis/meta/v1/register.go, `AddToGroupVersion`.
pub fn go_package<'a>(kind: &'a GroupVersionKind, group: &str, kinds: &[&str]) -> Option<&'a str> {
    match kind.kind.as_str() {
        "Status" | "APIVersions" | "APIGroup" | "APIGroupList" | "APIResourceList" => Some("v1"),
        _ if kind.group != group || !matches!(kind.version.as_str(), "v1" | "v1beta1") => None,
        "WatchEvent" | "ListOptions" | "GetOptions" | "DeleteOptions" | "CreateOptions" | "UpdateOptions"
        | "PatchOptions" => Some("v1"),
        name => kinds.contains(&name).then_some(kind.version.as_str()),
    }
}

fn json(body: &[u8]) -> Result<Value, DecodeError> {
    let parse_error =
        |text: &str| DecodeError::new(format!("couldn't get version/kind; json parse error: {text}"));
    json_text::scan(body, json_text::MAX_DEPTH, |_| {}).map_err(|text| parse_error(&text))?;
    // Like Go, replace invalid UTF-8 instead of rejecting it. The remaining errors are numbers and depths beyond
    // serde_json's range.
    serde_json::from_str(&String::from_utf8_lossy(body)).map_err(|error| parse_error(&error.to_string()))
}

/// Decodes YAML. If there are several documents, only the first is used.
fn yaml(body: &[u8]) -> Result<Value, DecodeError> {
    let text = String::from_utf8_lossy(body);
    yaml::first_document(&text).map(|document| document.value).map_err(DecodeError::new)
}

fn not_an_object(value: &Value) -> DecodeError {
    DecodeError::new(format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct \
         {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        json_type(value),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 1] = ["AdmissionReview"];

    #[test]
    fn a_version_defaults_only_if_the_group_is_missing() {
        let expected = GroupVersionKind::new("admission.k8s.io", "v1", "AdmissionReview");
        let meant =
            |group, version, kind| with_defaults(&GroupVersionKind::new(group, version, kind), &expected);
        assert_eq!(meant("", "", ""), expected);
        assert_eq!(
            meant("", "", "Status"),
            GroupVersionKind { kind: "Status".to_owned(), ..expected.clone() }
        );
        for (group, version) in [("", "v1beta1"), ("apps", "")] {
            assert_eq!(meant(group, version, "Pod"), GroupVersionKind::new(group, version, "Pod"));
        }
    }

    #[test]
    fn some_kinds_are_the_same_in_all_versions() {
        let package = |group, version, kind| {
            go_package(&GroupVersionKind::new(group, version, kind), "admission.k8s.io", &KINDS)
                .map(str::to_owned)
        };
        assert_eq!(package("admission.k8s.io", "v1beta1", "AdmissionReview").as_deref(), Some("v1beta1"));
        assert_eq!(package("admission.k8s.io", "v1beta1", "PatchOptions").as_deref(), Some("v1"));
        assert_eq!(package("apps", "v1beta1", "PatchOptions"), None);
        assert_eq!(package("apps", "v2", "Status").as_deref(), Some("v1"));
    }
}
