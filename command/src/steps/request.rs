//! Requests that a scenario is about.

use cucumber::{given, when};
use gherkin::Step;
use http::Method;
use serde_json::{Value, json};

use super::api::{self, Effect, PatchFormat};
use super::document;
use super::failure::{Outcome, StepFailure};
use super::resource::Scope;
use super::webhook::{label_parts, merge};
use super::world::World;
use super::{StepHelp, when as step};
use crate::target::RUN_LABEL;

pub(super) const DELETED_WITH: StepHelp = step(
    "the {word} {string} is deleted with:",
    "DELETE with these DeleteOptions",
    r#"When the configmap "settings" is deleted with:
  """yaml
  {propagationPolicy: Orphan}
  """"#,
);

pub(super) const ALL_DELETED: StepHelp = step(
    "all {word} are deleted",
    "DELETE of all of the namespace's; of a kind without namespaces all that the run has made",
    "When all configmaps are deleted",
);

pub(super) const SUBRESOURCE_UPDATED: StepHelp = step(
    "the {word} of the {word} {string} is updated:",
    "PUT to a subresource, such as finalize",
    r#"When the finalize of the namespace "shop" is updated:
  """yaml
  apiVersion: v1
  kind: Namespace
  metadata: {name: shop}
  spec: {finalizers: []}
  """"#,
);

