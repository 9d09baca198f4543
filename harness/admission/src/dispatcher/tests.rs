//! Tests the dispatcher with in-memory webhooks: rounds, failures, rejections, and the record.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::attributes::{Attributes, Operation};
use crate::audit;
use crate::caller::{Call, CallError, Reply};
use crate::config::{FailurePolicy, ReinvocationPolicy, SideEffects, WebhookTarget};
use crate::ownership::TimePrecision;
use crate::testing::{NoCluster, create_config_map, webhook};

/// How an in-memory webhook answers a review.
enum Answer {
    Allow,
    Deny,
    /// A denial whose response does not have a `uid`.
    MalformedDenial,
    Patch(Value),
    /// A response with these bytes as its patch.
    RawPatch(&'static str),
    /// The given answer, after a delay in milliseconds.
    After(u64, Box<Answer>),
    Refused,
}

impl Answer {
    fn response(&self, uid: &Value) -> Result<Value, CallError> {
        let patch = |bytes: &[u8]| json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(bytes)});
        Ok(match self {
            Self::Allow => {
                json!({"uid": uid, "allowed": true, "warnings": ["w"], "auditAnnotations": {"k": "v"}})
            }
            Self::Deny => json!({"uid": uid, "allowed": false, "status": {"message": "no", "code": 403}}),
            Self::MalformedDenial => json!({"allowed": false}),
            Self::Patch(operations) => patch(operations.to_string().as_bytes()),
            Self::RawPatch(text) => patch(text.as_bytes()),
            Self::After(_, answer) => answer.response(uid)?,
            Self::Refused => return Err(CallError::Transport("connection refused".to_owned())),
        })
    }
}

/// In-memory webhooks whose answers depend on the webhook's name and the number of its earlier calls.
struct InMemory<F> {
    answer: F,
    calls: Mutex<Vec<(String, Value)>>,
}

impl<F: Fn(&str, usize) -> Answer + Send + Sync> Caller for &InMemory<F> {
    async fn call(&self, call: Call<'_>) -> Result<Reply, CallError> {
        let WebhookTarget::Url(url) = &call.client_config.target else { unreachable!("only URLs here") };
        let name = url.trim_start_matches("https://").trim_end_matches('/').to_owned();
        let review: Value = serde_json::from_slice(&call.body).unwrap();
        let uid = review["request"]["uid"].clone();
        let before = {
            let mut calls = self.calls.lock().unwrap();
            let before = calls.iter().filter(|(called, _)| *called == name).count();
            calls.push((name.clone(), review));
            before
        };
        let answer = (self.answer)(&name, before);
        if let Answer::After(millis, _) = answer {
            let answered = tokio::time::sleep(Duration::from_millis(millis));
            tokio::time::timeout(call.timeout, answered)
                .await
                .map_err(|_elapsed| CallError::Transport("context deadline exceeded".to_owned()))?;
        }
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": answer.response(&uid)?,
        });
        Ok(Reply { status: 200, content_type: None, body: review.to_string().into() })
    }
}

/// The request, plugins, and deadline of a test.
struct Run {
    attributes: Attributes,
    plugins: Vec<&'static dyn Plugin>,
    deadline: Option<Duration>,
}

/// The result of a test run.
struct Outcome {
    result: Result<(), Rejection>,
    attributes: Attributes,
    record: Record,
    calls: Vec<(String, Value)>,
}

