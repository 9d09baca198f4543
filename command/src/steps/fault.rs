//! Defines steps that use a fault in the catalog by its ID or name.

use cucumber::given;
use fake_webhooks::{FakeEntry, Family, Fault, FaultError, WebhookType};
use serde_json::json;

use super::failure::{Outcome, StepFailure};
use super::parameter::Admission;
use super::webhook::Webhook;
use super::world::World;

/// The fields of a fault that configure the fake rather than the webhook's entry in the configuration.
const FAKE_FIELDS: [&str; 6] = ["behavior", "certificate", "rotate", "connection", "http", "clientConfig"];

impl Webhook {
    fn apply_fault(&mut self, fault: &Fault) -> Outcome {
        if fault.family == Family::Conversion {
            let message = format!("invalid fault {}: must be a fault of admission webhooks", fault.id);
            return Err(StepFailure::new(message));
        }
        let kind = match self.admission {
            Admission::Mutating => WebhookType::Mutating,
            Admission::Validating => WebhookType::Validating,
        };
        if let Some(needed) = fault.kind.filter(|needed| *needed != kind) {
            let needed = match needed {
                WebhookType::Mutating => "mutating",
                WebhookType::Validating => "validating",
            };
            return Err(StepFailure::new(format!("the fault {} requires a {needed} webhook", fault.id)));
        }
        let text = json!({"name": "fault", "type": kind, "fault": fault.id});
        let entry = FakeEntry::parse(&text.to_string(), "the fault")?;
        self.otherwise = entry.behavior;
        self.transport = entry.transport;
        self.client_config = entry.client_config;
        for (field, value) in fault.fake.iter().filter(|(field, _)| !FAKE_FIELDS.contains(&field.as_str())) {
            self.set(field, value.clone());
        }
        Ok(())
    }
}

#[given(expr = "{string} has the fault {string}")]
fn has_the_fault(world: &mut World, short: String, fault: String) -> Outcome {
    let found = Fault::find(&fault).ok_or(FaultError::Unknown(fault))?;
    world.change_fake(&short)?.apply_fault(found)
}
