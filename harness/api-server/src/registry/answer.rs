//! The results of requests for objects.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::request::Target;
use crate::kinds::core::service::reading as service_reading;
use crate::storage::StoredObject;
use crate::storage::list::List;

/// The result of a request for an object or a collection.
#[derive(Debug)]
pub(crate) enum Answer {
    /// An object or another JSON document.
    Object(StatusCode, Arc<Value>),
    /// A stored object.
    Stored(StatusCode, Arc<StoredObject>),
    /// A list.
    List(List),
}

impl Answer {
    pub(crate) fn ok(object: Arc<Value>) -> Self {
        Self::Object(StatusCode::OK, object)
    }

    /// Returns the answer without the stored fields that reads omit.
    pub(crate) fn without_hidden_fields(self, target: &Target) -> Self {
        match self {
            Self::Object(code, object) if target.subresource.is_empty() => {
                Self::Object(code, service_reading::read(object, &target.resource))
            }
            Self::Object(..) | Self::Stored(..) | Self::List(_) => self,
        }
    }
}
