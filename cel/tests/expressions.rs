//! Compares expressions with the results of Kubernetes' own packages: types, values, costs, estimates, and
//! errors.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(dead_code, reason = "the random expressions need more of the files that are shared")]
#![expect(unreachable_pub, reason = "what is shared is public where the random expressions are")]

#[path = "../../tests/src/cel/answer.rs"]
mod answer;
#[path = "../../tests/src/cel/candidate.rs"]
mod candidate;
#[path = "../../tests/src/cel/rules.rs"]
mod rules;

use answer::{Answer, Question};

/// The known differences from the results of Kubernetes' packages, with reasons.
const KNOWN: [(&str, &str); 1] = [(
    "timestamp('1900-01-01T00:00:00Z').getMinutes('Europe/Amsterdam')",
    "the servers' time zones have what Debian keeps of the years before 1970; what is compiled in here does not",
)];

#[test]
fn expressions_evaluate_as_in_kubernetes() {
    compare("expressions.jsonl", 7_000, &KNOWN);
}

/// The expressions whose results in kube-apiserver contain Go names and messages that this crate does not support.
const UNSUPPORTED: [&str; 5] = [
    "google.protobuf.StringValue{value: dyn(request.userInfo)}",
    "google.protobuf.BytesValue{value: dyn(request.userInfo.groups)}",
    "google.protobuf.Timestamp{seconds: 9223372036854775807}",
    "google.protobuf.Any{type_url: 'a'}",
    "google.protobuf.Value{list_value: dyn({'values': 1})}",
];

#[test]
fn unknown_results_are_unsupported() {
    for expr in UNSUPPORTED {
        let question = Answer { expr: expr.to_owned(), ..Answer::default() };
        let error = candidate::answer(&Question::from_answer(&question)).run_error.unwrap_or_default();
        assert!(error.starts_with("not supported: "), "{expr}: {error:?}");
    }
}

#[test]
fn rules_of_custom_resources_evaluate_as_in_kubernetes() {
    compare("rules.jsonl", 400, &[]);
}

fn compare(file: &str, least: usize, known: &[(&str, &str)]) {
    let file = format!("{}/../tests/cel/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{error}"));
    let (mut count, mut deep, mut met, mut differences) = (0, 0, 0, Vec::new());
    for line in text.lines() {
        // serde_json cannot read deeply nested lists.
        let Ok(expected) = serde_json::from_str::<Answer>(line) else {
            deep += 1;
            continue;
        };
        count += 1;
        let question = Question::from_answer(&expected);
        let Some(difference) = expected.differs(&candidate::answer(&question)) else { continue };
        if known.iter().any(|(known, _)| *known == question.expr) {
            met += 1;
        } else {
            differences.push(format!("{question}\n{difference}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{}\n{} differences in {count} expressions",
        differences.join("\n"),
        differences.len()
    );
    assert_eq!(met, known.len(), "what is listed in KNOWN agrees now");
    assert!(deep < 5, "{deep} lines cannot be read");
    assert!(count > least, "only {count} expressions");
}
