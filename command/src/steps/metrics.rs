//! What the server counted for a webhook during a request.

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
    "the metric {word} of {string} counts the request with:",
    "Of the samples with this webhook's name and these labels one grew by 1; no other scenario has a webhook of this name",
    r#"Then the metric apiserver_admission_webhook_rejection_count of "policy" counts the request with:
  """yaml
  {type: validating, operation: CREATE, error_type: no_error, rejection_code: "403"}
  """"#,
);

/// The counters whose samples name a webhook: `NAME{LABELS}` and the value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

/// `key="value"`, with `\"`, `\\` and `\n` in the value.
static LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(\w+)="((?:[^"\\]|\\.)*)""#).ok());

impl Metrics {
    /// Reads the text format of Prometheus.
    fn parse(exposition: &str) -> Self {
        let samples = exposition.lines().filter(|line| line.contains("name=\"")).filter_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            Some((sample.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    /// What grew since, and by how much.
    pub(super) fn since(self, before: Self) -> Self {
        let growth = self.0.into_iter().map(|(sample, value)| {
            let earlier = before.0.get(&sample).copied().unwrap_or_default();
            (sample, value - earlier)
        });
        Self(growth.filter(|(_, growth)| *growth > 0.0).collect())
    }

    /// The samples of a metric that name the webhook, with their labels.
    fn of(&self, metric: &str, webhook: &str) -> Vec<(BTreeMap<String, String>, f64)> {
        let of_metric = self.0.iter().filter_map(|(sample, value)| {
            let labels = sample.strip_prefix(metric)?.strip_prefix('{')?;
            Some((labels_of(labels), *value))
        });
        of_metric.filter(|(labels, _)| labels.get("name").is_some_and(|name| name == webhook)).collect()
    }
}

fn labels_of(text: &str) -> BTreeMap<String, String> {
    let found = LABEL.as_ref().into_iter().flat_map(|label| label.captures_iter(text));
    found
        .map(|capture| {
            let (_, [key, value]) = capture.extract();
            (key.to_owned(), value.to_owned())
        })
        .collect()
}

impl World {
    /// Has the metrics read before and after each request if a step of the scenario is about them.
    pub(crate) fn expect_metrics_of(&mut self, scenario: &Scenario) {
        self.asks_for_metrics = scenario.steps.iter().any(|step| step.value.starts_with("the metric "));
    }

    /// What the server counts now; nothing if no step asks for it.
    pub(super) async fn metrics(&self) -> Outcome<Metrics> {
        if !self.asks_for_metrics {
            return Ok(Metrics::default());
        }
        let answer = api::send(self.client()?, Method::GET, "/metrics", None).await?.successful()?;
        Ok(Metrics::parse(answer.body.as_str().unwrap_or_default()))
    }
}

#[then(expr = "the metric {word} of {string} counts the request with:")]
fn counts(world: &mut World, step: &Step, metric: String, short: String) -> Outcome {
    world.answer()?;
    let expected: BTreeMap<String, Value> = serde_json::from_value(document::parse(&document::text(step)?)?)
        .map_err(|error| StepFailure::new(format!("labels are a map of texts: {error}")))?;
    let grown = world.counted.of(&metric, &Names::webhook(&short));
    let has_labels = |labels: &BTreeMap<String, String>| {
        expected.iter().all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
    };
    let one = |growth: f64| (growth - 1.0).abs() < f64::EPSILON;
    match grown.iter().filter(|(labels, _)| has_labels(labels)).collect::<Vec<_>>().as_slice() {
        [(_, growth)] if one(*growth) => Ok(()),
        _ => {
            let found: Vec<String> =
                grown.iter().map(|(labels, growth)| format!("\n  {growth}: {labels:?}")).collect();
            let found = if found.is_empty() { "\n  nothing".to_owned() } else { found.concat() };
            Err(StepFailure::new(format!(
                "expected {metric} to count the request once for \"{short}\"\ncounted:{found}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_told_with_its_labels() {
        let before = Metrics::parse("# HELP a\nm{name=\"a.b.c\",code=\"400\"} 2\nm{name=\"x\"} 1\nother 3\n");
        let after = Metrics::parse(
            "m{name=\"a.b.c\",code=\"400\"} 3\nm{name=\"x\"} 1\nm{name=\"a.b.c\",code=\"a\\\"}b\"} 1e+00\n",
        );
        let grown = after.since(before);
        let labels = |code: &str| {
            BTreeMap::from([("name".to_owned(), "a.b.c".to_owned()), ("code".to_owned(), code.to_owned())])
        };
        assert_eq!(grown.of("m", "a.b.c"), [(labels("400"), 1.0), (labels("a\\\"}b"), 1.0)]);
        assert_eq!(grown.of("m", "x"), []);
        assert_eq!(grown.of("other", "a.b.c"), []);
    }
}
