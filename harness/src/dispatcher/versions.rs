//! The objects of a review in the version that a webhook is called in.

use std::borrow::Cow;

use serde_json::Value;

use crate::attributes::{Attributes, GroupVersionKind};
use crate::cluster_state::{ClusterState, ConversionError};
use crate::matching::Invocation;
use crate::review::request::Objects;

/// The objects of a validating review in another version than the request's. All webhooks of that version share it.
pub(super) struct Version {
    pub(super) kind: GroupVersionKind,
    object: Option<Value>,
    old_object: Option<Value>,
}

impl Version {
    pub(super) fn new(
        kind: &GroupVersionKind,
        attributes: &Attributes,
        state: &dyn ClusterState,
    ) -> Result<Self, ConversionError> {
        let convert =
            |object: &Option<Value>| object.as_ref().map(|object| state.convert(object, kind)).transpose();
        let (object, old_object) = (convert(&attributes.object)?, convert(&attributes.old_object)?);
        Ok(Self { kind: kind.clone(), object, old_object })
    }

    pub(super) fn objects(&self) -> Objects<'_> {
        Objects { object: self.object.as_ref(), old_object: self.old_object.as_ref() }
    }
}

/// The old object for a mutating webhook: always converted from the request's own.
pub(super) fn converted_old<'a>(
    attributes: &'a Attributes,
    invocation: &Invocation,
    state: &dyn ClusterState,
) -> Result<Option<Cow<'a, Value>>, ConversionError> {
    let Some(old) = &attributes.old_object else { return Ok(None) };
    if *invocation.kind() == attributes.kind {
        return Ok(Some(Cow::Borrowed(old)));
    }
    state.convert(old, invocation.kind()).map(|old| Some(Cow::Owned(old)))
}
