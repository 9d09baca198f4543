//! Calls the conversion webhooks of custom resource definitions.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kubernetes_types::json::text;
use kubernetes_types::status::Unsupported;
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Instrument as _, info, info_span};

use crate::attributes::GroupVersionKind;
use crate::caller::{Call, CallError, Caller};
use crate::cluster_state::{ByWebhook, ConversionError};
use crate::event::ConversionCall;
use crate::metrics::{Conversion, Conversions};
use crate::review::conversion::{self, Failure, FailureKind, Version};

/// The timeout of a conversion. A definition cannot change it.
///
/// Source: client-go `rest/config.go`, by way of apiserver pkg/util/webhook/authentication.go.
/// Rule: CNV-16.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of recorded conversions per request.
const MAX_RECORDED: usize = 1000;

type Recorded = Arc<Mutex<Vec<ConversionCall>>>;

tokio::task_local! {
    static RECORDED: Recorded;
}

/// Runs `work` and returns its result with the calls that it made to conversion webhooks.
///
/// The calls are collected per task, because most callers do not have the record of the request.
pub async fn record_conversions<T>(work: impl Future<Output = T>) -> (T, Vec<ConversionCall>) {
    let recorded = Recorded::default();
    let done = RECORDED.scope(Arc::clone(&recorded), work).await;
    let calls = std::mem::take(&mut *recorded.lock().unwrap_or_else(PoisonError::into_inner));
    (done, calls)
}

/// Wraps `work` so that its conversion calls are recorded for the current task, even if it runs in another task.
pub fn record_for_current_task<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let recorded = RECORDED.try_with(Arc::clone).ok();
    async move {
        match recorded {
            Some(recorded) => RECORDED.scope(recorded, work).await,
            None => work.await,
        }
    }
}

fn record(asked: &ByWebhook, took: Duration, converted: &Result<Value, ConversionFailure>) {
    // Most tests, and requests that the server makes itself, have no record.
    let _ = RECORDED.try_with(|recorded| {
        let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.len() < MAX_RECORDED {
            recorded.push(ConversionCall {
                definition: asked.webhook.definition.clone(),
                namespace: text(&asked.object, &["metadata", "namespace"]).to_owned(),
                name: text(&asked.object, &["metadata", "name"]).to_owned(),
                from: text(&asked.object, &["apiVersion"]).to_owned(),
                to: asked.kind.api_version(),
                took,
                failure: converted.as_ref().err().map(ToString::to_string),
            });
        }
    });
}

/// Converts custom resources by calling the webhooks of their definitions with a [`Caller`].
pub struct Converter<C> {
    caller: Arc<C>,
    counted: Conversions,
}

impl<C: Caller> Converter<C> {
    /// Creates a converter that calls webhooks through `caller` and counts the calls in `counted`.
    pub fn new(caller: Arc<C>, counted: Conversions) -> Self {
        Self { caller, counted }
    }

    pub(crate) fn caller(&self) -> &Arc<C> {
        &self.caller
    }

    /// Returns the object in the requested version.
    ///
    /// Each object gets its own review: kube-apiserver converts the objects that it reads and writes one by one, even
    /// for a list.
    ///
    /// # Errors
    /// Returns [`ConversionError`] if the conversion fails, or if it uses a feature that admit does not support.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, `Convert`.
    /// Rule: CNV-01, CNV-02, CNV-03, CNV-11.
    pub async fn convert(&self, asked: &ByWebhook) -> Result<Value, ConversionError> {
        let Some(version) = Version::negotiate(&asked.webhook.review_versions) else {
            return Err(ConversionError::Refused("no supported conversion review versions".to_owned()));
        };
        let started = Instant::now();
        let converted = self.exchange(asked, version).await;
        let took = started.elapsed();
        record(asked, took, &converted);
        let failure = match &converted {
            Ok(_) => None,
            Err(ConversionFailure::Failure(failure)) => Some(failure.kind.as_str()),
            // kube-apiserver would not have failed, so metrics do not count the call.
            Err(ConversionFailure::OnlyHere(_)) => return converted.map_err(Into::into),
        };
        let from = GroupVersionKind::from_object(&asked.object);
        self.counted.observe(Conversion {
            definition: &asked.webhook.definition,
            from: &from.version,
            to: &asked.kind.version,
            failure,
            took,
        });
        converted.map_err(Into::into)
    }

