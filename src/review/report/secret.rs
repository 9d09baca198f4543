//! Keeps what a Secret holds off the terminal.

use harness::attributes::GroupVersionKind;
use serde_json::Value;

use super::difference::Change;

/// The fields of a Secret whose values are secret.
const FIELDS: [&str; 2] = ["data", "stringData"];

/// `change` of an object of `kind` as people see it. The values of a Secret are asterisks, which still tell what a value
/// was before from what it is after.
///
/// Source: kubectl pkg/cmd/diff/diff.go, `Masker`.
pub(super) fn masked(change: &Change, kind: &GroupVersionKind) -> Change {
    let is_secret = kind.group.is_empty() && kind.kind == "Secret";
    if !is_secret || !holds_values(&change.path) {
        return change.clone();
    }
    let [before, after] = if change.from.is_some() && change.to.is_some() {
        ["*** (before)", "*** (after)"]
    } else {
        ["***"; 2]
    };
    Change {
        path: change.path.clone(),
        from: change.from.as_ref().map(|value| mask(value, before)),
        to: change.to.as_ref().map(|value| mask(value, after)),
    }
}

/// `data`, `data.key` or `data["a.key"]`, and the same of `stringData`.
fn holds_values(path: &str) -> bool {
    FIELDS
        .iter()
        .filter_map(|field| path.strip_prefix(field))
        .any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// All that stands there, but for the names of members.
fn mask(value: &Value, asterisks: &str) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), mask(value, asterisks))).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => asterisks.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: &str, path: &str, values: [Value; 2], expected: [Value; 2]) {
        let change = |[from, to]: [Value; 2]| {
            let given = |value: Value| Some(value).filter(|value| !value.is_null());
            Change { path: path.to_owned(), from: given(from), to: given(to) }
        };
        let kind = GroupVersionKind::new("", "v1", kind);
        assert_eq!(masked(&change(values), &kind), change(expected), "{path}");
    }

    #[test]
    fn values_of_a_secret_are_masked_and_nothing_else() {
        let values = || [json!("YQ=="), json!("Yg==")];
        let masked = || [json!("*** (before)"), json!("*** (after)")];
        check("Secret", "data.password", values(), masked());
        check("Secret", "data[\"a.b\"]", values(), masked());
        check("Secret", "stringData.password", values(), masked());
        check("Secret", "data.new", [json!(null), json!("YQ==")], [json!(null), json!("***")]);
        check("Secret", "data.old", [json!("YQ=="), json!(null)], [json!("***"), json!(null)]);
        check("Secret", "data", [json!(null), json!({"a": "YQ=="})], [json!(null), json!({"a": "***"})]);
        check("Secret", "type", values(), values());
        check("Secret", "database.x", values(), values());
        check("ConfigMap", "data.password", values(), values());
    }
}
