//! Changes webhooks of loaded configurations: changes their entries, or replaces the webhooks with fakes.

use http::Method;
use serde_json::{Value, json};

use super::api::{self, Effect, RequestOptions};
use super::configuration::ROOT;
use super::failure::{Outcome, StepFailure};
use super::parameter::Admission;
use super::webhook::Webhook;
use super::world::World;
use crate::ca_bundle;

/// The target of the server's calls to a webhook of a loaded configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    /// The webhook of the configuration.
    Kept,
    /// A fake, because a step sets its behavior or its connection.
    Replaced,
}

impl Webhook {
    /// Returns whether the server calls a fake for this webhook.
    pub(super) fn has_fake(&self) -> bool {
        self.loaded != Some(Loaded::Kept)
    }
}

impl World {
    /// Adds the webhook of a loaded configuration to the webhooks of the scenario, so that steps can change it.
    pub(super) fn adopt_loaded(&mut self, name: &str) {
        if self.webhooks.iter().any(|webhook| webhook.short == name) {
            return;
        }
        let is_mutating = self.installation.has_own_mutating_webhook(name);
        let mut entries =
            self.installation.own.iter().filter_map(|own| own.get("webhooks")?.as_array()).flatten();
        let Some(entry) = entries.find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))
        else {
            return;
        };
        let admission = if is_mutating { Admission::Mutating } else { Admission::Validating };
        let mut entry = entry.clone();
        if let Some(fields) = entry.as_object_mut() {
            fields.remove("clientConfig");
        }
        let mut webhook = Webhook::new(name, admission);
        (webhook.entry, webhook.loaded) = (entry, Some(Loaded::Kept));
        self.webhooks.push(webhook);
    }

    /// Returns a mutable reference to a webhook that is a fake or becomes one. Otherwise the same as [`World::change`].
    pub(super) fn change_fake(&mut self, short: &str) -> Outcome<&mut Webhook> {
        if self.change(short)?.loaded == Some(Loaded::Kept) {
            self.installation.replaced.push(short.to_owned());
        }
        let webhook = self.change(short)?;
        webhook.loaded = webhook.loaded.map(|_| Loaded::Replaced);
        Ok(webhook)
    }

    /// Applies the changes of steps to `entry`, a webhook of a loaded configuration.
    pub(super) fn apply_changes(&self, entry: &mut Value) {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_it = |webhook: &&Webhook| webhook.loaded.is_some() && webhook.short == name;
        let Some(webhook) = self.webhooks.iter().find(is_it) else { return };
        let mut client_config = entry.get("clientConfig").cloned().unwrap_or(json!({}));
        if let (Some((running, _)), true) = (&webhook.running, webhook.has_fake()) {
            client_config = webhook.client_config_for(running);
        }
        json_patch::merge(&mut client_config, &Value::Object(webhook.client_config.clone()));
        *entry = webhook.entry.clone();
        if let Some(fields) = entry.as_object_mut() {
            fields.insert("clientConfig".to_owned(), client_config);
        }
    }

    /// Checks with a dry run that the server accepts a webhook configuration, before the scenario needs it.
    pub(super) async fn check_configuration(&mut self, own: &Value) -> Outcome {
        let kind = own.get("kind").and_then(Value::as_str).unwrap_or_default();
        let resource = match kind {
            "MutatingWebhookConfiguration" => "mutatingwebhookconfigurations",
            "ValidatingWebhookConfiguration" => "validatingwebhookconfigurations",
            _ => return Ok(()),
        };
        let name = own.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.ok_or_else(|| StepFailure::new(format!("missing metadata.name in a {kind}")))?;
        // The name in the cluster differs, so that scenarios and existing configurations do not conflict.
        let unique = self.names.loaded_configuration(name);
        let mut object = own.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), json!("admissionregistration.k8s.io/v1"));
            fields.insert("metadata".to_owned(), json!({"name": unique}));
        }
        let options = RequestOptions { effect: Effect::DryRun, ..RequestOptions::default() };
        let path = format!("{ROOT}/{resource}");
        let mut answer =
            api::send_as(self.client()?, &options, Method::POST, &path, Some(&object), None).await?;
        self.keep_ignored_fields(&answer, own);
        let message = answer.message().replace(&unique, name);
        if let Some(member) = answer.body.get_mut("message") {
            *member = json!(message);
        }
        answer
            .successful()
            .map(drop)
            .map_err(|failure| failure.during(format!("the API server rejects {kind} \"{name}\"")))
            .map_err(|failure| failure.with_help(ca_bundle::advice(own)))
    }
}