    async fn exchange(&self, asked: &ByWebhook, version: Version) -> Result<Value, ConversionFailure> {
        let ByWebhook { webhook, object, kind } = asked;
        let uid = uuid::Uuid::new_v4().to_string();
        let desired = kind.api_version();
        let body = conversion::encode(version, &uid, std::slice::from_ref(object), &desired)
            .map_err(|error| ConversionError::Refused(error.to_string()))?;
        let body = self.caller.keep(body).map_err(|error| conversion_failure(error, object))?;
        let span = info_span!(
            parent: None,
            "Call conversion webhook",
            "custom-resource-definition" = webhook.definition,
            "desired-api-version" = desired,
            "object-count" = 1,
            UID = uid,
        );
        // A conversion is not part of a single request, so it does not have a trace context.
        let call =
            Call { client_config: &webhook.client_config, phase: None, body, timeout: TIMEOUT, trace: None };
        let reply = self.caller.call(call).instrument(span.clone()).await;
        let reply = reply.map_err(|error| conversion_failure(error, object))?;
        let converted = conversion::read(&reply, version, &uid, object, kind);
        if !matches!(converted, Err(Failure { kind: FailureKind::Call, .. })) {
            info!(parent: &span, "Request completed");
        }
        converted.map_err(ConversionFailure::Failure)
    }
}

/// The reason why an object was not converted.
enum ConversionFailure {
    /// A failure that kube-apiserver also reports.
    Failure(Failure),
    /// An error that only admit reports.
    OnlyHere(ConversionError),
}

impl fmt::Display for ConversionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => f.write_str(&failure.message),
            Self::OnlyHere(error) => error.fmt(f),
        }
    }
}

impl From<ConversionError> for ConversionFailure {
    fn from(error: ConversionError) -> Self {
        Self::OnlyHere(error)
    }
}

impl From<ConversionFailure> for ConversionError {
    fn from(failure: ConversionFailure) -> Self {
        match failure {
            ConversionFailure::Failure(failure) => Self::Refused(failure.message),
            ConversionFailure::OnlyHere(error) => error,
        }
    }
}

fn conversion_failure(error: CallError, object: &Value) -> ConversionFailure {
    let from = GroupVersionKind::from_object(object);
    match error {
        CallError::Transport(text) | CallError::Body { reason: text, .. } => {
            ConversionFailure::Failure(Failure {
                kind: FailureKind::Call,
                message: format!("conversion webhook for {from} failed: {text}"),
            })
        }
        // kube-apiserver does not serve a resource if it cannot create a client for the webhook.
        CallError::Client(text) => {
            let what = format!("custom resources whose conversion webhook cannot be called ({text})");
            ConversionFailure::OnlyHere(Unsupported { what }.into())
        }
        CallError::NotCalled => {
            let what = format!(
                "conversions of {from} by a webhook that admit does not call offline (pass --service, or pass the CustomResourceDefinition with a local URL in --with)"
            );
            ConversionFailure::OnlyHere(Unsupported { what }.into())
        }
        CallError::TooManyRequests => ConversionFailure::OnlyHere(ConversionError::TooManyRequests),
        CallError::Unsupported(unsupported) => ConversionFailure::OnlyHere(unsupported.into()),
    }
}