impl World {
    /// Sends the request of a When, keeps its answer, and tells what happened.
    pub(super) async fn request(
        &mut self,
        step: &Step,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Outcome {
        self.install().await?;
        self.look_at_calls().await?;
        let before = self.metrics().await?;
        let format = (method == Method::PATCH).then(|| format_of(body.as_ref()));
        let manner = self.manner.clone();
        let sent = api::send_as(self.client()?, &manner, method, path, body.as_ref(), format);
        let answer = sent.await?.imitated()?;
        self.look_at_own_calls(&answer)?;
        self.last = Some(answer);
        self.look_at_calls().await?;
        self.counted = self.metrics().await?.since(before);
        self.tell_what_happened(step);
        Ok(())
    }

    async fn create(&mut self, step: &Step, mut object: Value) -> Outcome {
        self.label_if_namespace(&mut object);
        let path = self.collection_of(&object).await?;
        self.request(step, Method::POST, &path, Some(object)).await?;
        let answer = self.answer()?;
        let name = answer.body.pointer("/metadata/name").and_then(Value::as_str);
        if let (true, Some(name)) = (answer.is_success(), name) {
            self.remove_unless_own(format!("{path}/{name}"));
        }
        Ok(())
    }

    async fn update(&mut self, step: &Step, mut object: Value) -> Outcome {
        self.label_if_namespace(&mut object);
        let path = format!("{}/{}", self.collection_of(&object).await?, name_of(&object)?);
        let object = self.with_stored_version(&path, object).await?;
        self.request(step, Method::PUT, &path, Some(object)).await
    }

    /// The path of the object's collection, in the namespace that it names or in the scenario's.
    pub(super) async fn collection_of(&mut self, object: &Value) -> Outcome<String> {
        let own = self.namespace().await?;
        let named = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let namespace = named.unwrap_or(&own);
        let resource = self.resource_of(object).await?;
        if resource.kind == "Pod" && namespace != own {
            self.wait_for_controllers(namespace).await?;
        }
        Ok(resource.collection(namespace))
    }

    /// The path of the object that a sentence speaks of.
    pub(super) async fn path_of(&mut self, word: &str, name: &str) -> Outcome<String> {
        let namespace = self.namespace().await?;
        Ok(self.resource_called(word).await?.object(&namespace, name))
    }

    /// The path of a subresource of it.
    pub(super) async fn path_of_subresource(
        &mut self,
        word: &str,
        name: &str,
        subresource: &str,
    ) -> Outcome<String> {
        Ok(format!("{}/{subresource}", self.path_of(word, name).await?))
    }

    /// The YAML in the doc string, with the scenario's own groups.
    pub(super) fn yaml(&self, step: &Step) -> Outcome<Value> {
        document::parse(&self.names.expand(&document::text(step)?))
    }

    /// Without a resourceVersion an update is of whatever is stored; custom resources ask for one.
    async fn with_stored_version(&self, path: &str, mut object: Value) -> Outcome<Value> {
        if object.pointer("/metadata/resourceVersion").is_none() {
            let stored = api::send(self.client()?, Method::GET, path, None).await?;
            let version = stored.body.pointer("/metadata/resourceVersion").cloned();
            if let (Some(version), Some(Value::Object(metadata))) = (version, object.get_mut("metadata")) {
                metadata.insert("resourceVersion".to_owned(), version);
            }
        }
        Ok(object)
    }
}

#[given(expr = "requests are dry runs")]
fn dry_runs(world: &mut World) {
    world.manner.effect = Effect::DryRun;
}

#[given(expr = "requests are made by the user {string}")]
fn by_the_user(world: &mut World, user: String) {
    world.manner.user = Some(user);
}

#[given(expr = "requests are made by the user {string} of the group {string}")]
fn by_the_user_of_the_group(world: &mut World, user: String, group: String) {
    world.manner.user = Some(user);
    world.manner.groups = vec![group];
}

#[when(expr = "a pod is created")]
async fn a_pod_is_created(world: &mut World, step: &Step) -> Outcome {
    world.create(step, pod(&json!({}))).await
}

#[when(expr = "a pod with the label {string} is created")]
async fn a_labeled_pod_is_created(world: &mut World, step: &Step, label: String) -> Outcome {
    let (key, value) = label_parts(&label)?;
    world.create(step, pod(&json!({ key: value }))).await
}

#[when(expr = "this object is created:")]
async fn is_created(world: &mut World, step: &Step) -> Outcome {
    let object = world.yaml(step)?;
    world.create(step, object).await
}

#[when(expr = "this object is updated:")]
async fn is_updated(world: &mut World, step: &Step) -> Outcome {
    let object = world.yaml(step)?;
    world.update(step, object).await
}

#[when(expr = "the object in the file {string} is created")]
async fn in_the_file_is_created(world: &mut World, step: &Step, name: String) -> Outcome {
    let object = world.object_in(&name)?;
    world.create(step, object).await
}

#[when(expr = "the object in the file {string} is updated")]
async fn in_the_file_is_updated(world: &mut World, step: &Step, name: String) -> Outcome {
    let object = world.object_in(&name)?;
    world.update(step, object).await
}

#[when(expr = "the {word} {string} is patched:")]
async fn is_patched(world: &mut World, step: &Step, resource: String, name: String) -> Outcome {
    let (path, change) = (world.path_of(&resource, &name).await?, world.yaml(step)?);
    world.request(step, Method::PATCH, &path, Some(change)).await
}

#[when(expr = "the {word} {string} gets the label {string}")]
async fn gets_label(
    world: &mut World,
    step: &Step,
    resource: String,
    name: String,
    label: String,
) -> Outcome {
    let (key, value) = label_parts(&label)?;
    let path = world.path_of(&resource, &name).await?;
    world.request(step, Method::PATCH, &path, Some(labels(&json!({ key: value })))).await
}

#[when(expr = "the {word} {string} loses the label {string}")]
async fn loses_label(world: &mut World, step: &Step, resource: String, name: String, key: String) -> Outcome {
    let path = world.path_of(&resource, &name).await?;
    world.request(step, Method::PATCH, &path, Some(labels(&json!({ key: null })))).await
}

#[when(expr = "the {word} {string} is deleted")]
async fn is_deleted(world: &mut World, step: &Step, resource: String, name: String) -> Outcome {
    let path = world.path_of(&resource, &name).await?;
    world.request(step, Method::DELETE, &path, None).await
}

#[when(expr = "the {word} {string} is deleted with:")]
async fn is_deleted_with(world: &mut World, step: &Step, resource: String, name: String) -> Outcome {
    let (path, mut options) = (world.path_of(&resource, &name).await?, world.yaml(step)?);
    merge(&mut options, &json!({"apiVersion": "v1", "kind": "DeleteOptions"}));
    world.request(step, Method::DELETE, &path, Some(options)).await
}

#[when(expr = "all {word} are deleted")]
async fn all_are_deleted(world: &mut World, step: &Step, resource: String) -> Outcome {
    let namespace = world.namespace().await?;
    let resource = world.resource_called(&resource).await?;
    let mut path = resource.collection(&namespace);
    // Cluster-scoped objects may belong to other users of the cluster.
    if resource.scope == Scope::Cluster {
        let run = &world.target()?.run;
        path = format!("{path}?labelSelector={RUN_LABEL}%3D{run}");
    }
    world.request(step, Method::DELETE, &path, None).await
}

#[when(expr = "the {word} of the {word} {string} is patched:")]
async fn subresource_is_patched(
    world: &mut World,
    step: &Step,
    subresource: String,
    resource: String,
    name: String,
) -> Outcome {
    let path = world.path_of_subresource(&resource, &name, &subresource).await?;
    let change = world.yaml(step)?;
    world.request(step, Method::PATCH, &path, Some(change)).await
}

#[when(expr = "the {word} of the {word} {string} is created:")]
async fn subresource_is_created(
    world: &mut World,
    step: &Step,
    subresource: String,
    resource: String,
    name: String,
) -> Outcome {
    let path = world.path_of_subresource(&resource, &name, &subresource).await?;
    let object = world.yaml(step)?;
    world.request(step, Method::POST, &path, Some(object)).await
}

#[when(expr = "the {word} of the {word} {string} is updated:")]
async fn subresource_is_updated(
    world: &mut World,
    step: &Step,
    subresource: String,
    resource: String,
    name: String,
) -> Outcome {
    let path = world.path_of_subresource(&resource, &name, &subresource).await?;
    let mut object = world.yaml(step)?;
    world.label_if_namespace(&mut object);
    world.request(step, Method::PUT, &path, Some(object)).await
}

/// The smallest pod: `web`, with one container of the same name.
fn pod(labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": labels},
        "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
    })
}

fn labels(labels: &Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

/// A list is a JSON Patch; anything else is a merge patch.
fn format_of(patch: Option<&Value>) -> PatchFormat {
    if patch.is_some_and(Value::is_array) { PatchFormat::Json } else { PatchFormat::Merge }
}

/// `metadata.name`.
pub(super) fn name_of(object: &Value) -> Outcome<&str> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.ok_or_else(|| StepFailure::new("the object needs `metadata.name`"))
}
