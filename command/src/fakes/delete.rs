//! `admit fakes delete`.

use std::time::Duration;

use harness::json::{at, text};
use serde_json::Value;

use super::api::{Api, Kind};
use super::names::{FakesNamespace, NAME};
use super::progress::{Look, Progress};
use crate::cluster_client::ClusterArguments;
use crate::{ExitCode, Failure};

/// Takes deployed fakes out of a cluster, without a trace.
///
/// Deletes the webhook configurations first, then the namespace, or what `admit fakes deploy` created in a namespace that
/// it did not create, and waits until all of it is gone. Leftovers of a failed or interrupted command are found, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// The namespace of the fakes
    #[arg(short, long, default_value = NAME)]
    namespace: FakesNamespace,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Seconds to wait
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
        let removal = Removal { api: &api, progress: &progress, namespace: &self.namespace };
        if removal.remove().await? == 0 {
            progress
                .tell(&format!("nothing to delete: no fakes are in namespace {}", self.namespace.as_str()));
        } else {
            progress.tell("all of it is gone");
        }
        Ok(ExitCode::Ok)
    }
}

/// Taking away what was deployed in a namespace.
pub(crate) struct Removal<'a> {
    /// The cluster.
    pub(crate) api: &'a Api,
    /// Who is told, and how long is waited.
    pub(crate) progress: &'a Progress,
    /// The namespace of the fakes.
    pub(crate) namespace: &'a FakesNamespace,
}

impl Removal<'_> {
    /// Deletes all of it and waits until it is gone. How many objects were there.
    ///
    /// # Errors
    /// The cluster does not answer or refuses, or something does not go in time.
    pub(crate) async fn remove(&self) -> Result<usize, Failure> {
        let mut deleted = 0;
        // Before what answers them goes.
        for kind in [Kind::VALIDATING, Kind::MUTATING] {
            deleted += self.delete_all(kind).await?;
        }
        let path = Kind::NAMESPACE.path("", self.namespace.as_str());
        match self.api.get(&path).await? {
            Some(namespace) if self.namespace.owns(&namespace) => {
                if at(&namespace, &["metadata", "deletionTimestamp"]).is_null() {
                    self.api.delete(&path).await?;
                }
                deleted += 1;
                self.progress.tell(&format!("deleted Namespace {}", self.namespace.as_str()));
            }
            Some(_) => {
                for kind in WORKLOAD {
                    deleted += self.delete_all(kind).await?;
                }
            }
            None => {}
        }
        self.wait(&path).await?;
        Ok(deleted)
    }

    async fn delete_all(&self, kind: Kind) -> Result<usize, Failure> {
        let found = self.found(kind).await?;
        for object in &found {
            let name = text(object, &["metadata", "name"]);
            self.api.delete(&kind.path(self.namespace.as_str(), name)).await?;
            self.progress.tell(&format!("deleted {} {name}", kind.name));
        }
        Ok(found.len())
    }

    async fn found(&self, kind: Kind) -> Result<Vec<Value>, Failure> {
        self.api.list(kind, self.namespace.as_str(), &self.namespace.label_selector()).await
    }

    async fn wait(&self, path: &str) -> Result<(), Failure> {
        let everything = [Kind::VALIDATING, Kind::MUTATING].into_iter().chain(WORKLOAD).chain(MADE_OF_IT);
        self.progress
            .until(async || {
                let namespace = self.api.get(path).await?;
                if namespace.is_some_and(|namespace| self.namespace.owns(&namespace)) {
                    return Ok(Look::Missing(format!("Namespace {} to go", self.namespace.as_str())));
                }
                for kind in everything.clone() {
                    if !self.found(kind).await?.is_empty() {
                        return Ok(Look::Missing(format!("every {} to go", kind.name)));
                    }
                }
                Ok(Look::Done(()))
            })
            .await
    }
}
