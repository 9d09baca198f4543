//! Reports all webhooks of the configurations, whether each was called, and the result of each call.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use harness::config::{
    self, ConfigError, FailurePolicy, ServiceReference, Webhook, WebhookId, WebhookTarget,
};
use harness::event::{CallResult, Called, Conditions, Event, Mismatch, Phase, Record, Round};
use harness::json::text;
use harness::manifests::StaticManifests;
use harness::server::{ApiServer, ServiceName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call_notes::{call_notes, error_body, response_hint};
use super::difference::{Change, changes};
use super::explain::Facts;
use super::milliseconds;
use super::steps::{patched, shown};
use crate::connection_advice::UnreachedWebhook;
use crate::explain_error;
use crate::skip_reason::{match_failure, skip_reason};

/// The webhooks of all configurations in dispatch order.
///
/// Mutating webhooks precede validating webhooks, webhooks from files precede webhooks from the API, and configurations
/// are sorted by name.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    all: Vec<(Phase, Arc<Webhook>)>,
    services: ServiceAddresses,
}

/// The hosts and the ports of Services, by Service.
pub(crate) type ServiceAddresses = BTreeMap<ServiceName, (String, u16)>;

/// A webhook in a configuration, and the server's decision whether to call it, with the reasons.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookReport {
    /// The phase: `mutating` or `validating`.
    #[serde(rename = "type")]
    phase: Cow<'static, str>,
    /// The `metadata.name` of the configuration.
    pub(super) configuration: String,
    /// The `name` of the webhook.
    pub(super) name: String,
    /// The failure policy: `Fail` or `Ignore`.
    failure_policy: Cow<'static, str>,
    /// Whether the server reached this webhook before the request ended.
    pub(super) considered: bool,
    /// Whether the webhook was called, or would have been called: in a request that is not a dry run, or by the cluster.
    pub(super) called: bool,
    /// The reason why the webhook was not called, for each round in which it was not called.
    pub(super) skipped: Vec<Skipped>,
    /// The match conditions for each round in which they were evaluated; only with `--explain`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<ConditionReport>,
}

/// A match condition that was evaluated.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConditionReport {
    /// The round: 1, or 2 for the reinvocation.
    pub(super) round: usize,
    /// The `name` of the condition.
    pub(super) name: String,
    /// The `expression` of the condition.
    expression: String,
    /// The value of the expression; omitted if the evaluation failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<bool>,
    /// The evaluation error; omitted if the expression has a value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) error: String,
    /// The CEL cost. The limit is 1,000,000 for one expression and 2,500,000 for all conditions of a webhook.
    pub(super) cost: u64,
}

/// A round in which the server did not call a webhook.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Skipped {
    /// The round: 1, or 2 for the reinvocation.
    pub(super) round: usize,
    /// The first test that excluded the webhook: `exempt`, `namespaceSelector`, `objectSelector`, `rules`,
    /// `matchConditions`, `notReinvoked`, or `error`.
    pub(super) test: Cow<'static, str>,
    /// A sentence that states the reason.
    pub(super) reason: String,
    /// The compared values, and those of criteria that do not match, either; only with `--explain`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) compared: Vec<String>,
}

impl Skipped {
    /// Returns whether the server could not decide whether to call the webhook.
    pub(super) fn has_failed(&self) -> bool {
        self.test == FAILED
    }
}

/// The test of a webhook for which the server could not decide whether to call it.
const FAILED: &str = "error";

/// The report on one call to a webhook.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallReport {
    /// The phase: `mutating` or `validating`.
    #[serde(rename = "type")]
    pub(super) phase: Cow<'static, str>,
    /// The round: 1, or 2 for the reinvocation. Validating webhooks are called only in round 1.
    pub(super) round: usize,
    /// The index of the webhook in the audit annotations.
    index: usize,
    /// The `metadata.name` of the configuration.
    pub(super) configuration: String,
    /// The `name` of the webhook.
    pub(super) webhook: String,
    /// The start of the call, in milliseconds since the start of the request.
    started_ms: f64,
    /// The duration of the call in milliseconds.
    pub(super) duration_ms: f64,
    /// The outcome of the call.
    pub(super) outcome: Outcome,
    /// The HTTP status of the response; omitted if there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    /// The reason why the webhook did not allow the request; omitted if it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    /// A suggestion for fixing the problem; omitted if none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) hint: String,
    /// Remarks about the call, such as fields that the patch sets and the API server drops; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// The start of the body of an HTTP error that the message does not contain; omitted if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) error_body: String,
    /// The operations of the webhook's patch; omitted if there is no patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<Vec<Value>>,
    /// Whether the call changed the object.
    pub(super) changed: bool,
    /// The changes that the call made to the object.
    pub(super) changes: Vec<Change>,
    /// The warnings that the webhook returned.
    pub(super) warnings: Vec<String>,
    /// The audit annotations. Their keys do not have the webhook's name as a prefix.
    pub(super) audit_annotations: BTreeMap<String, String>,
    /// The `request.uid` of the `AdmissionReview`.
    uid: String,
    /// The `request` of the `AdmissionReview` that the webhook received; only in records and with `--show-reviews`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Value>,
    /// The body of the webhook's response, as JSON, or as a string if it is not JSON; only with `--show-reviews`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<Value>,
}

