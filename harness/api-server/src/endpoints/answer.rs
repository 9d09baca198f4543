//! Defines and encodes the responses of the server.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use kubernetes_types::budget::Reservation;
use kubernetes_types::status::Status;
use kubernetes_types::weight::{exceeds, json_length};
use serde::Deserialize as _;
use serde::ser::Serialize;
use serde_json::Value;

use super::accept::{MediaType, MetadataOptions};
use super::watch::Watch;
use crate::apimachinery::go_yaml;
use crate::apimachinery::limits::LARGE_BYTES;
use crate::apimachinery::metadata::METADATA_KIND;
use crate::apimachinery::protobuf;
use crate::kinds::discovery::Resource;
use crate::kinds::tables::{Table, TableOptions};
use crate::registry::answer::Answer;
use crate::registry::body::internal_package;
use crate::storage::StoredObject;
use crate::storage::list::List;

/// The content of a response.
#[derive(Debug)]
pub(crate) enum ResponseContent {
    /// An object or another JSON document.
    Object(StatusCode, Arc<Value>),
    /// An object in the encoding in which it is stored.
    Stored(StatusCode, Arc<StoredObject>),
    /// An aggregated discovery document and its `ETag`.
    Document(String, Value),
    List(List),
    /// An object or a list as a Table.
    Table(StatusCode, Table),
    /// The events of a watch, until the watch ends.
    Watch(Watch),
    /// Plain text.
    Text(StatusCode, String),
    /// A complete HTTP response.
    Prepared(Box<http::Response<Bytes>>),
}

impl From<Answer> for ResponseContent {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Object(code, object) => Self::Object(code, object),
            Answer::Stored(code, stored) => Self::Stored(code, stored),
            Answer::List(list) => Self::List(list),
        }
    }
}

impl ResponseContent {
    pub(crate) fn ok(object: Arc<Value>) -> Self {
        Self::Object(StatusCode::OK, object)
    }

