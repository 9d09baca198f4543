//! Cluster state for callers that admit single requests without running a server.

mod subresource_bodies;
#[cfg(test)]
mod unknown_fields_tests;
mod webhook_manifests;

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

pub use self::webhook_manifests::WebhookManifests;

use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::{
    Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo,
};
use kubernetes_admission::authorizer::{Authorizer, RBAC_GROUP};
use kubernetes_admission::cluster_state::{ClusterState, ConversionError, EquivalentResource, MergeError};
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_types::json::at;
use kubernetes_types::schema;
use kubernetes_types::status::{Status, StatusCause};

use super::in_process::ServedResource;
use super::initial_objects::NAMESPACES;
use crate::apimachinery::metadata;
use crate::kinds::apiextensions::{custom_resources, definition_status};
use crate::kinds::deletion;
use crate::kinds::discovery::Subresource;
use crate::kinds::discovery::custom;
use crate::kinds::kind::DeleteEffect;
use crate::kinds::rbac::AuthorizationMode;
use crate::kinds::strategy::create;
use crate::kinds::{defaulting, scale, strategy, table};
use crate::registry::state::{State, normalize_stored};
use crate::registry::unknown_fields::{self, UnknownField};
use crate::storage::{Key, ObjectReader as _, Storage};

/// The namespaces and resources of a cluster, without a server.
pub struct ClusterFixture {
    state: State,
    webhook_manifests: WebhookManifests,
}