impl Outcome {
    fn called(&self) -> Vec<&str> {
        self.calls.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn message(&self) -> &str {
        match &self.result {
            Ok(()) => "",
            Err(Rejection::Status(status)) => &status.message,
            Err(Rejection::Unsupported(unsupported)) => &unsupported.what,
        }
    }

    fn code(&self) -> i32 {
        match &self.result {
            Err(Rejection::Status(status)) => status.code,
            Ok(()) | Err(Rejection::Unsupported(_)) => 0,
        }
    }

    fn annotations(&self) -> Vec<(String, String)> {
        audit::annotations(&self.record).into_iter().collect()
    }
}

impl Default for Run {
    fn default() -> Self {
        Self { attributes: create_config_map(), plugins: Vec::new(), deadline: None }
    }
}

impl Run {
    async fn through(
        self,
        phase: Phase,
        webhooks: &[Webhook],
        answer: impl Fn(&str, usize) -> Answer + Send + Sync,
    ) -> Outcome {
        let Self { attributes, plugins, deadline } = self;
        let caller = InMemory { answer, calls: Mutex::default() };
        let dispatcher = Dispatcher::new(&caller);
        let started = Instant::now();
        let webhooks: Vec<_> = webhooks.iter().cloned().map(Arc::new).collect();
        let (mutating, validating): (&[Arc<Webhook>], &[Arc<Webhook>]) = match phase {
            Phase::Mutating => (&webhooks, &[]),
            Phase::Validating => (&[], &webhooks),
        };
        let chain = DispatchContext {
            mutating: Some(Webhooks::Listed(mutating)),
            validating: Some(Webhooks::Listed(validating)),
            mutating_policies: None,
            validating_policies: None,
            plugins: &plugins,
            last: &[],
            started,
            deadline: deadline.map(|deadline| started + deadline),
            trace: None,
            metrics: None,
        };
        let times = TimePrecision::for_request(&attributes, true);
        let mut run = AdmissionRun::new(attributes, times, &NoCluster);
        let result = match phase {
            Phase::Mutating => dispatcher.mutate(&mut run, &chain).await,
            Phase::Validating => dispatcher.validate(&mut run, &chain).await,
        };
        let calls = caller.calls.lock().unwrap().clone();
        let attributes = run.attributes().clone();
        Outcome { result, attributes, record: run.record, calls }
    }
}

fn named(name: &str) -> Webhook {
    webhook(name)
}

fn if_needed(name: &str) -> Webhook {
    Webhook { reinvocation_policy: ReinvocationPolicy::IfNeeded, ..webhook(name) }
}

fn ignoring(name: &str) -> Webhook {
    Webhook { failure_policy: FailurePolicy::Ignore, ..webhook(name) }
}

fn set(key: &str, value: impl Into<Value>) -> Answer {
    Answer::Patch(json!([{"op": "add", "path": format!("/data/{key}"), "value": value.into()}]))
}

/// A plugin that copies the field `data.a` to `data.copy`.
struct Copies;

impl Plugin for Copies {
    fn name(&self) -> &'static str {
        "Copies"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        if let Some(data) = attributes.object.as_mut().and_then(|object| object.get_mut("data"))
            && let Some(a) = data.get("a").cloned()
        {
            data["copy"] = a;
        }
        Ok(())
    }
}

#[track_caller]
fn check_calls(outcome: &Outcome, expect: &[&str]) {
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(outcome.called(), expect);
}

#[tokio::test]
async fn no_webhook_is_called_again_if_the_object_did_not_change() {
    let webhooks = [if_needed("a"), if_needed("b")];
    let outcome = Run::default().through(Phase::Mutating, &webhooks, |_, _| Answer::Allow).await;
    check_calls(&outcome, &["a", "b"]);
}

#[tokio::test]
async fn in_tree_plugins_run_again_after_a_webhook_changed_the_object() {
    let run = Run { plugins: vec![&Copies], ..Run::default() };
    let outcome = run.through(Phase::Mutating, &[named("a")], |_, _| set("a", "1")).await;
    check_calls(&outcome, &["a"]);
    assert_eq!(outcome.attributes.object.unwrap()["data"]["copy"], "1");
}

#[tokio::test]
async fn a_webhook_is_called_again_after_an_in_tree_plugin_changed_its_result() {
    let run = Run { plugins: vec![&Copies], ..Run::default() };
    let outcome = run.through(Phase::Mutating, &[if_needed("a")], |_, _| set("a", "1")).await;
    check_calls(&outcome, &["a", "a"]);
    assert_eq!(outcome.calls[1].1["request"]["object"]["data"]["copy"], "1");
    assert_ne!(outcome.calls[0].1["request"]["uid"], outcome.calls[1].1["request"]["uid"]);
}

#[tokio::test]
async fn only_webhooks_before_a_change_are_called_again() {
    let webhooks = [if_needed("a"), named("b"), if_needed("c")];
    let answer = |name: &str, before| match (name, before) {
        ("b", _) => set("b", "1"),
        _ => Answer::Allow,
    };
    let outcome = Run::default().through(Phase::Mutating, &webhooks, answer).await;
    check_calls(&outcome, &["a", "b", "c", "a"]);
}

