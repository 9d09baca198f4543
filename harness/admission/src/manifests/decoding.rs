//! Decodes a manifest document as the API server's strict decoder does.
//!
//! Source: apimachinery pkg/runtime/serializer/json/json.go, `Serializer.Decode` and `unmarshal`.

use kubernetes_types::json::json_type;
use kubernetes_types::json_text::{self, MAX_DEPTH};
use kubernetes_types::schema::{self, Type, strictness};
use kubernetes_types::status::Unsupported;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use crate::attributes::GroupVersionKind;
use crate::config::{self, MUTATING, VALIDATING};
use crate::yaml;

const GROUP: &str = "admissionregistration.k8s.io";
/// The name of the scheme in the server's error messages.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// The decoded content of a document.
#[derive(Debug)]
pub(super) enum Decoded {
    /// The configurations of a kind, with `apiVersion` and `kind` set and without unknown fields.
    Configurations(Vec<Value>),
    /// The items of a `v1` `List`, each as a JSON document; a null item is an empty string.
    List(Vec<String>),
}

/// The reason why a document cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// The document is invalid. Contains the error of kube-apiserver's decoder.
    Invalid(String),
    /// The document is not a configuration of the expected kind; the error is kube-apiserver's.
    OtherKind(String),
    Unsupported(Unsupported),
}

impl From<String> for DecodeError {
    fn from(text: String) -> Self {
        Self::Invalid(text)
    }
}

/// A document converted to JSON.
struct Json {
    text: String,
    value: Value,
    /// The error for duplicate keys in a YAML document. In JSON, a later check of `text` finds duplicate keys.
    repeated: Option<String>,
}

/// Returns the configurations of `kind` in a document, or the items of a list.
///
/// Rule: LOAD-11.
pub(super) fn decode(document: &[u8], kind: &str) -> Result<Decoded, DecodeError> {
    let json = json(document)?;
    let found = interpret(&json.value, document)?;
    let list = format!("{kind}List");
    let is_v1 = found.api_version() == config::API_VERSION;
    match found.kind.as_str() {
        "List" if found.api_version() == "v1" => items(&json),
        name if is_v1 && name == kind => configuration(&json, kind),
        name if is_v1 && name == list => typed_list(&json, kind),
        _ => Err(unexpected(&json, &found)),
    }
}

fn json(document: &[u8]) -> Result<Json, DecodeError> {
    if document.starts_with(b"k8s\0") {
        let what = "a manifest in protobuf: write it as YAML or JSON".to_owned();
        return Err(DecodeError::Unsupported(Unsupported { what }));
    }
    // Go replaces invalid UTF-8 with the replacement character.
    let text = String::from_utf8_lossy(document);
    if text.trim_start().starts_with('{') {
        let unreadable = |error: String| format!("couldn't get version/kind; json parse error: {error}");
        json_text::scan(text.as_bytes(), MAX_DEPTH, |_token| {}).map_err(unreadable)?;
        let value = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        return Ok(Json { text: text.into_owned(), value, repeated: None });
    }
    let text = std::str::from_utf8(document).map_err(|error| format!("yaml: {error}"))?;
    Ok(yaml(text)?)
}

/// Converts YAML to JSON with sorted keys.
///
/// If `text` contains several documents, only the first is used. An end marker may separate documents.
///
/// Source: sigs.k8s.io/yaml yaml.go, `YAMLToJSON` and `YAMLToJSONStrict`.
fn yaml(text: &str) -> Result<Json, String> {
    let yaml::Document { value, repeated, .. } = yaml::first_document(text)?;
    let repeated = (!repeated.is_empty()).then(|| yaml::strict_error(&repeated));
    Ok(Json { text: value.to_string(), value, repeated })
}

