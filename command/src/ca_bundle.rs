//! Explains a `caBundle` that cannot be decoded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The maximum length of a string that is shown as a placeholder. Certificates are longer.
const LONGEST_PLACEHOLDER: usize = 64;

/// Names the first `caBundle` in a webhook configuration that is not base64, such as a placeholder.
pub(crate) fn advice(configuration: &Value) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_placeholder_in_a_ca_bundle_is_named() {
        let configuration = |bundle: &str| json!({"webhooks": [{"clientConfig": {"url": "https://a"}}, {"clientConfig": {"caBundle": bundle}}]});
        let hint = advice(&configuration("CA_BUNDLE")).unwrap();
        assert!(
            hint.starts_with("webhooks[1].clientConfig.caBundle is the placeholder \"CA_BUNDLE\""),
            "{hint}"
        );
        let hint = advice(&configuration(&"-".repeat(1000))).unwrap();
        assert!(hint.starts_with("webhooks[1].clientConfig.caBundle is not base64"), "{hint}");
        assert_eq!(advice(&configuration("YWJj")), None);
    }
}
