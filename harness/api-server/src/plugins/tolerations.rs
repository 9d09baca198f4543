//! Merges tolerations for admission plugins.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use kubernetes_types::json::text;

/// Merges two lists and omits tolerations that others cover. Runs in linear time because clients control the lists.
///
/// Source: kubernetes pkg/util/tolerations/tolerations.go, `MergeTolerations`.
pub(super) fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut later = TolerationIndex::default();
    let mut is_covered_later: Vec<bool> = Vec::with_capacity(all.len());
    for toleration in all.iter().rev() {
        is_covered_later.push(later.has_other(toleration));
        later.insert(toleration);
    }
    let (mut kept, mut equal) = (TolerationIndex::default(), HashSet::new());
    let mut merged = Vec::new();
    for (toleration, is_covered_later) in all.into_iter().zip(is_covered_later.into_iter().rev()) {
        if !is_covered_later && !equal.contains(toleration) && !kept.has_other(toleration) {
            kept.insert(toleration);
            equal.insert(toleration);
            merged.push(toleration.clone());
        }
    }
    merged
}

/// The taints that a toleration matches: effect, key, and value. `None` matches any value.
type Scope<'a> = (&'a str, &'a str, Option<&'a str>);

/// An index of tolerations by scope.
///
/// Source: the same file, `isSuperset`.
#[derive(Default)]
struct TolerationIndex<'a> {
    /// For each scope, the toleration that lasts longest and the next longest that differs from it.
    longest: HashMap<Scope<'a>, (&'a Value, Option<&'a Value>)>,
}

impl<'a> TolerationIndex<'a> {
    fn insert(&mut self, toleration: &'a Value) {
        let value = match field(toleration, "operator") {
            "" | "Equal" => Some(field(toleration, "value")),
            "Exists" => None,
            // Other operators cover only identical tolerations.
            _ => return,
        };
        let scope = (field(toleration, "effect"), field(toleration, "key"), value);
        let (longest, second) = self.longest.entry(scope).or_insert((toleration, None));
        if *longest == toleration {
            return;
        }
        if covered_seconds(toleration) > covered_seconds(longest) {
            *second = Some(std::mem::replace(longest, toleration));
        } else if second.is_none_or(|second| covered_seconds(toleration) > covered_seconds(second)) {
            *second = Some(toleration);
        }
    }

    /// Returns whether a different toleration covers `narrow`.
    fn has_other(&self, narrow: &Value) -> bool {
        let of = |name| field(narrow, name);
        let value = (of("operator") == "Equal").then(|| of("value"));
        // A toleration without a key and with the operator `Exists` tolerates every key.
        let mut scopes = ["", of("effect")].into_iter().flat_map(|effect| {
            let exact = value.map(|value| (effect, of("key"), Some(value)));
            [(effect, of("key"), None), (effect, "", None)].into_iter().chain(exact)
        });
        scopes.any(|scope| {
            let Some((longest, second)) = self.longest.get(&scope) else { return false };
            let mut wide = [Some(*longest), *second].into_iter().flatten();
            wide.any(|wide| wide != narrow && covered_seconds(wide) >= tolerated_seconds(narrow))
        })
    }
}

fn field<'a>(toleration: &'a Value, name: &str) -> &'a str {
    text(toleration, &[name])
}

fn seconds(toleration: &Value) -> Option<i64> {
    toleration.get("tolerationSeconds").and_then(Value::as_i64)
}

/// Returns the longest duration, in seconds, that the toleration covers; the maximum if unlimited.
fn covered_seconds(wide: &Value) -> i128 {
    let limit = seconds(wide).filter(|_| field(wide, "effect") == "NoExecute");
    limit.map_or(i128::MAX, i128::from)
}

/// Returns the duration of the toleration, in seconds; the maximum if unlimited.
fn tolerated_seconds(narrow: &Value) -> i128 {
    seconds(narrow).map_or(i128::MAX, i128::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn covered_tolerations_are_dropped() {
        let key = |key: &str| json!({"key": key, "operator": "Exists"});
        let (a, b) = (key("a"), key("b"));
        let equal = json!({"key": "a", "operator": "Equal", "value": "x"});
        let soon = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let all = json!({"operator": "Exists"});
        for (first, second, expect) in [
            (vec![&a], vec![&a, &b], vec![&a, &b]),
            (vec![&equal, &soon], vec![&a], vec![&a]),
            (vec![&a], vec![&equal, &soon], vec![&a]),
            (vec![&a, &b], vec![&all], vec![&all]),
            (vec![&soon], vec![&b], vec![&soon, &b]),
        ] {
            let owned = |list: Vec<&Value>| list.into_iter().cloned().collect::<Vec<_>>();
            assert_eq!(merge(&owned(first), &owned(second)), owned(expect));
        }
    }

    /// Returns whether `wide` covers `narrow` according to upstream's rules.
    fn covers(wide: &Value, narrow: &Value) -> bool {
        if wide == narrow {
            return true;
        }
        let (of_wide, of_narrow) = (|name| field(wide, name), |name| field(narrow, name));
        let is_any = of_wide("key").is_empty() && of_wide("operator") == "Exists";
        if of_narrow("key") != of_wide("key") && !is_any {
            return false;
        }
        if of_narrow("effect") != of_wide("effect") && !of_wide("effect").is_empty() {
            return false;
        }
        if of_wide("effect") == "NoExecute"
            && let Some(covered_seconds) = seconds(wide)
            && seconds(narrow).is_none_or(|seconds| seconds > covered_seconds)
        {
            return false;
        }
        match of_wide("operator") {
            "" | "Equal" => of_narrow("operator") == "Equal" && of_narrow("value") == of_wide("value"),
            "Exists" => true,
            _ => false,
        }
    }

    fn merge_one_by_one(all: &[Value]) -> Vec<Value> {
        let mut merged: Vec<Value> = Vec::new();
        for (index, toleration) in all.iter().enumerate() {
            let later = all.iter().skip(index + 1);
            let is_redundant = merged.iter().any(|kept| covers(kept, toleration))
                || later.into_iter().any(|later| later != toleration && covers(later, toleration));
            if !is_redundant {
                merged.push(toleration.clone());
            }
        }
        merged
    }

    #[test]
    fn merge_matches_pairwise_upstream_rules() {
        let mut tolerations = Vec::new();
        for key in ["", "a"] {
            for operator in ["", "Equal", "Exists", "Lt"] {
                for effect in ["", "NoExecute"] {
                    for (value, seconds) in [("", None), ("x", None), ("", Some(5)), ("x", Some(9))] {
                        let mut toleration =
                            json!({"key": key, "operator": operator, "effect": effect, "value": value});
                        if let Some(seconds) = seconds {
                            toleration["tolerationSeconds"] = json!(seconds);
                        }
                        tolerations.push(toleration);
                    }
                }
            }
        }
        for a in &tolerations {
            for b in &tolerations {
                for c in tolerations.iter().step_by(3) {
                    let all = [a, b, c, a].map(Value::clone);
                    let (first, second) = all.split_at(1);
                    assert_eq!(merge(first, second), merge_one_by_one(&all), "{all:?}");
                }
            }
        }
    }

    #[test]
    fn merge_takes_linear_time() {
        let of = |index: usize| json!({"key": format!("k{index}"), "operator": "Equal", "value": "x"});
        let many: Vec<Value> = (0..100_000).map(of).collect();
        assert_eq!(merge(&many, &many), many);
    }
}