impl CallReport {
    /// Removes the response of the webhook.
    pub(super) fn without_response(&mut self) {
        self.response = None;
        self.error_body.clear();
    }
}

/// Whether a report contains the requests and responses of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchanges {
    Neither,
    Requests,
    Both,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    /// The webhook allowed the request.
    Allowed,
    /// The webhook denied the request.
    Denied,
    /// The webhook did not return a valid response, and its failure policy let the request continue.
    FailedOpen,
    /// The webhook did not return a valid response, and its failure policy rejected the request.
    FailedClosed,
    /// The server rejected the request regardless of the failure policy.
    ///
    /// It could not apply the patch, or a dry run matched a webhook with side effects.
    Refused,
    /// The webhook was not called, because it is in the cluster of an offline review: its response is unknown.
    Unknown,
}

impl Webhooks {
    /// Creates the list of the webhooks from files and from stored configurations.
    ///
    /// # Errors
    /// Returns an error if a configuration cannot be read.
    pub(crate) fn new(
        manifests: &StaticManifests,
        configurations: &[Arc<Value>],
    ) -> Result<Self, ConfigError> {
        let mut configurations: Vec<&Arc<Value>> = configurations.iter().collect();
        configurations.sort_by_key(|configuration| text(configuration, &["metadata", "name"]));
        let from_files = manifests.mutating.iter().chain(&manifests.validating);
        let from_files = from_files.flat_map(|manifests| &manifests.webhooks).cloned();
        let mut all: Vec<(Phase, Arc<Webhook>)> =
            from_files.map(|webhook| (webhook.phase, webhook)).collect();
        for configuration in configurations {
            all.extend(
                config::stored_webhooks(configuration)?
                    .into_iter()
                    .map(|webhook| (webhook.phase, Arc::new(webhook))),
            );
        }
        // The sort is stable: webhooks of the same phase keep their order.
        all.sort_by_key(|(phase, _)| *phase);
        Ok(Self { all, services: BTreeMap::new() })
    }

    /// Returns the webhooks, with the addresses of `--service` for the hints about failed calls.
    pub(crate) fn at(self, services: ServiceAddresses) -> Self {
        Self { services, ..self }
    }

    /// Creates the list of webhooks that are already in dispatch order.
    pub(crate) fn in_order(all: Vec<(Phase, Arc<Webhook>)>) -> Self {
        Self { all, services: BTreeMap::new() }
    }

    fn called(&self, called: &Called) -> Option<&Webhook> {
        let is_called = |(phase, webhook): &&(Phase, Arc<Webhook>)| {
            *phase == called.phase && webhook.id == called.webhook
        };
        self.all.iter().find(is_called).map(|(_, webhook)| &**webhook)
    }

    /// Returns the Service of the called webhook, as `NAMESPACE/NAME`; empty for a URL.
    pub(super) fn service(&self, called: &Called) -> String {
        match self.called(called).map(|webhook| &webhook.client_config.target) {
            Some(WebhookTarget::Service(service)) => format!("{}/{}", service.namespace, service.name),
            Some(WebhookTarget::Url(_)) | None => String::new(),
        }
    }

    /// Returns a report on each call in a record.
    pub(super) fn calls(&self, record: &Record, server: &ApiServer, exchanges: Exchanges) -> Vec<CallReport> {
        let report = |called: &Called| {
            let webhook = self.called(called);
            let hint = webhook.and_then(|webhook| hint(called, webhook, &self.services));
            let request = (exchanges != Exchanges::Neither).then(|| request(called)).flatten();
            let response = (exchanges == Exchanges::Both).then(|| response(called)).flatten();
            CallReport {
                hint: hint.unwrap_or_default(),
                notes: call_notes(called, webhook, server),
                request,
                response,
                ..call(called, server)
            }
        };
        record.calls().map(report).collect()
    }

