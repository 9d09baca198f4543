//! Tests of parsing and matching label selectors.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(pairs: &[(&str, &str)]) -> Value {
    let labels: Map<_, _> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
    json!({"metadata": {"labels": labels}})
}

fn picks(selector: &Selector, pairs: &[(&str, &str)]) -> bool {
    selector.matches(Labels::from_object(&object(pairs)).unwrap())
}

#[track_caller]
fn check(selector: &Value, pairs: &[(&str, &str)], expect: bool) {
    let parsed = Selector::parse(selector).unwrap();
    assert_eq!(picks(&parsed, pairs), expect, "{selector} on {pairs:?}");
}

#[track_caller]
fn check_wrong(selector: &Value, error: &str) {
    assert_eq!(Selector::parse(selector).unwrap_err().to_string(), error, "{selector}");
}

#[test]
fn an_empty_selector_matches_everything() {
    check(&json!({}), &[], true);
    check(&json!({"matchLabels": null, "matchExpressions": []}), &[("a", "b")], true);
    assert!(Selector::parse(&json!({})).unwrap().is_empty());
}

#[test]
fn every_requirement_must_hold() {
    let selector = json!({
        "matchLabels": {"a": "1"},
        "matchExpressions": [{"key": "b", "operator": "Exists"}],
    });
    check(&selector, &[("a", "1"), ("b", "")], true);
    check(&selector, &[("a", "1")], false);
    check(&selector, &[("a", "2"), ("b", "")], false);
}

#[test]
fn negative_operators_match_a_missing_label() {
    let with = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
    check(&with("NotIn", json!(["1"])), &[], true);
    check(&with("NotIn", json!(["1"])), &[("a", "1")], false);
    check(&with("NotIn", json!(["1"])), &[("a", "2")], true);
    check(&with("DoesNotExist", json!([])), &[], true);
    check(&with("DoesNotExist", json!(null)), &[("a", "")], false);
    check(&with("In", json!(["1", "2"])), &[("a", "2")], true);
    check(&with("In", json!(["1", "2"])), &[], false);
}

#[test]
fn a_stored_selector_may_have_invalid_values_and_no_other_errors() {
    let value =
        |value: &str| json!({"matchExpressions": [{"key": "a", "operator": "In", "values": [value]}]});
    let stored = |selector: &Value| Selector::parse_stored(selector).unwrap();
    assert_eq!(stored(&value("b")), Selector::parse(&value("b")).unwrap());
    let invalid = stored(&value("b c"));
    assert!(
        invalid.error().unwrap().starts_with("values[0][a]: Invalid value: \"b c\": a valid label must be")
    );
    assert!(!invalid.is_empty());
    assert!(Selector::parse_stored(&json!({"matchLabels": {"a b": "c"}})).is_err());
}

#[test]
fn invalid_selector_fields_are_named() {
    let expression = |expression: Value| json!({"matchExpressions": [expression]});
    check_wrong(&json!([]), ": must be an object");
    check_wrong(&json!({"matchLabels": []}), "matchLabels: must be an object");
    check_wrong(&json!({"matchLabels": {"a": 1}}), "matchLabels.a: must be a string");
    check_wrong(&expression(json!({"operator": "In"})), "matchExpressions[0].key: is required");
    check_wrong(
        &expression(json!({"key": "a", "operator": "In"})),
        "matchExpressions[0].values: must be specified when `operator` is 'In' or 'NotIn'",
    );
    check_wrong(
        &expression(json!({"key": "a", "operator": "Exists", "values": ["b"]})),
        "matchExpressions[0].values: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    );
    check_wrong(
        &expression(json!({"key": "a", "operator": "Like"})),
        "matchExpressions[0].operator: \"Like\" is not one of In, NotIn, Exists, DoesNotExist",
    );
}

#[test]
fn common_labels_match_all_selectors() {
    let one = |operator: &str, values: Value| {
        let expression = json!({"key": "a", "operator": operator, "values": values});
        Selector::parse(&json!({"matchExpressions": [expression]})).unwrap()
    };
    let all = [
        Selector::default(),
        one("In", json!(["x", "y"])),
        one("In", json!(["y"])),
        one("NotIn", json!(["y", "yes"])),
        one("Exists", json!(null)),
        one("DoesNotExist", json!(null)),
    ];
    let candidates: [&[(&str, &str)]; 5] =
        [&[], &[("a", "x")], &[("a", "y")], &[("a", "yes")], &[("a", "z")]];
    for first in &all {
        for second in &all {
            let common = Selector::common_labels(&[first, second]);
            let exists = candidates.iter().any(|labels| picks(first, labels) && picks(second, labels));
            assert_eq!(common.is_some(), exists, "`{first}` and `{second}`");
            if let Some(labels) = common {
                let labels: Vec<(&str, &str)> =
                    labels.iter().map(|(key, value)| (&**key, &**value)).collect();
                assert!(picks(first, &labels) && picks(second, &labels), "`{first}` and `{second}`");
            }
        }
    }
}

#[test]
fn a_refused_label_is_found_unless_every_value_matches() {
    for (operator, expected) in [("NotIn", Some("yes")), ("In", Some("yes-0")), ("Exists", None)] {
        let values = expected.map(|_| ["yes"]);
        let expression = json!({"key": "a", "operator": operator, "values": values});
        let selector = Selector::parse(&json!({"matchExpressions": [expression]})).unwrap();
        assert_eq!(selector.refused_label(), expected.map(|value| ("a".to_owned(), value.to_owned())));
    }
}

#[test]
fn a_selector_is_formatted_in_kubectl_syntax() {
    let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
        {"key": "b", "operator": "NotIn", "values": ["x", "y"]}, {"key": "c", "operator": "DoesNotExist"},
    ]});
    assert_eq!(Selector::parse(&selector).unwrap().to_string(), "a=1,b notin (x,y),!c");
}

#[test]
fn an_object_without_metadata_has_no_labels_at_all() {
    assert!(Labels::from_object(&json!({"kind": "PodExecOptions"})).is_none());
    let value =
        |object: &Value| Labels::from_object(object).map(|labels| labels.value("a").map(str::to_owned));
    assert_eq!(value(&json!({"metadata": {}})), Some(None));
    assert_eq!(value(&object(&[("a", "b")])), Some(Some("b".to_owned())));
    assert_eq!(value(&json!({"metadata": {"labels": {"a": null}}})), Some(Some(String::new())));
}

proptest! {
    #[test]
    fn match_labels_equal_in_with_one_value(key in "[a-z]{1,2}", value in "[a-z]{0,2}", other in "[a-z]{0,2}") {
        let by_labels = Selector::parse(&json!({"matchLabels": {&key: &value}})).unwrap();
        let by_expression = Selector::parse(&json!({
            "matchExpressions": [{"key": &key, "operator": "In", "values": [&value]}],
        })).unwrap();
        for selector in [by_labels, by_expression] {
            prop_assert_eq!(picks(&selector, &[(&key, &other)]), value == other);
        }
    }

    #[test]
    fn not_in_is_the_opposite_of_in(values in prop::collection::vec("[a-c]", 1..3), label in "[a-c]") {
        let selector = |operator: &str| Selector::parse(&json!({
            "matchExpressions": [{"key": "k", "operator": operator, "values": &values}],
        })).unwrap();
        let labels = [("k", label.as_str())];
        prop_assert_ne!(picks(&selector("In"), &labels), picks(&selector("NotIn"), &labels));
    }
}
