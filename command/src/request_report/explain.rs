//! Describes the values that a test compared when it excluded a webhook, as they were at each event in the record.

use std::sync::Arc;

use harness::attributes::{Attributes, GroupVersionResource};
use harness::chain::{Request, Sent};
use harness::config::Webhook;
use harness::event::{Event, Mismatch, Phase};
use harness::matching;
use harness::server::{ApiServer, ServedResource};
use serde_json::Value;

use super::steps::policy_changes;
use super::{patched, shown};
use crate::unmatched_rules::unmatched_rules;

/// The attributes of a request that determine whether webhooks match.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    server: &'a ApiServer,
    attributes: Attributes,
    namespace: Option<Arc<Value>>,
    /// The object at each event in the record.
    objects: Vec<Option<Arc<Value>>>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(
        request: &Request,
        resource: &ServedResource,
        sent: &Sent,
        server: &'a ApiServer,
        old: Option<Arc<Value>>,
    ) -> Self {
        let is_namespace = resource.name.group_resource() == "namespaces";
        let namespace = match (resource.namespaced, is_namespace) {
            (true, _) => request.namespace.clone(),
            (false, true) => request.name.clone(),
            (false, false) => String::new(),
        };
        let namespaces = GroupVersionResource::new("", "v1", "namespaces");
        Self {
            server,
            namespace: server.stored(&namespaces, "", &namespace),
            attributes: Attributes {
                operation: request.operation,
                resource: resource.name.clone(),
                subresource: request.subresource.clone(),
                kind: resource.kind.clone(),
                namespace,
                name: request.name.clone(),
                object: None,
                old_object: old.map(|old| (*old).clone()),
                options: None,
                dry_run: request.dry_run,
                user: request.user.clone(),
            },
            objects: objects(request, sent, server),
        }
    }

    /// Creates the facts about a request that was not sent, whose object is the same at each of `events` events.
    pub(super) fn of_attributes(attributes: Attributes, server: &'a ApiServer, events: usize) -> Self {
        let namespaces = GroupVersionResource::new("", "v1", "namespaces");
        Self {
            server,
            namespace: server.stored(&namespaces, "", &attributes.namespace),
            objects: vec![attributes.object.clone().map(Arc::new); events],
            attributes,
        }
    }

    /// Returns the values that were compared for `mismatch` at the event with this `index`, and descriptions of the later
    /// criteria that also do not match.
    pub(super) fn compared(
        &self,
        index: usize,
        mismatch: &Mismatch,
        webhook: &Webhook,
    ) -> (Vec<String>, Vec<String>) {
        let object = self.objects.get(index).cloned().flatten();
        let attributes =
            Attributes { object: object.map(|object| (*object).clone()), ..self.attributes.clone() };
        let namespace = self.namespace.as_deref();
        let compared = if *mismatch == Mismatch::Rules {
            unmatched_rules(webhook, &attributes, self.server).collect()
        } else {
            matching::explain(webhook, &attributes, namespace, mismatch)
        };
        (compared, matching::explain_further(webhook, &attributes, namespace, mismatch))
    }
}

fn objects(request: &Request, sent: &Sent, server: &ApiServer) -> Vec<Option<Arc<Value>>> {
    let mut now = sent.read.clone().filter(|_| request.body.is_some()).map(Arc::new);
    let mut objects = Vec::with_capacity(sent.record.events.len());
    for event in &sent.record.events {
        if let Event::Policies(checked) = event
            && let Some((_, change)) = policy_changes(checked).last()
        {
            now = Some(Arc::new(change.after.clone()));
        } else if let Event::Called(called) = event
            && called.phase == Phase::Mutating
            && let Some(before) = shown(called)
        {
            now = Some(Arc::new(patched(called, &before, server).unwrap_or(before)));
        }
        objects.push(now.clone());
    }
    objects
}