#[tokio::test]
async fn several_webhooks_are_all_called_again_when_each_changes_the_object() {
    let webhooks = [if_needed("a"), if_needed("b"), if_needed("c")];
    let answer = |name: &str, before: usize| set(name, before.to_string());
    let outcome = Run::default().through(Phase::Mutating, &webhooks, answer).await;
    check_calls(&outcome, &["a", "b", "c", "a", "b", "c"]);
}

#[tokio::test]
async fn a_webhook_that_never_reinvokes_is_called_once() {
    let webhooks = [named("a"), named("b")];
    let outcome = Run::default().through(Phase::Mutating, &webhooks, |name, _| set(name, "1")).await;
    check_calls(&outcome, &["a", "b"]);
}

#[tokio::test]
async fn a_call_that_failed_open_counts_as_called() {
    let first = Webhook { reinvocation_policy: ReinvocationPolicy::IfNeeded, ..ignoring("a") };
    let answer = |name: &str, _| if name == "a" { Answer::Refused } else { set("b", "1") };
    let outcome = Run::default().through(Phase::Mutating, &[first, named("b")], answer).await;
    check_calls(&outcome, &["a", "b", "a"]);
    let keys: Vec<String> = outcome.annotations().into_iter().map(|(key, _)| key).collect();
    assert!(
        keys.contains(&"failed-open.mutation.webhook.admission.k8s.io/round_1_index_0".to_owned()),
        "{keys:?}"
    );
}

