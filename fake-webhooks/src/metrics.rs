//! Collects the Prometheus metrics of fakes.

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::CallOutcome;
use crate::journal::JournalSize;

/// The metrics of a fleet; each fleet has a separate registry.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    calls: IntCounterVec,
    seconds: HistogramVec,
    connections: IntGauge,
    handshake_failures: IntCounter,
    journal_entries: IntGauge,
    journal_bytes: IntGauge,
    journal_dropped: IntCounter,
}

/// The counters of one fake.
#[derive(Debug)]
pub(crate) struct Meter {
    fake: String,
    calls: IntCounterVec,
    seconds: Histogram,
}

/// An open connection. The gauge counts it until this value is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(IntGauge);

/// The histogram buckets for response times in seconds, from microseconds to configured delays.
const SECONDS: [f64; 12] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0];

impl Metrics {
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        let name = |name: &str| format!("fake_webhooks_{name}");
        let opts = |short: &str, help: &str| Opts::new(name(short), help);
        let seconds = HistogramOpts::new(name("call_seconds"), "How long calls took, by fake.");
        Self {
            calls: registered(
                &registry,
                IntCounterVec::new(
                    opts("calls_total", "Calls that ended, by fake and by HTTP status, closed or abandoned."),
                    &["fake", "outcome"],
                ),
            ),
            seconds: registered(&registry, HistogramVec::new(seconds.buckets(SECONDS.to_vec()), &["fake"])),
            connections: registered(
                &registry,
                IntGauge::with_opts(opts("connections", "Connections that are open.")),
            ),
            handshake_failures: registered(
                &registry,
                IntCounter::with_opts(opts("tls_handshake_failures_total", "TLS handshakes that failed.")),
            ),
            journal_entries: registered(
                &registry,
                IntGauge::with_opts(opts("journal_entries", "Calls in the journal.")),
            ),
            journal_bytes: registered(
                &registry,
                IntGauge::with_opts(opts("journal_bytes", "Memory of the calls in the journal.")),
            ),
            journal_dropped: registered(
                &registry,
                IntCounter::with_opts(opts("journal_dropped_total", "Calls dropped from the journal.")),
            ),
            registry,
        }
    }

    pub(crate) fn meter(&self, fake: &str) -> Meter {
        Meter {
            fake: fake.to_owned(),
            calls: self.calls.clone(),
            seconds: self.seconds.with_label_values(&[fake]),
        }
    }

    /// Removes all time series of a fake that was removed.
    pub(crate) fn forget(&self, fake: &str) {
        let outcomes: Vec<String> = self
            .calls
            .collect()
            .iter()
            .flat_map(prometheus::proto::MetricFamily::get_metric)
            .filter(|metric| metric.get_label().iter().any(|label| label.value() == fake))
            .flat_map(prometheus::proto::Metric::get_label)
            .filter(|label| label.name() == "outcome")
            .map(|label| label.value().to_owned())
            .collect();
        for outcome in outcomes {
            // A missing series is not an error.
            let _ = self.calls.remove_label_values(&[fake, outcome.as_str()]);
        }
        let _ = self.seconds.remove_label_values(&[fake]);
    }

    pub(crate) fn connected(&self) -> OpenConnection {
        self.connections.inc();
        OpenConnection(self.connections.clone())
    }

    pub(crate) fn handshake_failed(&self) {
        self.handshake_failures.inc();
    }

    /// Returns all metrics in the Prometheus text format.
    pub(crate) fn text(&self, journal: JournalSize) -> String {
        self.journal_entries.set(gauge(journal.entries));
        self.journal_bytes.set(gauge(journal.bytes));
        self.journal_dropped.inc_by(journal.dropped_ever.saturating_sub(self.journal_dropped.get()));
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap_or_else(|error| unreachable!("what was registered can be written: {error}"))
    }
}

impl Meter {
    pub(crate) fn ended(&self, outcome: &CallOutcome, took: Duration) {
        let label = match outcome {
            CallOutcome::Pending => return,
            CallOutcome::Abandoned => "abandoned",
            CallOutcome::Closed => "closed",
            CallOutcome::Bytes => "bytes",
            CallOutcome::Sent { status, .. } => status.as_str(),
        };
        self.calls.with_label_values(&[self.fake.as_str(), label]).inc();
        self.seconds.observe(took.as_secs_f64());
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let registered = made.and_then(|collector| {
        registry.register(Box::new(collector.clone()))?;
        Ok(collector)
    });
    registered.unwrap_or_else(|error| unreachable!("the names are constants and differ: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_labeled_by_fake_and_outcome_until_removed() {
        let metrics = Metrics::new();
        let sent = |status| CallOutcome::Sent {
            status: http::StatusCode::from_u16(status).unwrap(),
            summary: String::new(),
        };
        let (one, two) = (metrics.meter("one"), metrics.meter("two"));
        for answered in [sent(200), sent(200), sent(503), CallOutcome::Closed, CallOutcome::Abandoned] {
            one.ended(&answered, Duration::from_millis(2));
        }
        two.ended(&sent(200), Duration::ZERO);
        let connection = metrics.connected();
        let fill = JournalSize { entries: 3, bytes: 500, dropped_ever: 2 };
        let text = metrics.text(fill);
        for line in [
            r#"fake_webhooks_calls_total{fake="one",outcome="200"} 2"#,
            r#"fake_webhooks_calls_total{fake="one",outcome="503"} 1"#,
            r#"fake_webhooks_calls_total{fake="one",outcome="closed"} 1"#,
            r#"fake_webhooks_calls_total{fake="one",outcome="abandoned"} 1"#,
            r#"fake_webhooks_call_seconds_bucket{fake="one",le="0.005"} 5"#,
            r#"fake_webhooks_call_seconds_bucket{fake="one",le="0.001"} 0"#,
            "fake_webhooks_connections 1",
            "fake_webhooks_journal_entries 3",
            "fake_webhooks_journal_bytes 500",
            "fake_webhooks_journal_dropped_total 2",
        ] {
            assert!(text.lines().any(|there| there == line), "`{line}` is not in:\n{text}");
        }
        drop(connection);
        metrics.forget("one");
        let text = metrics.text(fill);
        assert!(!text.contains(r#""one""#), "{text}");
        assert!(text.contains("fake_webhooks_connections 0\n"), "{text}");
        assert!(text.contains("fake_webhooks_journal_dropped_total 2\n"), "{text}");
        assert!(text.contains(r#"fake_webhooks_calls_total{fake="two",outcome="200"} 1"#), "{text}");
    }
}
