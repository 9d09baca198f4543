//! Decodes the object in a request body.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::review::decode::{self, type_meta};
use kubernetes_types::json::text as text_at;
use kubernetes_types::json_text;
use kubernetes_types::schema::{self, EmptyFields, Type, strictness};
use kubernetes_types::status::{FieldError, Status};
use kubernetes_types::weight::{expected, weight};
use serde_json::{Value, json};

use super::apply;
pub(crate) use super::field_validation::FieldValidation;
use super::field_validation::yaml;
use super::request::{BodyRetention, ObjectRequest};
use crate::apimachinery::empty_fields;
use crate::apimachinery::metadata;
use crate::apimachinery::protobuf;
use crate::apimachinery::protobuf::{DecodeError, Envelope};
use crate::kinds::apiextensions::custom_resources::CustomResourceInfo;
use crate::kinds::discovery::Resource;
use crate::kinds::strategy;

/// The supported encodings of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// Returns the media type in the `Content-Type` header without its parameters; empty if the header is missing.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, Box<Status>> {
    match media_type(headers) {
        "" | "application/json" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        protobuf::MEDIA_TYPE => Ok(Encoding::Protobuf),
        _ => Err(unknown_format(FORMATS)),
    }
}

const FORMATS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The media types of custom resources, which do not have a protobuf encoding.
///
/// kube-apiserver panics on a protobuf body of a custom resource and closes the connection.
const CUSTOM_FORMATS: &str = "application/json, application/yaml";

/// Source: apiserver pkg/endpoints/handlers/negotiation/errors.go.
pub(crate) fn unknown_format(accepted: &str) -> Box<Status> {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    );
    Box::new(Status::failure(415, "UnsupportedMediaType", message))
}

/// The number of copies of an object that each request holds in memory: the decoded object and the resulting object.
const COPIES: usize = 2;

/// Reserves memory for the object in a JSON body before the body is decoded.
///
/// Returns the number of reserved bytes, so that the caller can adjust the reservation to the actual size later.
///
/// # Errors
/// Returns 429 if other requests use the memory, or 501 if the object exceeds the memory budget.
pub(crate) fn reserve(request: &mut ObjectRequest<'_>) -> Result<usize, Box<Status>> {
    let bytes = expected(&request.body).weight.saturating_mul(copies(request.keep));
    request.reservation.try_grow(bytes)?;
    Ok(bytes)
}

/// Reserves memory for a document that was decoded before its size was known.
///
/// # Errors
/// Returns 429 if other requests use the memory, or 501 if the document exceeds the memory budget.
pub(crate) fn hold(request: &mut ObjectRequest<'_>, read: &Value) -> Result<(), Box<Status>> {
    Ok(request.reservation.try_grow(weight(read).saturating_mul(copies(request.keep)))?)
}

/// Returns the number of copies of an object that a request holds in memory, including copies for the records.
const fn copies(keep: BodyRetention) -> usize {
    match keep {
        BodyRetention::Observed => COPIES + 3,
        BodyRetention::Body => COPIES + 1,
        BodyRetention::Nothing => COPIES,
    }
}

/// Sets the defaults of a decoded object and reserves the memory for them.
///
/// Rule: REQ-16.
///
/// # Errors
/// Returns 429 if other requests use the memory, or 501 if the object exceeds the memory budget.
pub(crate) fn set_defaults(request: &mut ObjectRequest<'_>, object: &mut Value) -> Result<(), Box<Status>> {
    let registry = request.registry;
    let _turn = registry.in_flight.turn(request.body.len());
    let before = weight(object);
    complete(request, object)?;
    let more = weight(object).saturating_sub(before);
    Ok(request.reservation.try_grow(more * copies(request.keep))?)
}

