//! Namespaces beside the scenario's own in which its webhooks are called.

use cucumber::given;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::api::{self, Manner, PatchFormat};
use super::failure::{Outcome, StepFailure};
use super::names::SCENARIO_LABEL;
use super::world::World;
use super::{StepHelp, given as step};
use crate::target::TargetKind;

pub(super) const HELP: StepHelp = step(
    "the webhooks are called for the namespace {string}, too",
    "Makes the namespace; one that is there, such as kube-system, is taken on servers that the run has started, not on a cluster. Tag the scenario @serial",
    r#"Given the webhooks are called for the namespace "kube-system", too"#,
);

impl World {
    /// Adds a namespace to those in which the webhooks of the scenario are called.
    async fn take_namespace(&mut self, name: &str) -> Outcome {
        let during = || format!("taking the namespace {name}");
        let id = self.names.id().to_owned();
        let made = self.post_namespace(name, &id).await?;
        let own = matches!(self.target()?.kind, TargetKind::InProcess | TargetKind::Envtest);
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
