//! Decodes the object in a request body.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::review::decode::{self, type_meta};
use kubernetes_admission::yaml::Document;
use kubernetes_types::schema::{self, EmptyFields, Type, strictness};
use kubernetes_types::status::Status;
use kubernetes_types::weight::{expected, weight};
use kubernetes_types::{json_numbers, json_text};
use serde_json::{Value, json};

pub(crate) use super::field_validation::FieldValidation;
use super::field_validation::yaml;
use super::object_types::SCHEME;
pub(crate) use super::object_types::{Types, free_form, internal_package, is_custom, no_version, typed};
use super::request::{BodyRetention, ObjectRequest};
use crate::apimachinery::empty_fields;
use crate::apimachinery::metadata;
use crate::apimachinery::options;
use crate::apimachinery::protobuf;
use crate::apimachinery::protobuf::{DecodeError, Envelope};
use crate::kinds::discovery::Resource;

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

/// The media types of custom resources. Custom resources do not have a protobuf encoding.
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

/// Sets the defaults of a request's object, except for empty lists that upstream does not replace with defaults.
///
/// # Errors
/// Returns 501 for a schema that admit does not support.
pub(crate) fn complete(request: &ObjectRequest<'_>, object: &mut Value) -> Result<(), Box<Status>> {
    request.registry.state.complete(object).map_err(|unsupported| Status::unsupported(&unsupported))?;
    empty_fields::restore_over_defaults(&request.empty_fields, &request.target.resource.gvr.group, object);
    Ok(())
}

/// The kind of the options in the body of a deletion.
const DELETE_OPTIONS: &str = "DeleteOptions";

/// Decodes the body of a deletion, which may be of any kind. Returns `None` if the body is empty.
///
/// Checks the types of the fields only if the kind is omitted or `DeleteOptions`.
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
        Encoding::Json | Encoding::Yaml => text(body, encoding).and_then(|Text { value: read, .. }| {
            let kind = type_meta(&read).map_err(decode::DecodeError::into_text)?;
            if let Some(members) = read.as_object().filter(|_| ["", DELETE_OPTIONS].contains(&&*kind.kind)) {
                let kind = GroupVersionKind::new(options::GROUP, "v1", DELETE_OPTIONS);
                schema::type_error(members, &kind, "")
                    .map_err(|error| json_numbers::quoted_as_written(&error, body))?;
            }
            Ok(read)
        }),
        Encoding::Protobuf => delete_options(body).map_err(|error| error.to_string()),
    };
    read.map(Some).map_err(|error| Box::new(Status::bad_request(error)))
}

/// The value of a body in JSON or YAML.
struct Text {
    value: Value,
    /// The first number in JSON that is out of the range of a float.
    out_of_range: Option<String>,
    /// The errors about duplicate keys in YAML.
    repeated: Vec<String>,
}

/// Decodes a body in JSON or YAML. The errors are those of kube-apiserver.
///
/// Source: apimachinery pkg/runtime/serializer/json/json.go, `Decode`, and meta.go, `Interpret`.
fn text(body: &[u8], encoding: Encoding) -> Result<Text, String> {
    if encoding == Encoding::Yaml {
        let Document { value, repeated, .. } = yaml(body)?;
        return Ok(Text { value, out_of_range: None, repeated });
    }
    json_text::scan(body, json_text::MAX_DEPTH, |_| {})
        .and_then(|()| json_numbers::decode(body).map_err(|error| error.to_string()))
        .map(|(value, out_of_range)| Text { value, out_of_range, repeated: Vec::new() })
        .map_err(|error| format!("{UNREADABLE}: {error}"))
}

/// Decodes delete options. For any other kind, returns only `apiVersion` and `kind`.
fn delete_options(body: &[u8]) -> Result<Value, DecodeError> {
    let envelope = Envelope::open(body)?;
    let kind = filled_in(&envelope.kind, &GroupVersionKind::new(options::GROUP, "v1", DELETE_OPTIONS));
    if kind.kind == DELETE_OPTIONS {
        envelope.decode(&kind)
    } else {
        Ok(json!({"apiVersion": kind.api_version(), "kind": kind.kind}))
    }
}