    /// Returns a report on each webhook; with `explain`, with the compared values and match conditions.
    pub(super) fn reports(
        &self,
        record: &Record,
        facts: Option<&Facts<'_>>,
        explain: bool,
    ) -> Vec<WebhookReport> {
        self.all.iter().map(|(phase, webhook)| report(*phase, webhook, record, facts, explain)).collect()
    }
}

/// Returns the request of the review as the webhook received it.
fn request(called: &Called) -> Option<Value> {
    let mut review: Value = serde_json::from_slice(&called.review).ok()?;
    Some(review.get_mut("request")?.take())
}

/// The maximum length in bytes of a response that is not JSON.
const MAX_TEXT: usize = 16 << 10;

/// Returns the body of the response; text that is not JSON is truncated to [`MAX_TEXT`] bytes.
fn response(called: &Called) -> Option<Value> {
    let body = &called.reply.as_ref()?.body;
    let text = || String::from_utf8_lossy(body.get(..MAX_TEXT).unwrap_or(body)).into_owned().into();
    Some(serde_json::from_slice(body).unwrap_or_else(|_| text()))
}

impl WebhookReport {
    /// Returns the phase: `mutating` or `validating`.
    pub(super) fn phase(&self) -> &str {
        &self.phase
    }

    /// Returns whether the webhook's phase is `phase`: `mutating` or `validating`.
    pub(super) fn is(&self, phase: &str) -> bool {
        self.phase == phase
    }

    /// Returns the reason why the server could not decide whether to call this webhook, if this rejected the request.
    pub(super) fn match_failure(&self) -> Option<&Skipped> {
        self.skipped.iter().find(|skipped| skipped.has_failed())
    }

    /// Removes the details that only `--explain` shows.
    pub(super) fn without_explanation(&mut self) {
        self.conditions.clear();
        self.skipped.iter_mut().for_each(|skipped| skipped.compared.clear());
    }

    /// Returns whether the server reached this webhook before the request ended.
    pub(super) fn is_considered(&self) -> bool {
        self.considered
    }
}

fn report(
    phase: Phase,
    webhook: &Webhook,
    record: &Record,
    facts: Option<&Facts<'_>>,
    explain: bool,
) -> WebhookReport {
    let mut called = false;
    let mut skipped = Vec::new();
    let mut evaluated: Vec<&Conditions> = Vec::new();
    for (index, event) in record.events.iter().enumerate() {
        let is_meant = |id: &Arc<WebhookId>, of: Phase| of == phase && *id == webhook.id;
        if let Event::Called(call) = event {
            called |= is_meant(&call.webhook, call.phase);
        } else if let Event::Conditions(conditions) = event {
            if is_meant(&conditions.webhook, conditions.phase) {
                evaluated.push(conditions);
            }
        } else if let Event::Skipped { webhook: id, phase, round, mismatch } = event
            && is_meant(id, *phase)
        {
            let is_selector = matches!(mismatch, Mismatch::NamespaceSelector | Mismatch::ObjectSelector);
            let facts = facts.filter(|_| explain || is_selector);
            let (mut compared, further) =
                facts.map(|facts| facts.compared(index, mismatch, webhook)).unwrap_or_default();
            let reason = if is_selector && !compared.is_empty() {
                format!("its {}", compared.join("; "))
            } else {
                skip_reason(mismatch, webhook.reinvocation_policy, evaluated.last().copied())
            };
            if explain {
                compared.extend(further);
            } else {
                compared.clear();
            }
            let (round, test) = (round.number() + 1, test(mismatch).into());
            skipped.push(Skipped { round, test, reason, compared });
        } else if let Event::MatchFailed { webhook: id, phase, round, status } = event
            && is_meant(id, *phase)
        {
            skipped.push(cannot_tell(*round, match_failure(status, evaluated.last().copied())));
        }
    }
    // Retries of a write, and deletions in several steps, usually have the same reason.
    skipped.dedup();
    WebhookReport {
        phase: name(phase).into(),
        configuration: webhook.id.configuration.clone(),
        name: webhook.id.name.clone(),
        failure_policy: match webhook.failure_policy {
            FailurePolicy::Fail => "Fail".into(),
            FailurePolicy::Ignore => "Ignore".into(),
        },
        considered: called || !skipped.is_empty(),
        called,
        skipped,
        conditions: if explain {
            evaluated.into_iter().flat_map(condition_reports).collect()
        } else {
            Vec::new()
        },
    }
}

