//! Implements a summary metric: quantiles of the duration of admission phases over the last five hours.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sketches_ddsketch::{Config, DDSketch};
use tokio::time::Instant;

const NAME: &str = "apiserver_admission_step_admission_duration_seconds_summary";
const HELP: &str = "Admission sub-step latency summary in seconds, broken out for each operation and API resource and step \
                    type (validate or admit).";

/// The quantiles that the summary exposes.
///
/// Source: component-base metrics/opts.go, `defObjectives`.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// The time for which observations count toward the quantiles. Observations expire one hour at a time.
///
/// Source: apiserver pkg/admission/metrics/metrics.go, `latencySummaryMaxAge`; `client_golang` prometheus/summary.go,
/// `DefAgeBuckets`.
const AGE: Duration = Duration::from_secs(5 * 3600);
const BUCKETS: u32 = 5;

/// The values of the labels `type`, `operation`, and `rejected`.
pub(super) type Labels = [&'static str; 3];

/// The metric `apiserver_admission_step_admission_duration_seconds_summary`.
///
/// Rule: MET-13.
#[derive(Debug, Default)]
pub(super) struct Summary(Mutex<BTreeMap<Labels, Series>>);

impl Summary {
    pub(super) fn observe(&self, labels: Labels, seconds: f64, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(labels).or_insert_with(|| Series::new(now)).observe(seconds, now);
    }

    /// Appends the metric in the Prometheus text format.
    pub(super) fn render(&self, text: &mut String, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.is_empty() {
            let _ = writeln!(text, "# HELP {NAME} [ALPHA] {HELP}\n# TYPE {NAME} summary");
        }
        for ([kind, operation, rejected], series) in all.iter_mut() {
            let labels = format!("operation=\"{operation}\",rejected=\"{rejected}\",type=\"{kind}\"");
            for (quantile, value) in QUANTILES.into_iter().zip(series.quantiles(now)) {
                let _ = writeln!(text, "{NAME}{{{labels},quantile=\"{quantile}\"}} {value}");
            }
            let Series { sum, count, .. } = series;
            let _ = writeln!(text, "{NAME}_sum{{{labels}}} {sum}\n{NAME}_count{{{labels}}} {count}");
        }
    }
}

/// The observations with the same labels.
struct Series {
    sum: f64,
    count: u64,
    /// The sketches, oldest first; new observations go into the last sketch.
    buckets: Vec<DDSketch>,
    /// The time at which the last bucket is full and the next one starts.
    full: Instant,
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sum, count, .. } = self;
        f.debug_struct("Series").field("sum", sum).field("count", count).finish_non_exhaustive()
    }
}

impl Series {
    fn new(now: Instant) -> Self {
        Self { sum: 0.0, count: 0, buckets: vec![sketch()], full: now + AGE / BUCKETS }
    }

    fn observe(&mut self, seconds: f64, now: Instant) {
        self.forget(now);
        self.sum += seconds;
        self.count += 1;
        if let Some(last) = self.buckets.last_mut() {
            last.add(seconds);
        }
    }

    /// Returns the values of [`QUANTILES`], or NaN if there are no recent observations.
    fn quantiles(&mut self, now: Instant) -> [f64; QUANTILES.len()] {
        self.forget(now);
        let mut all = sketch();
        for bucket in &self.buckets {
            // Merging only requires equal configurations.
            let _ = all.merge(bucket);
        }
        QUANTILES.map(|quantile| all.quantile(quantile).ok().flatten().unwrap_or(f64::NAN))
    }

    /// Starts the buckets that are due and drops expired buckets.
    fn forget(&mut self, now: Instant) {
        let Some(late) = now.checked_duration_since(self.full) else { return };
        let width = AGE / BUCKETS;
        let due = 1 + late.as_secs() / width.as_secs();
        // After this many buckets, all old ones have been dropped.
        for _ in 0..due.min(u64::from(BUCKETS)) {
            self.buckets.push(sketch());
        }
        let surplus = self.buckets.len().saturating_sub(BUCKETS as usize);
        self.buckets.drain(..surplus);
        self.full = now + width - Duration::from_secs(late.as_secs() % width.as_secs());
    }
}

/// Creates a sketch with a relative error of 1%.
fn sketch() -> DDSketch {
    DDSketch::new(Config::defaults())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels = ["admit", "CREATE", "false"];
    const HOUR: Duration = Duration::from_secs(3600);

    /// Returns the quantiles and the count that the metric exposes.
    fn exposed(summary: &Summary, now: Instant) -> (Vec<f64>, String) {
        let mut text = String::new();
        summary.render(&mut text, now);
        let value = |line: &str| line.rsplit_once(' ').unwrap_or_default().1.to_owned();
        let quantiles = text.lines().filter(|line| line.contains("quantile="));
        let quantiles = quantiles.map(|line| value(line).parse().unwrap_or(-1.0)).collect();
        (quantiles, text.lines().find(|line| line.contains("_count")).map(value).unwrap_or_default())
    }

    fn is_near(quantiles: &[f64], expected: [f64; 3]) -> bool {
        quantiles.iter().zip(expected).all(|(value, expected)| (value - expected).abs() <= expected * 0.011)
    }

    #[test]
    fn quantiles_match_the_observations() {
        let (summary, now) = (Summary::default(), Instant::now());
        for millisecond in 1..=1000 {
            summary.observe(LABELS, f64::from(millisecond) / 1000.0, now);
        }
        let (quantiles, count) = exposed(&summary, now);
        assert!(is_near(&quantiles, [0.5, 0.9, 0.99]), "{quantiles:?}");
        assert_eq!(count, "1000");
    }

    #[test]
    fn observations_older_than_five_hours_count_only_in_the_sum() {
        let (summary, now) = (Summary::default(), Instant::now());
        summary.observe(LABELS, 1.0, now);
        summary.observe(LABELS, 2.0, now + HOUR * 4);
        let (quantiles, _) = exposed(&summary, now + HOUR * 4);
        assert!(is_near(&quantiles, [1.0, 1.0, 1.0]), "{quantiles:?}");
        let (quantiles, _) = exposed(&summary, now + HOUR * 5);
        assert!(is_near(&quantiles, [2.0, 2.0, 2.0]), "{quantiles:?}");
        let (quantiles, count) = exposed(&summary, now + HOUR * 500);
        assert!(quantiles.iter().all(|value| value.is_nan()), "{quantiles:?}");
        assert_eq!(count, "2");
    }
}