/// Returns the `apiVersion` and `kind` of the document. Both field names are matched case-insensitively.
///
/// Source: apimachinery pkg/runtime/serializer/json/meta.go, `SimpleMetaFactory.Interpret`.
fn interpret(value: &Value, document: &[u8]) -> Result<GroupVersionKind, String> {
    let unreadable =
        |what: String| format!("couldn't get version/kind; json parse error: json: cannot unmarshal {what}");
    let empty = serde_json::Map::new();
    let members = match value {
        Value::Object(members) => members,
        Value::Null => &empty,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let shape = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
            return Err(unreadable(format!("{} into Go value of type {shape}", json_type(value))));
        }
    };
    let text = |field: &str| {
        let member = members.iter().rfind(|(name, _)| name.eq_ignore_ascii_case(field));
        match member.map(|(_, value)| value) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => {
                Err(unreadable(format!("{} into Go struct field .{field} of type string", json_type(other))))
            }
        }
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let missing =
        |field: &str| format!("Object '{field}' is missing in '{}'", String::from_utf8_lossy(document));
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    if kind.is_empty() {
        return Err(missing("Kind"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.is_empty() {
        return Err(missing("apiVersion"));
    }
    Ok(GroupVersionKind::new(group, version, kind))
}

fn configuration(json: &Json, kind: &str) -> Result<Decoded, DecodeError> {
    let (configuration, unknown) = fields(&json.value, kind, "")?;
    check_strictly(json, &unknown)?;
    Ok(Decoded::Configurations(vec![configuration]))
}

/// Rejects unknown fields and duplicate keys.
fn check_strictly(json: &Json, unknown: &[String]) -> Result<(), String> {
    let errors = strictness::errors(&json.text, unknown, Type::Free)?;
    strictness::refuse(json.repeated.iter().cloned().chain(errors))
}

/// Decodes a list of one kind: the `apiVersion` and `kind` of its items are ignored and may be missing.
fn typed_list(json: &Json, kind: &str) -> Result<Decoded, DecodeError> {
    let list = format!("{kind}List");
    let mut unknown = list_fields(&json.value)?;
    let mut configurations = Vec::new();
    for (index, item) in list_items(&json.value, &list, &format!("v1.{kind}"))?.iter().enumerate() {
        let mut item = match item {
            Value::Object(members) => members.clone(),
            Value::Null => serde_json::Map::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                let found = json_type(other);
                return Err(format!(
                    "json: cannot unmarshal {found} into Go struct field {list}.items of type v1.{kind}"
                )
                .into());
            }
        };
        for field in ["apiVersion", "kind"] {
            if let Some(other) = item.remove(field).filter(|value| !value.is_string() && !value.is_null()) {
                let found = json_type(&other);
                return Err(format!(
                    "json: cannot unmarshal {found} into Go struct field {kind}.items.TypeMeta.{field} of type string"
                )
                .into());
            }
        }
        let (configuration, of_item) = fields(&Value::Object(item), kind, "items.")?;
        unknown.extend(of_item.into_iter().map(|path| format!("items[{index}].{path}")));
        configurations.push(configuration);
    }
    check_strictly(json, &unknown)?;
    Ok(Decoded::Configurations(configurations))
}

fn items(json: &Json) -> Result<Decoded, DecodeError> {
    #[derive(serde::Deserialize)]
    struct List {
        #[serde(default)]
        items: Option<Vec<Option<Box<RawValue>>>>,
    }
    let unknown = list_fields(&json.value)?;
    list_items(&json.value, "List", "runtime.RawExtension")?;
    let errors = strictness::list_errors(&json.text, &unknown)?;
    strictness::refuse(json.repeated.iter().cloned().chain(errors))?;
    let list: List = serde_json::from_str(&json.text).map_err(|error| error.to_string())?;
    let text = |item: Option<Box<RawValue>>| item.map(|item| item.get().to_owned()).unwrap_or_default();
    Ok(Decoded::List(list.items.unwrap_or_default().into_iter().map(text).collect()))
}

/// Returns the configuration with only the fields that its Go type has, and the paths of all other fields.
fn fields(value: &Value, kind: &str, path: &str) -> Result<(Value, Vec<String>), String> {
    let mut value = value.clone();
    let gvk = GroupVersionKind::new(GROUP, "v1", kind);
    if let Some(members) = value.as_object_mut() {
        schema::type_error(members, &gvk, path)?;
        members.insert("apiVersion".to_owned(), config::API_VERSION.into());
        members.insert("kind".to_owned(), kind.into());
    }
    let unknown = schema::normalize(&mut value, &gvk);
    Ok((value, unknown))
}

/// Returns the unknown fields of a list, excluding the unknown fields of its items.
fn list_fields(list: &Value) -> Result<Vec<String>, String> {
    const KNOWN: [&str; 4] = ["apiVersion", "kind", "metadata", "items"];
    const METADATA: [&str; 5] =
        ["continue", "remainingItemCount", "resourceVersion", "selfLink", "shardInfo"];
    let names = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let unknown = names(list).into_iter().filter(|name| !KNOWN.contains(&name.as_str()));
    let metadata = list.get("metadata").unwrap_or(&Value::Null);
    if !metadata.is_object() && !metadata.is_null() {
        let found = json_type(metadata);
        let kind = list.get("kind").and_then(Value::as_str).unwrap_or_default();
        return Err(format!(
            "json: cannot unmarshal {found} into Go struct field {kind}.metadata of type v1.ListMeta"
        ));
    }
    for field in ["continue", "resourceVersion", "selfLink"] {
        if let Some(other) = metadata.get(field).filter(|value| !value.is_string() && !value.is_null()) {
            let found = json_type(other);
            return Err(format!(
                "json: cannot unmarshal {found} into Go struct field ListMeta.metadata.{field} of type string"
            ));
        }
    }
    let in_metadata = names(metadata).into_iter().filter(|name| !METADATA.contains(&name.as_str()));
    Ok(unknown.chain(in_metadata.map(|name| format!("metadata.{name}"))).collect())
}

fn list_items<'a>(list: &'a Value, kind: &str, go_type: &str) -> Result<&'a [Value], String> {
    match list.get("items") {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => {
            let found = json_type(other);
            Err(format!(
                "json: cannot unmarshal {found} into Go struct field {kind}.items of type []{go_type}"
            ))
        }
    }
}

