//! The webhook configurations of a run, and the objects around them.

use std::collections::BTreeMap;

use harness::config::ConfigError;
use harness::json::text;
use harness::verify::Subject;
use harness::verify::report::Location;
use serde_json::Value;

use crate::Failure;

/// The content of the files of `-c`.
#[derive(Clone, Debug, Default)]
pub(super) struct Configurations {
    pub(super) webhooks: Vec<Value>,
    /// Configurations from the manifest directories of the API server.
    pub(super) manifests: Vec<Value>,
    /// The location of each configuration as `FILE:LINE: `; empty for those from a cluster.
    pub(super) places: Vec<String>,
    /// The locations of the webhooks.
    pub(super) locations: BTreeMap<String, Location>,
    /// Namespaces, custom resource definitions, and all other objects in the cluster.
    pub(super) around: Vec<Value>,
}

impl Configurations {
    /// Returns the location of the webhook `CONFIGURATION/WEBHOOK` as `FILE:LINE: `, or an empty string if it is not in
    /// a file.
    fn place(&self, webhook: &str) -> String {
        let location = self.locations.get(webhook);
        location.map_or_else(String::new, |Location { file, line }| format!("{file}:{line}: "))
    }

    /// Returns the location of the webhook whose field `error` names, or else that of the configuration.
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

    /// Returns the webhooks in dispatch order.
    pub(super) fn subjects(&self) -> Result<Vec<Subject>, Failure> {
        for (configuration, place) in self.webhooks.iter().zip(&self.places) {
            let read = Subject::of(std::slice::from_ref(configuration));
            read.map_err(|error| {
                Failure::usage(format!("{}{error}", self.place_of(configuration, place, &error)))
            })?;
        }
        Subject::with_manifests(&self.manifests, &self.webhooks).map_err(Failure::usage)
    }
}
