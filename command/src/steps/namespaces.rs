//! Namespaces beside the scenario's own for which its webhooks are called.

use cucumber::given;
use harness::json::set;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::api::{self, Manner, PatchFormat};
use super::failure::{Outcome, StepFailure};
use super::names::SCENARIO_LABEL;
use super::webhook::merge;
use super::world::World;
use super::{StepHelp, given as step};
use crate::target::TargetKind;

pub(super) const HELP: StepHelp = step(
    "the webhooks are called for the namespace {string}, too",
    "Makes the namespace; one that is there, such as kube-system, is taken on servers that the run has started, not on a cluster. Tag the scenario @serial",
    r#"Given the webhooks are called for the namespace "kube-system", too"#,
);

pub(super) const OBJECTS: StepHelp = step(
    "the webhooks are called for Namespaces, too",
    "Gives each Namespace that a step stores, creates or updates the scenario's label, and deletes it at the end; only on servers that the run has started. Tag the scenario @in-process @envtest @serial",
    "Given the webhooks are called for Namespaces, too",
);

impl World {
    /// Whether the server was started by this run, and goes with it.
    fn has_own_server(&self) -> Outcome<bool> {
        Ok(matches!(self.target()?.kind, TargetKind::InProcess | TargetKind::Envtest))
    }

    /// Gives a Namespace the label by which the scenario's webhooks are called for it, if the scenario asks for that.
    pub(super) fn label_if_namespace(&self, object: &mut Value) {
        let text = |field: &str| object.get(field).and_then(Value::as_str);
        if self.takes_namespaces && (text("apiVersion"), text("kind")) == (Some("v1"), Some("Namespace")) {
            merge(object, &json!({"metadata": {"labels": {SCENARIO_LABEL: self.names.id()}}}));
        }
    }

    /// Lets a Namespace go that was deleted, if the object at `path` is one: no controller does so on the run's own servers,
    /// and the next scenario may make another of its name.
    pub(super) async fn finalize_if_namespace(&self, path: &str) -> Outcome {
        let is_namespace =
            path.strip_prefix("/api/v1/namespaces/").is_some_and(|name| !name.contains(['/', '?']));
        if !(self.takes_namespaces && is_namespace) {
            return Ok(());
        }
        let client = self.client()?;
        let mut left = api::send(client, Method::GET, path, None).await?;
        if left.is_success() && set(&mut left.body, &["spec", "finalizers"], json!([])) {
            api::send(client, Method::PUT, &format!("{path}/finalize"), Some(&left.body)).await?;
        }
        Ok(())
    }

    /// Adds a namespace to those in which the webhooks of the scenario are called.
    async fn take_namespace(&mut self, name: &str) -> Outcome {
        let during = || format!("taking the namespace {name}");
        let id = self.names.id().to_owned();
        let made = self.post_namespace(name, &id).await?;
        let own = self.has_own_server()?;
        match (made.code, own) {
            (StatusCode::CONFLICT, false) => {
                return Err(StepFailure::new(format!(
                    "the cluster has a namespace {name}: a scenario takes none that it has not made; tag it @in-process @envtest"
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
        // No controller empties a namespace that is deleted on these servers, so that it is given back instead.
        let client = self.client()?.clone();
        let path = format!("/api/v1/namespaces/{name}");
        let stored = api::send(&client, Method::GET, &path, None).await?.successful()?;
        let label = stored.body.pointer("/metadata/labels").and_then(|labels| labels.get(SCENARIO_LABEL));
        match label.and_then(Value::as_str) {
            Some(other) if other != id => {
                return Err(StepFailure::new(format!(
                    "another scenario has the namespace {name}: tag both @serial"
                )));
            }
            Some(_) | None => {}
        }
        self.label_namespace(name, &json!(id)).await.map_err(|failure| failure.during(during()))?;
        self.give_back_at_the_end(name);
        Ok(())
    }

    /// Sets the scenario label of a namespace, or removes it: null.
    pub(super) async fn label_namespace(&self, name: &str, label: &Value) -> Outcome {
        let labels = json!({"metadata": {"labels": {SCENARIO_LABEL: label}}});
        let path = format!("/api/v1/namespaces/{name}");
        let (client, manner, format) = (self.client()?, Manner::default(), Some(PatchFormat::Merge));
        let sent = api::send_as(client, &manner, Method::PATCH, &path, Some(&labels), format);
        sent.await?.successful().map(drop)
    }
}

#[given(expr = "the webhooks are called for the namespace {string}, too")]
async fn are_called_for(world: &mut World, name: String) -> Outcome {
    world.take_namespace(&name).await
}

#[given(expr = "the webhooks are called for Namespaces, too")]
fn are_called_for_objects(world: &mut World) -> Outcome {
    if !world.has_own_server()? {
        let reason = "on a cluster Namespaces are everyone's, and a scenario's webhooks are called for none of them: tag it \
                      @in-process @envtest";
        return Err(StepFailure::new(reason));
    }
    world.takes_namespaces = true;
    Ok(())
}
