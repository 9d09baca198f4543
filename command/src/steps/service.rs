//! Webhooks that are called through a Service.

use cucumber::given;
use serde_json::{Value, json};

use super::endpoint::Running;
use super::failure::Outcome;
use super::webhook::Webhook;
use super::world::World;
use super::{StepHelp, given as step};
use crate::target::FakesPlace;

pub(super) const HELP: StepHelp = step(
    "{string} is called through the service {string}",
    "A Service of the scenario's namespace leads to it; with --fakes-in-cluster it stays behind the Service that it has",
    r#"Given "policy" is called through the service "policy""#,
);

/// The Service of the scenario that leads to a fake of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    namespace: String,
    name: String,
}

impl Service {
    /// The name that its certificate must have.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl Webhook {
    /// `clientConfig` for calls to its fake.
    pub(super) fn address(&self, running: &Running) -> Value {
        let client_config = running.client_config();
        match (&self.service, running) {
            (Some(Service { namespace, name }), Running::Here { fake, .. }) => {
                let service =
                    json!({"namespace": namespace, "name": name, "port": fake.address().port(), "path": "/"});
                json!({"service": service, "caBundle": client_config.get("caBundle")})
            }
            (Some(_), Running::InCluster(_)) | (None, _) => client_config,
        }
    }
}

#[given(expr = "{string} is called through the service {string}")]
async fn is_called_through(world: &mut World, short: String, name: String) -> Outcome {
    let namespace = world.namespace().await?;
    if let FakesPlace::Here { host, .. } = &world.target()?.fakes {
        let spec = json!({"type": "ExternalName", "externalName": host});
        let service =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        world.store(service).await?;
    }
    world.change(&short)?.service = Some(Service { namespace, name });
    Ok(())
}