    /// Returns the response with each object reduced to its metadata. A Status stays unchanged.
    ///
    /// Source: apiserver pkg/endpoints/handlers/response.go, `doTransformObject`.
    /// Rule: KND-10, KND-13.
    ///
    /// # Errors
    /// Returns 406 if the client asks for the metadata of a list but the response is an object, or the reverse. For a
    /// custom resource, the former returns 500.
    pub(crate) fn into_metadata(
        self,
        options: MetadataOptions,
        resource: &Resource,
    ) -> Result<Self, Box<Status>> {
        let version = options.version;
        Ok(match self {
            Self::Object(code, object) if object.get("kind").is_some_and(|kind| kind == "Status") => {
                Self::Object(code, object)
            }
            Self::Object(..) | Self::Stored(..) if options.is_list && resource.custom.is_some() => {
                // Source: apimachinery pkg/apis/meta/v1/unstructured/unstructured.go, `EachListItem`.
                return Err(Box::new(Status::failure(500, "", "content is not a list")));
            }
            Self::Object(..) | Self::Stored(..) if options.is_list => {
                let found = go_type(resource, &resource.kind.kind);
                return Err(not_convertible(&format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({found})"
                )));
            }
            Self::List(list) if !options.is_list => {
                let found = go_type(resource, &list.kind);
                return Err(not_convertible(&format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({found})"
                )));
            }
            Self::Object(code, object) => Self::Object(code, Arc::new(metadata_of(&object, version))),
            Self::Stored(code, stored) => {
                Self::Object(code, Arc::new(metadata_of(&stored.object(), version)))
            }
            Self::List(list) => {
                let items: Vec<Value> =
                    list.items.iter().map(|item| metadata_of(&item.object(), version)).collect();
                let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
                Self::ok(Arc::new(serde_json::json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": version,
                    "metadata": list.metadata(false),
                    "items": items,
                })))
            }
            Self::Watch(watch) => Self::Watch(watch.of_metadata(options)),
            other @ (Self::Document(..) | Self::Table(..) | Self::Text(..) | Self::Prepared(_)) => other,
        })
    }

    /// Returns the response with its objects converted to a Table. A Status stays unchanged.
    ///
    /// Source: apiserver pkg/endpoints/handlers/response.go, `transformResponseObject`.
    /// Rule: TBL-01, TBL-02.
    ///
    /// # Errors
    /// Returns 501 for a kind whose columns admit does not define.
    pub(crate) fn into_table(
        self,
        resource: &Resource,
        subresource: &str,
        options: TableOptions,
        now: Timestamp,
    ) -> Result<Self, Box<Status>> {
        Ok(match self {
            Self::Object(code, object) if object.get("kind").is_none_or(|kind| kind != "Status") => {
                Self::Table(code, Table::of_object(object, resource, subresource, options, now)?)
            }
            Self::Stored(code, stored) => {
                Self::Table(code, Table::of_object(stored.object(), resource, subresource, options, now)?)
            }
            Self::List(list) => {
                let metadata = list.metadata(false);
                Self::Table(StatusCode::OK, Table::of_list(list.items, metadata, resource, options, now)?)
            }
            Self::Watch(watch) => Self::Watch(watch.of_tables(options)?),
            other @ (Self::Object(..)
            | Self::Document(..)
            | Self::Table(..)
            | Self::Text(..)
            | Self::Prepared(_)) => other,
        })
    }

    /// Returns the Status in the response; `None` if the response is not a Status.
    pub(crate) fn status(&self) -> Option<Status> {
        match self {
            Self::Object(_, object) if object.get("kind").is_some_and(|kind| kind == "Status") => {
                Status::deserialize(&**object).ok()
            }
            Self::Object(..)
            | Self::Stored(..)
            | Self::Document(..)
            | Self::List(_)
            | Self::Table(..)
            | Self::Watch(_)
            | Self::Text(..)
            | Self::Prepared(_) => None,
        }
    }

    /// Returns the response body as JSON; `None` for a watch, plain text, or a prepared response.
    pub(crate) fn document(&self) -> Option<Value> {
        match self {
            Self::Object(_, object) => Some((**object).clone()),
            Self::Stored(_, stored) => Some((*stored.object()).clone()),
            Self::Document(_, document) => Some(document.clone()),
            Self::List(list) => Some(list.document()),
            Self::Table(_, table) => serde_json::to_value(table).ok(),
            Self::Watch(_) | Self::Text(..) | Self::Prepared(_) => None,
        }
    }

    /// Returns whether the body is larger than `LARGE_BYTES` and therefore slow to encode.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Object(_, object) => exceeds(object, LARGE_BYTES),
            Self::Stored(_, stored) => stored.encoded().text().len() > LARGE_BYTES,
            Self::Document(_, document) => exceeds(document, LARGE_BYTES),
            Self::List(list) => list.length() > LARGE_BYTES,
            Self::Table(_, table) => table.is_large(),
            Self::Watch(_) | Self::Text(..) | Self::Prepared(_) => false,
        }
    }

    /// Encodes the body as protobuf.
    fn in_protobuf(&self, reservation: Option<Reservation>, may_refuse: bool) -> Result<Bytes, Box<Status>> {
        // The size of the JSON is an estimate. Fields with a zero value exist only in protobuf.
        let estimate = match self {
            Self::Object(_, object) => json_length(&**object),
            Self::Stored(_, stored) => stored.encoded().text().len(),
            Self::Document(_, document) => json_length(document),
            Self::List(list) => list.length(),
            Self::Table(..) | Self::Watch(_) | Self::Text(..) | Self::Prepared(_) => return Ok(Bytes::new()),
        };
        let reservation = resized(reservation, estimate, may_refuse)?;
        let body = match self {
            Self::Object(_, object) => protobuf::encode(object),
            Self::Stored(_, stored) => protobuf::encode(&stored.object()),
            Self::Document(_, document) => protobuf::encode(document),
            Self::List(list) => list.protobuf(),
            Self::Table(..) | Self::Watch(_) | Self::Text(..) | Self::Prepared(_) => None,
        };
        let body =
            body.ok_or_else(|| Box::new(Status::internal_error("object does not have a protobuf encoding")))?;
        let reservation = resized(reservation, body.len(), may_refuse)?;
        Ok(held(reservation, body))
    }

    /// Encodes the response. Its bytes count against the memory budget until they are sent.
    ///
    /// `may_refuse` must be false if the request has changed anything. If it is true and the response exceeds the
    /// budget, the client receives 429 instead.
    pub(crate) fn into_response(
        self,
        reservation: Option<Reservation>,
        may_refuse: bool,
        media_type: MediaType,
    ) -> Response {
        let encoded = match &self {
            _ if media_type == MediaType::Protobuf => self.in_protobuf(reservation, may_refuse),
            Self::Object(_, object) => encode(&**object, reservation, may_refuse, media_type),
            Self::Stored(_, stored) => {
                let text = stored.encoded().text();
                let write = |body: &mut Vec<u8>| body.extend_from_slice(text);
                written(text.len(), write, reservation, may_refuse, media_type)
            }
            Self::Document(_, document) => encode(document, reservation, may_refuse, media_type),
            Self::List(list) => {
                let write = |body: &mut Vec<u8>| list.write(body);
                written(list.length(), write, reservation, may_refuse, media_type)
            }
            Self::Table(_, table) => encode(table, reservation, may_refuse, media_type),
            Self::Watch(_) | Self::Text(..) | Self::Prepared(_) => Ok(Bytes::new()),
        };
        let body = match encoded {
            Ok(body) => body,
            Err(status) => return refusal(&status, Some(media_type)),
        };
        let json = |code: StatusCode, content_type: &'static str, body: Body| {
            let headers = [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache, private")];
            (code, headers, body).into_response()
        };
        match self {
            Self::Object(code, _) | Self::Stored(code, _) | Self::Table(code, _) => {
                json(code, media_type.content_type(), body.into())
            }
            Self::Document(etag, _) => {
                let mut response = json(StatusCode::OK, aggregated(media_type), body.into());
                add_cache_headers(response.headers_mut(), &etag);
                response
            }
            Self::List(_) => json(StatusCode::OK, media_type.content_type(), body.into()),
            Self::Watch(watch) => {
                json(StatusCode::OK, watch.media_type().content_type_of_watch(), watch.into_body())
            }
            Self::Prepared(response) => response.map(Body::from),
            Self::Text(code, text) => {
                let headers = [
                    (CONTENT_TYPE, "text/plain; charset=utf-8"),
                    (CACHE_CONTROL, "no-cache, private"),
                    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
                ];
                (code, headers, text).into_response()
            }
        }
    }
}

