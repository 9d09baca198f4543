//! Defines steps for webhooks behind a Service.

use cucumber::given;
use harness::json::text;
use harness::server::ServiceName;
use serde_json::{Value, json};

use super::calls::is_rejected_by;
use super::endpoint::RunningFake;
use super::failure::Outcome;
use super::webhook::Webhook;
use super::world::World;
use super::{StepHelp, given as step};
use crate::connection_advice::{UnreachedWebhook, set_address};
use crate::delivery::Delivery;
use crate::explain_error::{self, WebhookPlace};
use crate::target::{FakesPlace, RecordedCall, TargetKind, service_name};

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
    /// Returns the names and the `clientConfig` of loaded webhooks that are not replaced by a fake.
    fn own_client_configs(&self) -> impl Iterator<Item = (&str, &Value)> {
        let entries =
            self.installation.own.iter().filter_map(|own| own.get("webhooks")?.as_array()).flatten();
        entries.filter_map(|entry| {
            let name = entry.get("name")?.as_str()?;
            let has_fake = self.webhook(name).is_ok_and(Webhook::has_fake);
            let client_config = entry.get("clientConfig").filter(|_| !has_fake)?;
            Some((name, client_config))
        })
    }

    /// Returns the names and Services of loaded webhooks that are not replaced by a fake.
    fn own_services(&self) -> impl Iterator<Item = (&str, ServiceName)> {
        let own = self.own_client_configs();
        own.filter_map(|(name, client_config)| Some((name, service_name(client_config.get("service")?))))
    }

    /// Returns the calls of the last request for which the server did not send the review.
    fn unsent_calls(&self) -> impl Iterator<Item = &RecordedCall> {
        self.own_calls.iter().flatten().filter(|call| !call.was_sent())
    }

    /// Returns the loaded webhook whose call failed during the last request, its `clientConfig`, and the error.
    ///
    /// If the failure policy is Ignore, only the record of the calls contains the error.
    fn failed_own_call(&self) -> Option<(&str, &Value, &str)> {
        let message = self.last.as_ref()?.message();
        self.own_client_configs().find_map(|(name, client_config)| {
            let unsent = self.unsent_calls().find(|call| call.webhook == name);
            let rejected =
                || message.split_once(&format!("failed calling webhook \"{name}\": ")).map(|(_, it)| it);
            let error = unsent.map(|call| call.result.as_str()).or_else(rejected)?;
            Some((name, client_config, error))
        })
    }

    /// Returns where the loaded webhook runs whose call failed during the last request.
    fn place_of_failed_call(&self) -> WebhookPlace {
        let host = || {
            let (_, client_config, _) = self.failed_own_call()?;
            let Some(service) = client_config.get("service") else {
                return Some(WebhookPlace::of_url(text(client_config, &["url"])));
            };
            Some(WebhookPlace::of_host(&self.target().ok()?.services.get(&service_name(service))?.0))
        };
        host().unwrap_or(WebhookPlace::Unknown)
    }

    /// Explains how to fix a call to a loaded webhook that failed before the review was sent.
    pub(super) fn service_hint(&self) -> Option<String> {
        let (webhook, client_config, error) = self.failed_own_call()?;
        let target = self.target().ok()?;
        let service = client_config.get("service").map(service_name);
        let address = service.as_ref().and_then(|service| target.services.get(service));
        let url = text(client_config, &["url"]);
        let unreached = UnreachedWebhook { webhook, service: service.as_ref(), url, address };
        let is_ours = target.kind != TargetKind::Cluster || address.is_some();
        let is_untrusted = Delivery::of_failure(error) == Delivery::Untrusted;
        if !is_ours && !is_untrusted {
            return None;
        }
        let without_address = service.as_ref().filter(|_| address.is_none() && !is_untrusted);
        unreached.advice(error).or_else(|| without_address.map(set_address))
    }

    /// Explains a call to a webhook whose response was missing or invalid.
    ///
    /// Only the record of the calls shows how to change a response that the server could read. The common causes of other
    /// errors, as `admit explain-error` lists them, are for policies and for loaded webhooks: a step states what a fake
    /// does.
    pub(super) fn response_hint(&self) -> Option<String> {
        let answer = self.last.as_ref()?;
        let own_calls = || self.own_calls.iter().flatten();
        let with_patch = self.fake_calls.iter().filter(|call| is_rejected_by(&call.result, answer));
        let recorded = own_calls().chain(with_patch).find_map(|call| call.hint.clone());
        if !answer.is_success() && recorded.is_some() {
            return recorded;
        }
        let quoted = |name: &str| format!("failed calling webhook \"{name}\": ");
        let is_own = |message: &str| {
            self.own_client_configs().any(|(name, _)| message.contains(&quoted(name)))
                || own_calls().any(|call| is_rejected_by(&call.result, answer))
        };
        let place = self.place_of_failed_call();
        let unread = own_calls()
            .filter(|call| call.failed_open.is_some())
            .find_map(|call| explain_error::unread_response(call.http_status, &call.result, place));
        if unread.is_some() {
            return unread;
        }
        let message = answer.message();
        let prefix = format!("{}.", self.names.id());
        let is_about_loaded = self.skips.iter().any(|skip| skip.has_failed) || is_own(message);
        // The message does not name the webhook. A server that records calls has a better hint.
        let is_about_patch = self.own_calls.is_none() && message.contains(" operation does not apply: ");
        // To explain a message takes longer than most requests.
        let may_be_explained =
            !answer.is_success() && (is_about_loaded || is_about_patch || message.contains(&prefix));
        let rejection = if may_be_explained { explain_error::advice(message, place) } else { None };
        let policy = rejection.as_ref().and_then(|advice| advice.policy.as_deref());
        let is_by_policy = policy.is_some_and(|policy| policy.starts_with(&prefix));
        let advice = if !answer.is_success() && (is_about_loaded || is_by_policy) {
            rejection
        } else {
            let call = own_calls().find(|call| call.failed_open == Some(true))?;
            explain_error::advice(&(quoted(&call.webhook) + &call.result), place)
        };
        advice.map(|advice| advice.help()).filter(|help| !help.is_empty())
    }

    /// Counts the calls whose review was not sent to a loaded webhook, for a warning at the end of the run.
    pub(super) fn note_unreached(&self) {
        let Ok(target) = self.target() else { return };
        for call in self.unsent_calls() {
            if let Some((_, service)) = self.own_services().find(|(name, _)| *name == call.webhook) {
                target.unreached.count(&service, call.delivery);
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
