//! A request for an object or a collection after its route is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use kubernetes_admission::attributes::{Attributes, GroupVersionKind, Operation, UserInfo};
use kubernetes_admission::authorizer::Authorizer;
use kubernetes_types::budget::Reservation;
use kubernetes_types::schema::EmptyFields;
use kubernetes_types::weight::weight;
use serde_json::{Map, Value};

use super::Registry;
use super::admission::RequestAdmission;
use crate::apimachinery::query::Query;
use crate::kinds::discovery::Resource;
use crate::storage::Key;

/// A resource, one of its objects, or a subresource.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// The namespace; empty for a cluster-scoped resource and for a list across namespaces.
    pub(crate) namespace: String,
    /// The name of the object; empty for a collection.
    pub(crate) name: String,
    /// The subresource; empty for the object itself.
    pub(crate) subresource: String,
    /// The path after `proxy`, as the options of the connection contain it. Either empty or begins with a slash.
    pub(crate) subpath: String,
}

impl Target {
    /// Returns the namespace for admission and the audit log; for a Namespace, the name of the Namespace.
    ///
    /// Rule: SEL-08.
    pub(crate) fn admitted_namespace(&self) -> &str {
        if self.resource.gvr.group_resource() == "namespaces" { &self.name } else { &self.namespace }
    }

    /// Returns the kind of the object in the request: the kind of the subresource, if any.
    pub(crate) fn kind(&self) -> &GroupVersionKind {
        self.resource
            .subresource(&self.subresource)
            .map_or(&self.resource.kind, |subresource| &subresource.kind)
    }

    /// Returns the storage key of the object with this name in the resource and namespace of the target.
    pub(crate) fn key(&self, name: &str) -> Key {
        self.resource.key(&self.namespace, name)
    }
}

/// The operation on a [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    Connect,
}

/// The parts of a request that are kept for the audit log, records, and observers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyRetention {
    /// The body as sent and as decoded, and the response.
    Observed,
    /// The decoded body.
    Body,
    /// Nothing in addition to the data that the response needs.
    Nothing,
}

/// A request for a [`Target`].
#[derive(Debug)]
pub(crate) struct ObjectRequest<'a> {
    pub(crate) registry: &'a Arc<Registry>,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: UserInfo,
    /// Authorizes the actions of the user.
    pub(crate) authorizer: &'a dyn Authorizer,
    pub(crate) keep: BodyRetention,
    /// The request's share of the memory budget.
    pub(crate) reservation: Reservation,
    /// The decoded body, if retained.
    pub(crate) decoded: Option<Value>,
    /// The object as the client sent it, if retained.
    pub(crate) sent: Option<Value>,
    /// The fields of the decoded object that are set to an empty list or map.
    pub(crate) empty_fields: EmptyFields,
    /// The server's warnings that precede the warnings from webhooks.
    pub(crate) early_warnings: Vec<String>,
    /// The server's warnings that follow the warnings from webhooks.
    pub(crate) warnings: Vec<String>,
    /// The audit annotations that admission did not add.
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) admitting: RequestAdmission<'a>,
}

impl ObjectRequest<'_> {
    /// Keeps the decoded body if the audit log or an observer requires it.
    pub(crate) fn note_decoded(&mut self, body: &Value) {
        match self.keep {
            BodyRetention::Body | BodyRetention::Observed => self.decoded = Some(body.clone()),
            BodyRetention::Nothing => {}
        }
    }

    /// Keeps the object as the client sent it, without defaults, if an observer requires it.
    ///
    /// The decoded `object` also has the fields that its Go type always encodes, such as `resources: {}`. It is kept
    /// if the body is not JSON, or if there is not enough memory for the body.
    pub(crate) fn note_sent(&mut self, object: &Value) {
        match self.keep {
            BodyRetention::Observed => {
                let sent = serde_json::from_slice::<Map<String, Value>>(&self.body).ok().map(|mut sent| {
                    // The values of Secrets are masked by the kind, which a client can leave out.
                    for name in ["apiVersion", "kind"] {
                        sent.extend(object.get(name).map(|value| (name.to_owned(), value.clone())));
                    }
                    Value::Object(sent)
                });
                let sent = sent.filter(|sent| self.reservation.try_grow(weight(sent)).is_ok());
                self.sent = Some(sent.unwrap_or_else(|| object.clone()));
            }
            BodyRetention::Body | BodyRetention::Nothing => {}
        }
    }

    /// Returns the admission attributes of this request, without objects.
    pub(crate) fn attributes(&self, operation: Operation, kind: &GroupVersionKind) -> Attributes {
        Attributes {
            operation,
            resource: self.target.resource.gvr.clone(),
            subresource: self.target.subresource.clone(),
            kind: kind.clone(),
            namespace: self.target.admitted_namespace().to_owned(),
            name: self.target.name.clone(),
            object: None,
            old_object: None,
            options: None,
            dry_run: false,
            user: self.user.clone(),
        }
    }
}