fn condition_reports(conditions: &Conditions) -> impl Iterator<Item = ConditionReport> {
    let round = conditions.round.number() + 1;
    conditions.evaluation.conditions.iter().map(move |condition| ConditionReport {
        round,
        name: condition.name.to_string(),
        expression: condition.expression.to_string(),
        value: condition.value.as_ref().ok().copied(),
        error: condition.value.as_ref().err().map(ToString::to_string).unwrap_or_default(),
        cost: condition.cost,
    })
}

fn cannot_tell(round: Round, reason: String) -> Skipped {
    Skipped { round: round.number() + 1, test: FAILED.into(), reason, compared: Vec::new() }
}

fn test(mismatch: &Mismatch) -> &'static str {
    match mismatch {
        Mismatch::NamespaceSelector => "namespaceSelector",
        Mismatch::ObjectSelector => "objectSelector",
        Mismatch::Rules => "rules",
        Mismatch::Conditions => "matchConditions",
        Mismatch::Exempt => "exempt",
        Mismatch::NotReinvoked => "notReinvoked",
    }
}

/// Suggests a fix for a call that did not reach the webhook, or whose response the API server cannot use.
fn hint(called: &Called, webhook: &Webhook, services: &ServiceAddresses) -> Option<String> {
    let CallResult::Failed { failure, .. } = &called.result else { return response_hint(called) };
    let (service, url) = match &webhook.client_config.target {
        WebhookTarget::Service(ServiceReference { namespace, name, .. }) => {
            (Some(ServiceName { namespace: namespace.clone(), name: name.clone() }), "")
        }
        WebhookTarget::Url(url) => (None, url.as_str()),
    };
    let address = service.as_ref().and_then(|service| services.get(service));
    let unreached = UnreachedWebhook { webhook: &webhook.id.name, service: service.as_ref(), url, address };
    let advice = unreached.advice(&failure.reason);
    advice
        .or_else(|| explain_error::unread_response(called.http_status, &failure.reason, unreached.place()))
        .or_else(|| unreached.advice_on_loopback(&failure.reason))
}

fn call(called: &Called, server: &ApiServer) -> CallReport {
    let (outcome, message) = outcome(&called.result);
    let (patch, changed) = if let CallResult::Allowed { patch, changed } = &called.result {
        (patch.as_deref().map(<[Value]>::to_vec), *changed)
    } else if let CallResult::ServerError { patch, .. } = &called.result {
        (patch.as_deref().map(<[Value]>::to_vec), false)
    } else {
        (None, false)
    };
    let made = patch.is_some().then(|| {
        let before = shown(called)?;
        Some(changes(&before, &patched(called, &before, server)?))
    });
    CallReport {
        phase: name(called.phase).into(),
        round: called.round.number() + 1,
        index: called.index,
        configuration: called.webhook.configuration.clone(),
        webhook: called.webhook.name.clone(),
        started_ms: milliseconds(called.started),
        duration_ms: milliseconds(called.took),
        outcome,
        http_status: called.http_status,
        message,
        hint: String::new(),
        notes: Vec::new(),
        error_body: error_body(called).unwrap_or_default(),
        patch,
        changed,
        changes: made.flatten().unwrap_or_default(),
        warnings: called.warnings.clone(),
        audit_annotations: called.audit_annotations.clone(),
        uid: called.uid.clone(),
        request: None,
        response: None,
    }
}

fn outcome(result: &CallResult) -> (Outcome, String) {
    match result {
        CallResult::Allowed { .. } => (Outcome::Allowed, String::new()),
        CallResult::Denied(status) => (Outcome::Denied, status.message.clone()),
        CallResult::Failed { failure, failed_open: true } => (Outcome::FailedOpen, failure.reason.clone()),
        CallResult::Failed { failure, .. } => (Outcome::FailedClosed, failure.reason.clone()),
        CallResult::ServerError { status, .. } => (Outcome::Refused, status.message.clone()),
        CallResult::Unknown => (Outcome::Unknown, String::new()),
    }
}

pub(super) fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutating => "mutating",
        Phase::Validating => "validating",
    }
}
