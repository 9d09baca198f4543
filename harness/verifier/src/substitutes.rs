//! Replaces the fields of a configuration that the API server rejects, so that the other fields can be checked.
//!
//! Each rejected field has several valid values. A check whose result is the same for all of them does not depend on the
//! field.

use kubernetes_admission::config::{self, ConfigError};
use serde_json::{Value, json};

/// The maximum number of rejected fields to replace in a configuration.
const MAX_FIELDS: usize = 64;

/// A rejected field that has a substitute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Substitute {
    /// The position of the configuration in the manifests.
    pub(super) position: usize,
    /// The path of the field, or of the field that contains it, such as `webhooks[0].timeoutSeconds`.
    pub(super) field: String,
    /// The number of valid values that can replace the field; 0 for a complete entry of `webhooks`.
    pub(super) values: usize,
}

impl Substitute {
    /// Returns whether a complete entry of `webhooks` is replaced.
    pub(super) fn is_entry(&self) -> bool {
        self.values == 0
    }
}

/// Selects the value of each substitute by the position of the configuration and the field. The first value is 0.
pub(super) type Choice<'a> = &'a dyn Fn(usize, &str) -> usize;

/// Returns the configuration with a valid value in each field that the API server rejects, and these fields.
///
/// An entry that does not have a name, or that has a field without a substitute, is replaced by an entry without rules.
/// Entries keep their positions. Returns `None` if the rejected field is not in an entry.
pub(super) fn substituted(
    configuration: &Value,
    position: usize,
    choice: Choice<'_>,
) -> Option<(Value, Vec<Substitute>)> {
    let mut complete = configuration.clone();
    let mut substitutes: Vec<Substitute> = Vec::new();
    while substitutes.len() < MAX_FIELDS {
        let rejected = match config::webhooks(&complete) {
            Ok(_) => return Some((complete, substitutes)),
            Err(ConfigError::Field { field, .. }) => field,
            Err(ConfigError::Unsupported(_)) => return None,
        };
        let entry = rejected.split_inclusive(']').next().filter(|entry| entry.starts_with("webhooks["))?;
        let is_known = |field: &str| substitutes.iter().any(|known| known.field == field);
        let replacement = values(&rejected, entry).filter(|(field, _)| !is_known(field));
        let substitute = replacement.and_then(|(field, mut values)| {
            let count = values.len();
            let value = values.swap_remove(choice(position, &field) % count);
            write(&mut complete, &field, value)?;
            Some(Substitute { position, field, values: count })
        });
        if let Some(substitute) = substitute {
            substitutes.push(substitute);
            continue;
        }
        if is_known(entry) {
            return None;
        }
        *complete.pointer_mut(&pointer(entry))? = entry_without_rules(configuration, entry);
        substitutes.push(Substitute { position, field: entry.to_owned(), values: 0 });
    }
    None
}

/// Returns the field to replace, and its valid values, or `None` if `rejected` does not have a substitute.
fn values(rejected: &str, entry: &str) -> Option<(String, Vec<Value>)> {
    let field = rejected.strip_prefix(entry)?.strip_prefix('.')?;
    let segments: Vec<&str> = field.split('.').collect();
    let outermost = *segments.first()?;
    let (name, index) = outermost.split_once('[').unwrap_or((outermost, ""));
    let whole = || format!("{entry}.{outermost}");
    let own = || rejected.to_owned();
    let (field, values) = match (name, segments.get(1).copied()) {
        // The reader accepts any name, so messages show the position.
        ("name", None) => (own(), vec![json!(entry)]),
        ("sideEffects", None) => (own(), vec![json!("None"), json!("NoneOnDryRun")]),
        ("admissionReviewVersions", _) => {
            (format!("{entry}.{name}"), vec![json!(["v1"]), json!(["v1", "v1beta1"])])
        }
        ("timeoutSeconds", None) => (own(), vec![json!(10), json!(1), json!(30)]),
        // With Ignore, fewer requests depend on the webhook.
        ("failurePolicy", None) => (own(), vec![json!("Ignore"), json!("Fail")]),
        ("matchPolicy", None) => (own(), vec![json!("Equivalent"), json!("Exact")]),
        ("reinvocationPolicy", None) => (own(), vec![json!("Never"), json!("IfNeeded")]),
        ("namespaceSelector" | "objectSelector", _) => {
            (whole(), vec![json!({}), json!({"matchLabels": {"example.com/none": "none"}})])
        }
        ("matchConditions", _) => (
            format!("{entry}.{name}"),
            vec![json!([]), json!([{"name": "never.example.com", "expression": "false"}])],
        ),
        ("rules", None) if index.is_empty() => (whole(), vec![json!([]), json!([every_rule()])]),
        ("rules", Some("scope")) => (own(), vec![json!("*"), json!("Cluster"), json!("Namespaced")]),
        ("rules", Some("operations")) => {
            (own(), vec![json!(["CREATE"]), json!(["*"]), json!(["DELETE"]), json!(["CONNECT"])])
        }
        ("rules", Some(operation)) if operation.starts_with("operations[") => {
            (own(), vec![json!("CREATE"), json!("*"), json!("DELETE"), json!("CONNECT")])
        }
        ("rules", _) => (whole(), vec![no_rule(), every_rule()]),
        ("clientConfig", Some("caBundle")) => (own(), vec![json!(""), json!("AA==")]),
        ("clientConfig", Some("service")) if segments.get(2) == Some(&"port") => {
            (own(), vec![json!(443), json!(1)])
        }
        ("clientConfig", _) => (
            whole(),
            vec![
                json!({"url": "https://localhost/"}),
                json!({"service": {"namespace": "default", "name": "webhook"}}),
            ],
        ),
        _ => return None,
    };
    Some((field, values))
}

