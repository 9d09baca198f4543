//! Decides whether a webhook is called for a request, and in which version.

pub(crate) mod exemption;
mod explanation;
mod index;
pub(crate) mod rules;
pub(crate) mod selectors;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kubernetes_types::status::{Status, Unsupported};

pub use self::explanation::{explain, explain_further, unmatched_rules};
pub(crate) use self::explanation::{rule_mismatch, unmet_namespace_selector, unmet_object_selector};
pub use self::index::WebhookIndex;
pub use self::rules::exact_or_star;
use crate::admission_run::{AdmissionRun, Objects};
pub use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};
use crate::cluster_state::ConversionError;
use crate::conditions::{self, Evaluation, Outcome};
use crate::config::{FailurePolicy, MatchPolicy, Webhook};
use crate::event::Mismatch;

/// Whether a webhook is called.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "called, not called, or the server cannot say")]
pub enum Decision {
    /// The webhook is called with a review in this version.
    Call(Invocation),
    /// The webhook is skipped and the request continues.
    Skip(Mismatch),
    /// The request is rejected regardless of the failure policy, with this response for the client.
    Refuse(Box<Status>),
    /// The request is rejected because the object cannot be converted for the conditions.
    Unconvertible(ConversionError),
}

/// A [`Decision`] and, if the conditions were evaluated, their evaluation.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[expect(clippy::exhaustive_structs, reason = "a decision has these parts")]
pub struct Decided {
    /// Whether the webhook is called.
    pub decision: Decision,
    /// The evaluation of the conditions; `None` if they were not evaluated.
    pub conditions: Option<Evaluation>,
}

impl From<Decision> for Decided {
    fn from(decision: Decision) -> Self {
        Self { decision, conditions: None }
    }
}

/// The version in which a webhook is called. Only [`decide`] creates it, if the webhook matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    resource: Arc<GroupVersionResource>,
    kind: Arc<GroupVersionKind>,
}

impl Invocation {
    /// Returns `request.resource` of the review: the request's resource, or an equivalent one that a rule matches.
    pub fn resource(&self) -> &GroupVersionResource {
        &self.resource
    }

    /// Returns `request.kind` of the review: the version in which the object is sent.
    pub fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }
}

/// Decides whether `webhook` is called for this request, and in which version.
///
/// Criteria are checked in this order: exempt kinds, namespace selector, object selector, rules, equivalent resources,
/// conditions. A missing namespace, or a selector that cannot be evaluated, rejects the request only if all criteria
/// before the conditions match.
///
/// Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, `ShouldCallHook` and `Dispatch`.
/// Rule: SEL-01, SEL-02.
pub fn decide(webhook: &Webhook, run: &mut AdmissionRun<'_>) -> Decided {
    let attributes = run.attributes();
    if exemption::is_exempt(webhook.source, attributes) {
        return Decision::Skip(Mismatch::Exempt).into();
    }
    let namespace = selectors::namespace(&webhook.namespace_selector, attributes, run.state());
    if namespace == Ok(false) {
        return Decision::Skip(Mismatch::NamespaceSelector).into();
    }
    let object = selectors::object(&webhook.object_selector, attributes);
    if object == Ok(false) {
        return Decision::Skip(Mismatch::ObjectSelector).into();
    }
    let invocation = match match_exact(webhook, run) {
        Some(invocation) => Some(invocation),
        None => match match_equivalent(webhook, run) {
            Ok(invocation) => invocation,
            Err(status) => return Decision::Refuse(status).into(),
        },
    };
    match (invocation, namespace.and(object)) {
        (None, _) => Decision::Skip(Mismatch::Rules).into(),
        (Some(_), Err(status)) => Decision::Refuse(status).into(),
        (Some(invocation), Ok(_)) if webhook.match_conditions.is_empty() => Decision::Call(invocation).into(),
        (Some(invocation), Ok(_)) => evaluate_conditions(webhook, invocation, run),
    }
}

