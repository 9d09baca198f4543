//! Law: any webhook response is accepted or rejected with a message.
//!
//! A request that the webhook does not change remains unchanged.
//!
//! The input is a line with the phase (`m` or `v`), review version (`v1`, `v1beta1`), failure policy (`f` or `i`),
//! status, and content type, and then the body, in which `$UID` is replaced with the UID of the review.

use std::sync::{Arc, LazyLock};

use harness::attributes::UserInfo;
use harness::caller::{Call, CallError, Caller, Reply};
use harness::config::{FailurePolicy, Webhook};
use harness::dispatcher::{DispatchContext, Dispatcher, Rejection, Webhooks};
use harness::event::{CallResult, Phase};
use harness::server::ClusterFixture;
use harness::{audit, warnings};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{documents, runtime, webhook};

/// The maximum size, in bytes, of a patched object, in addition to 64 times the size of the reply.
///
/// Copies are limited to 3 MiB in total.
const MAX_LENGTH: usize = 8 * 1024 * 1024;

static FIXTURE: LazyLock<ClusterFixture> = LazyLock::new(|| ClusterFixture::new([]));

/// A caller that answers every call with the given reply.
struct Answering(Reply);

impl Caller for Answering {
    async fn call(&self, call: Call<'_>) -> Result<Reply, CallError> {
        let body = webhook::with_uid(&self.0.body, &call.body).into();
        Ok(Reply { body, ..self.0.clone() })
    }
}

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let (head, body) = input.split_at(end);
    let Ok(head) = std::str::from_utf8(head) else { return };
    let words: Vec<&str> = head.splitn(5, ' ').collect();
    let &[phase, version, policy, status, content_type] = words.as_slice() else { return };
    let reply = Reply {
        status: status.parse().unwrap_or(200),
        content_type: (content_type != "none").then(|| content_type.to_owned()),
        body: body.get(1..).unwrap_or_default().to_vec().into(),
    };
    let phase = if phase == "v" { Phase::Validating } else { Phase::Mutating };
    let policy = if policy == "i" { FailurePolicy::Ignore } else { FailurePolicy::Fail };
    let webhook = Arc::new(webhook(version, policy));
    runtime::block_on(admit(reply, phase, &[webhook]));
}

fn webhook(version: &str, failure_policy: FailurePolicy) -> Webhook {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [{
            "name": "w.example.com", "clientConfig": {"url": "https://w.example.com/"}, "sideEffects": "None",
            "admissionReviewVersions": [version], "reinvocationPolicy": "IfNeeded",
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
        }],
    });
    let read = harness::config::stored_webhooks(&configuration)
        .ok()
        .and_then(|webhooks| webhooks.into_iter().next());
    Webhook { failure_policy, ..read.unwrap_or_else(|| panic!("{configuration} is valid")) }
}

async fn admit(reply: Reply, phase: Phase, webhooks: &[Arc<Webhook>]) {
    let object = documents::object("Pod").unwrap_or_else(|| panic!("there is a Pod in documents.yaml"));
    let request = FIXTURE.create(object, "default", UserInfo::default());
    let request = request.unwrap_or_else(|status| panic!("{}", status.message));
    let before = request.object.clone();
    let given = reply.body.len();
    let mut run = FIXTURE.run(request);
    let mutating = if phase == Phase::Mutating { webhooks } else { &[] };
    let validating = if phase == Phase::Mutating { &[] } else { webhooks };
    let chain = DispatchContext {
        mutating: Some(Webhooks::Listed(mutating)),
        validating: Some(Webhooks::Listed(validating)),
        mutating_policies: None,
        validating_policies: None,
        plugins: &[],
        last: &[],
        started: Instant::now(),
        deadline: None,
        trace: None,
        metrics: None,
    };
    let dispatcher = Dispatcher::new(Answering(reply));
    let mut done = dispatcher.mutate(&mut run, &chain).await;
    if done.is_ok() {
        done = dispatcher.validate(&mut run, &chain).await;
    }
    match &done {
        Ok(()) => {}
        Err(Rejection::Status(status)) => {
            // The webhook may choose any code from 400 on.
            assert!(status.code >= 400, "a refusal with {}: {}", status.code, status.message);
            assert!(!status.message.is_empty());
        }
        Err(Rejection::Unsupported(unsupported)) => assert!(!unsupported.to_string().is_empty()),
    }
    let is_patched = run.record.calls().any(|called| {
        matches!(&called.result, CallResult::Allowed { patch: Some(patch), .. } if !patch.is_empty())
    });
    assert!(run.record.calls().count() > 0, "the webhook is called");
    let annotations = audit::annotations(&run.record);
    for header in warnings::headers(&run.record) {
        assert!(http::HeaderValue::from_str(&header).is_ok(), "{header:?} is no header");
        assert!(warnings::decode(&header).is_some(), "{header:?} is no warning");
    }
    let object = run.take_object();
    if !is_patched {
        assert_eq!(object, before, "changed without a patch");
    }
    let length = |value: &Value| value.to_string().len();
    let longest = MAX_LENGTH + 64 * given;
    assert!(object.as_ref().map_or(0, length) + length(&json!(annotations)) < longest, "unbounded");
}