/// Returns the kind in the body. Takes the fields that the body omits from `kind`.
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
/// Returns 400 if the body cannot be decoded, is of a different kind, or has unknown fields under strict validation;
/// 415 for an unsupported media type; 429 if other requests use the memory that the object needs; or 501 if the object
/// exceeds the memory budget.
pub(crate) fn object(request: &mut ObjectRequest<'_>, kind: &GroupVersionKind) -> Result<Value, Box<Status>> {
    let registry = request.registry;
    let _turn = registry.in_flight.turn(request.body.len());
    // The size of other encodings is not known before decoding.
    let reserved = match encoding(&request.headers)? {
        Encoding::Json => reserve(request)?,
        Encoding::Yaml | Encoding::Protobuf => 0,
    };
    let Decoded { object, unknown, repeated, empty_fields } =
        read(&request.headers, &request.body, &request.target.resource, kind)
            .map_err(|status| failed_to_decode(status, &request.target.resource, kind))?;
    request.empty_fields = empty_fields;
    let takes = weight(&object) * copies(request.keep);
    request.reservation.try_grow(takes.saturating_sub(reserved))?;
    request.reservation.shrink(reserved.saturating_sub(takes));
    let validation = FieldValidation::from_request(request);
    let told = if validation == FieldValidation::Ignore {
        Ok(Vec::new())
    } else {
        validation.tell_of_yaml(repeated, strict_errors(request, &unknown, kind))
    };
    let told = told.map_err(|why| {
        let expected = kind;
        let GroupVersionKind { kind, version, .. } = GroupVersionKind::from_object(&object);
        let why = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
        let resource = &request.target.resource;
        failed_to_decode(Box::new(Status::bad_request(why)), resource, expected)
    })?;
    request.early_warnings.extend(told);
    Ok(object)
}

/// Replaces the error for a body that cannot be decoded as the Scale of a custom resource.
///
/// kube-apiserver looks up the Go type of the Scale among the types of the custom resource, and reports that this fails.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `transformDecodeError`; apiextensions-apiserver
/// `pkg/apiserver/customresource_handler.go`, `getOrCreateServingInfoFor`.
fn failed_to_decode(status: Box<Status>, resource: &Resource, kind: &GroupVersionKind) -> Box<Status> {
    let is_custom_scale = matches!(Types::for_resource(resource, kind), Types::CustomScale);
    if !is_custom_scale || status.code != 400 {
        return status;
    }
    Box::new(Status::bad_request(format!("no kind is registered for the type v1.Scale in {SCHEME}")))
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

/// A decoded object with the paths of its unknown fields, and the errors about duplicate keys if the body is YAML.
struct Decoded {
    object: Value,
    unknown: Vec<String>,
    repeated: Vec<String>,
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
    let custom = is_custom(resource, kind);
    let encoding = encoding(headers)?;
    let bad = |message: String| Box::new(Status::bad_request(message));
    let read = match encoding {
        Encoding::Protobuf if custom => return Err(unknown_format(CUSTOM_FORMATS)),
        Encoding::Protobuf => {
            let (object, unknown) =
                typed(from_protobuf(body, kind)?, kind, Types::for_resource(resource, kind))?;
            let (repeated, empty_fields) = (Vec::new(), EmptyFields::default());
            return Ok(Decoded { object, unknown, repeated, empty_fields });
        }
        Encoding::Json | Encoding::Yaml => text(body, encoding),
    };
    let read = read.and_then(|read| {
        let found = type_meta(&read.value).map_err(decode::DecodeError::into_text)?;
        if custom && found.kind.is_empty() {
            return Err(format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body)));
        }
        Ok(read)
    });
    let Text { value, out_of_range, repeated } = read.map_err(|wrong| {
        let (kind, start) = (&kind.kind, start(body));
        bad(format!("the object provided is unrecognized (must be of type {kind}): {wrong} ({start})"))
    })?;
    // Go decodes `null` as a struct without fields.
    let object = if value.is_null() { json!({}) } else { value };
    if let Some(number) = out_of_range.filter(|_| custom) {
        let GroupVersionKind { kind, version, .. } = GroupVersionKind::from_object(&object);
        let why = not_a_float(&number);
        return Err(bad(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}")));
    }
    let empty_fields = empty_fields::find(&object, kind, resource.built_in_kind());
    let (object, unknown) =
        typed(object, kind, Types::for_resource(resource, kind)).map_err(|mut status| {
            if encoding == Encoding::Json {
                status.message = json_numbers::quoted_as_written(&status.message, body);
            }
            status
        })?;
    Ok(Decoded { object, unknown, repeated, empty_fields })
}

/// Returns Go's error for a number out of the range of a float.
///
/// Source: sigs.k8s.io/json internal/golang/encoding/json/decode.go, `convertNumber`.
pub(super) fn not_a_float(number: &str) -> String {
    format!("json: cannot unmarshal number {number} into Go value of type float64")
}

/// Returns the first bytes of a body for an error message.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `summarizeData`.
pub(super) fn start(body: &[u8]) -> String {
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

/// Checks that the object in a request has the name in the path.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `checkName`.
pub(crate) fn check_name(object: &Value, name: &str) -> Result<(), Box<Status>> {
    let found = metadata::text(object, "name");
    let message = if found.is_empty() {
        format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")
    } else if found == name {
        return Ok(());
    } else {
        format!("the name of the object ({found}) does not match the name on the URL ({name})")
    };
    Err(Box::new(Status::bad_request(message)))
}
