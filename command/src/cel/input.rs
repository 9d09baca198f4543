//! Builds the values of the CEL variables.

use std::sync::{Arc, OnceLock};

use harness::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use harness::authorizer::Authorizer;
use harness::cluster_state::ClusterState as _;
use harness::conditions::{Bindings, Subject};
use harness::json;
use harness::server::ClusterFixture;
use kubernetes_cel::Variables;
use kubernetes_cel::value::{Origin, Value};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::Failure;
use crate::documents::Document;

/// The objects that the command line provides.
pub(super) struct Given {
    pub(super) object: Option<Document>,
    pub(super) old_object: Option<Document>,
    pub(super) namespace_object: Option<Document>,
    /// The objects that exist in the cluster.
    pub(super) existing: Vec<Json>,
}

impl Given {
    /// Returns the value of `namespaceObject`: the object on the command line, or the existing Namespace of the request.
    fn namespace_object(&mut self, request_namespace: &str) -> Option<Json> {
        let given = self.namespace_object.take().map(|document| document.object);
        given.or_else(|| {
            let is_it = |object: &&Json| {
                let text = |path: &[&str]| json::text(object, path);
                text(&["kind"]) == "Namespace"
                    && text(&["apiVersion"]) == "v1"
                    && text(&["metadata", "name"]) == request_namespace
            };
            self.existing.iter().find(is_it).cloned()
        })
    }
}

/// The input for evaluating an expression.
pub(super) struct Input {
    attributes: Attributes,
    /// The group, version, and kind of the object.
    kind: GroupVersionKind,
    built_in: bool,
    namespace_object: Option<Json>,
    authorizer: Arc<dyn Authorizer>,
    cluster_fixture: ClusterFixture,
    /// Warnings to the user about unknown values.
    pub(super) notes: Vec<String>,
}

/// The `request` field of an `AdmissionReview`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    #[serde(default)]
    sub_resource: String,
    #[serde(rename = "requestKind")]
    original_kind: Option<GroupVersionKind>,
    #[serde(rename = "requestResource")]
    original_resource: Option<GroupVersionResource>,
    #[serde(rename = "requestSubResource")]
    original_subresource: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    operation: Operation,
    #[serde(default)]
    user_info: UserInfo,
    object: Option<Json>,
    old_object: Option<Json>,
    #[serde(default)]
    dry_run: bool,
    options: Option<Json>,
}

impl Input {
    /// Builds the input for a request that creates, updates, or deletes the object.
    pub(super) fn of_objects(mut given: Given, user: UserInfo, namespace: &str) -> Result<Self, Failure> {
        let (operation, options) = match (&given.object, &given.old_object) {
            (Some(_), Some(_)) => (Operation::Update, "UpdateOptions"),
            (None, Some(_)) => (Operation::Delete, "DeleteOptions"),
            (_, None) => (Operation::Create, "CreateOptions"),
        };
        let cluster_fixture = ClusterFixture::new(&given.existing);
        let mut notes = Vec::new();
        let mut attributes = Attributes {
            operation,
            resource: GroupVersionResource::default(),
            subresource: String::new(),
            kind: GroupVersionKind::default(),
            namespace: String::new(),
            name: String::new(),
            object: None,
            old_object: None,
            options: Some(json!({"kind": options, "apiVersion": "meta.k8s.io/v1"})),
            dry_run: false,
            user,
        };
        for (document, is_old) in [(given.old_object.take(), true), (given.object.take(), false)] {
            let Some(Document { place, object }) = document else { continue };
            let kind = GroupVersionKind::from_object(&object);
            let object = if cluster_fixture.resource_of(&kind).is_some() {
                let created = cluster_fixture
                    .create(object, namespace, attributes.user.clone())
                    .map_err(|status| place.failure(&status.message))?;
                let Attributes { resource, kind, namespace, name, object, .. } = created;
                attributes = Attributes { resource, kind, namespace, name, ..attributes };
                object
            } else {
                notes.push(format!(
                    "the server does not serve {} {}, so request.resource.resource is empty: pass its \
                     CustomResourceDefinition with --with FILE, or the request with --request FILE",
                    kind.api_version(),
                    kind.kind
                ));
                let text = |field: &str| json::text(&object, &["metadata", field]).to_owned();
                let resource = GroupVersionResource::new(&*kind.group, &*kind.version, "");
                let (namespace, name) = (text("namespace"), text("name"));
                attributes = Attributes { resource, kind, namespace, name, ..attributes };
                Some(object)
            };
            if is_old { attributes.old_object = object } else { attributes.object = object }
        }
        let kind = attributes.kind.clone();
        let namespace_object = given.namespace_object(&attributes.namespace);
        Ok(Self::new(attributes, kind, namespace_object, cluster_fixture, notes))
    }

