//! Defines steps that add namespaces in which the webhooks of a scenario are called.

use cucumber::given;
use harness::json::set;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::api::{self, PatchFormat, RequestOptions};
use super::failure::{Outcome, StepFailure};
use super::names::SCENARIO_LABEL;
use super::webhook::merge;
use super::world::World;
use super::{StepHelp, given as step};
use crate::admission_kinds::is_configuration;
use crate::target::TargetKind;

pub(super) const HELP: StepHelp = step(
    "webhooks are also called in the namespace {string}",
    "Creates the namespace or, on servers that the run has started, uses an existing one such as kube-system. The scenario runs alone",
    r#"Given webhooks are also called in the namespace "kube-system""#,
);

pub(super) const OBJECTS: StepHelp = step(
    "webhooks are also called for Namespace objects",
    "Adds the scenario label to each Namespace that a step writes, and deletes it at the end; not on clusters. Tag the scenario @in-process @envtest @serial",
    "Given webhooks are also called for Namespace objects",
);

impl World {
    /// Returns whether this run started the server.
    fn has_own_server(&self) -> Outcome<bool> {
        Ok(matches!(self.target()?.kind, TargetKind::InProcess | TargetKind::Envtest))
    }

    /// Adds the scenario label to `object` if it is a Namespace and the scenario's webhooks match Namespaces.
    pub(super) fn label_if_namespace(&self, object: &mut Value) {
        if self.matches_namespaces {
            self.label_own_namespace(object);
        }
    }

    /// Adds the scenario label to `object` if it is a Namespace, and returns whether it is one.
    ///
    /// The scenario creates the Namespace, so its webhooks are called there.
    pub(super) fn label_own_namespace(&self, object: &mut Value) -> bool {
        let text = |field: &str| object.get(field).and_then(Value::as_str);
        let is_namespace = (text("apiVersion"), text("kind")) == (Some("v1"), Some("Namespace"));
        if is_namespace {
            merge(object, &json!({"metadata": {"labels": {SCENARIO_LABEL: self.names.id()}}}));
        }
        is_namespace
    }

    /// Creates the namespace that `object` names unless it exists, and returns its name if it was created.
    ///
    /// Manifests, such as the output of `helm template`, often lack their Namespace.
    pub(super) async fn create_namespace_of(&mut self, object: &Value) -> Outcome<Option<String>> {
        let Some(name) = object.pointer("/metadata/namespace").and_then(Value::as_str) else {
            return Ok(None);
        };
        if is_configuration(object) || self.has_namespace(name) {
            return Ok(None);
        }
        let path = format!("/api/v1/namespaces/{name}");
        if api::send(self.client()?, Method::GET, &path, None).await?.code != StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let id = self.names.id().to_owned();
        let made = self.post_namespace(name, &id).await?;
        made.successful().map_err(|failure| failure.during(format!("creating the namespace {name}")))?;
        self.remove_namespace_at_the_end(name);
        Ok(Some(name.to_owned()))
    }

    /// Finalizes a deleted Namespace, so that the next scenario can create a Namespace with the same name.
    ///
    /// A server that the run started does not have a namespace controller.
    pub(super) async fn finalize_if_namespace(&self, path: &str) -> Outcome {
        let is_namespace =
            path.strip_prefix("/api/v1/namespaces/").is_some_and(|name| !name.contains(['/', '?']));
        if !is_namespace || !(self.matches_namespaces || self.has_own_server()?) {
            return Ok(());
        }
        let client = self.client()?;
        let mut left = api::send(client, Method::GET, path, None).await?;
        if left.is_success() && set(&mut left.body, &["spec", "finalizers"], json!([])) {
            api::send(client, Method::PUT, &format!("{path}/finalize"), Some(&left.body)).await?;
        }
        Ok(())
    }

    /// Adds a namespace in which the server also calls the webhooks of the scenario.
    async fn add_namespace(&mut self, name: &str) -> Outcome {
        let during = || format!("preparing the namespace {name}");
        let id = self.names.id().to_owned();
        let made = self.post_namespace(name, &id).await?;
        let own = self.has_own_server()?;
        match (made.code, own) {
            (StatusCode::CONFLICT, false) => {
                return Err(StepFailure::new(format!(
                    "the namespace {name} already exists in the cluster: a scenario uses only namespaces that it creates; tag it @in-process @envtest"
                )));
            }
            (StatusCode::CONFLICT, true) => {}
            (_, false) => {
                made.successful().map_err(|failure| failure.during(during()))?;
                self.remove_namespace_at_the_end(name);
                return Ok(());
            }
            (_, true) => drop(made.successful().map_err(|failure| failure.during(during()))?),
        }
        // These servers have no namespace controller, so the label is removed instead of the namespace.
        let client = self.client()?.clone();
        let path = format!("/api/v1/namespaces/{name}");
        let stored = api::send(&client, Method::GET, &path, None).await?.successful()?;
        let label = stored.body.pointer("/metadata/labels").and_then(|labels| labels.get(SCENARIO_LABEL));
        match label.and_then(Value::as_str) {
            Some(other) if other != id => {
                return Err(StepFailure::new(format!(
                    "another scenario uses the namespace {name}: tag both scenarios @serial"
                )));
            }
            Some(_) | None => {}
        }
        self.label_namespace(name, &json!(id)).await.map_err(|failure| failure.during(during()))?;
        self.remove_label_at_the_end(name);
        Ok(())
    }

    /// Sets the scenario label of a namespace, or removes it if `label` is null.
    pub(super) async fn label_namespace(&self, name: &str, label: &Value) -> Outcome {
        let labels = json!({"metadata": {"labels": {SCENARIO_LABEL: label}}});
        let path = format!("/api/v1/namespaces/{name}");
        let (client, options, format) = (self.client()?, RequestOptions::default(), Some(PatchFormat::Merge));
        let sent = api::send_as(client, &options, Method::PATCH, &path, Some(&labels), format);
        sent.await?.successful().map(drop)
    }
}

#[given(expr = "webhooks are also called in the namespace {string}")]
async fn are_called_for(world: &mut World, name: String) -> Outcome {
    world.add_namespace(&name).await
}

#[given(expr = "webhooks are also called for Namespace objects")]
fn are_called_for_objects(world: &mut World) -> Outcome {
    if !world.has_own_server()? {
        let reason = "webhooks are not called for Namespace objects on a cluster, because other users can change them: tag the \
                      scenario @in-process @envtest";
        return Err(StepFailure::new(reason));
    }
    world.matches_namespaces = true;
    Ok(())
}
