//! Defines steps for server-side apply and strategic merge patches.

use cucumber::when;
use gherkin::Step;
use serde_json::Value;

use super::api::PatchFormat;
use super::failure::Outcome;
use super::request::name_of;
use super::world::World;
use super::{StepHelp, when as step};

pub(super) const STRATEGIC: StepHelp = step(
    "the {word} {string} is patched with the strategic merge patch:",
    "Sends PATCH with a strategic merge patch, which merges lists such as containers by their key",
    r#"When the deployment "web" is patched with the strategic merge patch:
  """yaml
  spec: {template: {spec: {containers: [{name: web, image: "example.com/web:2"}]}}}
  """"#,
);

pub(super) const APPLY: StepHelp = step(
    "this object is applied by the field manager {string}:",
    "Sends PATCH with server-side apply, like `kubectl apply --server-side --field-manager`; creates a missing object",
    r#"When this object is applied by the field manager "ci":
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {color: blue}
  """"#,
);

pub(super) const FORCE: StepHelp = step(
    "this object is applied with force by the field manager {string}:",
    "Sends PATCH with server-side apply and force=true, which takes over fields of other managers instead of a 409 Conflict",
    r#"When this object is applied with force by the field manager "ci":
  """yaml
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {color: blue}
  """"#,
);

impl World {
    /// Applies the object of a step as `manager`; `query` is appended to the query parameters of the request.
    async fn apply(&mut self, step: &Step, manager: &str, query: &str) -> Outcome {
        let mut object: Value = self.yaml(step)?;
        self.label_if_namespace(&mut object);
        let collection = self.collection_of(&object).await?;
        let name = name_of(&object)?;
        let manager: String = url::form_urlencoded::byte_serialize(manager.as_bytes()).collect();
        let path = format!("{collection}/{name}?fieldManager={manager}{query}");
        self.patch(step, &path, object, PatchFormat::Apply).await?;
        self.remove_answered_object(&collection)
    }
}

#[when(expr = "the {word} {string} is patched with the strategic merge patch:")]
async fn is_patched_strategically(world: &mut World, step: &Step, resource: String, name: String) -> Outcome {
    let (path, body) = (world.path_of(&resource, &name).await?, world.yaml(step)?);
    world.patch(step, &path, body, PatchFormat::Strategic).await
}

#[when(expr = "this object is applied by the field manager {string}:")]
async fn is_applied(world: &mut World, step: &Step, manager: String) -> Outcome {
    world.apply(step, &manager, "").await
}

#[when(expr = "this object is applied with force by the field manager {string}:")]
async fn is_applied_with_force(world: &mut World, step: &Step, manager: String) -> Outcome {
    world.apply(step, &manager, "&force=true").await
}