impl ClusterFixture {
    /// Creates a fixture with the initial namespaces and the given `objects`.
    ///
    /// Stores the Namespaces, `CustomResourceDefinition`s, roles, and bindings in `objects`. A later object replaces an
    /// earlier object with the same name. Keeps Services, workloads, Pods, and Secrets for [`Self::webhook_manifests`].
    pub fn new<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let state = State::alone(Arc::new(Storage::default()), AuthorizationMode::default());
        let mut access = Vec::new();
        let mut webhook_manifests = WebhookManifests::default();
        for name in NAMESPACES {
            add_namespace(&state, &json!({"metadata": {"name": name}}));
        }
        for object in objects {
            let kind = GroupVersionKind::from_object(object);
            match (kind.group.as_str(), kind.kind.as_str()) {
                ("", "Namespace") => add_namespace(&state, object),
                (custom::GROUP, "CustomResourceDefinition") => {
                    let mut definition = object.clone();
                    state.complete_or_keep(&mut definition);
                    custom_resources::establish(&mut definition);
                    let key = definition_status::key(metadata::text(&definition, "name"));
                    put(&state, &key, definition);
                }
                (RBAC_GROUP, _) => access.push(object),
                _ => webhook_manifests.add(&kind, object),
            }
        }
        state.reload_resources();
        for object in access {
            store(&state, object.clone(), "");
        }
        Self { state, webhook_manifests }
    }

    /// Stores an object, such as the param of an admission policy, and returns whether its kind is served.
    ///
    /// An object without a namespace is stored in `namespace`.
    pub fn add(&self, object: &Value, namespace: &str) -> bool {
        store(&self.state, object.clone(), namespace)
    }

    /// Returns the Services, workloads, Pods, and Secrets in the manifests.
    pub fn webhook_manifests(&self) -> &WebhookManifests {
        &self.webhook_manifests
    }

    /// Returns whether the API server serves a resource in this API group.
    pub fn has_group(&self, group: &str) -> bool {
        self.state.resources().has_group(group)
    }

    /// Returns the paths of the unknown fields of `object`, such as `webhooks[0].failPolicy`.
    ///
    /// # Errors
    /// Returns an error if the API server cannot decode the object.
    pub fn unknown_fields(&self, object: &Value) -> Result<Vec<String>, Box<Status>> {
        let kind = GroupVersionKind::from_object(object);
        Ok(unknown_fields::typed(&self.state, object.clone(), &kind)?.1)
    }

    /// Returns the fields of `after` that neither its kind nor `before` has.
    pub fn added_unknown_fields(&self, before: &Value, after: &Value) -> Vec<UnknownField> {
        unknown_fields::added(&self.state, before, after)
    }

    /// Begins an admission run of `request`.
    pub fn run(&self, request: Attributes) -> AdmissionRun<'_> {
        let times = TimePrecision::for_request(&request, self.is_built_in(&request.kind));
        AdmissionRun::new(request, times, self).with_authorizer(self.authorizer())
    }

    /// Begins a run that matches and evaluates `request`, and calls no webhook.
    ///
    /// Only the patches of webhooks depend on the precision of the timestamps, so it is not computed.
    pub fn evaluation(&self, request: Attributes) -> AdmissionRun<'_> {
        AdmissionRun::new(request, TimePrecision::Seconds, self).with_authorizer(self.authorizer())
    }

    /// Returns the RBAC authorizer over the roles and bindings.
    pub fn authorizer(&self) -> Arc<dyn Authorizer> {
        Arc::clone(&self.state.authorizer)
    }

    /// Returns the resource whose objects are of `kind`; `None` if the kind is not served.
    pub fn resource_of(&self, kind: &GroupVersionKind) -> Option<ServedResource> {
        self.state.resources().of_kind(kind).map(|resource| ServedResource::from_resource(resource))
    }

    /// Returns the resource with this name; `None` if the resource is not served.
    pub fn resource(&self, name: &GroupVersionResource) -> Option<ServedResource> {
        self.state.resources().get(name).map(|resource| ServedResource::from_resource(resource))
    }

    /// Returns the structural schema of a custom resource; `None` for a built-in kind or a definition without a schema.
    pub fn schema_of(&self, kind: &GroupVersionKind) -> Option<Value> {
        let definitions = self.state.storage.list(custom::GROUP, custom::RESOURCE, "");
        let definition = definitions.iter().find(|definition| {
            let spec = &definition["spec"];
            spec["group"] == *kind.group && *at(spec, &["names", "kind"]) == *kind.kind
        })?;
        let mut versions = at(definition, &["spec", "versions"]).as_array()?.iter();
        let version = versions.find(|version| version["name"] == *kind.version)?;
        version.pointer("/schema/openAPIV3Schema").cloned()
    }

    /// Returns all served resources, with the built-in resources first.
    pub fn resources(&self) -> Vec<ServedResource> {
        self.state.resources().all().iter().map(|resource| ServedResource::from_resource(resource)).collect()
    }

    /// Applies the strategy of the resource to the object of a request: UID, times, status, and generation.
    ///
    /// The server applies the strategy between the mutating and the validating webhooks. It updates only the replicas
    /// of a Scale. The bodies of other subresources with a kind of their own stay unchanged.
    ///
    /// Source: apiserver pkg/registry/generic/registry/store.go, `Create` and `Update`.
    pub fn prepare(&self, request: &mut Attributes) {
        let resources = self.state.resources();
        let Some(resource) = resources.get(&request.resource) else { return };
        let Some(object) = &mut request.object else { return };
        match (request.operation, request.subresource.as_str(), &request.old_object) {
            (Operation::Create, "", _) => {
                create::prepare_for_create(object, resource);
                (table::of(resource).set_requester)(object, &request.user);
            }
            (Operation::Update, _, Some(old)) if request.kind == resource.kind => {
                strategy::update::prepare_for_update(object, old, resource, &request.subresource);
                schema::normalize_metadata(object);
            }
            (Operation::Update, "scale", Some(old)) => scale::keep_only_replicas(object, old),
            _ => {}
        }
    }

    /// Validates the object of a request and returns the causes of its 422; empty if the object is valid.
    ///
    /// The object must already be [prepared](Self::prepare). The body of a subresource may have another kind: a `Scale`, a
    /// `TokenRequest`, and a `Binding` are validated, other bodies are not.
    ///
    /// # Errors
    /// Returns 501 for constructs that admit does not support, or the server's error if the server rejects the object
    /// with a code other than 422.
    ///
    /// Source: apiserver pkg/registry/rest/create.go, `BeforeCreate`, and pkg/registry/rest/update.go, `BeforeUpdate`.
    pub fn invalid_fields(&self, request: &Attributes) -> Result<Vec<StatusCause>, Box<Status>> {
        let resources = self.state.resources();
        let resource = resources.get(&request.resource);
        let (Some(resource), Some(object)) = (resource, &request.object) else { return Ok(Vec::new()) };
        let old = request.old_object.as_ref();
        let validated = if request.kind == resource.kind {
            strategy::validate(object, old, resource, &request.subresource)
        } else {
            subresource_bodies::validate(object, old, resource, &request.subresource)
        };
        match validated {
            Ok(()) => Ok(Vec::new()),
            Err(status) if status.code == 422 => {
                Ok(status.details.map(|details| details.causes).unwrap_or_default())
            }
            Err(status) => Err(status),
        }
    }

    /// Returns a stored object as clients read it while its finalizers delay its deletion.
    ///
    /// The grace period, if any, has expired. Returns `None` if the kind is not served or a deletion would not change
    /// the object.
    pub fn marked(&self, stored: &Value) -> Option<Value> {
        let resources = self.state.resources();
        let kind = table::of(resources.of_kind(&GroupVersionKind::from_object(stored))?);
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        match deletion::mark(stored, &options, kind, false) {
            DeleteEffect::Changed { object, .. } => Some(object),
            DeleteEffect::Pending => None,
        }
    }

    /// Completes an object that is to be created, so that it equals the object that clients read.
    ///
    /// The object must already be [prepared](Self::prepare).
    ///
    /// Sets the defaults of the version and establishes a custom resource definition.
    pub fn normalize(&self, object: &mut Value) {
        let kind = GroupVersionKind::from_object(object);
        if let Some(resource) = self.state.resources().of_kind(&kind) {
            normalize_stored(object, resource);
        }
        if kind.group == custom::GROUP {
            custom_resources::establish(object);
        }
        self.state.complete_or_keep(object);
    }

    /// Returns the resource and the subresource to which clients POST an object of `kind`.
    ///
    /// Returns `None` if the kind is not served.
    ///
    /// For example, clients POST an `Eviction` to a subresource of the Pod.
    pub fn created_at(&self, kind: &GroupVersionKind) -> Option<(ServedResource, String)> {
        let own = self.resource_of(kind);
        if let Some(stored) = own.as_ref().filter(|resource| resource.verbs.iter().any(|verb| verb == "get"))
        {
            return Some((stored.clone(), String::new()));
        }
        let below = self.state.resources().all().iter().find_map(|resource| {
            let is_it = |it: &&Subresource| it.kind == *kind && it.verbs.iter().any(|verb| verb == "create");
            let subresource = resource.subresources.iter().find(is_it)?;
            Some((ServedResource::from_resource(resource), subresource.name.clone()))
        });
        // Connections have no object.
        let below = below.filter(|_| !kind.kind.ends_with("Options"));
        below.or_else(|| own.map(|resource| (resource, String::new())))
    }

    /// Returns the request that creates `object`, decoded and with defaults, as admission receives it.
    ///
    /// An object without a namespace is created in `namespace`. An `Eviction` or a similar kind is created in the
    /// subresource of the object with the same name.
    ///
    /// # Errors
    /// Returns 404 if the kind is not served, or 400 if a field of the object has the wrong type.
    pub fn create(&self, object: Value, namespace: &str, user: UserInfo) -> Result<Attributes, Box<Status>> {
        let kind = GroupVersionKind::from_object(&object);
        let (resource, subresource) = self.created_at(&kind).ok_or_else(|| {
            let message = format!("no resource has the kind {} {}", kind.api_version(), kind.kind);
            Box::new(Status::failure(404, "NotFound", message))
        })?;
        let mut object = unknown_fields::typed(&self.state, object, &kind)?.0;
        self.state.complete_or_keep(&mut object);
        metadata::wipe(&mut object);
        let name = metadata::text(&object, "name").to_owned();
        let namespace = if resource.namespaced {
            let own = metadata::text(&object, "namespace").to_owned();
            let namespace = if own.is_empty() { namespace.to_owned() } else { own };
            metadata::set(&mut object, "namespace", namespace.clone().into());
            namespace
        } else {
            metadata::remove(&mut object, "namespace");
            if resource.name.group_resource() == "namespaces" { name.clone() } else { String::new() }
        };
        Ok(Attributes {
            operation: Operation::Create,
            resource: resource.name,
            subresource,
            kind,
            namespace,
            name,
            object: Some(object),
            old_object: None,
            options: Some(json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"})),
            dry_run: false,
            user,
        })
    }
}

