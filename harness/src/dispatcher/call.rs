//! One call of a webhook, from the review to what its reply means.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Chain, Dispatcher, Place};
use crate::admission_run::AdmissionRun;
use crate::caller::{Call, CallError, Caller};
use crate::config::Webhook;
use crate::event::{CallFailure, CallResult, Called};
use crate::failure;
use crate::matching::Invocation;
use crate::review::ReviewVersion;
use crate::review::request;
use crate::review::response::{self, Response};

impl<C: Caller> Dispatcher<C> {
    /// Calls one webhook with the objects of `run`, which has them in the version of `invocation`. The response only if it
    /// allows the request.
    pub(super) async fn call(
        &self,
        webhook: &Webhook,
        run: &AdmissionRun<'_>,
        invocation: &Invocation,
        chain: &Chain<'_>,
        place: Place,
    ) -> (Called, Option<Response>) {
        let mut called = Called {
            webhook: webhook.id.clone(),
            phase: place.phase,
            round: place.round,
            index: place.index,
            failure_policy: webhook.failure_policy,
            uid: String::new(),
            review: Bytes::new(),
            reply: None,
            started: chain.started.elapsed(),
            took: Duration::ZERO,
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
            result: CallResult::Allowed { patch: None, changed: false },
        };
        let mut allowed = None;
        if run.attributes().dry_run && !webhook.side_effects.allow_dry_run() {
            let status = failure::dry_run_unsupported(&webhook.id.name);
            called.result = CallResult::ServerError { status, patch: None };
        } else {
            match self.exchange(webhook, run, invocation, chain, &mut called).await {
                Err(failure) => called.result = failure::result(webhook.failure_policy, failure),
                Ok(mut response) => {
                    called.warnings = std::mem::take(&mut response.warnings);
                    called.audit_annotations = std::mem::take(&mut response.audit_annotations);
                    if response.allowed {
                        allowed = Some(response);
                    } else {
                        called.result =
                            CallResult::Denied(failure::denied(&webhook.id.name, response.status));
                    }
                }
            }
        }
        called.took = chain.started.elapsed().saturating_sub(called.started);
        (called, allowed)
    }

    /// Sends the review and reads the reply.
    async fn exchange(
        &self,
        webhook: &Webhook,
        run: &AdmissionRun<'_>,
        invocation: &Invocation,
        chain: &Chain<'_>,
        called: &mut Called,
    ) -> Result<Response, CallFailure> {
        let version = ReviewVersion::negotiate(&webhook.admission_review_versions)?;
        called.uid = (self.new_uid)();
        let objects = run.objects(invocation.kind());
        called.review = request::encode(version, &called.uid, run.attributes(), invocation, objects)?;
        let left = chain.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(webhook.timeout, |left| left.min(webhook.timeout));
        if timeout.is_zero() {
            return Err(failure::no_reply(CallError::Transport("context deadline exceeded".to_owned())));
        }
        let call = Call { client_config: &webhook.client_config, body: called.review.clone(), timeout };
        let reply = called.reply.insert(self.caller.call(call).await.map_err(failure::no_reply)?);
        response::read(reply, version, &called.uid, called.phase)
    }
}
