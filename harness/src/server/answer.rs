//! What the server answers, and how it goes onto the wire.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::Deserialize as _;
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value;

use super::watch::Watch;
use crate::status::Status;

/// What the server answers.
#[derive(Debug)]
pub(super) enum Answer {
    /// An object or another document.
    Object(StatusCode, Arc<Value>),
    /// A document of another content type than `application/json`.
    Document(&'static str, Value),
    /// A list.
    List(List),
    /// Events for as long as the watch lives.
    Watch(Watch),
    /// Plain text.
    Text(StatusCode, String),
}

impl Answer {
    pub(super) fn ok(object: Arc<Value>) -> Self {
        Self::Object(StatusCode::OK, object)
    }

    /// The answer, if it is a Status.
    pub(super) fn status(&self) -> Option<Status> {
        match self {
            Self::Object(_, object) if object.get("kind").is_some_and(|kind| kind == "Status") => {
                Status::deserialize(&**object).ok()
            }
            Self::Object(..) | Self::Document(..) | Self::List(_) | Self::Watch(_) | Self::Text(..) => None,
        }
    }

    pub(super) fn into_response(self) -> Response {
        let json =
            |code: StatusCode, content_type: &'static str, body: serde_json::Result<Vec<u8>>| match body {
                Ok(mut body) => {
                    body.push(b'\n');
                    (code, [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache, private")], body)
                        .into_response()
                }
                Err(error) => refusal(&Status::internal_error(&error.to_string())),
            };
        match self {
            Self::Object(code, object) => json(code, "application/json", serde_json::to_vec(&*object)),
            Self::Document(content_type, value) => {
                json(StatusCode::OK, content_type, serde_json::to_vec(&value))
            }
            Self::List(list) => json(StatusCode::OK, "application/json", serde_json::to_vec(&list)),
            Self::Watch(watch) => {
                let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache, private")];
                (headers, watch.into_body()).into_response()
            }
            Self::Text(code, text) => {
                (code, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
            }
        }
    }
}

/// A Status as a response.
pub(super) fn refusal(status: &Status) -> Response {
    let code = u16::try_from(status.code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let body = serde_json::to_string(status).unwrap_or_default() + "\n";
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache, private")];
    (code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), headers, body).into_response()
}

/// A list of objects, serialised without a copy of them.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) resource_version: String,
    pub(super) items: Vec<Arc<Value>>,
    /// Whether the items say their own `apiVersion` and `kind`, as those of a custom resource do.
    pub(super) typed_items: bool,
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("apiVersion", &self.api_version)?;
        let mut metadata = serde_json::json!({"resourceVersion": self.resource_version});
        if self.typed_items {
            // Lists of custom resources are free-form upstream, so that an empty token is written too.
            metadata["continue"] = "".into();
        }
        map.serialize_entry("metadata", &metadata)?;
        map.serialize_entry("items", &Items(self))?;
        map.end()
    }
}

struct Items<'a>(&'a List);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(Some(self.0.items.len()))?;
        for item in &self.0.items {
            if self.0.typed_items {
                items.serialize_element(&**item)?;
            } else {
                items.serialize_element(&Untyped(item))?;
            }
        }
        items.end()
    }
}

struct Untyped<'a>(&'a Value);

impl Serialize for Untyped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = self.0.as_object().into_iter().flatten();
        serializer.collect_map(members.filter(|(key, _)| *key != "kind" && *key != "apiVersion"))
    }
}