impl<C> fmt::Debug for Converter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::caller::Reply;
    use crate::config::{ClientConfig, ConversionWebhook, WebhookTarget};
    use crate::metrics::Metrics;

    /// A caller that answers each review with the object of the review, in the version `api_version`.
    struct Converting {
        api_version: &'static str,
        timeouts: Mutex<Vec<Duration>>,
    }

    impl Caller for Converting {
        async fn call(&self, call: Call<'_>) -> Result<Reply, CallError> {
            self.timeouts.lock().unwrap().push(call.timeout);
            let review: Value = serde_json::from_slice(&call.body).unwrap();
            let mut object = review["request"]["objects"][0].clone();
            object["apiVersion"] = json!(self.api_version);
            let answer = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "response": {
                    "uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": [object],
                },
            });
            let body = Bytes::from(answer.to_string());
            Ok(Reply { status: 200, content_type: Some("application/json".to_owned()), body })
        }
    }

    fn asked() -> ByWebhook {
        ByWebhook {
            webhook: Arc::new(ConversionWebhook {
                definition: "foos.example.com".to_owned(),
                client_config: ClientConfig::new(
                    WebhookTarget::Url("https://webhook.example/".to_owned()),
                    Vec::new(),
                ),
                review_versions: vec!["v1".to_owned()],
            }),
            object: json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}}),
            kind: GroupVersionKind::new("example.com", "v2", "Foo"),
        }
    }

    #[tokio::test]
    async fn calls_are_counted_by_result() {
        let metrics = Metrics::default();
        for (api_version, is_converted) in [("example.com/v2", true), ("example.com/v3", false)] {
            let caller = Arc::new(Converting { api_version, timeouts: Mutex::default() });
            let converter = Converter::new(Arc::clone(&caller), metrics.conversions());
            assert_eq!(converter.convert(&asked()).await.is_ok(), is_converted);
            assert_eq!(*caller.timeouts.lock().unwrap(), [Duration::from_secs(30)]);
        }
        let text = metrics.render();
        for sample in [
            r#"apiserver_conversion_webhook_request_total{failure_type="",result="success"} 1"#,
            r#"apiserver_conversion_webhook_request_total{failure_type="conversion_webhook_invalid_converted_object_failure",result="failure"} 1"#,
            r#"apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="foos.example.com",from_version="v1",succeeded="true",to_version="v2"} 1"#,
            r#"apiserver_conversion_webhook_duration_seconds_count{failure_type="",result="success"} 1"#,
        ] {
            assert!(text.lines().any(|line| line == sample), "{sample}\n{text}");
        }
    }

    #[tokio::test]
    async fn conversions_of_a_request_are_recorded() {
        let calls = async |api_version: &'static str| {
            let caller = Arc::new(Converting { api_version, timeouts: Mutex::default() });
            let converter = Converter::new(caller, Metrics::default().conversions());
            let asks = async move { converter.convert(&asked()).await.is_ok() };
            let (_, calls) =
                record_conversions(async move { tokio::spawn(record_for_current_task(asks)).await.unwrap() })
                    .await;
            calls
        };
        let [call] = calls("example.com/v2").await.try_into().unwrap();
        assert_eq!(
            (&*call.definition, &*call.from, &*call.to),
            ("foos.example.com", "example.com/v1", "example.com/v2")
        );
        assert_eq!((&*call.name, call.failure), ("a", None));
        let [call] = calls("example.com/v3").await.try_into().unwrap();
        assert!(call.failure.is_some_and(|why| why.contains("invalid groupVersion")));
    }

    #[tokio::test]
    async fn a_webhook_without_a_supported_version_is_not_called() {
        let caller = Arc::new(Converting { api_version: "example.com/v2", timeouts: Mutex::default() });
        let converter = Converter::new(Arc::clone(&caller), Metrics::default().conversions());
        let mut asked = asked();
        Arc::make_mut(&mut asked.webhook).review_versions = vec!["v7".to_owned()];
        let error = converter.convert(&asked).await.unwrap_err();
        assert_eq!(error.to_string(), "no supported conversion review versions");
        assert!(caller.timeouts.lock().unwrap().is_empty());
    }
}