#[tokio::test]
async fn a_denial_ends_the_mutating_phase() {
    let answer = |name: &str, _| if name == "b" { Answer::Deny } else { Answer::Allow };
    let webhooks = [named("a"), ignoring("b"), named("c")];
    let outcome = Run::default().through(Phase::Mutating, &webhooks, answer).await;
    assert_eq!(outcome.called(), ["a", "b"]);
    assert_eq!((outcome.code(), outcome.message()), (403, r#"admission webhook "b" denied the request: no"#));
    assert!(outcome.annotations().contains(&("a/k".to_owned(), "v".to_owned())));
}

#[tokio::test]
async fn a_malformed_denial_is_ignored_by_a_webhook_that_ignores_failures() {
    let outcome =
        Run::default().through(Phase::Mutating, &[ignoring("a")], |_, _| Answer::MalformedDenial).await;
    check_calls(&outcome, &["a"]);
    let outcome =
        Run::default().through(Phase::Mutating, &[named("a")], |_, _| Answer::MalformedDenial).await;
    assert_eq!(outcome.code(), 500);
    assert!(outcome.message().starts_with(
        "Internal error occurred: failed calling webhook \"a\": received invalid webhook response: expected response.uid="
    ));
}

#[tokio::test]
async fn a_patch_on_a_delete_is_an_error_whatever_the_failure_policy() {
    let attributes = Attributes {
        operation: Operation::Delete,
        old_object: create_config_map().object,
        object: None,
        ..create_config_map()
    };
    let run = Run { attributes, ..Run::default() };
    let outcome = run.through(Phase::Mutating, &[ignoring("a")], |_, _| set("a", "1")).await;
    let text = "Internal error occurred: admission webhook \"a\" attempted to modify the object, which is not supported for \
                this operation";
    assert_eq!((outcome.code(), outcome.message()), (500, text));
}

#[tokio::test]
async fn an_undecodable_patch_obeys_the_failure_policy_and_one_that_does_not_apply_does_not() {
    let undecodable = |_: &str, _| Answer::RawPatch("{}");
    let outcome = Run::default().through(Phase::Mutating, &[ignoring("a")], undecodable).await;
    check_calls(&outcome, &["a"]);
    let outcome = Run::default().through(Phase::Mutating, &[named("a")], undecodable).await;
    assert!(
        outcome
            .message()
            .contains("\"a\": received undecodable patch in webhook response: json: cannot unmarshal object"),
        "{}",
        outcome.message()
    );
    let inapplicable = |_: &str, _| Answer::Patch(json!([{"op": "remove", "path": "/nowhere"}]));
    let outcome = Run::default().through(Phase::Mutating, &[ignoring("a")], inapplicable).await;
    assert_eq!(outcome.code(), 500);
    assert!(outcome.message().starts_with("Internal error occurred: "), "{}", outcome.message());
    assert!(outcome.message().contains("nonexistent key"), "{}", outcome.message());
}

#[tokio::test]
async fn an_empty_patch_counts_as_no_patch() {
    for text in ["[]", "null"] {
        let outcome =
            Run::default().through(Phase::Mutating, &[named("a")], |_, _| Answer::RawPatch(text)).await;
        assert_eq!(outcome.annotations().len(), 1);
        assert!(outcome.annotations()[0].1.ends_with("\"mutated\":false}"));
    }
}

#[tokio::test]
async fn a_dry_run_is_rejected_without_calling_a_webhook_that_does_not_support_it() {
    let attributes = Attributes { dry_run: true, ..create_config_map() };
    for phase in [Phase::Mutating, Phase::Validating] {
        let webhooks = [Webhook { side_effects: SideEffects::Some, ..ignoring("a") }];
        let run = Run { attributes: attributes.clone(), ..Run::default() };
        let outcome = run.through(phase, &webhooks, |_, _| Answer::Allow).await;
        assert_eq!(outcome.calls.len(), 0);
        assert_eq!(
            (outcome.code(), outcome.message()),
            (400, r#"admission webhook "a" does not support dry run"#)
        );
    }
}

#[tokio::test]
async fn side_effects_matter_only_on_dry_runs() {
    for (dry_run, side_effects) in [
        (false, SideEffects::Some),
        (false, SideEffects::Unset),
        (true, SideEffects::None),
        (true, SideEffects::NoneOnDryRun),
    ] {
        let attributes = Attributes { dry_run, ..create_config_map() };
        let run = Run { attributes, ..Run::default() };
        let webhook = Webhook { side_effects, ..named("a") };
        let outcome = run.through(Phase::Mutating, &[webhook], |_, _| Answer::Allow).await;
        assert_eq!((outcome.called(), outcome.message()), (vec!["a"], ""), "{dry_run} {side_effects:?}");
    }
}

#[tokio::test]
async fn indices_count_all_mutating_webhooks_but_only_matching_validating_ones() {
    let unmatched = Webhook { rules: Vec::new(), ..webhook("a") };
    let webhooks = [unmatched, ignoring("b")];
    let outcome = Run::default().through(Phase::Mutating, &webhooks, |_, _| Answer::Refused).await;
    assert_eq!(outcome.annotations()[0].0, "failed-open.mutation.webhook.admission.k8s.io/round_0_index_1");
    let outcome = Run::default().through(Phase::Validating, &webhooks, |_, _| Answer::Refused).await;
    assert_eq!(outcome.annotations()[0].0, "failed-open.validating.webhook.admission.k8s.io/round_0_index_0");
}

#[tokio::test]
async fn only_the_first_patch_of_a_new_built_in_object_always_counts_as_a_change() {
    let same = |_: &str, _| Answer::Patch(json!([{"op": "replace", "path": "/data/k", "value": "v"}]));
    let outcome = Run::default().through(Phase::Mutating, &[if_needed("a"), if_needed("b")], same).await;
    check_calls(&outcome, &["a", "b"]);
    let mutated = |outcome: &Outcome| -> Vec<bool> {
        outcome
            .annotations()
            .iter()
            .filter(|(key, _)| key.starts_with("mutation."))
            .map(|(_, value)| value.contains("\"mutated\":true"))
            .collect()
    };
    assert_eq!(mutated(&outcome), [true, false]);
    assert_eq!(outcome.attributes.object.as_ref().unwrap()["data"]["defaulted"], "yes");

    let unchanged = create_config_map();
    let attributes =
        Attributes { operation: Operation::Update, old_object: unchanged.object.clone(), ..unchanged };
    let run = Run { attributes, ..Run::default() };
    let outcome = run.through(Phase::Mutating, &[named("a")], same).await;
    assert_eq!(mutated(&outcome), [false]);
}

#[tokio::test(start_paused = true)]
async fn the_first_validating_webhook_to_reject_decides_after_all_finish() {
    let answer = |name: &str, _| match name {
        "a" => Answer::After(300, Box::new(Answer::Deny)),
        "b" => Answer::After(100, Box::new(Answer::Deny)),
        _ => Answer::After(5_000, Box::new(Answer::Allow)),
    };
    let webhooks = [named("a"), named("b"), named("c")];
    let begun = Instant::now();
    let outcome = Run::default().through(Phase::Validating, &webhooks, answer).await;
    assert_eq!(outcome.message(), r#"admission webhook "b" denied the request: no"#);
    assert_eq!(outcome.called(), ["a", "b", "c"]);
    assert_eq!(outcome.record.events.len(), 3);
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_patched_object_of_another_kind_is_rejected_at_the_end() {
    let to_secret = |_: &str, _| {
        Answer::Patch(json!([
            {"op": "replace", "path": "/kind", "value": "Secret"},
            {"op": "remove", "path": "/data"},
        ]))
    };
    let outcome = Run::default().through(Phase::Mutating, &[ignoring("a")], to_secret).await;
    assert_eq!(
        (outcome.code(), outcome.message()),
        (500, "converting (v1.Secret) to (core.ConfigMap): unknown conversion")
    );
    let to_v7 = |_: &str, _| Answer::Patch(json!([{"op": "replace", "path": "/apiVersion", "value": "v7"}]));
    let outcome = Run::default().through(Phase::Mutating, &[ignoring("a")], to_v7).await;
    assert_eq!(
        outcome.message(),
        "Internal error occurred: no kind \"ConfigMap\" is registered for version \"v7\" in scheme \
         \"pkg/runtime/scheme.go:111\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_webhook_timeout_is_limited_by_the_request_deadline() {
    let slow = |_: &str, _| Answer::After(60_000, Box::new(Answer::Allow));
    let run = Run { deadline: Some(Duration::from_secs(3)), ..Run::default() };
    let begun = Instant::now();
    let outcome = run.through(Phase::Mutating, &[ignoring("a"), named("b")], slow).await;
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert_eq!(outcome.called(), ["a"]);
    let text = "Timeout: request did not complete within requested timeout";
    assert_eq!((outcome.code(), outcome.message()), (504, text));

    let run = Run { deadline: Some(Duration::ZERO), ..Run::default() };
    let outcome = run.through(Phase::Validating, &[ignoring("a")], slow).await;
    assert_eq!((outcome.called(), outcome.message()), (vec![], text));
}

#[tokio::test]
async fn a_patch_with_too_many_operations_is_unsupported_under_any_failure_policy() {
    let nothing = json!({"op": "test", "path": "/data/a", "value": null});
    let answer = |_: &str, _| Answer::Patch(json!(vec![nothing.clone(); 10_001]));
    let outcome = Run::default().through(Phase::Mutating, &[ignoring("a")], answer).await;
    assert!(matches!(outcome.result, Err(Rejection::Unsupported(_))), "{:?}", outcome.result);
    assert_eq!(outcome.message(), "JSON patches with more than 10000 operations (10001)");
    assert_eq!(outcome.called(), ["a"]);
    assert_eq!(outcome.record.calls().count(), 1);
}

#[tokio::test]
async fn an_index_omits_skipped_webhooks_from_the_record_and_keeps_indices() {
    let mut other = named("other");
    for rule in &mut other.rules {
        rule.resources = vec!["pods".to_owned()];
    }
    let caller = InMemory { answer: |_: &str, _| Answer::Allow, calls: Mutex::default() };
    let index = WebhookIndex::new([other, named("a")].map(Arc::new).into());
    let [listed, indexed] = [Webhooks::Listed(index.webhooks()), Webhooks::Indexed(&index)];
    for (mutating, skipped) in [(listed, 1), (indexed, 0)] {
        let chain = DispatchContext {
            mutating: Some(mutating),
            validating: None,
            mutating_policies: None,
            validating_policies: None,
            plugins: &[],
            last: &[],
            started: Instant::now(),
            deadline: None,
            trace: None,
            metrics: None,
        };
        let mut run = AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &NoCluster);
        Dispatcher::new(&caller).mutate(&mut run, &chain).await.unwrap();
        assert_eq!(run.record.calls().map(|called| called.index).collect::<Vec<_>>(), [1]);
        assert_eq!(run.record.events.len(), 1 + skipped);
    }
}
