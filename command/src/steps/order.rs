//! Determines the order in which kube-apiserver calls mutating webhooks: by the names of their configurations.
//!
//! Source: `MutatingWebhookConfigurationSorter` in apiserver `pkg/admission/configuration/mutating_webhook_manager.go`.

use cucumber::given;

use super::failure::{Outcome, StepFailure};
use super::names::Names;
use super::parameter::Admission;
use super::webhook::Webhook;
use super::world::World;
use super::{StepHelp, given as step};

pub(super) const BEFORE: StepHelp = step(
    "{string} is called before the configuration {string}",
    "Calls a mutating fake before the webhooks of this configuration; an earlier step must load the configuration",
    r#"Given "labels" is called before the configuration "injector""#,
);

pub(super) const AFTER: StepHelp = step(
    "{string} is called after the configuration {string}",
    "Calls a mutating fake after the webhooks of this configuration; an earlier step must load the configuration",
    r#"Given "labels" is called after the configuration "injector""#,
);

/// The position of a webhook relative to a loaded configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Before the loaded configuration with this name.
    Before(String),
    /// After the loaded configuration with this name.
    After(String),
}

impl Webhook {
    /// Returns the name of the configuration that contains the webhook.
    pub(super) fn configuration(&self, names: &Names) -> String {
        let id = names.id();
        match &self.position {
            None => names.configuration(),
            // The name of a loaded configuration ends with the ID, which begins with a letter.
            Some(Position::Before(name)) => format!("{name}-0-{id}"),
            Some(Position::After(name)) => format!("{name}-{id}-z"),
        }
    }
}

impl World {
    fn set_position(&mut self, short: &str, name: &str, position: Position) -> Outcome {
        let loaded: Vec<&str> =
            self.installation.own_mutating_configurations().map(|(name, _)| name).collect();
        if !loaded.contains(&name) {
            let loaded = if loaded.is_empty() { "none".to_owned() } else { loaded.join(", ") };
            return Err(StepFailure::new(format!(
                "unknown configuration \"{name}\": must be the metadata.name of a MutatingWebhookConfiguration that an \
                 earlier step loads (loaded: {loaded})"
            )));
        }
        let webhook = self.change(short)?;
        if webhook.loaded.is_some() {
            return Err(StepFailure::new(format!(
                "cannot move \"{short}\": the name of its loaded configuration determines its position; only \
                 fakes can be moved"
            )));
        }
        if webhook.admission == Admission::Validating {
            return Err(StepFailure::new(format!(
                "\"{short}\" is a validating webhook: kube-apiserver calls validating webhooks in parallel, so they \
                 have no order"
            )));
        }
        if webhook.running.is_some() {
            return Err(StepFailure::new("the order of webhooks must be set before the first request"));
        }
        webhook.position = Some(position);
        Ok(())
    }

    /// Lists the mutating webhooks on one line in call order, each with the name of its configuration.
    ///
    /// Returns `None` unless the scenario has mutating fakes and also loads a mutating configuration. In all other
    /// cases, the order is the order in the feature file or in the loaded files.
    pub(super) fn mutating_order(&self) -> Option<String> {
        let own = self.installation.own_mutating_webhooks();
        let own: Vec<(String, String)> =
            own.map(|(name, webhook)| (self.names.loaded_configuration(name), webhook.to_owned())).collect();
        let fakes = self
            .webhooks
            .iter()
            .filter(|webhook| webhook.loaded.is_none() && webhook.admission == Admission::Mutating);
        let fakes: Vec<(String, String)> =
            fakes.map(|webhook| (webhook.configuration(&self.names), webhook.short.clone())).collect();
        if own.is_empty() || fakes.is_empty() {
            return None;
        }
        let mut all = [fakes, own].concat();
        // The sort is stable: within a configuration, webhooks keep their order.
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let all: Vec<String> =
            all.into_iter().map(|(configuration, webhook)| format!("{webhook} ({configuration})")).collect();
        Some(format!("call order, by configuration name: {}", all.join(", ")))
    }
}

#[given(expr = "{string} is called before the configuration {string}")]
fn is_called_before(world: &mut World, short: String, name: String) -> Outcome {
    world.set_position(&short, &name, Position::Before(name.clone()))
}

#[given(expr = "{string} is called after the configuration {string}")]
fn is_called_after(world: &mut World, short: String, name: String) -> Outcome {
    world.set_position(&short, &name, Position::After(name.clone()))
}
