//! Reads reports from a record.

use harness::attributes::{GroupVersionResource, Operation};
use harness::chain::Verdict;
use harness::quoting::quote;

use super::webhooks::Outcome;
use super::{API_VERSION, KIND, Report, Source, verdict_name};
use crate::Failure;
use crate::documents::DocumentLocation;

/// The facts about a request that the list of a record shows.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) number: usize,
    /// The time with millisecond precision.
    pub(crate) time: String,
    pub(crate) user: String,
    /// The operation, such as `CREATE`, followed by the verb for a patch or the deletion of a collection.
    pub(crate) operation: String,
    /// The resource, such as `deployments.apps/scale`.
    pub(crate) resource: String,
    group: String,
    plural: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    /// The namespace and name as `namespace/name`, or only one of them if the other is empty.
    pub(crate) object: String,
    pub(crate) dry_run: bool,
    pub(crate) admitted: bool,
    /// The decision, such as `denied by NAME`.
    pub(crate) decision: String,
    /// The webhooks that were called, without duplicates.
    pub(crate) webhooks: Vec<String>,
    /// The number of rounds; 0 if no webhook was called.
    pub(crate) rounds: usize,
}

impl Facts {
    /// Returns whether `name` refers to the resource, such as `pods`, `deployments.apps`, or `pods/status`.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        let (name, subresource) = name.split_once('/').unwrap_or((name, &self.subresource));
        let whole = format!("{}.{}", self.plural, self.group);
        (name == self.plural || name == whole.trim_end_matches('.')) && subresource == self.subresource
    }
}

impl Report {
    /// Parses the report in a line of a record.
    ///
    /// # Errors
    /// Returns a failure that names the file and the line if the line does not contain a report.
    pub(crate) fn of_line(line: &[u8], place: &DocumentLocation, number: usize) -> Result<Self, Failure> {
        let mut report: Self = serde_json::from_slice(line)
            .map_err(|error| place.failure(format!("not a request that --record recorded: {error}")))?;
        let is_known = report.api_version == API_VERSION && report.kind == KIND;
        let Some(recorded) = report.recorded.as_mut().filter(|_| is_known) else {
            return Err(place.failure(format!(
                "not a request that --record recorded: expected {KIND} of {API_VERSION} with `recorded`"
            )));
        };
        recorded.number = number;
        report.source = Source { file: place.file.clone(), line: place.line };
        Ok(report)
    }

    /// Returns the facts that the list of a record shows.
    pub(crate) fn facts(&self) -> Facts {
        let Self { recorded, request, decision, calls, .. } = self;
        let mut webhooks: Vec<String> = Vec::new();
        for call in calls {
            if !webhooks.contains(&call.webhook) {
                webhooks.push(call.webhook.clone());
            }
        }
        let verb = recorded.as_ref().map_or("", |recorded| recorded.verb.as_str());
        let beside =
            if ["patch", "deletecollection"].contains(&verb) { format!(" ({verb})") } else { String::new() };
        let mut resource = request.resource.group_resource();
        if !request.subresource.is_empty() {
            resource = format!("{resource}/{}", request.subresource);
        }
        let object = [request.namespace.as_str(), request.name.as_str()];
        Facts {
            number: recorded.as_ref().map_or(0, |recorded| recorded.number),
            time: recorded.as_ref().map_or_else(String::new, |recorded| {
                recorded.time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
            }),
            user: request.user_info.username.clone(),
            operation: format!("{}{beside}", request.operation),
            resource,
            group: request.resource.group.clone(),
            plural: request.resource.resource.clone(),
            subresource: request.subresource.clone(),
            namespace: request.namespace.clone(),
            object: object.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"),
            dry_run: request.dry_run,
            admitted: decision.allowed,
            decision: self.decided(),
            webhooks,
            rounds: calls.iter().map(|call| call.round).max().unwrap_or(0),
        }
    }

    /// Sets the number of a request in a record. The line of the request does not contain it.
    pub(crate) fn set_number(&mut self, number: usize) {
        if let Some(recorded) = self.recorded.as_mut().filter(|recorded| recorded.number == 0) {
            recorded.number = number;
        }
    }

    /// Returns the operation of the request.
    pub(crate) fn operation(&self) -> Operation {
        self.request.operation
    }

    /// Returns the decision with the webhook, plugin, or reason that caused it.
    fn decided(&self) -> String {
        let name = verdict_name::from_verdict(self.decision.verdict);
        if self.decision.verdict == Verdict::Admitted {
            return name.to_owned();
        }
        if let Some(condition) = &self.decision.condition {
            return format!("{name} on {}", condition.names());
        }
        let refuses =
            |outcome: Outcome| matches!(outcome, Outcome::Denied | Outcome::FailedClosed | Outcome::Refused);
        let status = self.decision.status.as_ref();
        let text = |field: &str| status.and_then(|status| status.get(field)?.as_str()).unwrap_or_default();
        // If several webhooks rejected the request, the message quotes one of them.
        let mut refusing = self.calls.iter().filter(|call| refuses(call.outcome));
        let message = text("message");
        let by =
            refusing.clone().find(|call| message.contains(&quote(&call.webhook))).or_else(|| refusing.next());
        match (by, text("reason")) {
            (Some(call), _) if call.outcome == Outcome::FailedClosed => format!("failed: {}", call.webhook),
            (Some(call), _) => format!("{name} by {}", call.webhook),
            (None, "") => format!("{name} ({})", self.decision.code),
            (None, reason) => format!("{name} ({reason})"),
        }
    }

    /// Sets the resource and namespace of a request whose resource the server does not serve.
    pub(crate) fn name_resource(&mut self, resource: GroupVersionResource, namespace: String) {
        self.request.resource = resource;
        self.request.namespace = namespace;
    }

    /// Removes the details that only `--explain` shows.
    pub(crate) fn without_explanation(&mut self) {
        self.webhooks.iter_mut().for_each(super::webhooks::WebhookReport::without_explanation);
    }

    /// Removes the responses of the webhooks, which a record does not contain.
    pub(super) fn without_responses(&mut self) {
        self.calls.iter_mut().for_each(super::webhooks::CallReport::without_response);
    }

    /// Removes the details that only `--show-reviews` shows.
    pub(crate) fn without_reviews(&mut self) {
        for call in &mut self.calls {
            (call.request, call.response) = (None, None);
        }
    }
}
