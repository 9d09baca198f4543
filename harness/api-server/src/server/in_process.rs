//! Calls the server from the same process without a socket and returns a trace of each request.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource, UserInfo};
use kubernetes_admission::authorizer::{AlwaysAllow, Authorizer};
use kubernetes_admission::config;
use kubernetes_types::schema;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::endpoints::authentication::Claim;
use crate::endpoints::context::{ApiServer, Server};
use crate::endpoints::incoming::Incoming;
use crate::endpoints::outcome::RequestTrace;
use crate::endpoints::request;
use crate::kinds::apiextensions::custom_resources;
use crate::kinds::discovery::{Resource, Resources};
use crate::kinds::server_writes;
use crate::kinds::strategy;
use crate::registry::body::Types;
use crate::registry::request::BodyRetention;
use crate::registry::unknown_fields::{self, UnknownField};
use crate::registry::{body, create, field_manager};
use crate::storage::WriteConflict;

/// The field manager of objects that existed before the first request.
const FIELD_MANAGER: &str = "admit";

/// Identifies a resource by kind or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "objects name kinds, paths name resources")]
pub enum ResourceName {
    /// The resource whose objects are of this kind.
    OfKind(GroupVersionKind),
    /// The resource with this name.
    Named(GroupVersionResource),
}

/// A resource that the server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedResource {
    /// The group, version, and plural name.
    pub name: GroupVersionResource,
    /// The kind of the resource's objects.
    pub kind: GroupVersionKind,
    /// Whether the resource's objects are namespaced.
    pub namespaced: bool,
    /// The supported verbs, such as `get` and `deletecollection`.
    pub verbs: Vec<String>,
    /// The subresources that the server serves for the resource.
    pub subresources: Vec<ServedSubresource>,
}

/// A subresource that the server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedSubresource {
    /// The name, such as `status`.
    pub name: String,
    /// The kind of the objects in requests for the subresource.
    pub kind: GroupVersionKind,
    /// The supported verbs, such as `get` and `update`.
    pub verbs: Vec<String>,
}

