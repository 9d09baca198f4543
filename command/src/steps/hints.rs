//! Explains how to fix a request that the server rejected before admission.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::invalid_fields::unknown_fields;
use super::world::World;
use crate::yaml_types;

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
        self.last.as_ref().filter(|answer| !answer.is_success()).and_then(|answer| {
            // A webhook's patch with a wrong type is a 500.
            let wrong_type = yaml_types::help(answer.message(), None).filter(|_| answer.code == 400);
            wrong_type.or_else(|| unknown_fields(answer))
        })
    }
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
