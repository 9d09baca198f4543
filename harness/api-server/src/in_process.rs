//! The server for whoever holds it: without a socket, with what happened to each request.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource, UserInfo};
use kubernetes_admission::authorizer::{AlwaysAllow, Authorizer};
use kubernetes_admission::config;
use kubernetes_admission::event::Record;
use kubernetes_types::schema;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use super::authentication::Claim;
use super::body::Types;
use super::discovery::{Resource, Resources};
use super::incoming::Incoming;
use super::request::{self, BodyRetention};
use super::storage::{Key, WriteConflict};
use super::{ApiServer, Server, body, create, custom_resources, field_manager, metadata, strategy};

/// Who manages the fields of objects that were there before.
const PREPARER: &str = "admit";

/// What happened to a request, beside its answer.
#[derive(Clone, Debug, Default)]
pub struct RequestTrace {
    /// What happened in admission.
    pub record: Record,
    /// The body as the server read it, with the defaults of its version: what admission began with. None if there was
    /// no body or it could not be read.
    pub body: Option<Value>,
}

/// Which resource is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an object names its kind, a path its resource")]
pub enum ResourceName {
    /// The one whose objects are of this kind.
    OfKind(GroupVersionKind),
    /// The one with this name.
    Named(GroupVersionResource),
}

/// A resource that the server has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedResource {
    /// Its name.
    pub name: GroupVersionResource,
    /// The kind of its objects.
    pub kind: GroupVersionKind,
    /// Whether its objects are in a namespace.
    pub namespaced: bool,
    /// What may be done with them, such as `get` and `deletecollection`.
    pub verbs: Vec<String>,
    /// What is served below its objects.
    pub subresources: Vec<ServedSubresource>,
}

/// A subresource that the server has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedSubresource {
    /// Such as `status`.
    pub name: String,
    /// The kind of what is sent there.
    pub kind: GroupVersionKind,
    /// What may be done there, such as `get` and `update`.
    pub verbs: Vec<String>,
}

impl ServedResource {
    pub(super) fn of(resource: &Resource) -> Self {
        let subresources = resource.subresources.iter().map(|subresource| ServedSubresource {
            name: subresource.name.clone(),
            kind: subresource.kind.clone(),
            verbs: subresource.verbs.clone(),
        });
        Self {
            name: resource.gvr.clone(),
            kind: resource.kind.clone(),
            namespaced: resource.namespaced,
            verbs: resource.verbs.clone(),
            subresources: subresources.collect(),
        }
    }
}

impl ApiServer {
    /// Answers one request of `user`, who may do everything by it: whoever holds the server decides who asks.
    pub async fn exchange(&self, request: http::Request<Bytes>, user: UserInfo) -> (Response, RequestTrace) {
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(Claim::of(user));
        let mut body = Incoming::InMemory(body);
        let authorizer: Arc<dyn Authorizer> = Arc::new(AlwaysAllow);
        // Callers have deep futures of their own.
        Box::pin(request::respond(&self.server, &parts, &mut body, BodyRetention::Body, &authorizer)).await
    }

    /// Puts an object where the request that made it would have put it, in place of the one that is there: without
    /// admission, and with the `uid`, the times and the status that it has. What it has not, it gets as a new object.
    ///
    /// # Errors
    /// The Status of an object that the server would not take; 404 for a kind that it does not serve.
    pub fn put(&self, object: Value) -> Result<Arc<Value>, Box<Status>> {
        self.server.put(object, Validation::AsNew)
    }

    /// Puts an object there as [`Self::put`], but as it may stand in the storage of a server that was upgraded: it is not
    /// validated as a new one would be, and a webhook configuration may be of v1beta1.
    ///
    /// # Errors
    /// The Status of an object that the server cannot read; 404 for a kind that it does not serve.
    pub fn put_stored(&self, object: Value) -> Result<Arc<Value>, Box<Status>> {
        self.server.put(config::upgraded(&object).unwrap_or(object), Validation::Skipped)
    }

