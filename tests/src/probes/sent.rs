//! Records the reviews that the probes of a check send.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Behavior, Fake, FakeWebhook, Observer};
use harness::attributes::{GroupVersionKind, UserInfo};
use harness::client::NoServices;
use harness::server::ClusterFixture;
use harness::verify::{Check, Environment, Plan, Subject, corpus};
use serde_json::{Value, json};

use super::differences::comparable;
use crate::case::Kind;
use crate::server::configuration_kind;
use crate::server_error::ServerError;

/// The number of objects of each kind for which a check runs.
const OF_A_KIND: usize = 1;
/// The number of Pods for which a check runs. Pods vary more than other objects.
const PODS: usize = 4;
/// The maximum number of reviews of one check to compare for the same operation on the same kind.
const ALIKE: usize = 4;

/// A review that a probe sent.
#[derive(Clone, Debug)]
pub(super) struct SentReview {
    /// The kind of the webhook.
    pub(super) kind: Kind,
    /// The `request` of the review.
    pub(super) request: Value,
}

/// The reviews that webhooks have received.
pub(super) type RecordedReviews = Arc<Mutex<Vec<SentReview>>>;

/// Returns reviews that `check` sends to webhooks that match everything, a few for each operation and kind.
pub(super) async fn sent_reviews(check: &'static Check) -> Result<Vec<SentReview>, ServerError> {
    let seen = RecordedReviews::default();
    let mutating = webhook(Kind::Mutating, labeling(), &seen).await?;
    let validating = webhook(Kind::Validating, Behavior::default(), &seen).await?;
    let configurations = [mutating.1, validating.1];
    let subjects =
        Subject::from_configurations(&configurations).unwrap_or_else(|error| unreachable!("{error}"));
    let groups = ["system:masters", "system:authenticated"].map(str::to_owned).to_vec();
    let user = UserInfo { username: "admit-verify".to_owned(), groups, ..UserInfo::default() };
    let namespaces = corpus::namespaces(&subjects);
    let mut environment = Environment::new(Arc::new(NoServices), ClusterFixture::new(&namespaces), user);
    corpus::NAMESPACE.clone_into(&mut environment.namespace);
    let objects = objects(&subjects, &environment);
    let plan = Plan::new(environment, subjects, [check]);
    let report = harness::verify::run(plan, objects.into_iter().map(Ok::<_, Infallible>)).await;
    report.unwrap_or_else(|never| match never {});
    drop((mutating.0, validating.0));
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(a_few(seen))
}

/// Returns a behavior that sets a label, because most probes check the effect of a mutation.
fn labeling() -> Behavior {
    let change = json!({"always-mutate": {"labels": {"probed": "yes"}}});
    serde_json::from_value(change).unwrap_or_else(|error| unreachable!("{error}"))
}

fn objects(subjects: &[Subject], environment: &Environment) -> Vec<Value> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let built_in = corpus::built_in(subjects, &[], environment, corpus::Extent::Whole);
    let is_wanted = |object: &Value| {
        let kind = GroupVersionKind::from_object(object);
        let count = counts.entry(kind.to_string()).or_default();
        *count += 1;
        *count <= if kind.kind == "Pod" { PODS } else { OF_A_KIND }
    };
    built_in.filter(is_wanted).collect()
}

async fn webhook(
    kind: Kind,
    behavior: Behavior,
    seen: &RecordedReviews,
) -> Result<(FakeWebhook, Value), ServerError> {
    let observer = observer(kind, seen);
    let fake = FakeWebhook::start(Fake { behavior, observer, ..Fake::default() }).await?;
    let configuration = everything(kind, &fake.url(), fake.ca_bundle());
    Ok((fake, configuration))
}

/// Returns an observer that adds the reviews of a webhook of this kind to `seen`.
pub(super) fn observer(kind: Kind, seen: &RecordedReviews) -> Observer {
    let seen = Arc::clone(seen);
    Observer::new(move |entry| {
        let request = entry.review().map(|mut review| review["request"].take());
        if let Some(request) = request.filter(Value::is_object) {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(SentReview { kind, request });
        }
    })
}

/// Returns the configuration of a webhook that is called for everything.
pub(super) fn everything(kind: Kind, url: &str, ca_bundle: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": configuration_kind(kind).0,
        "metadata": {"name": "everything"}, "webhooks": [{
            "name": "everything.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": STANDARD.encode(ca_bundle)},
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
            "failurePolicy": "Ignore", "timeoutSeconds": 10,
        }],
    })
}

/// Selects a few distinct reviews for each operation on each kind.
fn a_few(seen: Vec<SentReview>) -> Vec<SentReview> {
    let mut known = BTreeSet::new();
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    let is_new = |sent: &SentReview| {
        if !known.insert((sent.kind, comparable(&sent.request).to_string())) {
            return false;
        }
        let count = alike.entry(sent.to_string()).or_default();
        *count += 1;
        *count <= ALIKE
    };
    seen.into_iter().filter(is_new).collect()
}

/// Formats the operation, the kind, and other fields that distinguish the review.
impl fmt::Display for SentReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |pointer: &str| self.request.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        write!(f, "{:?} {} {}", self.kind, text("/operation"), text("/resource/resource"))?;
        if !text("/subResource").is_empty() {
            write!(f, "/{}", text("/subResource"))?;
        }
        if self.request["dryRun"] == true {
            f.write_str(", dry run")?;
        }
        Ok(())
    }
}