/// Adds the headers that let clients cache a discovery document until it changes.
pub(crate) fn add_cache_headers(headers: &mut HeaderMap, etag: &str) {
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(ETAG, etag);
    }
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
}

/// Returns the media type of an aggregated discovery document.
fn aggregated(media_type: MediaType) -> &'static str {
    match media_type {
        MediaType::Json | MediaType::IndentedJson => {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        }
        MediaType::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        MediaType::Protobuf => {
            "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        }
    }
}

/// Returns the Go type of an object or a list of a resource; `kind` is the name of a built-in type.
fn go_type(resource: &Resource, kind: &str) -> String {
    if resource.custom.is_none() {
        return format!("*{}.{kind}", internal_package(&resource.kind));
    }
    let list = if kind == resource.list_kind { "List" } else { "" };
    format!("*unstructured.Unstructured{list}")
}

/// Source: apiserver pkg/endpoints/handlers/response.go, `newNotAcceptableError`.
fn not_convertible(message: &str) -> Box<Status> {
    Box::new(Status::failure(406, "NotAcceptable", message))
}

/// Returns the metadata of an object as a `PartialObjectMetadata` of this version.
///
/// The metadata comes from the internal version: see [`internal_metadata`](crate::kinds::tables::internal_metadata).
///
/// Rule: KND-15.
pub(crate) fn metadata_of(object: &Value, version: &str) -> Value {
    let metadata = crate::kinds::tables::internal_metadata(object).into_owned();
    serde_json::json!({"kind": METADATA_KIND, "apiVersion": version, "metadata": metadata})
}

/// Encodes a document. JSON without indentation ends with a newline.
fn encode(
    document: &impl Serialize,
    reservation: Option<Reservation>,
    may_refuse: bool,
    media_type: MediaType,
) -> Result<Bytes, Box<Status>> {
    let mut failure = None;
    let write = |text: &mut Vec<u8>| failure = serde_json::to_writer(text, document).err();
    let text = written(json_length(document), write, reservation, may_refuse, media_type)?;
    match failure {
        Some(error) => Err(Box::new(Status::internal_error(&error.to_string()))),
        None => Ok(text),
    }
}

