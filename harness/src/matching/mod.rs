//! Is this webhook called for this request, and in which version?

mod exemption;
mod explanation;
mod rules;
mod selectors;
#[cfg(test)]
mod tests;

pub use self::explanation::explain;
use crate::admission_run::AdmissionRun;
use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};
use crate::cluster_state::ClusterState;
use crate::config::{MatchPolicy, Webhook};
use crate::event::Mismatch;
use crate::ownership::Times;
use crate::status::Status;

/// Whether a webhook is called.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "called, not called, or the server cannot say")]
pub enum Decision {
    /// It is called, with a review in this version.
    Call(Invocation),
    /// It is not called, and the request goes on.
    Skip(Mismatch),
    /// The request is refused: the server cannot tell, whatever the failure policy. What the client gets.
    Refuse(Box<Status>),
}

/// The version in which a webhook is called. Only [`decide`] can make one: no review without a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    resource: GroupVersionResource,
    kind: GroupVersionKind,
}

impl Invocation {
    /// `request.resource` of the review: the request's resource, or an equivalent one that a rule names.
    pub fn resource(&self) -> &GroupVersionResource {
        &self.resource
    }

    /// `request.kind` of the review: the version that the object is sent in.
    pub fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }
}

/// Decides whether `webhook` is called for this request, and in which version.
///
/// The order: exempt kinds, namespace selector, object selector, rules, equivalent resources. A namespace that is
/// not there refuses the request only if everything else matches.
///
/// Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, `ShouldCallHook` and `Dispatch`.
pub fn decide(webhook: &Webhook, run: &mut AdmissionRun<'_>) -> Decision {
    let attributes = run.attributes();
    if exemption::is_exempt(attributes) {
        return Decision::Skip(Mismatch::Exempt);
    }
    let namespace = selectors::namespace(webhook, attributes, run.state());
    if namespace == Ok(false) {
        return Decision::Skip(Mismatch::NamespaceSelector);
    }
    if !selectors::object(webhook, attributes) {
        return Decision::Skip(Mismatch::ObjectSelector);
    }
    let invocation = match exact(webhook, attributes) {
        Some(invocation) => Some(invocation),
        None => match equivalent(webhook, run) {
            Ok(invocation) => invocation,
            Err(status) => return Decision::Refuse(status),
        },
    };
    match (invocation, namespace) {
        (None, _) => Decision::Skip(Mismatch::Rules),
        (Some(_), Err(status)) => Decision::Refuse(status),
        (Some(invocation), Ok(_)) => Decision::Call(invocation),
    }
}

/// Whether `webhook` is called for a request that nothing has changed yet.
pub fn is_called(webhook: &Webhook, attributes: Attributes, state: &dyn ClusterState) -> bool {
    let mut run = AdmissionRun::new(attributes, Times::Whole, state);
    matches!(decide(webhook, &mut run), Decision::Call(_))
}

/// Any rule that catches the request as it came.
fn exact(webhook: &Webhook, attributes: &Attributes) -> Option<Invocation> {
    let request = request(attributes, &attributes.resource);
    webhook
        .rules
        .iter()
        .any(|rule| rules::matches(rule, request))
        .then(|| Invocation { resource: attributes.resource.clone(), kind: attributes.kind.clone() })
}

/// The first rule that catches an equivalent resource, and the first such resource: only for webhooks that ask for it.
fn equivalent(webhook: &Webhook, run: &mut AdmissionRun<'_>) -> Result<Option<Invocation>, Box<Status>> {
    match webhook.match_policy {
        MatchPolicy::Exact => return Ok(None),
        MatchPolicy::Equivalent => {}
    }
    run.look_up_equivalents();
    let attributes = run.attributes();
    for rule in &webhook.rules {
        for candidate in run.equivalents() {
            // The request's own resource is among them, but no rule catches that: it was tried before.
            if !rules::matches(rule, request(attributes, &candidate.resource)) {
                continue;
            }
            let Some(kind) = candidate.kind.clone() else {
                let GroupVersionResource { group, version, resource } = &candidate.resource;
                let message =
                    format!("unable to convert to {group}/{version}, Resource={resource}: unknown kind");
                return Err(Box::new(Status::internal_error(&message)));
            };
            return Ok(Some(Invocation { resource: candidate.resource.clone(), kind }));
        }
    }
    Ok(None)
}

fn request<'a>(attributes: &'a Attributes, resource: &'a GroupVersionResource) -> rules::Request<'a> {
    rules::Request {
        operation: attributes.operation,
        resource,
        subresource: &attributes.subresource,
        namespace: &attributes.namespace,
    }
}
