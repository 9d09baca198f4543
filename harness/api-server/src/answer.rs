//! Responses of the server and their encoding.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use jiff::Timestamp;
use kubernetes_types::budget::Reservation;
use kubernetes_types::json::set;
use kubernetes_types::status::Status;
use kubernetes_types::weight::{exceeds, json_length};
use serde::Deserialize as _;
use serde::ser::Serialize;
use serde_json::Value;

use super::accept::{MediaType, MetadataOptions};
use super::body::internal_package;
use super::discovery::Resource;
use super::go_yaml;
use super::limits::LARGE_BYTES;
use super::storage::{EncodedObject, StoredObject};
use super::tables::{Table, TableOptions};
use super::watch::Watch;

/// A response of the server.
#[derive(Debug)]
pub(super) enum Answer {
    /// An object or another JSON document.
    Object(StatusCode, Arc<Value>),
    /// A stored object.
    Stored(StatusCode, Arc<StoredObject>),
    /// A document with this content type, such as an aggregated discovery document.
    Document(&'static str, Value),
    /// A list.
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

impl Answer {
    pub(super) fn ok(object: Arc<Value>) -> Self {
        Self::Object(StatusCode::OK, object)
    }

    /// Returns the response with each object reduced to its metadata. A Status stays unchanged.
    ///
    /// Source: apiserver pkg/endpoints/handlers/response.go, `doTransformObject`.
    /// Rule: KND-10, KND-13.
    ///
    /// # Errors
    /// Returns 406 if the client asks for the metadata of a list but the response is an object, or the reverse.
    pub(super) fn into_metadata(
        self,
        options: MetadataOptions,
        resource: &Resource,
    ) -> Result<Self, Box<Status>> {
        let version = options.version;
        Ok(match self {
            Self::Object(code, object) if object.get("kind").is_some_and(|kind| kind == "Status") => {
                Self::Object(code, object)
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
    pub(super) fn into_table(
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
    pub(super) fn status(&self) -> Option<Status> {
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
    pub(super) fn document(&self) -> Option<Value> {
        match self {
            Self::Object(_, object) => Some((**object).clone()),
            Self::Stored(_, stored) => Some((*stored.object()).clone()),
            Self::Document(_, document) => Some(document.clone()),
            Self::List(list) => Some(list.document()),
            Self::Table(_, table) => serde_json::to_value(table).ok(),
            Self::Watch(_) | Self::Text(..) | Self::Prepared(_) => None,
        }
    }

    /// Returns whether the body is larger than `LARGE_BYTES` and therefore takes long to encode.
    pub(super) fn is_large(&self) -> bool {
        match self {
            Self::Object(_, object) => exceeds(object, LARGE_BYTES),
            Self::Stored(_, stored) => stored.encoded().text().len() > LARGE_BYTES,
            Self::Document(_, document) => exceeds(document, LARGE_BYTES),
            Self::List(list) => list.length() > LARGE_BYTES,
            Self::Table(_, table) => table.is_large(),
            Self::Watch(_) | Self::Text(..) | Self::Prepared(_) => false,
        }
    }

    /// Encodes the response. Its bytes count against the memory budget until they are sent.
    ///
    /// `may_refuse` must be false if the request has changed anything. If it is true and the response exceeds the
    /// budget, the client receives a 429 instead.
    pub(super) fn into_response(
        self,
        reservation: Option<Reservation>,
        may_refuse: bool,
        media_type: MediaType,
    ) -> Response {
        let encoded = match &self {
            Self::Object(_, object) => encode(&**object, reservation, may_refuse, media_type),
            Self::Stored(_, stored) => {
                let text = stored.encoded().text();
                let write = |body: &mut Vec<u8>| body.extend_from_slice(text);
                written(text.len(), write, reservation, may_refuse, media_type)
            }
            Self::Document(_, document) => encode(document, reservation, may_refuse, json_only(media_type)),
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
            Self::Document(content_type, _) => json(StatusCode::OK, content_type, body.into()),
            Self::List(_) => json(StatusCode::OK, media_type.content_type(), body.into()),
            Self::Watch(watch) => json(StatusCode::OK, "application/json", watch.into_body()),
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

/// The kind of an object that is reduced to its metadata.
pub(super) const METADATA_KIND: &str = "PartialObjectMetadata";

/// Returns the object reduced to the metadata fields of the internal version.
///
/// Rule: KND-15.
pub(super) fn metadata_of(object: &Value, version: &str) -> Value {
    let metadata = super::tables::internal_metadata(object).into_owned();
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
/// Allocates exactly the required memory, because a growing buffer can take up to three times as much.
fn written(
    length: usize,
    write: impl FnOnce(&mut Vec<u8>),
    reservation: Option<Reservation>,
    may_refuse: bool,
    media_type: MediaType,
) -> Result<Bytes, Box<Status>> {
    let length = length + 1;
    let resized = |reservation: Option<Reservation>, length: usize| match reservation {
        Some(mut reservation) => match reservation.resize(length) {
            Err(exhausted) if may_refuse => Err(Box::<Status>::from(exhausted)),
            // The request has already changed something: its response is sent within the existing reservation.
            Ok(()) | Err(_) => Ok(Some(reservation)),
        },
        None => Ok(None),
    };
    let mut reservation = resized(reservation, length)?;
    let mut text = Vec::with_capacity(length);
    write(&mut text);
    if media_type == MediaType::Json {
        text.push(b'\n');
    } else {
        text = converted(&text, media_type);
        reservation = resized(reservation, text.len())?;
    }
    Ok(match reservation {
        Some(reservation) => reservation.hold(text),
        None => text.into(),
    })
}

/// Returns the encoding of a document that can only be sent as JSON.
fn json_only(media_type: MediaType) -> MediaType {
    if media_type == MediaType::IndentedJson { media_type } else { MediaType::Json }
}

/// Returns the JSON `text` converted to another media type.
fn converted(text: &[u8], media_type: MediaType) -> Vec<u8> {
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
pub(super) fn refusal(status: &Status, media_type: Option<MediaType>) -> Response {
    let code = u16::try_from(status.code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let media_type = match media_type {
        None => MediaType::IndentedJson,
        Some(MediaType::Protobuf) => MediaType::Json,
        Some(media_type) => media_type,
    };
    let text = serde_json::to_vec(status).unwrap_or_default();
    let body = if media_type == MediaType::Json {
        [&text[..], b"\n"].concat()
    } else {
        converted(&text, media_type)
    };
    let headers = [(CONTENT_TYPE, media_type.content_type()), (CACHE_CONTROL, "no-cache, private")];
    let mut response = (code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), headers, body).into_response();
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(RETRY_AFTER, retry_after.into());
    }
    response
}

/// An object of a list.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Stored(Arc<StoredObject>),
    /// An object that differs from the stored JSON because it was converted or some of its fields were removed.
    Converted(EncodedObject),
}

impl Item {
    pub(super) fn encoded(&self) -> &EncodedObject {
        match self {
            Self::Stored(stored) => stored.encoded(),
            Self::Converted(encoded) => encoded,
        }
    }

    pub(super) fn object(&self) -> Arc<Value> {
        match self {
            Self::Stored(stored) => stored.object(),
            Self::Converted(encoded) => Arc::new(encoded.decode()),
        }
    }
}

/// A list of objects. Encoding copies the stored JSON of each object into the JSON of the list.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) resource_version: String,
    /// `continue`: the token of the next page; empty on the last page.
    pub(super) token: String,
    /// `remainingItemCount`: the number of objects after this page; `None` if unknown.
    pub(super) remaining: Option<usize>,
    pub(super) items: Vec<Item>,
    /// Whether the items have `apiVersion` and `kind`, as custom resources do.
    pub(super) typed_items: bool,
}

impl List {
    fn metadata(&self, with_empty_token: bool) -> Value {
        let mut metadata = serde_json::json!({"resourceVersion": self.resource_version});
        if with_empty_token || !self.token.is_empty() {
            set(&mut metadata, &["continue"], &*self.token);
        }
        if let Some(remaining) = self.remaining {
            set(&mut metadata, &["remainingItemCount"], remaining);
        }
        metadata
    }

    /// Returns the JSON before the first item.
    fn head(&self) -> String {
        // Upstream treats lists of custom resources as unstructured, so an empty token is also written.
        let metadata = self.metadata(self.typed_items);
        let (kind, version) = (Value::from(&*self.kind), Value::from(&*self.api_version));
        format!("{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{metadata},\"items\":[")
    }

    /// Returns how many bytes [`Self::write`] writes.
    fn length(&self) -> usize {
        let of_item = |item: &Item| {
            let encoded = item.encoded();
            if self.typed_items { encoded.text().len() } else { encoded.length_without_type() }
        };
        let commas = self.items.len().saturating_sub(1);
        self.head().len() + self.items.iter().map(of_item).sum::<usize>() + commas + "]}".len()
    }

    fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.head().as_bytes());
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            let encoded = item.encoded();
            if self.typed_items {
                text.extend_from_slice(encoded.text());
            } else {
                encoded.write_without_type(text);
            }
        }
        text.extend_from_slice(b"]}");
    }

    fn document(&self) -> Value {
        let items = self.items.iter().map(|item| {
            let mut item = Arc::unwrap_or_clone(item.object());
            if !self.typed_items
                && let Some(members) = item.as_object_mut()
            {
                members.retain(|name, _| name != "kind" && name != "apiVersion");
            }
            item
        });
        serde_json::json!({
            "kind": self.kind,
            "apiVersion": self.api_version,
            "metadata": self.metadata(self.typed_items),
            "items": items.collect::<Vec<Value>>(),
        })
    }
}