/// Writes JSON of a known length and converts it to the media type.
///
/// Allocates exactly the required memory. A growing buffer could take up to three times as much.
fn written(
    length: usize,
    write: impl FnOnce(&mut Vec<u8>),
    reservation: Option<Reservation>,
    may_refuse: bool,
    media_type: MediaType,
) -> Result<Bytes, Box<Status>> {
    let length = length + 1;
    let mut reservation = resized(reservation, length, may_refuse)?;
    let mut text = Vec::with_capacity(length);
    write(&mut text);
    if media_type == MediaType::Json {
        text.push(b'\n');
    } else {
        text = converted(&text, media_type);
        reservation = resized(reservation, text.len(), may_refuse)?;
    }
    Ok(held(reservation, text))
}

/// Resizes the reservation to `length` bytes. Fails only if `may_refuse` is true.
fn resized(
    reservation: Option<Reservation>,
    length: usize,
    may_refuse: bool,
) -> Result<Option<Reservation>, Box<Status>> {
    let Some(mut reservation) = reservation else { return Ok(None) };
    match reservation.resize(length) {
        Err(exhausted) if may_refuse => Err(exhausted.into()),
        // If resizing fails, the reservation stays unchanged: the request has already changed something, so the
        // response must be sent.
        Ok(()) | Err(_) => Ok(Some(reservation)),
    }
}

fn held(reservation: Option<Reservation>, body: Vec<u8>) -> Bytes {
    match reservation {
        Some(reservation) => reservation.hold(body),
        None => body.into(),
    }
}

/// Returns the JSON `text` converted to another media type.
pub(crate) fn converted(text: &[u8], media_type: MediaType) -> Vec<u8> {
    match media_type {
        MediaType::Yaml => {
            serde_json::from_slice(text).map_or_else(|_| text.to_vec(), |value| go_yaml::encode(&value))
        }
        MediaType::IndentedJson => indented(text),
        MediaType::Json | MediaType::Protobuf => text.to_vec(),
    }
}

/// Returns the JSON `text` with line breaks and indentation.
///
/// Source: Go's encoding/json, `Indent`.
fn indented(text: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut is_escaped, mut is_empty) = (0_usize, false, false, false);
    let line = |written: &mut Vec<u8>, depth: usize| {
        written.push(b'\n');
        written.extend(std::iter::repeat_n(b' ', 2 * depth));
    };
    for &byte in text {
        if in_string {
            written.push(byte);
            in_string = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        if is_empty && !matches!(byte, b'}' | b']') {
            line(&mut written, depth);
        }
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !is_empty {
                    line(&mut written, depth);
                }
            }
            _ => {}
        }
        is_empty = matches!(byte, b'{' | b'[');
        in_string = byte == b'"';
        written.push(byte);
        match byte {
            b',' => line(&mut written, depth),
            b':' => written.push(b' '),
            _ => {}
        }
    }
    written
}

/// Encodes a Status as a response.
///
/// Source: apiserver pkg/endpoints/handlers/responsewriters/writers.go, `ErrorNegotiated`.
/// Rule: ERR-13.
///
/// `media_type` is the encoding that the client accepts for errors; `None` if it does not accept a known encoding.
pub(crate) fn refusal(status: &Status, media_type: Option<MediaType>) -> Response {
    let code = u16::try_from(status.code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let media_type = media_type.unwrap_or(MediaType::IndentedJson);
    let text = serde_json::to_vec(status).unwrap_or_default();
    let body = match media_type {
        MediaType::Json => [&text[..], b"\n"].concat(),
        MediaType::Protobuf => {
            let status = serde_json::to_value(status).ok();
            status.and_then(|status| protobuf::encode(&status)).unwrap_or_default()
        }
        MediaType::IndentedJson | MediaType::Yaml => converted(&text, media_type),
    };
    let headers = [(CONTENT_TYPE, media_type.content_type()), (CACHE_CONTROL, "no-cache, private")];
    let mut response = (code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), headers, body).into_response();
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(RETRY_AFTER, retry_after.into());
    }
    response
}