/// Stores a namespace. Its defaults include the label `kubernetes.io/metadata.name`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Namespace`.
fn add_namespace(state: &State, object: &Value) {
    let mut namespace = object.clone();
    let key = Key::cluster_scoped("", "namespaces", metadata::text(&namespace, "name"));
    if let Some(members) = namespace.as_object_mut() {
        members.insert("apiVersion".to_owned(), "v1".into());
        members.insert("kind".to_owned(), "Namespace".into());
        members.entry("status").or_insert_with(|| json!({"phase": "Active"}));
    }
    defaulting::set_defaults(&mut namespace);
    put(state, &key, namespace);
}

/// Stores an object, in `namespace` if it does not name one, and returns whether its kind is served.
fn store(state: &State, mut object: Value, namespace: &str) -> bool {
    let resources = state.resources();
    let Some(resource) = resources.of_kind(&GroupVersionKind::from_object(&object)) else { return false };
    if !resource.namespaced {
        metadata::remove(&mut object, "namespace");
    } else if !namespace.is_empty() && metadata::text(&object, "namespace").is_empty() {
        metadata::set(&mut object, "namespace", namespace.into());
    }
    state.complete_or_keep(&mut object);
    let key = resource.key(metadata::text(&object, "namespace"), metadata::text(&object, "name"));
    put(state, &key, object);
    true
}

/// Stores `object` and replaces any existing object. The fixture does not have other writers.
fn put(state: &State, key: &Key, object: Value) {
    let stored = state.storage.at(key);
    if state.storage.replace(key, stored.as_ref(), object).is_err() {
        unreachable!("there are no other writers");
    }
}

