//! Records the requests of the test client and the webhook calls that they cause.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// A request of the test client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestTrace {
    /// The HTTP method.
    pub method: Method,
    /// The path and the query of the URL.
    pub path: String,
    /// The status of the response, or `None` if the request is in progress.
    pub status: Option<StatusCode>,
    /// The calls to webhooks under test that the request caused, in order of arrival.
    pub calls: Vec<Call>,
    /// The annotations of the request's audit event.
    pub annotations: BTreeMap<String, String>,
}

impl RequestTrace {
    /// Returns the calls to a URL path, such as `/mutate`.
    pub fn calls_to<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.path == path)
    }

    /// Returns the result of each call to a mutating webhook, including fakes, sorted by round and index.
    ///
    /// The results are from the audit annotations `mutation.webhook.admission.k8s.io/round_N_index_M` and
    /// `patch.webhook.admission.k8s.io/round_N_index_M`.
    pub fn mutations(&self) -> Vec<Mutation> {
        let annotations = self.annotations.iter();
        let mut found: Vec<Mutation> = annotations
            .filter_map(|(key, value)| {
                let place = key.strip_prefix("mutation.webhook.admission.k8s.io/")?;
                let (round, index) = place.strip_prefix("round_")?.split_once("_index_")?;
                let told: MutationAnnotation = serde_json::from_str(value).ok()?;
                let patch = self.annotations.get(&format!("patch.webhook.admission.k8s.io/{place}"));
                let patch = patch.and_then(|text| serde_json::from_str::<PatchAnnotation>(text).ok());
                Some(Mutation {
                    round: round.parse().ok()?,
                    index: index.parse().ok()?,
                    configuration: told.configuration,
                    webhook: told.webhook,
                    mutated: told.mutated,
                    patch: patch.map(|patched| patched.patch),
                })
            })
            .collect();
        found.sort_by_key(|mutation| (mutation.round, mutation.index));
        found
    }
}

/// The result of a call to a mutating webhook, as recorded in the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mutation {
    /// The round: 0, or 1 if the webhook was reinvoked.
    pub round: usize,
    /// The index of the webhook among all mutating webhooks.
    pub index: usize,
    /// The name of the webhook configuration.
    pub configuration: String,
    /// The name of the webhook.
    pub webhook: String,
    /// Whether the patch changed the object.
    pub mutated: bool,
    /// The JSON Patch, if any.
    pub patch: Option<Value>,
}

#[derive(Deserialize)]
struct MutationAnnotation {
    configuration: String,
    webhook: String,
    mutated: bool,
}

#[derive(Deserialize)]
struct PatchAnnotation {
    patch: Value,
}

/// A call to a webhook under test.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The Service of the webhook, as `NAMESPACE/NAME`.
    pub service: String,
    /// The path that was called, such as `/mutate`.
    pub path: String,
    /// The `AdmissionReview` that the webhook received; null if the body was not JSON.
    pub review: Value,
    /// The response, or `None` if the API server disconnected first.
    pub response: Option<Response>,
}

/// The response of a webhook.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Response {
    /// The HTTP status of the response.
    pub status: StatusCode,
    /// The `AdmissionReview` in the response; null if the body was not JSON.
    pub review: Value,
}

impl Call {
    /// Returns the `request` field of the review.
    pub fn request(&self) -> &Value {
        self.review.get("request").unwrap_or(&Value::Null)
    }

    /// Returns the `request.object` field of the review. It is null for a deletion.
    pub fn object(&self) -> &Value {
        self.request().get("object").unwrap_or(&Value::Null)
    }

    /// Returns the `response.allowed` field, or `None` if the webhook did not send a valid review.
    pub fn allowed(&self) -> Option<bool> {
        self.responded("allowed")?.as_bool()
    }

    /// Decodes the JSON Patch in the response.
    ///
    /// Accepts a base64 string or, as kube-apiserver does, a list of bytes, which the kube crate writes.
    pub fn patch(&self) -> Option<Value> {
        let patch = self.responded("patch")?;
        let bytes = match patch.as_str() {
            Some(text) => BASE64_STANDARD.decode(text).ok()?,
            None => serde_json::from_value(patch.clone()).ok()?,
        };
        serde_json::from_slice(&bytes).ok()
    }

