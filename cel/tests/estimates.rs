//! Static estimates of costs, as Kubernetes' own packages give them.

use kubernetes_cel::estimate::Unbounded;
use kubernetes_cel::kubernetes::{Variables, Version, environment_at, with_admission_variables};
use serde_json::Value as Json;

#[test]
fn estimates_are_those_of_kubernetes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cel/expressions.jsonl");
    let text = std::fs::read_to_string(file).expect("the file is there");
    let admission = Variables { params: false, authorizer: true };
    let environment = with_admission_variables(environment_at(Version::new(1, 37)), admission);
    let (mut count, mut different) = (0, Vec::new());
    for line in text.lines() {
        // Some values are nested more deeply than JSON is read: their expressions are lists in lists.
        let Ok(answer) = serde_json::from_str::<Json>(line) else { continue };
        let (Some(expression), Some(expected)) = (answer["expr"].as_str(), answer.get("estimate")) else {
            continue;
        };
        count += 1;
        let bound = |name: &str| expected[name].as_u64();
        let found = environment.estimate(expression, &Unbounded::default());
        let range = found.as_ref().ok().map(|range| (Some(range.min), Some(range.max)));
        if range != Some((bound("min"), bound("max"))) {
            different.push(format!("{expression}\n  expected {expected}\n  found    {found:?}"));
        }
    }
    assert!(count > 150, "only {count} expressions have an estimate");
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
}
