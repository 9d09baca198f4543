//! What Pods tolerate, as plugins put it together.

use serde_json::Value;

use crate::json::text;

/// Both lists without what another one covers.
///
/// Source: kubernetes pkg/util/tolerations/tolerations.go, `MergeTolerations`.
pub(super) fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let later = all.iter().skip(index + 1);
        let is_redundant = merged.iter().any(|kept| covers(kept, toleration))
            || later.into_iter().any(|later| later != toleration && covers(later, toleration));
        if !is_redundant {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether `wide` tolerates all that `narrow` does.
///
/// Source: the same file, `isSuperset`.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let (of_wide, of_narrow) = (|field| text(wide, &[field]), |field| text(narrow, &[field]));
    let is_any = of_wide("key").is_empty() && of_wide("operator") == "Exists";
    if of_narrow("key") != of_wide("key") && !is_any {
        return false;
    }
    if of_narrow("effect") != of_wide("effect") && !of_wide("effect").is_empty() {
        return false;
    }
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    if of_wide("effect") == "NoExecute"
        && let Some(most) = seconds(wide)
        && seconds(narrow).is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match of_wide("operator") {
        "" | "Equal" => of_narrow("operator") == "Equal" && of_narrow("value") == of_wide("value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_covers_is_left_out() {
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
}