impl ServedResource {
    pub(crate) fn from_resource(resource: &Resource) -> Self {
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
    /// Answers one request from `user`. The caller must authorize the request.
    pub async fn exchange(&self, request: http::Request<Bytes>, user: UserInfo) -> (Response, RequestTrace) {
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(Claim::from_user(user));
        let mut body = Incoming::InMemory(body);
        let authorizer: Arc<dyn Authorizer> = Arc::new(AlwaysAllow);
        // Boxed, because the futures of callers are already deeply nested.
        Box::pin(request::respond(&self.server, &parts, &mut body, BodyRetention::Body, &authorizer)).await
    }

    /// Stores an object as if a request had created it, and replaces any existing object.
    ///
    /// Admission does not run. The given `uid`, times, and status are kept; missing fields are set as for a new object.
    ///
    /// # Errors
    /// Returns an error if the server would reject the object, such as 404 for a kind that the server does not serve.
    pub fn put(&self, object: Value) -> Result<Arc<Value>, Box<Status>> {
        self.server.put(object, Validation::AsNew)
    }

    /// Stores an object as [`Self::put`] does, but accepts any object that an upgraded server may have stored.
    ///
    /// The object is not validated, and webhook configurations may be of version `v1beta1`.
    ///
    /// # Errors
    /// Returns an error if the server cannot decode the object, or 404 for a kind that the server does not serve.
    pub fn put_stored(&self, object: Value) -> Result<Arc<Value>, Box<Status>> {
        self.server.put(config::upgraded(&object).unwrap_or(object), Validation::Skipped)
    }

    /// Removes an object without admission, ignoring its finalizers. Returns whether the object existed.
    ///
    /// # Errors
    /// Returns 404 for a kind that the server does not serve.
    pub fn take(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Result<bool, Box<Status>> {
        let resources = self.server.registry.state.resources();
        let resource = known(&resources, kind)?;
        let key = resource.key(namespace, name);
        let Some(stored) = self.server.registry.state.storage.at(&key) else { return Ok(false) };
        let taken = self.server.registry.state.storage.remove(&key, &stored).is_ok();
        self.server.registry.has_changed(resource)?;
        Ok(taken)
    }

    /// Returns a stored object in its storage version; `namespace` is empty for a cluster-scoped object.
    pub fn stored(&self, resource: &GroupVersionResource, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let resources = self.server.registry.state.resources();
        self.server.registry.state.storage.at(&resources.get(resource)?.key(namespace, name))
    }

    /// Returns the resource with this name or kind; `None` if the server does not serve it.
    pub fn resource(&self, name: &ResourceName) -> Option<ServedResource> {
        let resources = self.server.registry.state.resources();
        let resource = match name {
            ResourceName::OfKind(kind) => resources.of_kind(kind),
            ResourceName::Named(name) => resources.get(name),
        }?;
        Some(ServedResource::from_resource(resource))
    }

    /// Returns the first API version that serves a kind with this name, such as `apps/v1` for `Deployment`.
    pub fn version_of_kind(&self, kind: &str) -> Option<String> {
        self.server.registry.state.resources().version_of_kind(kind)
    }

    /// Returns whether a group has a resource with this plural name.
    pub fn serves_in_any_group(&self, plural: &str) -> bool {
        self.server.registry.state.resources().all().iter().any(|resource| resource.gvr.resource == plural)
    }

    /// Sets the defaults that the server sets when it decodes `object`.
    pub fn set_defaults(&self, object: &mut Value) {
        self.server.registry.state.complete_or_keep(object);
    }

    /// Returns the fields of `after` that neither its kind nor `before` has. The server drops them.
    pub fn added_unknown_fields(&self, before: &Value, after: &Value) -> Vec<UnknownField> {
        unknown_fields::added(&self.server.registry.state, before, after)
    }
}

/// The validation of an object before it is put into the storage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Validation {
    /// The object is validated in the same way as an object that a client creates.
    AsNew,
    /// The object is not validated.
    Skipped,
}

impl Server {
    fn put(self: &Arc<Self>, object: Value, validation: Validation) -> Result<Arc<Value>, Box<Status>> {
        let kind = GroupVersionKind::from_object(&object);
        let resources = self.registry.state.resources();
        let resource = known(&resources, &kind)?;
        let (mut object, _) = body::typed(object, &kind, Types::for_resource(resource, &kind))?;
        self.registry.state.complete_or_keep(&mut object);
        if validation == Validation::AsNew {
            let writes = field_manager::WriteContext {
                state: &self.registry.state,
                resource,
                subresource: "",
                kind: &kind,
                manager: FIELD_MANAGER,
            };
            object = writes.update(None, object).map_err(create::conversion_failed)?.object;
        }
        if !resource.namespaced {
            metadata::remove(&mut object, "namespace");
        } else if metadata::text(&object, "namespace").is_empty() {
            metadata::set(&mut object, "namespace", json!("default"));
        }
        let given = object.clone();
        strategy::create::prepare_for_create(&mut object, resource);
        restore_given_fields(&mut object, &given);
        match validation {
            Validation::AsNew => {
                strategy::validate(&object, None, resource, "")?;
                strategy::canonicalize(&mut object, resource)?;
            }
            Validation::Skipped => {}
        }
        schema::normalize_metadata(&mut object);
        if resource.gvr.group_resource() == "customresourcedefinitions.apiextensions.k8s.io" {
            let before = object.clone();
            custom_resources::establish(&mut object);
            object = server_writes::with_status(&before, object);
        }
        let mut object =
            self.registry.state.to_storage_at_once(object, resource).map_err(create::conversion_failed)?;
        self.registry
            .state
            .complete_stored(&mut object)
            .map_err(|unsupported| Status::unsupported(&unsupported))?;
        let key = resource.key(metadata::text(&object, "namespace"), metadata::text(&object, "name"));
        let before = self.registry.state.storage.at(&key);
        let stored =
            self.registry.state.storage.replace(&key, before.as_ref(), object).map_err(|WriteConflict| {
                let why = "another write came first";
                Box::new(Status::conflict(&resource.gvr.group, &resource.gvr.resource, &key.name, why))
            })?;
        self.registry.has_changed(resource)?;
        Ok(stored)
    }
}

/// Restores the given fields that the creation strategy reset.
fn restore_given_fields(object: &mut Value, given: &Value) {
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

pub(super) fn known<'a>(
    resources: &'a Resources,
    kind: &GroupVersionKind,
) -> Result<&'a Arc<Resource>, Box<Status>> {
    resources.of_kind(kind).ok_or_else(|| {
        let meant = resources.version_of_kind(&kind.kind);
        let meant = meant.map(|version| format!(" (did you mean {version}?)")).unwrap_or_default();
        let message =
            format!("no matches for kind \"{}\" in version \"{}\"{meant}", kind.kind, kind.api_version());
        Box::new(Status::failure(404, "NotFound", message))
    })
}
