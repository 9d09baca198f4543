//! Answers which webhooks the server would call for a request, without calling them.

use std::sync::Arc;

use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::{Attributes, GroupVersionKind, Operation, UserInfo};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::config::Webhook;
use kubernetes_admission::event::Phase;
use kubernetes_admission::matching::{self, Decided};
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_types::status::Status;
use serde_json::Value;

use super::in_process::known;
use crate::apimachinery::metadata;
use crate::endpoints::context::ApiServer;
use crate::registry::body::{self, Types};
use crate::registry::create;

/// A request that was not sent, and the server's decision about each webhook.
#[derive(Debug)]
#[non_exhaustive]
pub struct WebhookMatches {
    /// The attributes of the request. The object has the defaults of its version.
    pub attributes: Attributes,
    /// The webhooks in dispatch order, without those of disabled plugins.
    pub webhooks: Vec<(Phase, Arc<Webhook>, Decided)>,
}

impl ApiServer {
    /// Returns the stored objects of a kind, sorted by name, each in the version in which it is stored.
    pub fn stored_of_kind(&self, kind: &GroupVersionKind) -> Vec<Arc<Value>> {
        self.server.registry.state.stored(kind, "", "")
    }

    /// Decides for each webhook whether the server would call it for a request about `object`. Calls nothing.
    ///
    /// The decisions are those before any plugin, policy, or webhook changes the object. The old object of an UPDATE or
    /// a DELETE is the stored object or, if there is none, `object`. A DELETE removes the object with the name of
    /// `object`.
    ///
    /// # Errors
    /// Returns the server's `Status` if the server does not serve the kind, or cannot decode or convert an object.
    pub fn match_webhooks(
        &self,
        operation: Operation,
        object: Value,
        user: UserInfo,
    ) -> Result<WebhookMatches, Box<Status>> {
        let state = &self.server.registry.state;
        let kind = GroupVersionKind::from_object(&object);
        let resources = state.resources();
        let resource = known(&resources, &kind)?;
        let (mut object, _) = body::typed(object, &kind, Types::for_resource(resource, &kind))?;
        state.complete_or_keep(&mut object);
        let name = metadata::text(&object, "name").to_owned();
        if !resource.namespaced {
            metadata::remove(&mut object, "namespace");
        } else if metadata::text(&object, "namespace").is_empty() {
            metadata::set(&mut object, "namespace", Value::from("default"));
        }
        let namespace = match resource.gvr.group_resource().as_str() {
            "namespaces" => name.clone(),
            _ => metadata::text(&object, "namespace").to_owned(),
        };
        let key = resource.key(metadata::text(&object, "namespace"), &name);
        let stored = || match state.storage.at(&key) {
            Some(stored) => state.convert(&stored, &kind).map_err(create::conversion_failed),
            None => Ok(object.clone()),
        };
        let (object, old_object) = match operation {
            Operation::Update => (Some(object.clone()), Some(stored()?)),
            Operation::Delete => (None, Some(stored()?)),
            Operation::Create | Operation::Connect => (Some(object), None),
        };
        let attributes = Attributes {
            operation,
            resource: resource.gvr.clone(),
            subresource: String::new(),
            kind,
            namespace,
            name,
            object,
            old_object,
            options: None,
            dry_run: false,
            user,
        };
        let admission = &self.server.registry.admission;
        let mut run = AdmissionRun::new(attributes.clone(), TimePrecision::Seconds, &**state)
            .with_authorizer(Arc::clone(&state.authorizer));
        let webhooks = admission
            .webhooks_in_order()
            .into_iter()
            .filter(|(phase, _)| admission.runs(phase.webhook_plugin()))
            .map(|(phase, webhook)| {
                let decided = matching::decide(&webhook, &mut run);
                (phase, webhook, decided)
            })
            .collect();
        Ok(WebhookMatches { attributes, webhooks })
    }
}