/// Sets the defaults of the object of a request, except where it has an empty list instead of a default.
///
/// # Errors
/// Returns 501 for a schema that admit does not support.
pub(crate) fn complete(request: &ObjectRequest<'_>, object: &mut Value) -> Result<(), Box<Status>> {
    request.registry.state.complete(object).map_err(|unsupported| Status::unsupported(&unsupported))?;
    empty_fields::restore_over_defaults(&request.empty_fields, &request.target.resource.gvr.group, object);
    Ok(())
}

/// Decodes the body as a document of any kind. Returns `None` if the body is empty.
///
/// # Errors
/// Returns 400 if the body cannot be decoded, 415 for an unsupported media type, 429 if other requests use the memory
/// that the document needs, or 501 if the document exceeds the memory budget.
pub(crate) fn document(request: &mut ObjectRequest<'_>) -> Result<Option<Value>, Box<Status>> {
    if request.body.is_empty() {
        return Ok(None);
    }
    let encoding = encoding(&request.headers)?;
    let _turn = request.registry.in_flight.turn(request.body.len());
    if encoding == Encoding::Json {
        reserve(request)?;
    }
    let body = &request.body;
    let read = match encoding {
        Encoding::Json => serde_json::from_slice(body).map_err(|error| error.to_string()),
        Encoding::Yaml => yaml(body),
        Encoding::Protobuf => delete_options(body).map_err(|error| error.to_string()),
    };
    read.map(Some).map_err(|error| Box::new(Status::bad_request(error)))
}

/// Decodes delete options. For any other kind, returns only `apiVersion` and `kind`.
fn delete_options(body: &[u8]) -> Result<Value, DecodeError> {
    let envelope = Envelope::open(body)?;
    let kind = filled_in(&envelope.kind, &GroupVersionKind::new("meta.k8s.io", "v1", "DeleteOptions"));
    if kind.kind == "DeleteOptions" {
        envelope.decode(&kind)
    } else {
        Ok(json!({"apiVersion": kind.api_version(), "kind": kind.kind}))
    }
}

/// Returns the kind in the body, with the fields that the body omits taken from `kind`.
///
/// Source: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, `copyKindDefaults`.
fn filled_in(found: &GroupVersionKind, kind: &GroupVersionKind) -> GroupVersionKind {
    let version = if found.version.is_empty() { kind } else { found };
    let kind = if found.kind.is_empty() { kind } else { found };
    GroupVersionKind::new(version.group.clone(), version.version.clone(), kind.kind.clone())
}

/// Decodes a protobuf object.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `transformDecodeError`.
fn from_protobuf(body: &[u8], kind: &GroupVersionKind) -> Result<Value, Box<Status>> {
    let envelope = Envelope::open(body).map_err(|error| {
        Box::new(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {error} ({})",
            kind.kind,
            start(body)
        )))
    })?;
    let found = filled_in(&envelope.kind, kind);
    envelope.decode(&found).map_err(|error| {
        Box::new(Status::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {error}",
            found.kind,
            found.api_version(),
            kind.kind
        )))
    })
}

