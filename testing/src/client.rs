//! Records the requests of the test client.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::TryFutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, Request, Response};
use kube::client::Body;
use tower::Service;
use uuid::Uuid;

use crate::record::{Recorder, SentRequest};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Adds an `Audit-ID` and a `traceparent` to requests, records the requests, and forwards them to `inner`.
#[derive(Clone, Debug)]
pub(crate) struct Recording<S> {
    pub(crate) inner: S,
    pub(crate) recorder: Arc<Recorder>,
}

impl<S, B> Service<Request<Body>> for Recording<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (audit_id, trace_id) = (Uuid::new_v4().to_string(), Uuid::new_v4().simple().to_string());
        let traceparent = traceparent(&trace_id);
        for (name, value) in [(AUDIT_ID, &audit_id), (TRACEPARENT, &traceparent)] {
            if let Ok(value) = HeaderValue::from_str(value) {
                request.headers_mut().insert(name, value);
            }
        }
        let place = self.recorder.sent(SentRequest {
            method: request.method().clone(),
            path: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            status: None,
            audit_id,
            trace_id,
        });
        let recorder = Arc::clone(&self.recorder);
        Box::pin(
            self.inner.call(request).inspect_ok(move |response| recorder.answered(place, response.status())),
        )
    }
}

/// Formats a `traceparent` with an arbitrary parent ID and without the sampled flag.
///
/// Source: W3C Trace Context, `traceparent`.
fn traceparent(trace_id: &str) -> String {
    format!("00-{trace_id}-0000000000000001-00")
}

/// Returns the trace ID in the `traceparent` header of a request.
pub(crate) fn trace_id(headers: &http::HeaderMap) -> Option<String> {
    let header = headers.get(TRACEPARENT)?.to_str().ok()?;
    header.split('-').nth(1).map(str::to_owned)
}