    /// Returns the request, and the cluster with the objects that exist.
    pub(super) fn into_request(self) -> (Attributes, ClusterFixture) {
        (self.attributes, self.cluster_fixture)
    }

    /// Builds the input from the request in an `AdmissionReview`.
    pub(super) fn of_review(review: Document, mut given: Given) -> Result<Self, Failure> {
        let Document { place, object: mut review } = review;
        let request = review.get_mut("request").map(Json::take).ok_or_else(|| {
            place.failure("expected an AdmissionReview with `request`, as API servers send it to webhooks")
        })?;
        let request: Request = serde_json::from_value(request)
            .map_err(|error| place.failure(format_args!("request: {error}")))?;
        let attributes = Attributes {
            operation: request.operation,
            resource: request.original_resource.unwrap_or(request.resource),
            subresource: request.original_subresource.unwrap_or(request.sub_resource),
            kind: request.original_kind.unwrap_or_else(|| request.kind.clone()),
            namespace: request.namespace,
            name: request.name,
            object: given.object.take().map(|document| document.object).or(request.object),
            old_object: given.old_object.take().map(|document| document.object).or(request.old_object),
            options: request.options,
            dry_run: request.dry_run,
            user: request.user_info,
        };
        let cluster_fixture = ClusterFixture::new(&given.existing);
        let namespace_object = given.namespace_object(&attributes.namespace);
        Ok(Self::new(attributes, request.kind, namespace_object, cluster_fixture, Vec::new()))
    }

    fn new(
        attributes: Attributes,
        kind: GroupVersionKind,
        namespace_object: Option<Json>,
        cluster_fixture: ClusterFixture,
        notes: Vec<String>,
    ) -> Self {
        Self {
            built_in: cluster_fixture.is_built_in(&kind),
            attributes,
            kind,
            namespace_object,
            authorizer: cluster_fixture.authorizer(),
            cluster_fixture,
            notes,
        }
    }

    /// Returns whether `namespaceObject` has a value.
    pub(super) fn has_namespace_object(&self) -> bool {
        self.namespace_object.is_some()
    }

    /// Removes the value of `namespaceObject`, and returns whether it had one.
    pub(super) fn clear_namespace_object(&mut self) -> bool {
        self.namespace_object.take().is_some()
    }

    /// Returns the variables. Each is created on first use; `request` caches the variable of that name.
    pub(super) fn variables<'a>(&'a self, request: &'a OnceLock<Json>) -> InputVariables<'a> {
        let subject = Subject {
            attributes: &self.attributes,
            kind: &self.kind,
            object: self.attributes.object.as_ref(),
            old_object: self.attributes.old_object.as_ref(),
            built_in: self.built_in,
            authorizer: &self.authorizer,
        };
        InputVariables {
            bindings: Bindings::new(&subject, request),
            namespace_object: self.namespace_object.as_ref(),
        }
    }
}

/// The values of the CEL variables of an [`Input`].
pub(super) struct InputVariables<'a> {
    bindings: Bindings<'a>,
    namespace_object: Option<&'a Json>,
}

impl<'a> Variables<'a> for InputVariables<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        match (name, self.namespace_object) {
            ("namespaceObject", Some(object)) => Some(Value::from_json_of(object, Origin::Typed)),
            _ => self.bindings.get(name),
        }
    }
}
