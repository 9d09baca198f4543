//! Monitors the spans of requests, and reports slow requests.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness::trace_log::{Detail, Fields, Logged, SpanIndex, TraceLog, threshold};
use jiff::{SignedDuration, Zoned};
use serde_json::Value;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

/// Collects the spans of each request, and reports a slow request when it ends.
pub(super) struct SlowRequests<T> {
    detail: Detail,
    tell: T,
}

/// An open span and the log of its request.
#[derive(Clone)]
struct Open {
    log: Arc<Mutex<TraceLog>>,
    began: Instant,
    span: SpanIndex,
}

impl Open {
    fn log(&self) -> MutexGuard<'_, TraceLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the span of the request started.
    fn now(&self) -> SignedDuration {
        self.began.elapsed().try_into().unwrap_or(SignedDuration::MAX)
    }

    /// Returns the innermost recorded span in `spans`.
    fn innermost<'a, R: LookupSpan<'a>>(mut spans: Scope<'a, R>) -> Option<Self> {
        spans.find_map(|span| span.extensions().get::<Self>().cloned())
    }
}

impl<T: Fn(&Logged) + 'static> SlowRequests<T> {
    pub(super) fn new(detail: Detail, tell: T) -> Self {
        Self { detail, tell }
    }

    /// Returns a layer that is enabled only for spans of requests, so that other spans are not created for it.
    pub(super) fn layer<S>(self) -> impl Layer<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
        T: Send + Sync,
    {
        self.with_filter(filter_fn(is_watched))
    }
}

/// The crates whose spans and events describe requests.
const TRACED: [&str; 3] = ["admission_webhook_client", "kubernetes_admission", "kubernetes_api_server"];

/// Returns whether a span or an event describes a request.
pub(in crate::serve) fn is_traced(metadata: &Metadata<'_>) -> bool {
    let origin = metadata.target().split("::").next().unwrap_or_default();
    TRACED.contains(&origin)
}

fn is_watched(metadata: &Metadata<'_>) -> bool {
    is_traced(metadata) && (metadata.is_event() || threshold(metadata.name()).is_some())
}

impl<S, T> Layer<S> for SlowRequests<T>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    T: Fn(&Logged) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let name = span.name();
        let Some(threshold) = threshold(name) else { return };
        let mut read = Read::default();
        attributes.record(&mut read);
        let (name, fields) = (name.to_owned(), read.fields);
        let open = if let Some(parent) = span.parent().and_then(|parent| Open::innermost(parent.scope())) {
            let now = parent.now();
            let nested = parent.log().nest(parent.span, now, name, fields, threshold);
            nested.map(|span| Open { span, ..parent })
        } else {
            let log = TraceLog::new(Zoned::now(), name, fields, threshold);
            let span = log.root();
            Some(Open { log: Arc::new(Mutex::new(log)), began: Instant::now(), span })
        };
        if let Some(open) = open {
            span.extensions_mut().insert(open);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(open) = context.event_scope(event).and_then(Open::innermost) else { return };
        let mut read = Read::default();
        event.record(&mut read);
        let now = open.now();
        open.log().step(open.span, now, read.message, read.fields);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(open) = context.span(&id).and_then(|span| span.extensions_mut().remove::<Open>()) else {
            return;
        };
        let now = open.now();
        let mut log = open.log();
        log.end(open.span, now);
        if open.span == log.root() {
            log.logged(self.detail).iter().for_each(&self.tell);
        }
    }
}

/// The message of an event, and the fields of a span or an event.
#[derive(Default)]
struct Read {
    message: String,
    fields: Fields,
}

impl Read {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.push((field.name().to_owned(), value.into()));
    }
}

impl Visit for Read {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        if field.name() == "message" {
            self.message = value;
        } else {
            self.add(field, value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }
}