impl ClusterState for ClusterFixture {
    /// Returns a namespace. If no manifest contains it, returns a namespace that has only a name and the name label.
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        let unknown = || {
            let labels = json!({"kubernetes.io/metadata.name": name});
            Arc::new(
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
            )
        };
        Some(self.state.namespace(name).unwrap_or_else(unknown))
    }

    fn equivalent_resources(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Arc<[EquivalentResource]> {
        self.state.equivalent_resources(resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        self.state.convert(object, kind)
    }

    fn set_defaults(&self, object: &mut Value) {
        self.state.set_defaults(object);
    }

    fn merge_configuration(
        &self,
        live: &Value,
        configuration: &Value,
        kind: &GroupVersionKind,
    ) -> Result<Value, MergeError> {
        self.state.merge_configuration(live, configuration, kind)
    }

    fn preserves_unpatched(&self, kind: &GroupVersionKind) -> bool {
        self.state.preserves_unpatched(kind)
    }

    fn is_namespaced(&self, kind: &GroupVersionKind) -> Option<bool> {
        self.state.is_namespaced(kind)
    }

    fn stored(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Vec<Arc<Value>> {
        self.state.stored(kind, namespace, name)
    }

    fn read_stored(
        &self,
        stored: &Arc<Value>,
        kind: &GroupVersionKind,
    ) -> Result<Arc<Value>, ConversionError> {
        self.state.read_stored(stored, kind)
    }

    fn pass_through_internal(&self, object: &mut Value, before: &Value) -> bool {
        self.state.pass_through_internal(object, before)
    }

    fn is_built_in(&self, kind: &GroupVersionKind) -> bool {
        self.state.is_built_in(kind)
    }
}

impl fmt::Debug for ClusterFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterFixture").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_without_a_namespace_gets_the_given_one() {
        let cluster_fixture = ClusterFixture::new([]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let request = cluster_fixture.create(pod, "demo", UserInfo::default()).unwrap();
        assert_eq!(request.namespace, "demo");
        assert_eq!(request.object.unwrap()["metadata"]["namespace"], "demo");
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "x"}});
        assert_eq!(cluster_fixture.create(node, "demo", UserInfo::default()).unwrap().namespace, "");
    }

    #[test]
    fn definitions_serve_custom_resources() {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        });
        let cluster_fixture = ClusterFixture::new([&definition]);
        let kind = GroupVersionKind::new("example.com", "v1", "Widget");
        assert_eq!(cluster_fixture.resource_of(&kind).unwrap().name.resource, "widgets");
        assert!(!cluster_fixture.is_built_in(&kind));
        assert_eq!(cluster_fixture.schema_of(&kind), Some(json!({"type": "object"})));
        assert_eq!(cluster_fixture.schema_of(&GroupVersionKind::new("example.com", "v2", "Widget")), None);
        assert_eq!(ClusterFixture::new([]).resource_of(&kind), None);
    }

    #[test]
    fn given_namespace_keeps_its_labels() {
        let namespace = json!({"metadata": {"name": "default", "labels": {"a": "b"}}, "kind": "Namespace", "apiVersion": "v1"});
        let cluster_fixture = ClusterFixture::new([&namespace]);
        let stored = cluster_fixture.namespace("default").unwrap();
        assert_eq!(stored["metadata"]["labels"], json!({"a": "b", "kubernetes.io/metadata.name": "default"}));
        let unknown = cluster_fixture.namespace("elsewhere").unwrap();
        assert_eq!(unknown["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "elsewhere"}));
    }

    #[test]
    fn only_the_replicas_of_a_scale_change() {
        let cluster_fixture = ClusterFixture::new([]);
        let scale = |metadata: Value, replicas: i32| {
            let status = json!({"replicas": replicas});
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata,
                "spec": {"replicas": replicas}, "status": status})
        };
        let old = scale(json!({"name": "a"}), 1);
        let prepared = |object: Value| {
            let mut request = Attributes {
                operation: Operation::Update,
                resource: GroupVersionResource::new("apps", "v1", "deployments"),
                subresource: "scale".to_owned(),
                kind: GroupVersionKind::from_object(&object),
                namespace: "default".to_owned(),
                name: "a".to_owned(),
                object: Some(object),
                old_object: Some(old.clone()),
                options: None,
                dry_run: false,
                user: UserInfo::default(),
            };
            cluster_fixture.prepare(&mut request);
            request.object.unwrap_or_default()
        };
        let after = |spec: Value| {
            let mut after = old.clone();
            after["spec"] = spec;
            after
        };
        let written = scale(json!({"name": "a", "labels": {"a": "b"}}), 3);
        assert_eq!(prepared(written), after(json!({"replicas": 3})));
        assert_eq!(prepared(scale(json!({"name": "a"}), 0)), after(json!({})));
    }
}