/// Decodes the body as an object of `kind`, with `apiVersion` and `kind` set. Warns the client about unknown fields.
///
/// Source: apiserver pkg/endpoints/handlers/create.go and `transformDecodeError` in rest.go.
///
/// # Errors
/// Returns 400 if the body cannot be decoded, is of another kind, or has unknown fields under strict validation; 415
/// for an unsupported media type; 429 if other requests use the memory that the object needs; or 501 if the object
/// exceeds the memory budget.
pub(crate) fn object(request: &mut ObjectRequest<'_>, kind: &GroupVersionKind) -> Result<Value, Box<Status>> {
    let registry = request.registry;
    let _turn = registry.in_flight.turn(request.body.len());
    // The size of other encodings is not known before decoding.
    let reserved = match encoding(&request.headers)? {
        Encoding::Json => reserve(request)?,
        Encoding::Yaml | Encoding::Protobuf => 0,
    };
    let Decoded { object, unknown, empty_fields } =
        read(&request.headers, &request.body, &request.target.resource, kind)?;
    request.empty_fields = empty_fields;
    let takes = weight(&object) * copies(request.keep);
    request.reservation.try_grow(takes.saturating_sub(reserved))?;
    request.reservation.shrink(reserved.saturating_sub(takes));
    let validation = FieldValidation::from_request(request);
    let is_yaml = encoding(&request.headers).is_ok_and(|encoding| encoding == Encoding::Yaml);
    let told = if validation == FieldValidation::Ignore {
        Ok(Vec::new())
    } else if is_yaml {
        let repeated = apply::repeated_keys(std::str::from_utf8(&request.body).unwrap_or_default());
        validation.tell_of_yaml(repeated, strict_errors(request, &unknown, kind))
    } else {
        validation.tell(strict_errors(request, &unknown, kind))
    };
    let told = told.map_err(|why| {
        let GroupVersionKind { kind, version, .. } = GroupVersionKind::from_object(&object);
        Box::new(Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        )))
    })?;
    request.early_warnings.extend(told);
    Ok(object)
}

/// Returns the errors of strict decoding about unknown and duplicate fields, in the order of the fields.
///
/// For a custom resource, the errors about duplicate fields come first.
///
/// Source: sigs.k8s.io/yaml yaml.go, `YAMLToJSONStrict`; apiextensions-apiserver
/// `pkg/apiserver/customresource_handler.go`, `schemaCoercingDecoder`.
fn strict_errors(request: &ObjectRequest<'_>, unknown: &[String], kind: &GroupVersionKind) -> Vec<String> {
    let unknown_fields = || unknown.iter().map(|path| strictness::unknown_field(path));
    let is_json = encoding(&request.headers).is_ok_and(|encoding| encoding == Encoding::Json);
    let Some(text) = std::str::from_utf8(&request.body).ok().filter(|_| is_json) else {
        return unknown_fields().collect();
    };
    if request.target.resource.custom.is_some() {
        let repeated = strictness::errors(text, &[], Type::Free).unwrap_or_default();
        return repeated.into_iter().chain(unknown_fields()).collect();
    }
    strictness::errors(text, unknown, Type::for_kind(kind)).unwrap_or_default()
}

/// The prefix of errors about a body whose kind cannot be decoded.
const UNREADABLE: &str = "couldn't get version/kind; json parse error";

/// A decoded object with the paths of its unknown fields.
struct Decoded {
    object: Value,
    unknown: Vec<String>,
    empty_fields: EmptyFields,
}

/// Decodes the object and returns the paths of its unknown fields.
///
/// Source: apimachinery pkg/runtime/serializer/json/meta.go, `Interpret`; apiserver pkg/endpoints/handlers/rest.go,
/// `transformDecodeError`.
/// Rule: REQ-26.
fn read(
    headers: &HeaderMap,
    body: &Bytes,
    resource: &Resource,
    kind: &GroupVersionKind,
) -> Result<Decoded, Box<Status>> {
    let custom = resource.custom.is_some();
    let encoding = encoding(headers)?;
    let bad = |message: String| Box::new(Status::bad_request(message));
    let read: Result<Value, String> = match encoding {
        Encoding::Protobuf if custom => return Err(unknown_format(CUSTOM_FORMATS)),
        Encoding::Protobuf => {
            let (object, unknown) =
                typed(from_protobuf(body, kind)?, kind, Types::for_resource(resource, kind))?;
            return Ok(Decoded { object, unknown, empty_fields: EmptyFields::default() });
        }
        Encoding::Json => json_text::scan(body, json_text::MAX_DEPTH, |_| {})
            .and_then(|()| serde_json::from_slice(body).map_err(|error| error.to_string())),
        Encoding::Yaml => yaml(body),
    };
    let read = read.map_err(|error| format!("{UNREADABLE}: {error}")).and_then(|read| {
        let wrong = type_meta(&read).err().map(decode::DecodeError::into_text);
        // An `apiVersion` that is a string but invalid is reported elsewhere.
        match wrong.filter(|wrong| wrong.starts_with(UNREADABLE)) {
            Some(wrong) => Err(wrong),
            None if read.is_object() => Ok(read),
            // Go decodes `null` as a struct without fields.
            None if read.is_null() && !custom => Ok(json!({})),
            None if read.is_null() => Err("Object 'Kind' is missing in 'null'".to_owned()),
            None => Err(format!("{UNREADABLE}: json: cannot unmarshal into Go value of type struct")),
        }
    });
    let object = read.map_err(|wrong| {
        let (kind, start) = (&kind.kind, start(body));
        bad(format!("the object provided is unrecognized (must be of type {kind}): {wrong} ({start})"))
    })?;
    let empty_fields = empty_fields::find(&object, kind, resource.built_in_kind());
    let (object, unknown) = typed(object, kind, Types::for_resource(resource, kind))?;
    Ok(Decoded { object, unknown, empty_fields })
}