/// Returns the error for an object of any other kind. For known kinds, errors about unknown fields come first.
///
/// Source: kubernetes pkg/admission/plugin/webhook/manifest/loader/loader.go, `init` and `acceptObject`; api
/// admissionregistration/*/register.go.
fn unexpected(json: &Json, found: &GroupVersionKind) -> DecodeError {
    const POLICIES: [&str; 4] = [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    const UNVERSIONED: [&str; 5] = ["Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"];
    const OPTIONS: [&str; 6] =
        ["ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"];
    let GroupVersionKind { group, version, kind } = found;
    let is_policy = POLICIES.contains(&kind.strip_suffix("List").unwrap_or(kind));
    let is_configuration = [MUTATING, VALIDATING].contains(&kind.strip_suffix("List").unwrap_or(kind));
    let go_version = match (group.as_str(), version.as_str()) {
        ("", "v1") if UNVERSIONED.contains(&kind.as_str()) => Some("v1"),
        (GROUP, "v1" | "v1beta1") if is_policy || is_configuration => Some(version.as_str()),
        (GROUP, "v1alpha1") if is_policy => Some("v1alpha1"),
        (GROUP, "v1" | "v1beta1" | "v1alpha1") if OPTIONS.contains(&kind.as_str()) => Some("v1"),
        _ => None,
    };
    let Some(go_version) = go_version else {
        let version = found.api_version();
        let text =
            format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{SCHEME}\"");
        return DecodeError::Invalid(text);
    };
    let unknown = match fields(&json.value, kind, "") {
        Ok((_, unknown)) if version == "v1" && is_configuration => unknown,
        Ok(_) | Err(_) => Vec::new(),
    };
    match check_strictly(json, &unknown) {
        Err(text) => DecodeError::Invalid(text),
        Ok(()) => DecodeError::OtherKind(format!("unsupported resource type *{go_version}.{kind}")),
    }
}
