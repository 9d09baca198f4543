//! Counts calls to conversion webhooks and observes their duration.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

use super::registered;

/// The upper bounds, in seconds, of the buckets for the duration of all conversions.
const SECONDS: [f64; 15] =
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
/// The number of duration buckets per definition; each is twice as wide as the previous one.
const BUCKET_COUNT: usize = 15;

/// A call to a conversion webhook, as counted in metrics.
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'a> {
    /// The name of the definition.
    pub(crate) definition: &'a str,
    /// The object's version, without its group.
    pub(crate) from: &'a str,
    /// The requested version.
    pub(crate) to: &'a str,
    /// The reason for a failure; `None` if the call succeeded.
    pub(crate) failure: Option<&'a str>,
    /// The duration of the call.
    pub(crate) took: Duration,
}

/// Counts calls to conversion webhooks. Clones share their counters.
///
/// Source: apiextensions-apiserver pkg/apiserver/conversion/metrics.go.
/// Rule: CNV-12.
#[derive(Clone, Debug)]
pub struct Conversions {
    requests: IntCounterVec,
    seconds: HistogramVec,
    by_definition: HistogramVec,
}

impl Conversions {
    pub(super) fn new(registry: &Registry) -> Self {
        let result = ["result", "failure_type"];
        let histogram = |name: &str, help: &str, buckets: Vec<f64>, labels: &[&str]| {
            let opts = HistogramOpts::new(name, format!("[ALPHA] {help}")).buckets(buckets);
            registered(HistogramVec::new(opts, labels))
        };
        let requests = Opts::new(
            "apiserver_conversion_webhook_request_total",
            "[ALPHA] Counter for conversion webhook requests with success/failure and failure error type",
        );
        let doubled = registered(prometheus::exponential_buckets(0.001, 2.0, BUCKET_COUNT));
        let conversions = Self {
            requests: registered(IntCounterVec::new(requests, &result)),
            seconds: histogram(
                "apiserver_conversion_webhook_duration_seconds",
                "Conversion webhook request latency",
                SECONDS.to_vec(),
                &result,
            ),
            by_definition: histogram(
                "apiserver_crd_conversion_webhook_duration_seconds",
                "CRD webhook conversion duration in seconds",
                doubled,
                &["crd_name", "from_version", "to_version", "succeeded"],
            ),
        };
        registered(registry.register(Box::new(conversions.requests.clone())));
        registered(registry.register(Box::new(conversions.seconds.clone())));
        registered(registry.register(Box::new(conversions.by_definition.clone())));
        conversions
    }

    /// Counts one call and observes its duration.
    pub(crate) fn observe(&self, conversion: Conversion<'_>) {
        let Conversion { definition, from, to, failure, took } = conversion;
        let result = if failure.is_some() { "failure" } else { "success" };
        let labels = [result, failure.unwrap_or_default()];
        let seconds = took.as_secs_f64();
        self.requests.with_label_values(&labels).inc();
        self.seconds.with_label_values(&labels).observe(seconds);
        let succeeded = if failure.is_some() { "false" } else { "true" };
        self.by_definition.with_label_values(&[definition, from, to, succeeded]).observe(seconds);
    }
}
