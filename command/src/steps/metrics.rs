//! Defines steps about the metrics of webhooks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use cucumber::then;
use gherkin::{Scenario, Step};
use http::Method;
use regex::Regex;
use serde_json::Value;

use super::failure::{Outcome, StepFailure};
use super::names::Names;
use super::world::World;
use super::{StepHelp, api, document, then as step};

pub(super) const COUNTS: StepHelp = step(
    "the metric {word} for {string} increases by 1 with the labels:",
    "Exactly one sample with the webhook's name and these labels increased by 1; the name must be unique among all scenarios",
    r#"Then the metric apiserver_admission_webhook_rejection_count for "policy" increases by 1 with the labels:
  """yaml
  {type: validating, operation: CREATE, error_type: no_error, rejection_code: "403"}
  """"#,
);

/// The metric samples that have the name of a webhook as a label; the key is `NAME{LABELS}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

/// Matches a label of a sample, such as `key="value"`, with `\"`, `\\`, and `\n` in the value.
static LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(\w+)="((?:[^"\\]|\\.)*)""#).ok());

impl Metrics {
    /// Parses the samples that have the name of a webhook as a label, from the Prometheus text format.
    fn parse(exposition: &str) -> Self {
        let samples = exposition.lines().filter(|line| line.contains("name=\"")).filter_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            Some((sample.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    /// Returns the samples that increased since `before`; the value of each is the increase.
    pub(super) fn since(self, before: Self) -> Self {
        let growth = self.0.into_iter().map(|(sample, value)| {
            let earlier = before.0.get(&sample).copied().unwrap_or_default();
            (sample, value - earlier)
        });
        Self(growth.filter(|(_, growth)| *growth > 0.0).collect())
    }

    /// Returns the labels and values of a metric's samples for a webhook.
    fn for_webhook(&self, metric: &str, webhook: &str) -> Vec<(BTreeMap<String, String>, f64)> {
        let of_metric = self.0.iter().filter_map(|(sample, value)| {
            let labels = sample.strip_prefix(metric)?.strip_prefix('{')?;
            Some((parse_labels(labels), *value))
        });
        of_metric.filter(|(labels, _)| labels.get("name").is_some_and(|name| name == webhook)).collect()
    }
}

fn parse_labels(text: &str) -> BTreeMap<String, String> {
    let found = LABEL.as_ref().into_iter().flat_map(|label| label.captures_iter(text));
    found
        .map(|capture| {
            let (_, [key, value]) = capture.extract();
            (key.to_owned(), value.to_owned())
        })
        .collect()
}

impl World {
    /// Enables reading the metrics around each request if a step of the scenario uses them.
    pub(crate) fn enable_metrics_for(&mut self, scenario: &Scenario) {
        self.reads_metrics = scenario.steps.iter().any(|step| step.value.starts_with("the metric "));
    }

    /// Returns the current metrics, or no metrics if they are not enabled.
    pub(super) async fn metrics(&self) -> Outcome<Metrics> {
        if !self.reads_metrics {
            return Ok(Metrics::default());
        }
        let answer = api::send(self.client()?, Method::GET, "/metrics", None).await?.successful()?;
        Ok(Metrics::parse(answer.body.as_str().unwrap_or_default()))
    }
}

#[then(expr = "the metric {word} for {string} increases by 1 with the labels:")]
fn increases(world: &mut World, step: &Step, metric: String, short: String) -> Outcome {
    world.answer()?;
    let expected: BTreeMap<String, Value> = serde_json::from_value(document::parse(&document::text(step)?)?)
        .map_err(|error| StepFailure::new(format!("invalid labels: must be a map of strings: {error}")))?;
    let grown = world.metric_increase.for_webhook(&metric, &Names::webhook(&short));
    let has_labels = |labels: &BTreeMap<String, String>| {
        expected.iter().all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
    };
    let one = |growth: f64| (growth - 1.0).abs() < f64::EPSILON;
    match grown.iter().filter(|(labels, _)| has_labels(labels)).collect::<Vec<_>>().as_slice() {
        [(_, growth)] if one(*growth) => Ok(()),
        _ => {
            let found: Vec<String> =
                grown.iter().map(|(labels, growth)| format!("\n  {growth}: {labels:?}")).collect();
            let found = if found.is_empty() { "\n  none".to_owned() } else { found.concat() };
            Err(StepFailure::new(format!(
                "expected {metric} to increase by 1 for \"{short}\"\nincreased samples:{found}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increased_samples_are_found_with_their_labels() {
        let before = Metrics::parse("# HELP a\nm{name=\"a.b.c\",code=\"400\"} 2\nm{name=\"x\"} 1\nother 3\n");
        let after = Metrics::parse(
            "m{name=\"a.b.c\",code=\"400\"} 3\nm{name=\"x\"} 1\nm{name=\"a.b.c\",code=\"a\\\"}b\"} 1e+00\n",
        );
        let grown = after.since(before);
        let labels = |code: &str| {
            BTreeMap::from([("name".to_owned(), "a.b.c".to_owned()), ("code".to_owned(), code.to_owned())])
        };
        assert_eq!(grown.for_webhook("m", "a.b.c"), [(labels("400"), 1.0), (labels("a\\\"}b"), 1.0)]);
        assert_eq!(grown.for_webhook("m", "x"), []);
        assert_eq!(grown.for_webhook("other", "a.b.c"), []);
    }
}
