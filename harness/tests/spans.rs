//! Tests the spans of a request that a `tracing` subscriber receives.
//!
//! The subscriber is global, so this file has only one test.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

use std::sync::{Arc, Mutex};

use harness::chain::{Chain, Request};
use harness::server::Options;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// The name of a span, the name of its parent, and its fields and events.
type RecordedSpan = (String, String, Vec<String>);

#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<RecordedSpan>>>);

/// Collects the fields of a span or event as `NAME=VALUE`.
struct FieldCollector<'a>(&'a mut Vec<String>);

impl Visit for FieldCollector<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push(format!("{field}={value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map_or("", |parent| parent.name());
        let mut told = Vec::new();
        attributes.record(&mut FieldCollector(&mut told));
        self.0.lock().unwrap().push((span.name().to_owned(), parent.to_owned(), told));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut spans = self.0.lock().unwrap();
        if let Some((_, _, told)) = spans.iter_mut().find(|(name, ..)| name == span.name()) {
            event.record(&mut FieldCollector(told));
        }
    }
}

#[tokio::test]
async fn request_span_contains_operation_and_call_spans() {
    let chain = Chain::new(Options::default());
    // Nothing listens on port 1.
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nobody"},
        "webhooks": [{
            "name": "nobody.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    chain.put(configuration).unwrap();
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    });
    let sent = chain.send(&Request::create(pod)).await.unwrap();
    assert_eq!(sent.code, 201);
    let spans = spans.0.lock().unwrap();
    let ours: Vec<_> = spans
        .iter()
        .filter(|(name, ..)| {
            ["KubernetesAPI", "Create", "Call validating webhook", "HTTP POST"].contains(&name.as_str())
        })
        .collect();
    let nested: Vec<_> = ours.iter().map(|(name, parent, _)| (name.as_str(), parent.as_str())).collect();
    assert_eq!(
        nested,
        [
            ("KubernetesAPI", ""),
            ("Create", "KubernetesAPI"),
            ("Call validating webhook", "Create"),
            ("HTTP POST", "Call validating webhook"),
        ]
    );
    let told = |index: usize| ours[index].2.join(" ");
    assert!(
        told(0).starts_with("otel.name=\"POST /api/v1/namespaces/{:namespace}/pods\" otel.kind=\"server\"")
    );
    for step in
        ["limitedReadBody succeeded", "Write to database call succeeded", "Writing http response done"]
    {
        assert!(told(1).contains(&format!("message={step}")), "{}", told(1));
    }
    let call = sent.calls().next().unwrap();
    assert_eq!(
        told(2),
        format!(
            "configuration=\"nobody\" webhook=\"nobody.example.com\" resource=/v1, Resource=pods subresource=\"\" \
             operation=\"CREATE\" UID=\"{}\"",
            call.uid
        )
    );
    assert!(told(3).contains("url.full=\"https://127.0.0.1:1/?timeout=10s\""), "{}", told(3));
}
