//! Reviews requests offline, with the files that `admit pull` copied from a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use harness::client::CallableWebhooks;
use harness::config::WebhookTarget;
use harness::json::{at, text};
use harness::manifests::StaticManifests;
use harness::server::ServiceName;
use serde_json::Value;

use crate::documents::{self, Document};
use crate::pull::PulledCluster;
use crate::{Failure, screen};

/// A cluster whose admission is reviewed offline.
#[derive(Debug)]
pub(super) struct OfflineCluster {
    pub(super) pulled: PulledCluster,
    /// The objects in the directory.
    pub(super) documents: Vec<Document>,
}

impl OfflineCluster {
    /// Reads the directory, and prints notes about what could not be read.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let pulled = PulledCluster::open("--cluster", path)?;
        let documents = documents::read(&[path.to_owned()])?;
        for note in pulled.notes() {
            screen::status!("{note}");
        }
        Ok(Self { pulled, documents })
    }
}

/// Returns the webhooks that an offline review calls: those behind the Services of `--service`, those in local configuration
/// files, and the URLs in `objects`.
///
/// `objects` does not contain the webhooks of the cluster: a loopback address in their configurations refers to the
/// cluster's machine, not to this one.
pub(super) fn callable<'a>(
    services: &BTreeMap<ServiceName, (String, u16)>,
    manifests: &StaticManifests,
    objects: impl IntoIterator<Item = &'a Value>,
) -> CallableWebhooks {
    let mut urls: BTreeSet<String> = objects.into_iter().flat_map(urls).collect();
    let from_files = manifests.mutating.iter().chain(&manifests.validating);
    for webhook in from_files.flat_map(|manifests| &manifests.webhooks) {
        if let WebhookTarget::Url(url) = &webhook.client_config.target {
            urls.insert(url.clone());
        }
    }
    let services = services.keys().map(|it| (it.namespace.clone(), it.name.clone())).collect();
    CallableWebhooks { urls, services }
}

/// Returns the URLs of the webhooks in a webhook configuration or a custom resource definition.
fn urls(object: &Value) -> impl Iterator<Item = String> {
    let webhooks = at(object, &["webhooks"]).as_array().into_iter().flatten();
    let conversion = at(object, &["spec", "conversion", "webhook"]);
    let urls = webhooks.chain([conversion]).map(|webhook| text(webhook, &["clientConfig", "url"]));
    urls.filter(|url| !url.is_empty()).map(str::to_owned)
}