/// The source of the known fields of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Types<'a> {
    /// The fields of a built-in type.
    Server,
    /// The schema of a custom resource. Without a schema, for example for a subresource, all fields are allowed.
    Custom(Option<&'a CustomResourceInfo>),
}

impl<'a> Types<'a> {
    /// Returns the source of the known fields for objects of `kind` in requests for a resource.
    pub(crate) fn for_resource(resource: &'a Resource, kind: &GroupVersionKind) -> Self {
        match &resource.custom {
            None => Self::Server,
            Some(custom) => Self::Custom((*kind == resource.kind).then_some(custom)),
        }
    }
}

/// Returns the Go package of the internal type of a kind.
pub(crate) fn internal_package(kind: &GroupVersionKind) -> &str {
    match kind.group.as_str() {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split_once('.').map_or(group, |(package, _)| package),
    }
}

/// Checks and normalizes an object. Returns the object and the paths of its unknown fields.
///
/// Sets `apiVersion` and `kind` if an object of a built-in type omits them.
///
/// # Errors
/// Returns 400 if the object is of another kind or a field has a wrong type, 422 if a subresource of a custom resource
/// is of another kind, or 501 for a schema that admit does not support.
pub(crate) fn typed(
    mut object: Value,
    kind: &GroupVersionKind,
    types: Types<'_>,
) -> Result<(Value, Vec<String>), Box<Status>> {
    let bad = |message: String| Box::new(Status::bad_request(message));
    let found = GroupVersionKind::from_object(&object);
    if let Types::Custom(custom) = types {
        check_custom(&object, &found, kind)?;
        if custom.is_none() && found.kind != kind.kind {
            let why = format!("must be {}", kind.kind);
            let error = FieldError::invalid("kind", Value::from(found.kind.as_str()), why);
            let name = metadata::text(&object, "name");
            return Err(Box::new(Status::invalid(&kind.group, &found.kind, name, &[error])));
        }
        return free_form(object, &found, custom.filter(|_| found == *kind));
    }
    let claimed = GroupVersionKind {
        group: if found.version.is_empty() { kind.group.clone() } else { found.group },
        version: if found.version.is_empty() { kind.version.clone() } else { found.version },
        kind: if found.kind.is_empty() { kind.kind.clone() } else { found.kind },
    };
    if claimed != *kind && !strategy::accepts_beta_eviction(&claimed, kind) {
        let why = if claimed.kind == kind.kind {
            format!(
                "no kind \"{}\" is registered for version \"{}\" in scheme \"pkg/runtime/scheme.go:111\"",
                claimed.kind,
                claimed.api_version()
            )
        } else {
            format!(
                "converting ({}.{}) to ({}.{}): unknown conversion",
                claimed.version,
                claimed.kind,
                internal_package(kind),
                kind.kind
            )
        };
        return Err(bad(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            claimed.kind, claimed.version, kind.kind
        )));
    }
    if let Some(members) = object.as_object() {
        schema::type_error(members, kind, "").map_err(|why| {
            let (claimed, version) = (&kind.kind, &kind.version);
            bad(format!("{claimed} in version \"{version}\" cannot be handled as a {claimed}: {why}"))
        })?;
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), kind.api_version().into());
        members.insert("kind".to_owned(), kind.kind.clone().into());
    }
    // Other empty lists are equivalent to absent ones. Empty managedFields have the same meaning as one empty entry.
    let resets = metadata::managed_fields(&object).as_array().is_some_and(Vec::is_empty);
    let unknown = schema::normalize(&mut object, kind);
    if resets {
        metadata::set(&mut object, "managedFields", json!([{}]));
    }
    Ok((object, unknown))
}

