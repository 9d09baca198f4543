//! Selects the admission counters that a case compares.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::names::MARKER;

/// The metrics with a label for a webhook or a policy.
///
/// For histograms, only the count is compared, because the other values depend on time.
const COUNTERS: [&str; 11] = [
    "apiserver_admission_webhook_request_total",
    "apiserver_admission_webhook_rejection_count",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_admission_duration_seconds_count",
    "apiserver_admission_match_condition_evaluation_errors_total",
    "apiserver_admission_match_condition_exclusions_total",
    "apiserver_admission_match_condition_evaluation_seconds_count",
    "apiserver_mutating_admission_policy_check_total",
    "apiserver_mutating_admission_policy_check_duration_seconds_count",
    "apiserver_validating_admission_policy_check_total",
    "apiserver_validating_admission_policy_check_duration_seconds_count",
];

/// The metrics without a webhook label. Only cases that run alone compare them.
///
/// The server's own loopback requests do not affect these metrics.
const SHARED: [&str; 2] = [
    "apiserver_admission_controller_admission_duration_seconds_count{",
    "apiserver_admission_step_admission_duration_seconds_count{",
];

/// The samples that belong to a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// The samples of webhooks whose name contains the given ID.
    Shared(&'a str),
    /// The samples of webhooks whose name contains the given ID, and samples without a webhook label.
    Alone(&'a str),
}

impl Scope<'_> {
    fn has(self, name: &str, line: &str) -> bool {
        let (id, is_alone) = match self {
            Scope::Shared(id) => (id, false),
            Scope::Alone(id) => (id, true),
        };
        if COUNTERS.contains(&name) {
            return line.contains(id) && !line.contains(&format!("\"{MARKER}."));
        }
        let is_counted = line.contains("rejected=\"true\"") || line.contains("operation=\"CONNECT\"");
        let is_of_webhooks = !line.contains("name=\"") || line.contains("AdmissionWebhook\"");
        is_alone && SHARED.iter().any(|family| line.starts_with(family)) && is_counted && is_of_webhooks
    }
}

/// Returns the lines of a metrics response that may belong to a case.
///
/// A server that has run many cases returns about a hundred times as many lines, so it saves time to read only the
/// relevant ones.
pub(crate) fn counters(exposition: &str) -> String {
    let is_counter = |line: &&str| {
        line.split_once('{').is_some_and(|(name, _)| COUNTERS.contains(&name))
            || SHARED.iter().any(|family| line.starts_with(family))
    };
    exposition.lines().filter(is_counter).flat_map(|line| [line, "\n"]).collect()
}

/// Returns the samples of a case, by name and labels.
pub(crate) fn samples(exposition: &str, scope: Scope<'_>) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    for line in exposition.lines() {
        let Some((name, rest)) = line.split_once('{') else { continue };
        if !scope.has(name, line) {
            continue;
        }
        let Some((labels, value)) = rest.rsplit_once("} ") else { continue };
        let mut labels: Vec<&str> = labels.split("\",").map(|label| label.trim_end_matches('"')).collect();
        labels.sort_unstable();
        let labels: Vec<String> = labels.iter().map(|label| format!("{label}\"")).collect();
        let short = name.trim_start_matches("apiserver_admission_");
        if let Ok(value) = value.trim().parse() {
            samples.insert(format!("{short}{{{}}}", labels.join(",")), value);
        }
    }
    samples
}

/// Returns the increase between two readings of the samples, in the format of recordings.
pub(crate) fn delta(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> Value {
    let grown = after.iter().filter_map(|(sample, value)| {
        let grown = value - before.get(sample).copied().unwrap_or_default();
        // The counts are integers.
        #[expect(clippy::cast_possible_truncation, reason = "no case makes 2^53 calls")]
        (grown != 0.0).then(|| (sample.clone(), Value::from(grown as i64)))
    });
    Value::Object(grown.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_counters_of_the_case_are_seen() {
        let text = "\
# HELP apiserver_admission_webhook_fail_open_count [ALPHA] x
apiserver_admission_webhook_fail_open_count{name=\"a.c1.example.com\",type=\"admit\"} 2
apiserver_admission_webhook_fail_open_count{type=\"admit\",name=\"a.c2.example.com\"} 2
apiserver_admission_webhook_fail_open_count{name=\"marker.c1.example.com\",type=\"admit\"} 2
apiserver_admission_webhook_admission_duration_seconds_sum{name=\"a.c1.example.com\"} 0.5
apiserver_admission_controller_admission_duration_seconds_count{name=\"ValidatingAdmissionWebhook\",rejected=\"true\"} 3
";
        let text = counters(text);
        assert_eq!(text.lines().count(), 4, "{text}");
        let after = samples(&text, Scope::Shared("c1"));
        let expected = json!({"webhook_fail_open_count{name=\"a.c1.example.com\",type=\"admit\"}": 2});
        assert_eq!(delta(&BTreeMap::new(), &after), expected);
        assert_eq!(delta(&after, &after), json!({}));
    }

    #[test]
    fn a_case_that_runs_alone_is_also_counted_by_plugin() {
        let text = "\
apiserver_admission_controller_admission_duration_seconds_count{name=\"ValidatingAdmissionWebhook\",rejected=\"true\"} 3
apiserver_admission_controller_admission_duration_seconds_count{name=\"ValidatingAdmissionWebhook\",rejected=\"false\"} 9
apiserver_admission_controller_admission_duration_seconds_count{name=\"Priority\",rejected=\"true\"} 2
apiserver_admission_step_admission_duration_seconds_count{operation=\"CONNECT\",rejected=\"false\"} 1
";
        let expected = json!({
            "controller_admission_duration_seconds_count{name=\"ValidatingAdmissionWebhook\",rejected=\"true\"}": 3,
            "step_admission_duration_seconds_count{operation=\"CONNECT\",rejected=\"false\"}": 1,
        });
        assert_eq!(delta(&BTreeMap::new(), &samples(&counters(text), Scope::Alone("c1"))), expected);
    }
}
