//! Generates fakes that replace the webhooks in a manifest.
//!
//! Each fake has the fields of its webhook except `clientConfig`, and the behavior `allow`.

use std::collections::BTreeSet;

use harness::attributes::GroupVersionKind;
use harness::config;
use harness::json::{at, text};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::documents::{self, Document, DocumentLocation};
use crate::{Failure, v1beta1};

/// The webhook fields that a fakes file also supports.
const FIELDS: [&str; 10] = [
    "rules",
    "namespaceSelector",
    "objectSelector",
    "matchConditions",
    "failurePolicy",
    "matchPolicy",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "reinvocationPolicy",
];

/// Returns whether `text` is a Kubernetes manifest and not a fakes file.
pub(crate) fn is_manifest(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Head {
        kind: Option<IgnoredAny>,
    }
    let heads = serde_saphyr::from_multiple::<Option<Head>>(text).unwrap_or_default();
    heads.iter().flatten().any(|head| head.kind.is_some())
}

/// Generates fakes files for the webhook configurations in a manifest, one for each configuration name.
///
/// Prints a warning for v1beta1 configurations.
///
/// # Errors
/// Returns an error if the manifest is invalid, does not contain a webhook configuration, or contains one that the API
/// server would reject.
pub(crate) fn from_manifest(text: String, shown: &str) -> Result<Vec<Value>, Failure> {
    let mut files: Vec<Value> = Vec::new();
    let mut names = BTreeSet::new();
    for Document { place, object } in documents::of_text(text, shown)? {
        let Some(kind) = kind_of_webhooks(&object) else { continue };
        config::webhooks(&object).map_err(|error| place.failure(error))?;
        v1beta1::warn(&place, &object);
        let name = name_of(&place, &object)?;
        let configuration = config::upgraded(&object).unwrap_or(object);
        let webhooks = at(&configuration, &["webhooks"]).as_array().map_or(&[][..], Vec::as_slice);
        let entries = webhooks.iter().map(|webhook| entry(kind, webhook, &mut names));
        let index = files.iter().position(|file| file["name"] == name.as_str()).unwrap_or_else(|| {
            files.push(json!({"version": 1, "name": name, "webhooks": []}));
            files.len() - 1
        });
        if let Some(Value::Array(all)) = files.get_mut(index).and_then(|file| file.get_mut("webhooks")) {
            all.extend(entries);
        }
    }
    if files.is_empty() {
        let message = "missing MutatingWebhookConfiguration or ValidatingWebhookConfiguration";
        return Err(Failure::usage(format!("{shown}: {message}")));
    }
    Ok(files)
}

/// Returns the `type` of the fakes for a webhook configuration; `None` for other objects.
fn kind_of_webhooks(object: &Value) -> Option<&'static str> {
    let GroupVersionKind { group, kind, .. } = GroupVersionKind::from_object(object);
    match (group.as_str(), kind.as_str()) {
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => Some("mutating"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => Some("validating"),
        _ => None,
    }
}

fn name_of(place: &DocumentLocation, object: &Value) -> Result<String, Failure> {
    let name = text(object, &["metadata", "name"]);
    if name.is_empty() { Err(place.failure("metadata.name: Required value")) } else { Ok(name.to_owned()) }
}

/// Creates a fakes file entry with a unique name, because webhooks in a manifest may have the same name.
///
/// A duplicate gets its `type` as a prefix and, if necessary, a number.
fn entry(kind: &str, webhook: &Value, names: &mut BTreeSet<String>) -> Value {
    let webhook_name = text(webhook, &["name"]);
    let numbered = (2..).map(|number| format!("{kind}-{number}.{webhook_name}"));
    let mut candidates =
        [webhook_name.to_owned(), format!("{kind}.{webhook_name}")].into_iter().chain(numbered);
    let name = candidates.find(|name| !names.contains(name)).unwrap_or_default();
    names.insert(name.clone());
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(name));
    if name != webhook_name {
        entry.insert("webhookName".to_owned(), json!(webhook_name));
    }
    entry.insert("type".to_owned(), json!(kind));
    entry.insert("behavior".to_owned(), json!("allow"));
    // The defaults of a fakes file differ from those of a configuration.
    entry.insert("rules".to_owned(), json!([]));
    entry.insert("namespaceSelector".to_owned(), json!({}));
    for field in FIELDS {
        if let Some(value) = webhook.get(field).filter(|value| !value.is_null()) {
            entry.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIGURATIONS: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: webhook, namespace: injector}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: injector, annotations: {a: b}}
webhooks:
- name: pods.example.com
  clientConfig: {service: {namespace: injector, name: webhook}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  reinvocationPolicy: IfNeeded
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: injector}
webhooks:
- name: pods.example.com
  clientConfig: {service: {namespace: injector, name: webhook}}
  namespaceSelector: {matchLabels: {a: b}}
  sideEffects: None
  admissionReviewVersions: [v1]
"#;

    #[test]
    fn fake_has_the_fields_of_its_webhook() {
        assert!(is_manifest(CONFIGURATIONS));
        assert!(!is_manifest("version: 1\nwebhooks: []\n"));
        let files = from_manifest(CONFIGURATIONS.to_owned(), "m.yaml").unwrap();
        let expected = json!([{
            "version": 1,
            "name": "injector",
            "webhooks": [
                {
                    "name": "pods.example.com",
                    "type": "mutating",
                    "behavior": "allow",
                    "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                        "resources": ["pods"]}],
                    "namespaceSelector": {},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "reinvocationPolicy": "IfNeeded",
                },
                {
                    "name": "validating.pods.example.com",
                    "webhookName": "pods.example.com",
                    "type": "validating",
                    "behavior": "allow",
                    "rules": [],
                    "namespaceSelector": {"matchLabels": {"a": "b"}},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                },
            ],
        }]);
        assert_eq!(Value::Array(files), expected);
    }

    #[test]
    fn v1beta1_configuration_has_its_own_defaults() {
        let text = CONFIGURATIONS.replace("k8s.io/v1\n", "k8s.io/v1beta1\n").replace("sideEffects: None", "");
        let files = from_manifest(text, "m.yaml").unwrap();
        let webhook = &files[0]["webhooks"][0];
        let of = |field: &str| webhook[field].clone();
        let defaults = [of("failurePolicy"), of("matchPolicy"), of("sideEffects"), of("timeoutSeconds")];
        assert_eq!(defaults, [json!("Ignore"), json!("Exact"), json!("Unknown"), json!(30)]);
    }

    #[test]
    fn invalid_configuration_is_reported_with_its_line() {
        let refused =
            |text: &str| from_manifest(text.to_owned(), "m.yaml").map(drop).unwrap_err().to_string();
        let without = CONFIGURATIONS.replace("  sideEffects: None\n", "");
        assert!(refused(&without).starts_with("m.yaml:6: "), "{}", refused(&without));
        assert!(refused(&without).contains("webhooks[0].sideEffects"), "{}", refused(&without));
        assert!(refused("{apiVersion: v1, kind: Pod}").contains("missing MutatingWebhookConfiguration"));
    }
}