    /// Takes an object away, without admission and without regard to its finalizers; whether there was one.
    ///
    /// # Errors
    /// 404 for a kind that the server does not serve.
    pub fn take(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Result<bool, Box<Status>> {
        let resources = self.server.state.resources();
        let resource = known(&resources, kind)?;
        let key = key(resource, namespace, name);
        let Some(stored) = self.server.state.storage.at(&key) else { return Ok(false) };
        let taken = self.server.state.storage.remove(&key, &stored).is_ok();
        self.server.has_changed(resource)?;
        Ok(taken)
    }

    /// A stored object in its storage version; `namespace` is empty for a cluster-scoped one.
    pub fn stored(&self, resource: &GroupVersionResource, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let resources = self.server.state.resources();
        self.server.state.storage.at(&key(resources.get(resource)?, namespace, name))
    }

    /// What the server serves under this name.
    pub fn resource(&self, name: &ResourceName) -> Option<ServedResource> {
        let resources = self.server.state.resources();
        let resource = match name {
            ResourceName::OfKind(kind) => resources.of_kind(kind),
            ResourceName::Named(name) => resources.get(name),
        }?;
        Some(ServedResource::of(resource))
    }

    /// Fills in the defaults that an object of this kind and version gets when it is read.
    pub fn set_defaults(&self, object: &mut Value) {
        self.server.state.complete_or_keep(object);
    }
}

/// How an object is judged that is put into the storage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Validation {
    /// As one that a client makes.
    AsNew,
    /// Not at all.
    Skipped,
}

impl Server {
    fn put(self: &Arc<Self>, object: Value, validation: Validation) -> Result<Arc<Value>, Box<Status>> {
        let kind = GroupVersionKind::of(&object);
        let resources = self.state.resources();
        let resource = known(&resources, &kind)?;
        let (mut object, _) = body::typed(object, &kind, Types::of(resource, &kind))?;
        self.state.complete_or_keep(&mut object);
        if validation == Validation::AsNew {
            let writes = field_manager::Writes {
                state: &self.state,
                resource,
                subresource: "",
                kind: &kind,
                manager: PREPARER,
            };
            object = writes.update(None, object).map_err(create::conversion_failed)?.object;
        }
        if !resource.namespaced {
            metadata::remove(&mut object, "namespace");
        } else if metadata::text(&object, "namespace").is_empty() {
            metadata::set(&mut object, "namespace", json!("default"));
        }
        let given = object.clone();
        strategy::prepare_for_create(&mut object, resource);
        keep_what_was_given(&mut object, &given);
        match validation {
            // Nobody is there to be warned.
            Validation::AsNew => drop(strategy::validate(&object, None, resource, "")?),
            Validation::Skipped => {}
        }
        schema::normalize_metadata(&mut object);
        if resource.gvr.group_resource() == "customresourcedefinitions.apiextensions.k8s.io" {
            let before = object.clone();
            custom_resources::establish(&mut object);
            object = field_manager::with_status(&before, object);
        }
        let mut object =
            self.state.to_storage_at_once(object, resource).map_err(create::conversion_failed)?;
        self.state.complete_stored(&mut object).map_err(|unsupported| Status::unsupported(&unsupported))?;
        let key = key(resource, metadata::text(&object, "namespace"), metadata::text(&object, "name"));
        let before = self.state.storage.at(&key);
        let stored = self.state.storage.replace(&key, before.as_ref(), object).map_err(|WriteConflict| {
            let why = "somebody else wrote it at the same time";
            Box::new(Status::conflict(&resource.gvr.group, &resource.gvr.resource, &key.name, why))
        })?;
        self.has_changed(resource)?;
        Ok(stored)
    }
}

/// An object that was there before has a past, which a new one has not.
fn keep_what_was_given(object: &mut Value, given: &Value) {
    for field in ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        if let Some(value) = given.pointer(&format!("/metadata/{field}")).filter(|value| !value.is_null()) {
            metadata::set(object, field, value.clone());
        }
    }
    let status = given.get("status").filter(|status| status.as_object().is_some_and(|s| !s.is_empty()));
    if let (Some(members), Some(status)) = (object.as_object_mut(), status) {
        members.insert("status".to_owned(), status.clone());
    }
}

fn known<'a>(resources: &'a Resources, kind: &GroupVersionKind) -> Result<&'a Arc<Resource>, Box<Status>> {
    resources.of_kind(kind).ok_or_else(|| {
        let message = format!("no matches for kind \"{}\" in version \"{}\"", kind.kind, kind.api_version());
        Box::new(Status::failure(404, "NotFound", message))
    })
}

pub(super) fn key(resource: &Resource, namespace: &str, name: &str) -> Key {
    Key {
        group: resource.storage_group().to_owned(),
        resource: resource.gvr.resource.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