/// Evaluates the conditions of a webhook, with the objects that it would receive. All other criteria must match.
///
/// Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, `ShouldCallHook`.
/// Rule: MC-01, MC-07, MC-11, MC-12, NEW-01.
fn evaluate_conditions(webhook: &Webhook, invocation: Invocation, run: &mut AdmissionRun<'_>) -> Decided {
    let kind = invocation.kind();
    if let Err(error) = run.convert(kind) {
        return Decision::Unconvertible(error).into();
    }
    let Objects { object, old_object } = run.objects(kind);
    let attributes = run.attributes();
    let evaluation = conditions::evaluate(
        &webhook.match_conditions,
        &conditions::Subject {
            attributes,
            kind,
            object,
            old_object,
            built_in: run.state().is_built_in(kind),
            authorizer: run.authorizer(),
        },
    );
    if let Some(what) = evaluation.unsupported() {
        let what = format!("a match condition of webhook \"{}\": {what}", webhook.id.name);
        let decision = Decision::Refuse(Box::new(Status::unsupported(&Unsupported { what })));
        return Decided { decision, conditions: Some(evaluation) };
    }
    let decision = match (evaluation.error(), webhook.failure_policy) {
        (None, _) if evaluation.outcome == Outcome::True => Decision::Call(invocation),
        (None, _) | (Some(_), FailurePolicy::Ignore) => Decision::Skip(Mismatch::Conditions),
        (Some(error), FailurePolicy::Fail) => {
            let GroupVersionResource { group, resource, .. } = &attributes.resource;
            Decision::Refuse(Box::new(Status::forbidden(group, resource, &attributes.name, error)))
        }
    };
    Decided { decision, conditions: Some(evaluation) }
}

/// Returns whether `webhook` is called for a request.
pub fn is_called(webhook: &Webhook, run: &mut AdmissionRun<'_>) -> bool {
    matches!(decide(webhook, run).decision, Decision::Call(_))
}

/// Returns an invocation if a rule matches the request's own resource.
///
/// Rule: SEL-09.
fn match_exact(webhook: &Webhook, run: &AdmissionRun<'_>) -> Option<Invocation> {
    let attributes = run.attributes();
    let request = request(attributes, &attributes.resource);
    webhook.rules.iter().any(|rule| rules::matches(rule, request)).then(|| own_invocation(run))
}

/// Returns an invocation in the request's own version, taken from the equivalent resources if they were looked up.
fn own_invocation(run: &AdmissionRun<'_>) -> Invocation {
    let Attributes { resource, kind, .. } = run.attributes();
    let shared = run.equivalents().iter().find_map(|known| {
        let known_kind = known.kind.as_ref().filter(|known| ***known == *kind)?;
        let is_own = *known.resource == *resource;
        is_own.then(|| Invocation { resource: Arc::clone(&known.resource), kind: Arc::clone(known_kind) })
    });
    shared
        .unwrap_or_else(|| Invocation { resource: Arc::new(resource.clone()), kind: Arc::new(kind.clone()) })
}

/// Returns an invocation for the first rule and equivalent resource that match, if the match policy allows it.
///
/// Rule: SEL-10, SEL-11.
fn match_equivalent(
    webhook: &Webhook,
    run: &mut AdmissionRun<'_>,
) -> Result<Option<Invocation>, Box<Status>> {
    match webhook.match_policy {
        MatchPolicy::Exact => return Ok(None),
        MatchPolicy::Equivalent => {}
    }
    run.look_up_equivalents();
    let attributes = run.attributes();
    for rule in &webhook.rules {
        for candidate in run.equivalents() {
            // The candidates include the request's own resource, but `match_exact` has found that no rule matches it.
            if !rules::matches(rule, request(attributes, &candidate.resource)) {
                continue;
            }
            let Some(kind) = candidate.kind.clone() else {
                let GroupVersionResource { group, version, resource } = &*candidate.resource;
                let message =
                    format!("unable to convert to {group}/{version}, Resource={resource}: unknown kind");
                return Err(Box::new(Status::internal_error(&message)));
            };
            return Ok(Some(Invocation { resource: candidate.resource.clone(), kind }));
        }
    }
    Ok(None)
}

/// Returns the parts of a request that rules match, for the request's own or an equivalent `resource`.
pub(crate) fn request<'a>(
    attributes: &'a Attributes,
    resource: &'a GroupVersionResource,
) -> rules::Request<'a> {
    rules::Request {
        operation: attributes.operation,
        resource,
        subresource: &attributes.subresource,
        namespace: &attributes.namespace,
    }
}
