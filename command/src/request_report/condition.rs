//! Reports decisions that depend on webhooks that were not called.

use std::borrow::Cow;

use harness::attributes::Operation;
use harness::chain::{Sent, Verdict, could_change};
use harness::event::{Called, Phase};
use harness::verify::Severity;
use serde::{Deserialize, Serialize};

use super::rejection::{self, Places};
use super::webhooks::name;
use super::{Report, verdict_name};
use crate::diagnostic::Diagnostic;

/// The condition under which a conditional decision holds.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    /// The verdict if these webhooks allow the request and do not change the object.
    #[serde(with = "verdict_name")]
    verdict: Verdict,
    /// The message that kubectl would print for this verdict.
    pub(super) message: String,
    /// The webhooks that were not called, in call order.
    webhooks: Vec<OpenWebhook>,
}

/// A webhook that the cluster would call, and whose response is unknown.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenWebhook {
    /// The phase: `mutating` or `validating`.
    #[serde(rename = "type")]
    phase: Cow<'static, str>,
    /// The `metadata.name` of the configuration.
    configuration: String,
    /// The `name` of the webhook.
    name: String,
    /// The Service of the webhook, as `NAMESPACE/NAME`; omitted for a URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    service: String,
    /// Whether the webhook could change the object.
    could_change: bool,
}

impl Condition {
    /// Returns the condition of a decision; `None` if the decision is definite.
    ///
    /// `message` is kubectl's message for the provisional verdict, and `service` returns the Service of a webhook.
    pub(super) fn new(
        operation: Operation,
        sent: &Sent,
        message: String,
        service: impl Fn(&Called) -> String,
    ) -> Option<Self> {
        let mut webhooks: Vec<OpenWebhook> = Vec::new();
        for called in sent.open_calls(operation) {
            let webhook = OpenWebhook {
                phase: name(called.phase).into(),
                configuration: called.webhook.configuration.clone(),
                name: called.webhook.name.clone(),
                service: service(called),
                could_change: could_change(operation, called),
            };
            // A webhook can be called in both rounds.
            if !webhooks.contains(&webhook) {
                webhooks.push(webhook);
            }
        }
        let verdict = sent.provisional;
        (!webhooks.is_empty()).then_some(Self { verdict, message, webhooks })
    }

    /// Returns the decision in one sentence.
    pub(super) fn sentence(&self) -> String {
        let (decided, what) = match self.verdict {
            Verdict::Admitted if self.webhooks.iter().any(|webhook| webhook.could_change) => {
                ("allowed", "rejects the request or changes the object")
            }
            Verdict::Admitted => ("allowed", "rejects the request"),
            Verdict::Denied => ("denied", "changes the object"),
            Verdict::Undecided | Verdict::Unsupported | Verdict::Conditional => {
                ("rejected", "changes the object")
            }
        };
        let names = self.names();
        match &*self.webhooks {
            [_] => format!("{decided}, unless the webhook {names} {what}"),
            _ => format!("{decided}, unless one of these webhooks {what}: {names}"),
        }
    }

    /// Returns the names of the webhooks.
    pub(super) fn names(&self) -> String {
        names(self.webhooks.iter())
    }

    /// Returns how to call the webhooks.
    fn help(&self) -> String {
        let mut services: Vec<String> = Vec::new();
        for OpenWebhook { service, .. } in self.webhooks.iter().filter(|webhook| !webhook.service.is_empty())
        {
            let option = format!("--service {service}=HOST:PORT");
            if !services.contains(&option) {
                services.push(option);
            }
        }
        let has_urls = self.webhooks.iter().any(|webhook| webhook.service.is_empty());
        let url = if self.webhooks.len() == 1 {
            "pass a copy of its configuration with -c; keep the name, and set a URL on this machine"
        } else {
            "pass copies of their configurations with -c; keep the names, and set URLs on this machine"
        };
        let how = match (services.is_empty(), has_urls) {
            (true, _) => url.to_owned(),
            (false, false) => format!("add {}", services.join(" ")),
            (false, true) => format!("add {}; for a webhook with a URL, {url}", services.join(" ")),
        };
        let (the_webhooks, them) =
            if self.webhooks.len() == 1 { ("the webhook", "it") } else { ("the webhooks", "them") };
        format!("to call {the_webhooks}, start {them} on this machine and {how}")
    }
}

/// Returns a diagnostic about a decision that depends on webhooks that were not called.
pub(super) fn diagnostic(report: &Report, places: &Places) -> Option<Diagnostic> {
    let condition = report.decision.condition.as_ref()?;
    let mut shown = Diagnostic::new(Severity::Warning, condition.sentence());
    for OpenWebhook { phase, configuration, name, .. } in &condition.webhooks {
        let phase = if phase == "mutating" { Phase::Mutating } else { Phase::Validating };
        if let Some(place) = rejection::place(&format!("{configuration}/{name}"), phase, places) {
            shown = shown.place(&place.file, place.line);
        }
    }
    shown.note("request", rejection::request(report));
    let changing = names(condition.webhooks.iter().filter(|webhook| webhook.could_change));
    if condition.verdict == Verdict::Admitted {
        if !changing.is_empty() {
            shown.note("note", "a policy or a later webhook could reject the changed object");
        }
    } else {
        shown.note("message", rejection::message(report));
        shown.note("note", format!("{changing} could change the object so that the API server allows it"));
    }
    shown.note("why", "with --cluster, admit calls a webhook of the cluster only if you pass its address");
    shown.note("help", condition.help());
    Some(shown)
}

fn names<'a>(webhooks: impl Iterator<Item = &'a OpenWebhook>) -> String {
    let mut names: Vec<&str> = webhooks.map(|webhook| webhook.name.as_str()).collect();
    names.dedup();
    names.join(", ")
}
