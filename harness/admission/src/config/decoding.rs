//! Checks the types in webhook configurations as the API server's decoder does.

use kubernetes_types::schema;
use kubernetes_types::status::Status;
use serde_json::Value;

pub(crate) use crate::attributes::GroupVersionKind;

/// Checks that every field of a configuration has the API's type. This is the first check of a create or update.
///
/// # Errors
/// Returns the 400 response for the client if a field has the wrong type.
///
/// Source: apiserver pkg/endpoints/handlers/create.go.
///
/// Rule: CFG-03.
pub fn check_types(configuration: &Value) -> Result<(), Box<Status>> {
    let kind = configuration.get("kind").and_then(Value::as_str).unwrap_or_default();
    let gvk = GroupVersionKind::new("admissionregistration.k8s.io", "v1", kind);
    let Some(members) = configuration.as_object() else { return Ok(()) };
    schema::type_error(members, &gvk, "").map_err(|what| {
        let message = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {what}");
        Box::new(Status::bad_request(message))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(kind: &str, webhooks: &Value) -> String {
        match check_types(&json!({"kind": kind, "webhooks": webhooks})) {
            Ok(()) => String::new(),
            Err(status) => {
                assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
                let prefix = format!("{kind} in version \"v1\" cannot be handled as a {kind}: ");
                status.message.strip_prefix(&prefix).unwrap().to_owned()
            }
        }
    }

    /// Checks the error that kube-apiserver 1.37.1 returned; an empty `error` means that it accepted the configuration.
    #[track_caller]
    fn check_webhook(webhook: &Value, error: &str) {
        assert_eq!(message("MutatingWebhookConfiguration", &json!([webhook])), error, "{webhook}");
    }

    #[test]
    fn a_field_of_the_wrong_type_is_rejected_with_gos_error() {
        let number = "json: cannot unmarshal number into Go struct field";
        let string = "json: cannot unmarshal string into Go struct field";
        for (webhook, error) in [
            (json!(5), format!("{number} MutatingWebhookConfiguration.webhooks of type v1.MutatingWebhook")),
            (json!(null), String::new()),
            (json!({"name": 5}), format!("{number} MutatingWebhook.webhooks.name of type string")),
            (json!({"clientConfig": 5}), format!("{number} MutatingWebhook.webhooks.clientConfig of type v1.WebhookClientConfig")),
            (json!({"clientConfig": {"url": 5}}), format!("{number} WebhookClientConfig.webhooks.clientConfig.url of type string")),
            (json!({"clientConfig": {"service": {"port": "443"}}}), format!("{string} ServiceReference.webhooks.clientConfig.service.port of type int32")),
            (json!({"clientConfig": {"service": {"port": 1.5}}}), "json: cannot unmarshal number 1.5 into Go struct field ServiceReference.webhooks.clientConfig.service.port of type int32".to_owned()),
            (json!({"clientConfig": {"service": {"port": 99_999_999_999_i64}}}), "json: cannot unmarshal number 99999999999 into Go struct field ServiceReference.webhooks.clientConfig.service.port of type int32".to_owned()),
            (json!({"clientConfig": {"caBundle": 5}}), format!("{number} WebhookClientConfig.webhooks.clientConfig.caBundle of type []uint8")),
            (json!({"clientConfig": {"caBundle": [65, null]}}), String::new()),
            (json!({"clientConfig": {"caBundle": [256]}}), "json: cannot unmarshal number 256 into Go struct field WebhookClientConfig.webhooks.clientConfig.caBundle of type uint8".to_owned()),
            (json!({"clientConfig": {"caBundle": ["a"]}}), format!("{string} WebhookClientConfig.webhooks.clientConfig.caBundle of type uint8")),
            (json!({"rules": 5}), format!("{number} MutatingWebhook.webhooks.rules of type []v1.RuleWithOperations")),
            (json!({"rules": [5]}), format!("{number} MutatingWebhook.webhooks.rules of type v1.RuleWithOperations")),
            (json!({"rules": [{"operations": "CREATE"}]}), format!("{string} RuleWithOperations.webhooks.rules.operations of type []v1.OperationType")),
            (json!({"rules": [{"operations": [5]}]}), format!("{number} RuleWithOperations.webhooks.rules.operations of type v1.OperationType")),
            (json!({"rules": [{"apiGroups": 5}]}), format!("{number} RuleWithOperations.webhooks.rules.Rule.apiGroups of type []string")),
            (json!({"rules": [{"scope": 5}]}), format!("{number} RuleWithOperations.webhooks.rules.Rule.scope of type v1.ScopeType")),
            (json!({"reinvocationPolicy": 5}), format!("{number} MutatingWebhook.webhooks.reinvocationPolicy of type v1.ReinvocationPolicyType")),
            (json!({"timeoutSeconds": 2.0}), "json: cannot unmarshal number 2.0 into Go struct field MutatingWebhook.webhooks.timeoutSeconds of type int32".to_owned()),
            (json!({"admissionReviewVersions": "v1"}), format!("{string} MutatingWebhook.webhooks.admissionReviewVersions of type []string")),
            (json!({"namespaceSelector": {"matchLabels": 5}}), format!("{number} LabelSelector.webhooks.namespaceSelector.matchLabels of type map[string]string")),
            (json!({"namespaceSelector": {"matchLabels": {"a": 5}}}), format!("{number} LabelSelector.webhooks.namespaceSelector.matchLabels of type string")),
            (json!({"objectSelector": {"matchExpressions": [{"key": 5}]}}), format!("{number} LabelSelectorRequirement.webhooks.objectSelector.matchExpressions.key of type string")),
            (json!({"matchConditions": [{"name": 5}]}), format!("{number} MatchCondition.webhooks.matchConditions.name of type string")),
        ] {
            check_webhook(&webhook, &error);
        }
        assert_eq!(
            message("ValidatingWebhookConfiguration", &json!({})),
            "json: cannot unmarshal object into Go struct field ValidatingWebhookConfiguration.webhooks of type \
             []v1.ValidatingWebhook"
        );
    }

    #[test]
    fn an_invalid_base64_ca_bundle_is_rejected_with_its_offset() {
        for (bundle, byte) in [("###", 0), ("AAA", 0), ("AAAA#", 4), ("AA A", 2), ("AAAA\n#", 5)] {
            let webhook = json!({"clientConfig": {"caBundle": bundle}});
            check_webhook(&webhook, &format!("illegal base64 data at input byte {byte}"));
        }
        for bundle in ["A\nAAA", "AB==", ""] {
            check_webhook(&json!({"clientConfig": {"caBundle": bundle}}), "");
        }
    }
}
