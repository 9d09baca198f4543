//! Defines steps that send the request under test.

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
use crate::narrator::NoteKind;
use crate::target::RUN_LABEL;

pub(super) const DELETED_WITH: StepHelp = step(
    "the {word} {string} is deleted with:",
    "Sends DELETE with these DeleteOptions",
    r#"When the configmap "settings" is deleted with:
  """yaml
  {propagationPolicy: Orphan}
  """"#,
);

pub(super) const ALL_DELETED: StepHelp = step(
    "all {word} are deleted",
    "Deletes the collection in the scenario's namespace; for a cluster-scoped kind, deletes only the objects that the run created",
    "When all configmaps are deleted",
);

pub(super) const SUBRESOURCE_UPDATED: StepHelp = step(
    "the {word} subresource of the {word} {string} is updated:",
    "Sends PUT to a subresource, such as finalize",
    r#"When the finalize subresource of the namespace "shop" is updated:
  """yaml
  apiVersion: v1
  kind: Namespace
  metadata: {name: shop}
  spec: {finalizers: []}
  """"#,
);

impl World {
    /// Sends the request of a When step, keeps the response, and prints the calls and the decision.
    pub(super) async fn request(
        &mut self,
        step: &Step,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Outcome {
        let format = (method == Method::PATCH).then(|| PatchFormat::detect(body.as_ref()));
        self.send(step, method, path, body, format).await
    }

    /// Sends a PATCH request with the given format, as [`World::request`] does.
    pub(super) async fn patch(
        &mut self,
        step: &Step,
        path: &str,
        body: Value,
        format: PatchFormat,
    ) -> Outcome {
        self.send(step, Method::PATCH, path, Some(body), Some(format)).await
    }

    /// Sends a PATCH request that changes the `metadata` of an object, as [`World::request`] does.
    pub(super) async fn patch_metadata(
        &mut self,
        step: &Step,
        resource: &str,
        name: &str,
        metadata: Value,
    ) -> Outcome {
        let path = self.path_of(resource, name).await?;
        self.request(step, Method::PATCH, &path, Some(json!({"metadata": metadata}))).await
    }

    async fn send(
        &mut self,
        step: &Step,
        method: Method,
        path: &str,
        body: Option<Value>,
        format: Option<PatchFormat>,
    ) -> Outcome {
        self.install().await?;
        path.clone_into(&mut self.last_path);
        for name in std::mem::take(&mut self.installation.replaced) {
            self.tell(
                step,
                format!("a fake replaces the webhook \"{name}\", because a step sets its behavior"),
            );
        }
        for warning in std::mem::take(&mut self.ignored_fields) {
            self.note(step, NoteKind::Cause, warning);
        }
        if let Some(order) = self.installation.order.take() {
            self.tell(step, order);
        }
        self.read_calls().await?;
        let before = self.metrics().await?;
        let options = self.options.clone();
        let sent = api::send_as(self.client()?, &options, method, path, body.as_ref(), format);
        let answer = sent.await?.supported()?;
        self.read_own_calls(&answer)?;
        self.last = Some(answer);
        self.explain_skips(body.as_ref()).await;
        self.read_calls().await?;
        self.metric_increase = self.metrics().await?.since(before);
        self.print_result(step, body.as_ref());
        Ok(())
    }

    pub(super) async fn create(&mut self, step: &Step, mut object: Value) -> Outcome {
        self.label_if_namespace(&mut object);
        let path = self.collection_of(&object).await?;
        self.request(step, Method::POST, &path, Some(object)).await?;
        self.remove_answered_object(&path)
    }

    /// Schedules the removal of the object in the last response at the end of the scenario, if the request succeeded.
    pub(super) fn remove_answered_object(&mut self, collection: &str) -> Outcome {
        let answer = self.answer()?;
        let name = answer.body.pointer("/metadata/name").and_then(Value::as_str);
        if let (true, Some(name)) = (answer.is_success(), name) {
            self.remove_unless_own(format!("{collection}/{name}"));
        }
        Ok(())
    }

    async fn update(&mut self, step: &Step, mut object: Value) -> Outcome {
        self.label_if_namespace(&mut object);
        let path = format!("{}/{}", self.collection_of(&object).await?, name_of(&object)?);
        let object = self.with_stored_version(&path, object).await?;
        self.request(step, Method::PUT, &path, Some(object)).await
    }

    /// Returns the path of the collection of `object`, in the object's namespace or, if it does not have one, in the
    /// scenario's namespace.
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

    /// Returns the path of the object that a step specifies by the word for its kind and its name.
    pub(super) async fn path_of(&mut self, word: &str, name: &str) -> Outcome<String> {
        let namespace = self.namespace().await?;
        Ok(self.resource_named(word).await?.object(&namespace, name))
    }

    /// Returns the path of a subresource of the object that a step specifies.
    pub(super) async fn path_of_subresource(
        &mut self,
        word: &str,
        name: &str,
        subresource: &str,
    ) -> Outcome<String> {
        Ok(format!("{}/{subresource}", self.path_of(word, name).await?))
    }

    /// Parses the YAML in the doc string and replaces API groups with the unique groups of the scenario.
    pub(super) fn yaml(&self, step: &Step) -> Outcome<Value> {
        document::parse_step(step, "invalid YAML", |text| self.names.expand(text))
    }

    /// Returns `object`, with the stored `resourceVersion` if it does not have one, because custom resources require a
    /// version.
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
    world.options.effect = Effect::DryRun;
}

#[given(expr = "requests are sent by the user {string}")]
fn sent_by_user(world: &mut World, user: String) {
    world.options.user = Some(user);
}

#[given(expr = "requests are sent by the user {string} in the group {string}")]
fn sent_by_user_in_group(world: &mut World, user: String, group: String) {
    world.options.user = Some(user);
    world.options.groups = vec![group];
}

#[when(expr = "a pod is created")]
async fn a_pod_is_created(world: &mut World, step: &Step) -> Outcome {
    world.create(step, pod(json!({}))).await
}

#[when(expr = "a pod with the label {string} is created")]
async fn a_labeled_pod_is_created(world: &mut World, step: &Step, label: String) -> Outcome {
    let (key, value) = label_parts(&label)?;
    world.create(step, pod(json!({"labels": {key: value}}))).await
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

#[when(expr = "the label {string} is added to the {word} {string}")]
async fn label_is_added(
    world: &mut World,
    step: &Step,
    label: String,
    resource: String,
    name: String,
) -> Outcome {
    let (key, value) = label_parts(&label)?;
    world.patch_metadata(step, &resource, &name, json!({"labels": {key: value}})).await
}

#[when(expr = "the label {string} is removed from the {word} {string}")]
async fn label_is_removed(
    world: &mut World,
    step: &Step,
    key: String,
    resource: String,
    name: String,
) -> Outcome {
    world.patch_metadata(step, &resource, &name, json!({"labels": {key: null}})).await
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
    let resource = world.resource_named(&resource).await?;
    let mut path = resource.collection(&namespace);
    // Cluster-scoped objects may belong to other users of the cluster.
    if resource.scope == Scope::Cluster {
        let run = &world.target()?.run;
        path = format!("{path}?labelSelector={RUN_LABEL}%3D{run}");
    }
    world.request(step, Method::DELETE, &path, None).await
}

#[when(expr = "the {word} subresource of the {word} {string} is patched:")]
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

#[when(expr = "the {word} subresource of the {word} {string} is created:")]
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

#[when(expr = "the {word} subresource of the {word} {string} is updated:")]
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

/// Returns a minimal Pod named `web` with the given metadata.
pub(super) fn pod(mut metadata: Value) -> Value {
    merge(&mut metadata, &json!({"name": "web"}));
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
    })
}

/// Returns the `metadata.name` of an object.
pub(super) fn name_of(object: &Value) -> Outcome<&str> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.ok_or_else(|| StepFailure::new("missing metadata.name in the object"))
}
