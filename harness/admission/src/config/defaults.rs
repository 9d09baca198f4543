//! Sets the API's defaults in webhook configurations.

use serde_json::{Map, Value, json};

use super::{DEFAULT_PORT, DEFAULT_TIMEOUT_SECONDS, MUTATING, v1beta1};

/// Sets the defaults of a configuration's API version, as the API server does before storing the configuration.
///
/// `sideEffects` and `admissionReviewVersions` have defaults in v1beta1 but not in v1. Fields of the wrong type are
/// left unchanged.
///
/// Source: kubernetes `pkg/apis/admissionregistration/{v1,v1beta1}/defaults.go`.
/// Rule: CFG-04, CFG-05.
pub fn set_defaults(configuration: &mut Value) {
    let mutating = configuration.get("kind").and_then(Value::as_str) == Some(MUTATING);
    let is_v1beta1 = v1beta1::is_v1beta1(configuration);
    for webhook in objects(configuration.get_mut("webhooks")) {
        if is_v1beta1 {
            v1beta1::set_own_defaults(webhook);
        }
        set(webhook, "failurePolicy", || json!("Fail"));
        set(webhook, "matchPolicy", || json!("Equivalent"));
        set(webhook, "namespaceSelector", || json!({}));
        set(webhook, "objectSelector", || json!({}));
        set(webhook, "timeoutSeconds", || json!(DEFAULT_TIMEOUT_SECONDS));
        if mutating {
            set(webhook, "reinvocationPolicy", || json!("Never"));
        }
        for rule in objects(webhook.get_mut("rules")) {
            set(rule, "scope", || json!("*"));
        }
        let service = webhook.get_mut("clientConfig").and_then(|client| client.get_mut("service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            set(service, "port", || json!(DEFAULT_PORT));
        }
    }
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

pub(super) fn set(object: &mut Map<String, Value>, field: &str, default: impl Fn() -> Value) {
    let value = object.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, webhook: &Value, expect: &Value) {
        let mut configuration = json!({"kind": kind, "webhooks": [webhook]});
        set_defaults(&mut configuration);
        assert_eq!(configuration, json!({"kind": kind, "webhooks": [expect]}));
    }

    #[test]
    fn missing_and_null_fields_are_defaulted() {
        check(
            "MutatingWebhookConfiguration",
            &json!({"rules": [{}], "clientConfig": {"service": {"port": null}}, "timeoutSeconds": null}),
            &json!({
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "timeoutSeconds": 10,
                "reinvocationPolicy": "Never",
                "rules": [{"scope": "*"}],
                "clientConfig": {"service": {"port": 443}},
            }),
        );
    }

    #[test]
    fn set_fields_are_kept_and_validating_webhooks_get_no_reinvocation_policy() {
        let all = json!({
            "failurePolicy": "Ignore",
            "matchPolicy": "Exact",
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "objectSelector": {"matchLabels": {"a": "b"}},
            "timeoutSeconds": 1,
            "rules": [{"scope": "Cluster"}],
            "clientConfig": {"url": "https://h/"},
        });
        check("ValidatingWebhookConfiguration", &all, &all);
    }

    #[test]
    fn other_objects_are_not_defaulted() {
        for mut odd in
            [json!(null), json!({"webhooks": 1}), json!({"webhooks": [1, {"rules": [2], "clientConfig": 3}]})]
        {
            set_defaults(&mut odd);
        }
    }
}
