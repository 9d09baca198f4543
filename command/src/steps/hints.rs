//! Explains how to fix a request that the server rejected before admission.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::invalid_fields::unknown_fields;
use super::world::World;

impl World {
    /// Explains how to fix the last request, if it failed for a known reason other than a webhook.
    pub(super) fn request_hint(&self) -> Option<String> {
        if let Some(name) = self.missing_namespace() {
            let create = format!(
                "create the namespace with the step `webhooks are also called in the namespace \"{name}\"`, or as \
                 an object that exists"
            );
            return Some(match self.similar_namespace(name) {
                Some(similar) => format!("did you mean the namespace \"{similar}\"? Otherwise, {create}"),
                None => create,
            });
        }
        self.last
            .as_ref()
            .filter(|answer| !answer.is_success())
            .and_then(|answer| for_message(answer.message()).or_else(|| unknown_fields(answer)))
    }
}

/// Explains how to fix an object that the server cannot decode, based on the server's message.
pub(super) fn for_message(message: &str) -> Option<String> {
    let (kind, field) = message.split_once("cannot unmarshal ")?.1.split_once(" into Go struct field ")?;
    let is_text_map = ["ObjectMeta.metadata.labels", "ObjectMeta.metadata.annotations"]
        .iter()
        .any(|map| field.starts_with(map));
    let example = match kind {
        "bool" => "such as \"on\" or \"true\", which YAML reads as a boolean without quotes",
        "number" => "such as \"1\", which YAML reads as a number without quotes",
        _ => return None,
    };
    is_text_map.then(|| format!("quote the values of labels and annotations, {example}"))
}

/// Names the first `caBundle` in a webhook configuration that is not base64, such as a placeholder.
pub(super) fn for_ca_bundles(configuration: &Value) -> Option<String> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array)?;
    webhooks.iter().enumerate().find_map(|(index, webhook)| {
        let bundle = webhook.pointer("/clientConfig/caBundle")?.as_str()?;
        if STANDARD.decode(bundle.replace(['\r', '\n'], "")).is_ok() {
            return None;
        }
        let field = format!("webhooks[{index}].clientConfig.caBundle");
        Some(if bundle.len() <= LONGEST_PLACEHOLDER {
            format!(
                "{field} is the placeholder \"{bundle}\": replace it with the CA certificate of the webhook in base64, \
                 for example with the caBundle that `admit certs` prints"
            )
        } else {
            format!("{field} is not base64: it must be the CA certificate of the webhook in PEM, encoded as base64")
        })
    })
}

/// The maximum length of a string that is shown as a placeholder. Certificates are longer.
const LONGEST_PLACEHOLDER: usize = 64;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_that_is_not_a_string_is_to_be_quoted() {
        let message = |kind: &str, field: &str| {
            format!(
                "json: cannot unmarshal {kind} into Go struct field ObjectMeta.metadata.{field} of type string"
            )
        };
        let hint = for_message(&message("bool", "labels")).unwrap();
        assert!(hint.contains("such as \"on\" or \"true\""), "{hint}");
        let hint = for_message(&message("number", "annotations")).unwrap();
        assert!(hint.contains("such as \"1\""), "{hint}");
        assert_eq!(for_message(&message("bool", "name")), None);
        assert_eq!(for_message("configmaps \"a\" not found"), None);
    }

    #[test]
    fn a_placeholder_in_a_ca_bundle_is_named() {
        let configuration = |bundle: &str| json!({"webhooks": [{"clientConfig": {"url": "https://a"}}, {"clientConfig": {"caBundle": bundle}}]});
        let hint = for_ca_bundles(&configuration("CA_BUNDLE")).unwrap();
        assert!(
            hint.starts_with("webhooks[1].clientConfig.caBundle is the placeholder \"CA_BUNDLE\""),
            "{hint}"
        );
        let hint = for_ca_bundles(&configuration(&"-".repeat(1000))).unwrap();
        assert!(hint.starts_with("webhooks[1].clientConfig.caBundle is not base64"), "{hint}");
        assert_eq!(for_ca_bundles(&configuration("YWJj")), None);
    }
}
