//! Reads the webhook configurations of a run, and the related objects.

use std::collections::BTreeMap;

use harness::config::ConfigError;
use harness::json::text;
use harness::verify::Subject;
use harness::verify::checks::is_placeholder;
use harness::verify::report::Location;
use serde_json::Value;

use crate::Failure;

/// The webhook configurations of a run, with their locations and related objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Configurations {
    pub(super) webhooks: Vec<Value>,
    /// The configurations in the manifest directories of the API server.
    pub(super) manifests: Vec<Value>,
    /// The location of each configuration as `FILE:LINE: `; empty for configurations from a cluster.
    pub(super) places: Vec<String>,
    /// The location of each webhook, by `CONFIGURATION/WEBHOOK`.
    pub(super) locations: BTreeMap<String, Location>,
    /// The other objects in the files or in the cluster, such as namespaces and custom resource definitions.
    pub(super) around: Vec<Value>,
}

/// Returns the advice about a `caBundle` of `configuration` that cannot be decoded, which is usually a placeholder.
fn hint(configuration: &Value, error: &ConfigError) -> &'static str {
    let ConfigError::Field { field, .. } = error else { return "" };
    if !field.ends_with(".clientConfig.caBundle") {
        return "";
    }
    let pointer = format!("/{}", field.replace(['.', '['], "/").replace(']', ""));
    match configuration.pointer(&pointer).and_then(Value::as_str) {
        Some(written) if is_placeholder(written) => {
            "; kube-apiserver rejects such a placeholder, too, even if cert-manager is to inject the caBundle: replace or \
             remove it. To verify the webhook, pass --ca-file FILE with the PEM certificate of its authority"
        }
        Some(_) | None => "; set caBundle to base64-encoded PEM on one line, or pass --ca-file FILE",
    }
}

impl Configurations {
    /// Returns the location of the webhook `CONFIGURATION/WEBHOOK` as `FILE:LINE: `.
    ///
    /// The location is empty if the webhook is not in a file.
    fn place(&self, webhook: &str) -> String {
        let location = self.locations.get(webhook);
        location.map_or_else(String::new, |Location { file, line }| format!("{file}:{line}: "))
    }

    /// Returns the location of the webhook that `error` is about or, if that location is unknown, of the configuration.
    fn place_of(&self, configuration: &Value, place: &str, error: &ConfigError) -> String {
        let ConfigError::Field { field, .. } = error else { return place.to_owned() };
        let rest = field.strip_prefix("webhooks[");
        let index = rest.and_then(|rest| rest.split(']').next()?.parse::<usize>().ok());
        let webhook =
            index.and_then(|index| configuration.get("webhooks")?.get(index)?.get("name")?.as_str());
        let name = text(configuration, &["metadata", "name"]);
        let own = webhook.map(|webhook| self.place(&format!("{name}/{webhook}"))).unwrap_or_default();
        if own.is_empty() { place.to_owned() } else { own }
    }

    /// Returns the webhooks of the configurations in dispatch order.
    pub(super) fn subjects(&self) -> Result<Vec<Subject>, Failure> {
        for (configuration, place) in self.webhooks.iter().zip(&self.places) {
            let read = Subject::from_configurations(std::slice::from_ref(configuration));
            read.map_err(|error| {
                let place = self.place_of(configuration, place, &error);
                Failure::usage(format!("{place}{error}{}", hint(configuration, &error)))
            })?;
        }
        Subject::with_manifests(&self.manifests, &self.webhooks).map_err(Failure::usage)
    }
}
