//! Sends the request of a review to a real server, and returns the review that the server sends to a webhook.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use fake_webhooks::{Authority, Fake, FakeWebhook};
use harness::verify::corpus;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::requests::{ProbeNamespace, before, collection, impersonation, request, text};
use super::sent::{RecordedReviews, SentReview, everything, observer};
use crate::case::Kind;
use crate::names::Names;
use crate::server::{Server, configurations};
use crate::server_error::ServerError;
use crate::transport::{Answer, Message};

/// A real server with webhooks that are called for all requests.
pub(super) struct RealServer<'a> {
    server: &'a Server,
    seen: RecordedReviews,
    /// The running webhooks. They stop when this value is dropped.
    _webhooks: [FakeWebhook; 2],
    number: AtomicUsize,
}

/// The maximum number of attempts for a request that conflicts with another client.
const ATTEMPTS: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(30);
const CONFLICTS: [&str; 2] = ["Operation cannot be fulfilled", "not found"];

impl<'a> RealServer<'a> {
    pub(super) async fn start(server: &'a Server) -> Result<Self, ServerError> {
        let seen = RecordedReviews::default();
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
            "value": 1000});
        server.make("/apis/scheduling.k8s.io/v1/priorityclasses", class).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "everybody"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}],
        });
        server.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await?;
        let webhooks =
            [webhook(server, Kind::Mutating, &seen).await?, webhook(server, Kind::Validating, &seen).await?];
        server.settle(&Names::random(), &[Kind::Mutating, Kind::Validating], 0).await?;
        Ok(Self { server, seen, _webhooks: webhooks, number: AtomicUsize::new(0) })
    }

    /// Sends the request of the review `sent`, and returns the `request` of the server's own review.
    ///
    /// # Errors
    /// Returns the server's answer if the server does not send a review.
    pub(super) async fn replay(&self, sent: &SentReview) -> Result<Value, String> {
        let mut tried = self.try_to_replay(sent).await;
        for _ in 1..ATTEMPTS {
            // The server's own controllers write definitions and finish deletions, and are sometimes faster.
            if tried.as_ref().is_err_and(|reason| CONFLICTS.iter().any(|it| reason.contains(it))) {
                tried = self.try_to_replay(sent).await;
            }
        }
        tried
    }

    async fn try_to_replay(&self, sent: &SentReview) -> Result<Value, String> {
        let place = self.place().await.map_err(|error| error.to_string())?;
        let review = place.moved_in(&sent.request);
        let sends = |seen: &SentReview| {
            let of = |name: &str| seen.request[name] == review[name];
            seen.kind == sent.kind
                && ["operation", "resource", "subResource"].into_iter().all(of)
                && seen.request["userInfo"]["username"] == review["userInfo"]["username"]
        };
        let answer = self.answer(&review).await;
        let found = self.seen().iter().rev().find(|seen| sends(seen)).cloned();
        self.tidy(&review).await;
        let found =
            found.ok_or_else(|| answer.err().unwrap_or_else(|| "the server calls no webhook".to_owned()))?;
        Ok(place.moved_back(&found.request))
    }

    /// Sends the request after creating all objects that it needs, and waits for the answer.
    ///
    /// # Errors
    /// Returns the server's message if it rejects the request, or an object that it needs.
    async fn answer(&self, review: &Value) -> Result<(), String> {
        let stored = self.prepare(review).await?;
        self.seen().clear();
        let answer = self.ask(request(review, stored.as_ref())).await?;
        let refused = || format!("the server refuses the request: {}", answer.recorded());
        if answer.is_success() { Ok(()) } else { Err(refused()) }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<SentReview>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, message: Message) -> Result<Answer, String> {
        self.server.ask(message).await.map_err(|error| error.to_string())
    }

    /// Creates a new namespace for a review, so that reviews do not conflict.
    async fn place(&self) -> Result<ProbeNamespace, ServerError> {
        let namespace = format!("{}-{}", corpus::NAMESPACE, self.number.fetch_add(1, Ordering::Relaxed));
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        self.server.make("/api/v1/namespaces", object).await?;
        for name in ["default", "builder"] {
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
            self.server.make(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), account).await?;
        }
        Ok(ProbeNamespace { namespace })
    }

    /// Creates the objects that must exist before the request.
    async fn prepare(&self, review: &Value) -> Result<Option<Value>, String> {
        let Some(mut object) = before(review) else { return Ok(None) };
        let (collection, by) = (collection(review), impersonation(&review["userInfo"]));
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        let message = |method, path: &str, body: &Value| Message {
            headers: by.clone(),
            ..Message::new(method, path, Some(body.clone()))
        };
        // Ephemeral containers can be added to a Pod only through the subresource.
        let ephemeral = object["spec"].as_object_mut().and_then(|spec| spec.remove("ephemeralContainers"));
        let mut answer = self.ask(message(Method::POST, &collection, &object)).await?;
        if answer.status == 409 {
            // The object already exists, for example a namespace that every server has.
            let known = self.ask(Message::new(Method::GET, &path, None)).await?;
            object["metadata"]["resourceVersion"] = known.body["metadata"]["resourceVersion"].clone();
            answer = self.ask(message(Method::PUT, &path, &object)).await?;
        }
        if !answer.is_success() {
            return Err(format!("the old object cannot be made: {}", answer.body["message"]));
        }
        if let Some(containers) = ephemeral {
            let mut with_containers = answer.body.clone();
            with_containers["spec"]["ephemeralContainers"] = containers;
            let path = format!("{path}/ephemeralcontainers");
            answer = self.ask(message(Method::PUT, &path, &with_containers)).await?;
            if !answer.is_success() {
                return Err(format!("the old object cannot be made: {}", answer.body["message"]));
            }
        }
        if object["status"].as_object().is_some_and(|status| !status.is_empty()) {
            let mut with_status = answer.body.clone();
            with_status["status"] = object["status"].take();
            let changed = self.ask(message(Method::PUT, &format!("{path}/status"), &with_status)).await?;
            if changed.is_success() {
                answer = changed;
            }
        }
        if object["kind"] == "CustomResourceDefinition" {
            let established = json!({"type": "Established", "status": "True"});
            answer = self.wait_for_condition(&path, &established).await?;
        }
        if review["oldObject"]["metadata"]["deletionTimestamp"].is_string() {
            let options =
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
            self.ask(message(Method::DELETE, &path, &options)).await?;
            answer = if object["kind"] == "CustomResourceDefinition" {
                // The server stops writing once it has deleted the custom resources.
                let cleaned_up = json!({"type": "Terminating", "status": "False"});
                self.wait_for_condition(&path, &cleaned_up).await?
            } else {
                self.ask(Message::new(Method::GET, &path, None)).await?
            };
        }
        Ok(Some(answer.body))
    }

    /// Waits until an object has a condition with the wanted type and status, and returns the object.
    async fn wait_for_condition(&self, path: &str, wanted: &Value) -> Result<Answer, String> {
        let started = Instant::now();
        loop {
            let answer = self.ask(Message::new(Method::GET, path, None)).await?;
            let mut conditions = answer.body["status"]["conditions"].as_array().into_iter().flatten();
            if conditions.any(|it| it["type"] == wanted["type"] && it["status"] == wanted["status"]) {
                return Ok(answer);
            }
            if started.elapsed() > TIMEOUT {
                return Err(format!("{path} has no condition {wanted}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn exists(&self, path: &str) -> bool {
        self.server.ask(Message::new(Method::GET, path, None)).await.is_ok_and(|answer| answer.is_success())
    }

    /// Deletes cluster-scoped objects and Services. Their names or addresses would conflict with the next review.
    async fn tidy(&self, review: &Value) {
        // The deletion of a collection contains no name.
        let old = text(review, "/oldObject/metadata/name");
        let name = if text(review, "/name").is_empty() { old } else { text(review, "/name") };
        let is_in_the_way = text(review, "/namespace").is_empty()
            || ["namespaces", "services"].contains(&text(review, "/resource/resource"));
        if name.is_empty() || !is_in_the_way {
            return;
        }
        let path = format!("{}/{name}", collection(review));
        let unbound = json!({"metadata": {"finalizers": null}});
        let mut message = Message::new(Method::PATCH, &path, Some(unbound));
        message.content_type = "application/merge-patch+json";
        drop(self.server.ask(message.clone()).await);
        drop(self.server.ask(Message::new(Method::DELETE, &path, None)).await);
        let started = Instant::now();
        while self.exists(&path).await && started.elapsed() < TIMEOUT {
            drop(self.server.ask(message.clone()).await);
            if text(review, "/resource/resource") == "namespaces" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if text(review, "/resource/resource") == "namespaces" {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}});
            drop(self.server.ask(Message::new(Method::PUT, format!("{path}/finalize"), Some(object))).await);
        }
    }
}

async fn webhook(server: &Server, kind: Kind, seen: &RecordedReviews) -> Result<FakeWebhook, ServerError> {
    let observer = observer(kind, seen);
    let authority = Authority::Shared(Arc::clone(&server.authority));
    let fake = FakeWebhook::start(Fake { observer, authority, ..Fake::default() }).await?;
    server.make(&configurations(kind), everything(kind, &fake.url(), fake.ca_bundle())).await?;
    Ok(fake)
}