    fn responded(&self, field: &str) -> Option<&Value> {
        self.response.as_ref()?.review.get("response")?.get(field)
    }
}

/// Records requests and calls, and associates them by trace ID.
///
/// The API server forwards the `traceparent` of a request to webhooks (HTTP-24).
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    requests: Vec<SentRequest>,
    calls: Vec<ReceivedCall>,
}

/// A request of the client, with its audit ID and its trace ID.
#[derive(Clone, Debug)]
pub(crate) struct SentRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) status: Option<StatusCode>,
    pub(crate) audit_id: String,
    pub(crate) trace_id: String,
}

#[derive(Debug)]
struct ReceivedCall {
    trace_id: Option<String>,
    call: Call,
}

/// The index of a request or call in a [`Recorder`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordIndex(usize);

impl Recorder {
    pub(crate) fn sent(&self, request: SentRequest) -> RecordIndex {
        let mut recorded = self.lock();
        recorded.requests.push(request);
        RecordIndex(recorded.requests.len() - 1)
    }

    pub(crate) fn answered(&self, RecordIndex(index): RecordIndex, status: StatusCode) {
        if let Some(request) = self.lock().requests.get_mut(index) {
            request.status = Some(status);
        }
    }

    pub(crate) fn called(&self, trace_id: Option<String>, call: Call) -> RecordIndex {
        let mut recorded = self.lock();
        recorded.calls.push(ReceivedCall { trace_id, call });
        RecordIndex(recorded.calls.len() - 1)
    }

    pub(crate) fn responded(&self, RecordIndex(index): RecordIndex, status: StatusCode, body: &Bytes) {
        let review = serde_json::from_slice(body).unwrap_or_default();
        if let Some(received) = self.lock().calls.get_mut(index) {
            received.call.response = Some(Response { status, review });
        }
    }

    /// Returns the requests that have been recorded so far.
    pub(crate) fn requests(&self) -> Vec<SentRequest> {
        self.lock().requests.clone()
    }

    /// Returns the calls that have been recorded so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.iter().map(|received| received.call.clone()).collect()
    }

    /// Returns the calls that a request caused.
    pub(crate) fn calls_of(&self, request: &SentRequest) -> Vec<Call> {
        let recorded = self.lock();
        let its = |received: &&ReceivedCall| received.trace_id.as_ref() == Some(&request.trace_id);
        recorded.calls.iter().filter(its).map(|received| received.call.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mutations_are_in_call_order() {
        let mutated = |webhook: &str, mutated: bool| {
            json!({"configuration": "c", "webhook": webhook, "mutated": mutated}).to_string()
        };
        let patch = json!({"configuration": "c", "webhook": "b", "patch": [], "patchType": "JSONPatch"});
        let key = |kind: &str, place: &str| format!("{kind}.webhook.admission.k8s.io/{place}");
        let trace = RequestTrace {
            method: Method::POST,
            path: String::new(),
            status: None,
            calls: Vec::new(),
            annotations: BTreeMap::from([
                (key("mutation", "round_1_index_2"), mutated("a", false)),
                (key("mutation", "round_0_index_10"), mutated("b", true)),
                (key("patch", "round_0_index_10"), patch.to_string()),
                (key("mutation", "round_0_index_2"), mutated("a", true)),
                ("authorization.k8s.io/decision".to_owned(), "allow".to_owned()),
            ]),
        };
        let found: Vec<_> = trace
            .mutations()
            .into_iter()
            .map(|found| (found.round, found.index, found.webhook, found.mutated, found.patch.is_some()))
            .collect();
        assert_eq!(
            found,
            [
                (0, 2, "a".to_owned(), true, false),
                (0, 10, "b".to_owned(), true, true),
                (1, 2, "a".to_owned(), false, false)
            ]
        );
    }
}
