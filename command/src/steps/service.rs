//! Defines steps for webhooks behind a Service.

use cucumber::given;
use harness::server::ServiceName;
use serde_json::{Value, json};

use super::endpoint::RunningFake;
use super::failure::Outcome;
use super::webhook::Webhook;
use super::world::World;
use super::{StepHelp, given as step};
use crate::target::{FakesPlace, TargetKind, service_name};

pub(super) const HELP: StepHelp = step(
    "{string} is called through the Service {string}",
    "Creates a Service in the scenario's namespace for the webhook; with --fakes-in-cluster the webhook keeps its own Service",
    r#"Given "policy" is called through the Service "policy""#,
);

/// The Service of a fake that runs in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    namespace: String,
    name: String,
}

impl Service {
    /// Returns the host name that the fake's certificate must contain.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl Webhook {
    /// Returns the `clientConfig` for calls to the fake, by Service or by URL.
    pub(super) fn client_config_for(&self, running: &RunningFake) -> Value {
        let client_config = running.client_config();
        match (&self.service, running) {
            (Some(Service { namespace, name }), RunningFake::Here { fake, .. }) => {
                let service =
                    json!({"namespace": namespace, "name": name, "port": fake.address().port(), "path": "/"});
                json!({"service": service, "caBundle": client_config.get("caBundle")})
            }
            (Some(_), RunningFake::InCluster(_)) | (None, _) => client_config,
        }
    }
}

impl World {
    /// Returns the names and Services of loaded webhooks that are not replaced by a fake.
    fn own_services(&self) -> impl Iterator<Item = (&str, ServiceName)> {
        let entries =
            self.installation.own.iter().filter_map(|own| own.get("webhooks")?.as_array()).flatten();
        entries.filter_map(|entry| {
            let name = entry.get("name")?.as_str()?;
            let has_fake = self.webhook(name).is_ok_and(Webhook::has_fake);
            let service = entry.pointer("/clientConfig/service").filter(|_| !has_fake)?;
            Some((name, service_name(service)))
        })
    }

    /// Returns the webhook of each call during the last request for which the server could not connect.
    fn unsent_calls(&self) -> impl Iterator<Item = &str> {
        let calls = self.own_calls.iter().flatten();
        calls.filter(|call| !call.was_sent).map(|call| call.webhook.as_str())
    }

    /// Suggests `--service`, or names its address, if the call of a loaded webhook failed because the server could not
    /// connect to its Service.
    ///
    /// If the failure policy is Ignore, only the record of the calls contains the failure.
    pub(super) fn service_hint(&self) -> Option<String> {
        let answer = self.last.as_ref()?;
        let unsent: Vec<&str> = self.unsent_calls().collect();
        let (_, service) = self.own_services().find(|(name, _)| {
            answer.message().contains(&format!("failed calling webhook \"{name}\"")) || unsent.contains(name)
        })?;
        let target = self.target().ok()?;
        let ServiceName { namespace, name } = &service;
        match target.services.get(&service) {
            None if target.kind == TargetKind::Cluster => None,
            None => {
                Some(format!("set the address of the webhook with --service {namespace}/{name}=HOST:PORT"))
            }
            Some((host, port)) if answer.message().contains("connection refused") || !unsent.is_empty() => {
                Some(format!(
                    "--service {namespace}/{name} is {host}:{port}: check that the webhook listens there"
                ))
            }
            Some(_) => None,
        }
    }

    /// Counts the calls that did not reach a loaded webhook, for a warning at the end of the run.
    pub(super) fn note_unreached(&self) {
        let Ok(target) = self.target() else { return };
        for webhook in self.unsent_calls() {
            if let Some((_, service)) = self.own_services().find(|(name, _)| *name == webhook) {
                target.unreached.count(&service);
            }
        }
    }
}

#[given(expr = "{string} is called through the Service {string}")]
async fn is_called_through_service(world: &mut World, short: String, name: String) -> Outcome {
    let namespace = world.namespace().await?;
    if let FakesPlace::Here { host, .. } = &world.target()?.fakes {
        let spec = json!({"type": "ExternalName", "externalName": host});
        let service =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        world.store(service).await?;
    }
    world.change_fake(&short)?.service = Some(Service { namespace, name });
    Ok(())
}
