//! Custom resources whose versions a webhook converts.

use cucumber::given;
use fake_webhooks::{Behavior, FakeEntry, Family, Fault, FaultError, Transport};
use gherkin::Step;
use harness::json::set;
use serde_json::json;

use super::cluster::definition;
use super::document;
use super::endpoint::{Running, Wanted};
use super::failure::{Outcome, StepFailure};
use super::parameter::Admission;
use super::world::World;
use super::{StepHelp, given as step};

pub(super) const HELP: StepHelp = step(
    "a custom resource {string} with the versions {string} that a webhook converts:",
    "Defines a resource like the step without a webhook, and starts its conversion webhook, which has this behavior",
    "Given a custom resource \"widgets.shop.example.com\" with the versions \"v1, v2\" that a webhook converts:\n  \
     \"\"\"yaml\n  convert: {moves: [{version: v2, from: /spec/size, to: /spec/replicas}]}\n  \"\"\"",
);

pub(super) const FAULT: StepHelp = step(
    "a custom resource {string} with the versions {string} whose conversion webhook has the fault {string}",
    "Defines a resource like the step without a webhook, and starts its conversion webhook, which has this fault of the \
     family `conversion`, by its id or name: `admit fakes list conversion` prints them",
    "Given a custom resource \"widgets.shop.example.com\" with the versions \"v1, v2\" whose conversion webhook has the \
     fault \"X02-missing\"",
);

#[given(expr = "a custom resource {string} with the versions {string} that a webhook converts:")]
async fn converted_custom_resource(
    world: &mut World,
    step: &Step,
    name: String,
    versions: String,
) -> Outcome {
    let behavior: Behavior = serde_saphyr::from_str(&document::text(step)?)
        .map_err(|error| StepFailure::new(format!("this is not a behavior: {error}")))?;
    define(world, &name, &versions, behavior, Transport::default()).await
}

#[given(
    expr = "a custom resource {string} with the versions {string} whose conversion webhook has the fault {string}"
)]
async fn misconverted_custom_resource(
    world: &mut World,
    name: String,
    versions: String,
    fault: String,
) -> Outcome {
    let found = Fault::find(&fault).ok_or(FaultError::Unknown(fault))?;
    if found.family != Family::Conversion {
        let message = format!("the fault {} is not one of conversion webhooks", found.id);
        return Err(StepFailure::new(message));
    }
    let text = json!({"name": "fault", "type": "validating", "fault": found.id});
    let entry = FakeEntry::parse(&text.to_string(), "the fault")?;
    define(world, &name, &versions, entry.behavior, entry.transport).await
}

/// Stores the definition, with a fake of this behavior as its conversion webhook.
async fn define(
    world: &mut World,
    name: &str,
    versions: &str,
    behavior: Behavior,
    transport: Transport,
) -> Outcome {
    let mut definition = definition(&mut world.names, name, versions)?;
    let wanted = Wanted {
        // No plugin calls it: a fake has a type all the same.
        admission: Admission::Validating,
        transport,
        behavior,
        names: Vec::new(),
    };
    let fake = world.names.fake(format!("converter-{}", world.converters.len()));
    let running = Running::start(&*world.shared_target()?, &fake, &wanted).await?;
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": running.client_config()});
    set(&mut definition, &["spec", "conversion"], json!({"strategy": "Webhook", "webhook": webhook}));
    world.converters.push(running);
    world.store(definition).await
}
