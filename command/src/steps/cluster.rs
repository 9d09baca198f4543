//! Defines steps that prepare the state of the server: objects, custom resources, and labels of the namespace.

use std::path::Path;
use std::time::Duration;

use cucumber::given;
use gherkin::Step;
use harness::config;
use http::Method;
use serde_json::{Value, json};

use super::api::{self, PatchFormat, RequestOptions};
use super::document;
use super::failure::{Outcome, StepFailure};
use super::names::Names;
use super::policies;
use super::rejection;
use super::request::name_of;
use super::resource::{self, Scope};
use super::webhook::{label_parts, merge};
use super::world::World;
use crate::admission_kinds::is_configuration;
use crate::target::RUN_LABEL;
use crate::{documents, v1beta1};

impl World {
    /// Stores an object before the webhooks of the scenario are installed.
    ///
    /// A webhook configuration is installed before the first request, together with the scenario's webhooks.
    pub(super) async fn store(&mut self, mut object: Value) -> Outcome {
        if is_configuration(&object) {
            self.check_configuration(&object).await?;
            self.target()?.record_services(&object);
            self.installation.own.push(object);
            self.installation.expire();
            return Ok(());
        }
        let policy_type = policies::type_of(&object);
        if policy_type.is_some() {
            self.policies.push(object.clone());
            self.confine_policy(&mut object);
        }
        let is_namespace = self.label_own_namespace(&mut object);
        let path = self.collection_of(&object).await?;
        let name = name_of(&object)?.to_owned();
        let scope = self.resource_of(&object).await?.scope;
        if scope == Scope::Cluster {
            merge(&mut object, &json!({"metadata": {"labels": {RUN_LABEL: self.target()?.run}}}));
        }
        if let Some(of) = policy_type {
            self.prepare_for_policy(of).await?;
        }
        let answer = api::send(self.client()?, Method::POST, &path, Some(&object)).await?;
        if is_namespace && answer.code == http::StatusCode::CONFLICT {
            return Err(StepFailure::new(format!(
                "the namespace \"{name}\" already exists: to use it, add the step `webhooks are also called in the \
                 namespace \"{name}\"` instead"
            )));
        }
        self.keep_ignored_fields(&answer, &object);
        let kind = harness::json::text(&object, &["kind"]);
        answer.successful().map_err(|failure| self.rejected(kind, &name, failure))?;
        if is_namespace {
            self.remove_namespace_at_the_end(&name);
        } else {
            self.remove_unless_own(format!("{path}/{name}"));
        }
        match object.get("kind").and_then(Value::as_str) {
            Some("CustomResourceDefinition") => {
                self.wait_until_served(&object).await?;
                self.definitions.push(object);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Reads the objects in a file. `name` is the file name that a step specifies.
    fn objects_in(&self, name: &str) -> Outcome<Vec<Value>> {
        let path = self.file(name);
        let cannot_read = |error| {
            let base = if Path::new(name).is_absolute() { "" } else { " (relative to the feature file)" };
            StepFailure::new(format!("cannot read {}{base}: {error}", path.display()))
        };
        let bytes = output::read(&path).map_err(cannot_read)?;
        let text = documents::text(bytes, path.display())
            .map_err(|failure| StepFailure::new(failure.to_string()))?;
        let objects = document::parse_objects(&self.names.expand(&text));
        objects.map_err(|failure| failure.during(path.display()))
    }

    /// Returns the file and the line of the field or the kind that the server's error is about, such as
    /// `manifest.yaml:12`.
    fn place_in(&self, name: &str, error: &str) -> Option<String> {
        let text = String::from_utf8(output::read(&self.file(name)).ok()?).ok()?;
        let expanded = || rejection::line_in(&self.names.expand(&text), error);
        let line = rejection::line_in(&text, error).or_else(expanded)?;
        Some(format!("{name}:{line}"))
    }

    /// Reads the object in a file, which must contain exactly one. `name` is the file name that a step specifies.
    pub(super) fn object_in(&self, name: &str) -> Outcome<Value> {
        let mut objects = self.objects_in(name)?;
        match (objects.pop(), objects.is_empty()) {
            (Some(object), true) => Ok(object),
            (object, _) => {
                let count = objects.len() + usize::from(object.is_some());
                let path = self.file(name);
                Err(StepFailure::new(format!(
                    "{} contains {count} objects: must contain exactly one",
                    path.display()
                )))
            }
        }
    }

    async fn store_all(&mut self, step: &Step, mut objects: Vec<Value>) -> Outcome {
        // Other objects need their namespace and their definition. The sort is stable.
        objects.sort_by_key(|object| match object.get("kind").and_then(Value::as_str) {
            Some("Namespace") => 0,
            Some("CustomResourceDefinition") => 1,
            Some(_) | None => 2,
        });
        let types = policies::types_of(&objects);
        for object in objects {
            if let Some(created) = self.create_namespace_of(&object).await? {
                self.tell(step, format!("created the namespace \"{created}\""));
            }
            self.store(object).await?;
        }
        for of in types {
            self.wait_for_policies(of).await?;
        }
        Ok(())
    }

    /// Waits until the server serves a definition. It does so shortly after it has accepted the definition.
    async fn wait_until_served(&self, definition: &Value) -> Outcome {
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let is_served = |version: &&Value| version.get("served") == Some(&Value::Bool(true));
        for version in versions.into_iter().flatten().filter(is_served) {
            let version = version.get("name").and_then(Value::as_str).unwrap_or_default();
            let api_version = format!("{}/{version}", text("/spec/group"));
            let list = format!("{}/{}", resource::root(&api_version), text("/spec/names/plural"));
            self.wait_for(&list, &api_version, text("/spec/names/kind")).await?;
        }
        Ok(())
    }

    async fn wait_for(&self, list: &str, api_version: &str, kind: &str) -> Outcome {
        let started = tokio::time::Instant::now();
        loop {
            let client = self.client()?;
            let is_listed = api::send(client, Method::GET, list, None).await?.is_success();
            if is_listed && resource::for_kind(client, api_version, kind).await.is_ok() {
                return Ok(());
            }
            if started.elapsed() > Duration::from_secs(30) {
                return Err(StepFailure::new(format!("{kind} of {api_version} is not served after 30 s")));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[given(expr = "this object exists:")]
#[given(expr = "these objects exist:")]
async fn exist(world: &mut World, step: &Step) -> Outcome {
    let objects = document::parse_step_documents(step, |text| world.names.expand(text))?;
    let stored = world.store_all(step, objects).await;
    stored.map_err(|failure| rejection::in_doc_string(step, failure))
}

#[given(expr = "the objects in the file {string} exist")]
async fn in_the_file_exist(world: &mut World, step: &Step, name: String) -> Outcome {
    let mut objects = world.objects_in(&name)?;
    for object in &mut objects {
        // No target serves v1beta1, so the configuration is converted to v1.
        if let Some(upgraded) = config::upgraded(object) {
            let warning = v1beta1::warning(&name, object).unwrap_or_default();
            warning.lines().for_each(|line| world.tell(step, line));
            *object = upgraded;
        }
    }
    let stored = world.store_all(step, objects).await;
    stored.map_err(|failure| {
        let place = world.place_in(&name, &failure.to_string());
        failure.during(place.as_ref().unwrap_or(&name))
    })
}

#[given(expr = "the {word} {string} is being deleted")]
async fn is_being_deleted(world: &mut World, resource: String, name: String) -> Outcome {
    let path = world.path_of(&resource, &name).await?;
    let client = world.client()?;
    api::send(client, Method::DELETE, &path, None).await?.successful()?;
    let left = api::send(client, Method::GET, &path, None).await?;
    if left.body.pointer("/metadata/deletionTimestamp").is_none() {
        return Err(StepFailure::new(format!(
            "{resource} \"{name}\" was deleted immediately: it must have a finalizer"
        )));
    }
    Ok(())
}

#[given(expr = "a ConfigMap {string} exists")]
async fn config_map_exists(world: &mut World, name: String) -> Outcome {
    world.store(config_map(&name, &json!({}))).await
}

#[given(expr = "a ConfigMap {string} with the label {string} exists")]
async fn labeled_config_map_exists(world: &mut World, name: String, label: String) -> Outcome {
    let (key, value) = label_parts(&label)?;
    world.store(config_map(&name, &json!({ key: value }))).await
}

#[given(expr = "a LimitRange with the default CPU limit {string} exists")]
async fn limit_range(world: &mut World, cpu: String) -> Outcome {
    let limits = json!([{"type": "Container", "default": {"cpu": cpu}, "defaultRequest": {"cpu": cpu}}]);
    let object = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults"}, "spec": {"limits": limits},
    });
    world.store(object).await
}

#[given(expr = "the namespace has the label {string}")]
async fn namespace_label(world: &mut World, label: String) -> Outcome {
    let (key, value) = label_parts(&label)?;
    let path = format!("/api/v1/namespaces/{}", world.namespace().await?);
    let labels = json!({"metadata": {"labels": {key: value}}});
    let (client, options) = (world.client()?, RequestOptions::default());
    let sent = api::send_as(client, &options, Method::PATCH, &path, Some(&labels), Some(PatchFormat::Merge));
    sent.await?.successful().map(drop)
}

#[given(expr = "a custom resource {string} with the versions {string}")]
async fn custom_resource(world: &mut World, name: String, versions: String) -> Outcome {
    let definition = definition(&mut world.names, &name, &versions)?;
    world.store(definition).await
}

fn config_map(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

/// Returns a custom resource definition without a schema, in an API group of the scenario.
///
/// The first version is the storage version, and a conversion changes only `apiVersion`.
pub(super) fn definition(names: &mut Names, name: &str, versions: &str) -> Outcome<Value> {
    let (plural, group) = name.split_once('.').ok_or_else(|| {
        StepFailure::new(format!("invalid custom resource name \"{name}\": must be PLURAL.GROUP"))
    })?;
    names.claim_group(group);
    let group = names.expand(group);
    let versions: Vec<&str> = versions.split(',').map(str::trim).collect();
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    let (first, rest) = singular.split_at(singular.chars().next().map_or(0, char::len_utf8));
    let kind = format!("{}{rest}", first.to_uppercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, name)| json!({"name": name, "served": true, "storage": index == 0, "schema": schema}))
        .collect();
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions,
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
        },
    }))
}
