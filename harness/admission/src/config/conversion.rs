//! Parses the conversion webhook of a `CustomResourceDefinition`.

use std::fmt;

use kubernetes_types::status::Unsupported;
use serde_json::Value;

use super::field::{Field, InvalidField};
use super::reading::client_config;
use super::{ClientConfig, list, text};

/// The webhook that converts the objects of a `CustomResourceDefinition`, read from `spec.conversion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionWebhook {
    /// The name of the definition.
    pub definition: String,
    /// The webhook's address and CA bundle, from `webhook.clientConfig`.
    pub client_config: ClientConfig,
    /// `webhook.conversionReviewVersions`, in the author's order.
    pub review_versions: Vec<String>,
}

impl ConversionWebhook {
    /// Reads the webhook of a valid `definition`; returns `None` if its strategy is not `Webhook`.
    ///
    /// # Errors
    /// Returns [`Unsupported`] if a field has a value that admit does not support.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, `webhookClientConfigForCRD`.
    pub fn from_definition(definition: &Value) -> Result<Option<Self>, Unsupported> {
        let conversion = definition.pointer("/spec/conversion").unwrap_or(&Value::Null);
        if text(conversion, "strategy") != Some("Webhook") {
            return Ok(None);
        }
        let read = || -> Result<ClientConfig, InvalidField> {
            let webhook = Field::root(conversion).child("webhook").object()?;
            client_config(&webhook.child("clientConfig").object()?)
        };
        let mut client_config = read().map_err(|wrong| Unsupported {
            what: format!("a definition whose spec.conversion.{} {}", wrong.field, wrong.what),
        })?;
        if client_config.ca_bundle.trim_ascii().is_empty() {
            client_config.ca_bundle.clear();
        }
        let versions = conversion.get("webhook").map(|webhook| list(webhook, "conversionReviewVersions"));
        let versions = versions.unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned);
        Ok(Some(Self {
            definition: definition
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            client_config,
            review_versions: versions.collect(),
        }))
    }
}

impl fmt::Display for ConversionWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the conversion webhook of {}", self.definition)
    }
}
