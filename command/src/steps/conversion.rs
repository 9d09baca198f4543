//! Defines steps for custom resources with a conversion webhook.

use cucumber::given;
use fake_webhooks::{Behavior, FakeEntry, Family, Fault, FaultError, Transport};
use gherkin::Step;
use harness::json::set;
use serde_json::json;

use super::cluster::definition;
use super::document;
use super::endpoint::{FakeSpec, RunningFake};
use super::failure::{Outcome, StepFailure};
use super::parameter::Admission;
use super::world::World;
use super::{StepHelp, given as step};

pub(super) const HELP: StepHelp = step(
    "a custom resource {string} with the versions {string} and this conversion webhook:",
    "Does the same as the step without a webhook, and starts a conversion webhook with this behavior",
    "Given a custom resource \"widgets.shop.example.com\" with the versions \"v1, v2\" and this conversion webhook:\n  \
     \"\"\"yaml\n  convert: {moves: [{version: v2, from: /spec/size, to: /spec/replicas}]}\n  \"\"\"",
);

pub(super) const FAULT: StepHelp = step(
    "a custom resource {string} with the versions {string} and a conversion webhook with the fault {string}",
    "Does the same as the step without a webhook, and starts a conversion webhook with this fault; \
     `admit fakes list conversion` lists all faults",
    "Given a custom resource \"widgets.shop.example.com\" with the versions \"v1, v2\" and a conversion \
     webhook with the fault \"X02-missing\"",
);

#[given(expr = "a custom resource {string} with the versions {string} and this conversion webhook:")]
async fn converted_custom_resource(
    world: &mut World,
    step: &Step,
    name: String,
    versions: String,
) -> Outcome {
    let behavior: Behavior = serde_saphyr::from_str(&document::text(step)?)
        .map_err(|error| StepFailure::new(format!("invalid behavior: {error}")))?;
    define(world, &name, &versions, behavior, Transport::default()).await
}

#[given(
    expr = "a custom resource {string} with the versions {string} and a conversion webhook with the fault {string}"
)]
async fn misconverted_custom_resource(
    world: &mut World,
    name: String,
    versions: String,
    fault: String,
) -> Outcome {
    let found = Fault::find(&fault).ok_or(FaultError::Unknown(fault))?;
    if found.family != Family::Conversion {
        let message = format!("invalid fault {}: must be a fault of conversion webhooks", found.id);
        return Err(StepFailure::new(message));
    }
    let text = json!({"name": "fault", "type": "validating", "fault": found.id});
    let entry = FakeEntry::parse(&text.to_string(), "the fault")?;
    define(world, &name, &versions, entry.behavior, entry.transport).await
}

/// Stores a custom resource definition whose conversion webhook is a fake.
async fn define(
    world: &mut World,
    name: &str,
    versions: &str,
    behavior: Behavior,
    transport: Transport,
) -> Outcome {
    let mut definition = definition(&mut world.names, name, versions)?;
    let spec = FakeSpec {
        // A fake needs a type, although no admission plugin calls this one.
        admission: Admission::Validating,
        transport,
        behavior,
        names: Vec::new(),
    };
    let fake = world.names.fake(format!("converter-{}", world.converters.len()));
    let running = RunningFake::start(&*world.shared_target()?, &fake, &spec).await?;
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": running.client_config()});
    set(&mut definition, &["spec", "conversion"], json!({"strategy": "Webhook", "webhook": webhook}));
    world.converters.push(running);
    world.store(definition).await
}