/// Decodes a custom resource whose body specifies the kind `found`.
///
/// Without `custom`, only numbers and metadata are normalized. This function also accepts an object of another kind,
/// which validation rejects later.
///
/// # Errors
/// Returns 400 for a field of a wrong type, or 501 for a schema that admit does not support.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `unstructuredSchemaCoercer`.
/// Rule: SCH-01, SCH-19.
pub(crate) fn free_form(
    mut object: Value,
    found: &GroupVersionKind,
    custom: Option<&CustomResourceInfo>,
) -> Result<(Value, Vec<String>), Box<Status>> {
    schema::normalize_numbers(&mut object);
    metadata::check_types(&object, found)?;
    let mut unknown = schema::normalize_metadata(&mut object);
    if let Some(custom) = custom {
        let compiled = custom.schema().map_err(|unsupported| Status::unsupported(&unsupported))?;
        unknown.extend(compiled.decode(&mut object, false).map_err(|error| {
            let (kind, version) = (&found.kind, &found.version);
            let why = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}");
            Status::bad_request(why)
        })?);
    }
    Ok((object, unknown))
}

/// Checks that a custom resource has a kind and the expected version. Validation checks the kind later.
///
/// Source: apimachinery pkg/runtime/serializer/json/meta.go; apiserver pkg/endpoints/handlers/create.go.
fn check_custom(
    object: &Value,
    found: &GroupVersionKind,
    kind: &GroupVersionKind,
) -> Result<(), Box<Status>> {
    let unrecognized = |why: &str, text: &str| {
        Box::new(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            kind.kind,
            start(text.as_bytes())
        )))
    };
    let text = || serde_json::to_string(object).unwrap_or_default();
    if let Some(why) = no_version(object) {
        return Err(unrecognized(&why, &text()));
    }
    if found.kind.is_empty() {
        let text = text();
        return Err(unrecognized(&format!("Object 'Kind' is missing in '{text}'"), &text));
    }
    if found.api_version() != kind.api_version() {
        return Err(Box::new(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            found.api_version(),
            kind.api_version()
        ))));
    }
    Ok(())
}

/// Returns the reason why the `apiVersion` of an object is invalid; `None` if it is valid.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `ParseGroupVersion`.
pub(crate) fn no_version(object: &Value) -> Option<String> {
    let version = text_at(object, &["apiVersion"]);
    (version.split('/').count() > 2).then(|| format!("unexpected GroupVersion string: {version}"))
}

/// Returns the first bytes of a body for an error message.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `summarizeData`.
fn start(body: &[u8]) -> String {
    use std::fmt::Write as _;
    const MAX_SUMMARY_LENGTH: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let cut = body.get(..MAX_SUMMARY_LENGTH).unwrap_or(body);
    let more = if body.len() > MAX_SUMMARY_LENGTH { " ..." } else { "" };
    if body.first() == Some(&b'{') {
        return format!("{}{more}", String::from_utf8_lossy(cut));
    }
    let mut text = String::new();
    for byte in cut {
        let _ = write!(text, "{byte:02x}");
    }
    text + more
}
