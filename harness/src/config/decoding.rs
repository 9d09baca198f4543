//! Can the API server decode this into a configuration?

use serde_json::Value;

use crate::go_base64;
use crate::json::json_type;
use crate::status::Status;

/// The Go type of a field.
enum Shape {
    /// A string type, such as `v1.ScopeType`.
    Text(&'static str),
    Int32,
    Bytes,
    Texts(&'static str),
    TextMap,
    Struct(&'static Struct),
    Structs(&'static Struct),
}

struct Struct {
    /// The type's name without its package.
    name: &'static str,
    /// Each field's name in JSON, its path in messages, and its type.
    fields: &'static [(&'static str, &'static str, Shape)],
}

/// Whether every field of a configuration is of the API's type: the first check of a create or an update.
///
/// Of several wrong fields one is reported; the server reports the one that it reads first.
///
/// Source: Go encoding/json/decode.go; apiserver pkg/endpoints/handlers/create.go.
///
/// # Errors
/// The 400 that the client gets.
pub fn check_types(configuration: &Value) -> Result<(), Box<Status>> {
    let kind = configuration.get("kind").and_then(Value::as_str).unwrap_or_default();
    type_error(configuration, kind, "").map_err(|what| {
        let message = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {what}");
        Box::new(Status::bad_request(message))
    })
}

/// The same in the words of Go's decoder, for a configuration of this kind whose fields are under `path`: nothing, or
/// `items.` in a list.
///
/// # Errors
/// The text of the decoder.
pub(crate) fn type_error(configuration: &Value, kind: &str, path: &str) -> Result<(), String> {
    let webhook = if kind == super::MUTATING { &MUTATING_WEBHOOK } else { &VALIDATING_WEBHOOK };
    let webhooks = configuration.get("webhooks").unwrap_or(&Value::Null);
    check(webhooks, &Shape::Structs(webhook), kind, &format!("{path}webhooks"))
}

/// `owner` is the struct that has the field, `path` where the field is.
fn check(value: &Value, shape: &Shape, owner: &str, path: &str) -> Result<(), String> {
    let wrong = |value: &Value, expected: &str| {
        let found = match (value.as_number(), expected) {
            (Some(number), "int32" | "uint8") => format!("number {number}"),
            (Some(_) | None, _) => json_type(value).to_owned(),
        };
        Err(format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {expected}"))
    };
    match (shape, value) {
        // Null leaves a field as it is.
        (_, Value::Null) | (Shape::Text(_), Value::String(_)) => Ok(()),
        (Shape::Bytes, Value::Array(items)) => items.iter().try_for_each(|item| match item {
            Value::Null => Ok(()),
            Value::Number(number) if number.as_u64().is_some_and(|byte| u8::try_from(byte).is_ok()) => Ok(()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                wrong(item, "uint8")
            }
        }),
        (Shape::Bytes, Value::String(text)) => go_base64::decode(text).map(drop),
        (Shape::Int32, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            if fits { Ok(()) } else { wrong(value, "int32") }
        }
        (Shape::Texts(element), Value::Array(values)) => {
            values.iter().try_for_each(|value| check(value, &Shape::Text(element), owner, path))
        }
        (Shape::TextMap, Value::Object(members)) => {
            members.values().try_for_each(|value| check(value, &Shape::Text("string"), owner, path))
        }
        (Shape::Struct(of), Value::Object(members)) => {
            of.fields.iter().try_for_each(|(name, place, shape)| match members.get(*name) {
                Some(value) => check(value, shape, of.name, &format!("{path}.{place}")),
                None => Ok(()),
            })
        }
        (Shape::Structs(of), Value::Array(values)) => {
            values.iter().try_for_each(|value| check(value, &Shape::Struct(of), owner, path))
        }
        (Shape::Text(expected), _) => wrong(value, expected),
        (Shape::Int32, _) => wrong(value, "int32"),
        (Shape::Bytes, _) => wrong(value, "[]uint8"),
        (Shape::Texts(element), _) => wrong(value, &format!("[]{element}")),
        (Shape::TextMap, _) => wrong(value, "map[string]string"),
        (Shape::Struct(of), _) => wrong(value, &format!("v1.{}", of.name)),
        (Shape::Structs(of), _) => wrong(value, &format!("[]v1.{}", of.name)),
    }
}

static MUTATING_WEBHOOK: Struct = Struct { name: "MutatingWebhook", fields: &WEBHOOK_FIELDS };

static VALIDATING_WEBHOOK: Struct =
    Struct { name: "ValidatingWebhook", fields: WEBHOOK_FIELDS.split_at(WEBHOOK_FIELDS.len() - 1).0 };

/// The last one is a mutating webhook's only.
///
/// Rule: CFG-03.
static WEBHOOK_FIELDS: [(&str, &str, Shape); 12] = [
    ("admissionReviewVersions", "admissionReviewVersions", Shape::Texts("string")),
    ("clientConfig", "clientConfig", Shape::Struct(&CLIENT_CONFIG)),
    ("failurePolicy", "failurePolicy", Shape::Text("v1.FailurePolicyType")),
    ("matchConditions", "matchConditions", Shape::Structs(&MATCH_CONDITION)),
    ("matchPolicy", "matchPolicy", Shape::Text("v1.MatchPolicyType")),
    ("name", "name", Shape::Text("string")),
    ("namespaceSelector", "namespaceSelector", Shape::Struct(&LABEL_SELECTOR)),
    ("objectSelector", "objectSelector", Shape::Struct(&LABEL_SELECTOR)),
    ("rules", "rules", Shape::Structs(&RULE)),
    ("sideEffects", "sideEffects", Shape::Text("v1.SideEffectClass")),
    ("timeoutSeconds", "timeoutSeconds", Shape::Int32),
    ("reinvocationPolicy", "reinvocationPolicy", Shape::Text("v1.ReinvocationPolicyType")),
];

static CLIENT_CONFIG: Struct = Struct {
    name: "WebhookClientConfig",
    fields: &[
        ("caBundle", "caBundle", Shape::Bytes),
        ("service", "service", Shape::Struct(&SERVICE)),
        ("url", "url", Shape::Text("string")),
    ],
};

static SERVICE: Struct = Struct {
    name: "ServiceReference",
    fields: &[
        ("name", "name", Shape::Text("string")),
        ("namespace", "namespace", Shape::Text("string")),
        ("path", "path", Shape::Text("string")),
        ("port", "port", Shape::Int32),
    ],
};

static RULE: Struct = Struct {
    name: "RuleWithOperations",
    fields: &[
        ("apiGroups", "Rule.apiGroups", Shape::Texts("string")),
        ("apiVersions", "Rule.apiVersions", Shape::Texts("string")),
        ("operations", "operations", Shape::Texts("v1.OperationType")),
        ("resources", "Rule.resources", Shape::Texts("string")),
        ("scope", "Rule.scope", Shape::Text("v1.ScopeType")),
    ],
};

static LABEL_SELECTOR: Struct = Struct {
    name: "LabelSelector",
    fields: &[
        ("matchExpressions", "matchExpressions", Shape::Structs(&REQUIREMENT)),
        ("matchLabels", "matchLabels", Shape::TextMap),
    ],
};

static REQUIREMENT: Struct = Struct {
    name: "LabelSelectorRequirement",
    fields: &[
        ("key", "key", Shape::Text("string")),
        ("operator", "operator", Shape::Text("v1.LabelSelectorOperator")),
        ("values", "values", Shape::Texts("string")),
    ],
};

static MATCH_CONDITION: Struct = Struct {
    name: "MatchCondition",
    fields: &[("expression", "expression", Shape::Text("string")), ("name", "name", Shape::Text("string"))],
};

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

    /// `error` is what kube-apiserver 1.37.1 answered; empty where it decoded the configuration.
    #[track_caller]
    fn check_webhook(webhook: &Value, error: &str) {
        assert_eq!(message("MutatingWebhookConfiguration", &json!([webhook])), error, "{webhook}");
    }

    #[test]
    fn a_field_of_another_type_is_refused_in_gos_words() {
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
    fn a_ca_bundle_that_is_no_base64_is_refused_at_its_byte() {
        for (bundle, byte) in [("###", 0), ("AAA", 0), ("AAAA#", 4), ("AA A", 2), ("AAAA\n#", 5)] {
            let webhook = json!({"clientConfig": {"caBundle": bundle}});
            check_webhook(&webhook, &format!("illegal base64 data at input byte {byte}"));
        }
        for bundle in ["A\nAAA", "AB==", ""] {
            check_webhook(&json!({"clientConfig": {"caBundle": bundle}}), "");
        }
    }
}
