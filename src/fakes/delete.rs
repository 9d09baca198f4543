//! `admit fakes delete`.

use std::time::Duration;

use serde_json::Value;

use super::api::{Api, Kind};
use super::names::{FakesNamespace, NAME};
use super::progress::{Look, Progress};
use crate::cluster_client::ClusterArguments;
use crate::{ExitCode, Failure};

/// Takes deployed fakes out of a cluster, without a trace.
///
/// Deletes the webhook configurations first, then the namespace, or what `admit fakes deploy` put into a namespace that
/// somebody else made, and waits until all of it is gone. What a failed or interrupted command left is found too.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// The namespace of the fakes
    #[arg(short, long, default_value = NAME)]
    namespace: FakesNamespace,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
}

/// What stands in the namespace: first what makes other objects, then what a cluster makes of them.
const WORKLOAD: [Kind; 4] = [Kind::DEPLOYMENT, Kind::SERVICE, Kind::CONFIG_MAP, Kind::SECRET];
const MADE_OF_IT: [Kind; 3] = [Kind::REPLICA_SET, Kind::POD, Kind::ENDPOINT_SLICE];

impl Delete {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let api = Api::new(self.cluster.connect().await?);
        let progress = Progress::new(Duration::from_secs(self.timeout));
        let mut deleted = 0;
        // Before what answers them goes.
        for kind in [Kind::VALIDATING, Kind::MUTATING] {
            deleted += self.delete_all(&api, &progress, kind).await?;
        }
        let path = Kind::NAMESPACE.path("", self.namespace.as_str());
        match api.get(&path).await? {
            Some(namespace) if self.namespace.owns(&namespace) => {
                if namespace["metadata"]["deletionTimestamp"].is_null() {
                    api.delete(&path).await?;
                }
                deleted += 1;
                progress.tell(&format!("deleted Namespace {}", self.namespace.as_str()));
            }
            Some(_) => {
                for kind in WORKLOAD {
                    deleted += self.delete_all(&api, &progress, kind).await?;
                }
            }
            None => {}
        }
        self.wait(&api, &progress, &path).await?;
        if deleted == 0 {
            progress
                .tell(&format!("nothing to delete: no fakes are in namespace {}", self.namespace.as_str()));
        } else {
            progress.tell("all of it is gone");
        }
        Ok(ExitCode::Ok)
    }

    async fn delete_all(&self, api: &Api, progress: &Progress, kind: Kind) -> Result<usize, Failure> {
        let found = self.found(api, kind).await?;
        for object in &found {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            api.delete(&kind.path(self.namespace.as_str(), name)).await?;
            progress.tell(&format!("deleted {} {name}", kind.name));
        }
        Ok(found.len())
    }

    async fn found(&self, api: &Api, kind: Kind) -> Result<Vec<Value>, Failure> {
        api.list(kind, self.namespace.as_str(), &self.namespace.label_selector()).await
    }

    async fn wait(&self, api: &Api, progress: &Progress, path: &str) -> Result<(), Failure> {
        let waited = progress.until(async || {
            let namespace = api.get(path).await?;
            if namespace.is_some_and(|namespace| self.namespace.owns(&namespace)) {
                return Ok(Look::Missing(format!("the namespace {} to go", self.namespace.as_str())));
            }
            for kind in [Kind::VALIDATING, Kind::MUTATING].into_iter().chain(WORKLOAD).chain(MADE_OF_IT) {
                if !self.found(api, kind).await?.is_empty() {
                    return Ok(Look::Missing(format!("every {} to go", kind.name)));
                }
            }
            Ok(Look::Done(()))
        });
        waited.await
    }
}
