//! From the bytes of a reply to an object of a known kind, as the API machinery's decoder goes.

use serde_json::{Map, Value};

use super::fields::json_type;
use super::{ReviewVersion, syntax};
use crate::attributes::GroupVersionKind;
use crate::quoting::quote;

/// Why bytes are not the object that was asked for, in Go's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodeError {
    text: String,
}

impl DecodeError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// An object and what it says it is: `apiVersion` and `kind` as they stand in the document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) fields: Map<String, Value>,
    pub(super) claimed: GroupVersionKind,
}

/// Reads `body` as JSON when it begins with a brace, else as YAML.
///
/// Source: apimachinery pkg/runtime/serializer/recognizer/recognizer.go; pkg/runtime/serializer/json/{json,meta}.go.
pub(super) fn document(body: &[u8]) -> Result<Document, DecodeError> {
    let value = if body.trim_ascii_start().starts_with(b"{") { json(body)? } else { yaml(body)? };
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err(not_an_object(&other));
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
    let claimed = GroupVersionKind::new(group, version, kind);
    Ok(Document { fields, claimed })
}

/// The fields of an `AdmissionReview` of `version` in `body`, and the kind that it claims for itself.
///
/// Source: apimachinery pkg/runtime/serializer/versioning/versioning.go; pkg/runtime/error.go; pkg/runtime/scheme.go.
pub(super) fn review(body: &[u8], version: ReviewVersion) -> Result<Document, DecodeError> {
    let document = document(body)?;
    let expected = GroupVersionKind::new("admission.k8s.io", version.as_str(), "AdmissionReview");
    let claimed = &document.claimed;
    let mut meant = claimed.clone();
    if meant.kind.is_empty() {
        meant.kind.clone_from(&expected.kind);
    }
    if meant.version.is_empty() && meant.group.is_empty() {
        meant.group.clone_from(&expected.group);
        meant.version.clone_from(&expected.version);
    }
    if meant == expected {
        return Ok(document);
    }
    if is_registered(&meant) {
        return Err(DecodeError::new(format!(
            "converting ({}.{}) to ({}.AdmissionReview): unknown conversion",
            meant.version,
            meant.kind,
            version.as_str(),
        )));
    }
    Err(DecodeError::new(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quote(&meant.kind),
        quote(&meant.api_version()),
    )))
}

/// Whether the scheme of the webhook client knows `kind`.
///
/// Source: apiserver pkg/util/webhook/client.go; apimachinery pkg/apis/meta/v1/register.go, `AddToGroupVersion`.
fn is_registered(kind: &GroupVersionKind) -> bool {
    const UNVERSIONED: [&str; 5] = ["Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"];
    const EVERYWHERE: [&str; 7] = [
        "AdmissionReview",
        "WatchEvent",
        "ListOptions",
        "GetOptions",
        "DeleteOptions",
        "CreateOptions",
        "UpdateOptions",
    ];
    match (kind.group.as_str(), kind.version.as_str()) {
        ("", "v1") => UNVERSIONED.contains(&kind.kind.as_str()),
        ("admission.k8s.io", "v1" | "v1beta1") => EVERYWHERE.contains(&kind.kind.as_str()),
        _ => false,
    }
}

fn json(body: &[u8]) -> Result<Value, DecodeError> {
    let parse_error =
        |text: &str| DecodeError::new(format!("couldn't get version/kind; json parse error: {text}"));
    syntax::check(body).map_err(|text| parse_error(&text))?;
    // Go replaces bytes that are not UTF-8 rather than refusing them. What is left are numbers and depths beyond
    // serde_json's range.
    serde_json::from_str(&String::from_utf8_lossy(body)).map_err(|error| parse_error(&error.to_string()))
}

fn yaml(body: &[u8]) -> Result<Value, DecodeError> {
    serde_saphyr::from_str(&String::from_utf8_lossy(body))
        .map_err(|error| DecodeError::new(format!("yaml: {}", first_line(&error.to_string()))))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn not_an_object(value: &Value) -> DecodeError {
    DecodeError::new(format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct \
         {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        json_type(value),
    ))
}
