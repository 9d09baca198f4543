//! The admission counters of a server that a case may be judged by.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::server::MARKER;

/// Families whose samples name a webhook. Of histograms only the count is no matter of time.
const COUNTERS: [&str; 7] = [
    "apiserver_admission_webhook_request_total",
    "apiserver_admission_webhook_rejection_count",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_admission_duration_seconds_count",
    "apiserver_admission_match_condition_evaluation_errors_total",
    "apiserver_admission_match_condition_exclusions_total",
    "apiserver_admission_match_condition_evaluation_seconds_count",
];

/// The samples of webhooks whose name contains `id`, by name and labels, in order.
pub(crate) fn samples(exposition: &str, id: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    for line in exposition.lines() {
        let Some((name, rest)) = line.split_once('{') else { continue };
        if !COUNTERS.contains(&name) || !line.contains(id) || line.contains(&format!("\"{MARKER}.")) {
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

/// What was counted between two looks, as a recording has it.
pub(crate) fn delta(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> Value {
    let grown = after.iter().filter_map(|(sample, value)| {
        let grown = value - before.get(sample).copied().unwrap_or_default();
        // Counts are whole numbers.
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
";
        let after = samples(text, "c1");
        let expected = json!({"webhook_fail_open_count{name=\"a.c1.example.com\",type=\"admit\"}": 2});
        assert_eq!(delta(&BTreeMap::new(), &after), expected);
        assert_eq!(delta(&after, &after), json!({}));
    }
}