/// Returns a rule that does not match any request.
fn no_rule() -> Value {
    json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["none"]})
}

/// Returns a rule that matches every request.
fn every_rule() -> Value {
    json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]})
}

/// Returns a valid entry that replaces a rejected entry and does not match any request.
///
/// The entry keeps the name of the rejected entry, or has its position as the name.
fn entry_without_rules(configuration: &Value, entry: &str) -> Value {
    let name = configuration.pointer(&format!("{}/name", pointer(entry))).and_then(Value::as_str);
    json!({
        "name": name.filter(|name| !name.is_empty()).unwrap_or(entry),
        "clientConfig": {"url": "https://localhost/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    })
}

fn write(configuration: &mut Value, field: &str, value: Value) -> Option<()> {
    if field.ends_with(']') {
        *configuration.pointer_mut(&pointer(field))? = value;
        return Some(());
    }
    let (parent, name) = field.rsplit_once('.')?;
    configuration.pointer_mut(&pointer(parent))?.as_object_mut()?.insert(name.to_owned(), value);
    Some(())
}

/// Converts the path of a field, such as `webhooks[0].rules`, to a JSON pointer.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace(['.', '['], "/").replace(']', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(entry: &Value) -> Value {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "c"}, "webhooks": [entry]})
    }

    #[track_caller]
    fn check(path: &str, value: &Value, expected: &str) {
        let mut entry = entry_without_rules(&Value::Null, "webhooks[0]");
        entry["rules"] = json!([every_rule()]);
        entry["matchConditions"] = json!([{"name": "a", "expression": "true"}]);
        let mut configuration = configuration(&entry);
        *configuration.pointer_mut(&format!("/webhooks/0{path}")).unwrap() = value.clone();
        for choice in 0..4 {
            let (complete, substitutes) = substituted(&configuration, 0, &|_, _| choice).unwrap();
            let fields: Vec<&str> = substitutes.iter().map(|it| it.field.as_str()).collect();
            assert_eq!(fields, [expected], "{path}: {complete}");
            assert!(config::webhooks(&complete).is_ok());
        }
    }

    #[test]
    fn every_rejected_field_has_a_substitute() {
        check("/name", &json!(""), "webhooks[0].name");
        check("/sideEffects", &json!("Some"), "webhooks[0].sideEffects");
        check("/admissionReviewVersions/0", &json!(1), "webhooks[0].admissionReviewVersions");
        check("/failurePolicy", &json!("Never"), "webhooks[0].failurePolicy");
        check("/rules", &json!("pods"), "webhooks[0].rules");
        check("/rules/0", &json!("pods"), "webhooks[0].rules[0]");
        check("/rules/0/resources", &json!([]), "webhooks[0].rules[0]");
        check("/rules/0/operations", &json!([]), "webhooks[0].rules[0].operations");
        check("/rules/0/operations/0", &json!("PATCH"), "webhooks[0].rules[0].operations[0]");
        check("/matchConditions", &json!("true"), "webhooks[0].matchConditions");
        check("/matchConditions/0/expression", &json!(""), "webhooks[0].matchConditions");
        check("/clientConfig", &json!({}), "webhooks[0].clientConfig");
        check(
            "/clientConfig",
            &json!({"url": "https://a/", "caBundle": "CA_BUNDLE"}),
            "webhooks[0].clientConfig.caBundle",
        );
        check("", &json!("pods"), "webhooks[0]");
    }

    #[test]
    fn replaced_entry_is_named_as_in_the_file() {
        let name = |entry: &Value| {
            let (complete, _) = substituted(&configuration(entry), 0, &|_, _| 0).unwrap();
            complete["webhooks"][0]["name"].clone()
        };
        assert_eq!(name(&json!({"name": "pods.example.com"})), "pods.example.com");
        assert_eq!(name(&json!({})), "webhooks[0]");
        assert_eq!(name(&json!(7)), "webhooks[0]");
    }
}
