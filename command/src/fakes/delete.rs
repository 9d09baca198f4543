//! `admit fakes delete`: deletes deployed fakes from a cluster.

use std::time::Duration;

use harness::json::{at, text};
use serde_json::Value;

use super::api::{Api, Kind};
use super::names::{FakesNamespace, NAME};
use super::progress::{Look, Progress};
use crate::cluster_client::ClusterArguments;
use crate::{ExitCode, Failure};

/// Remove deployed fakes from a cluster.
///
/// Deletes the webhook configurations first, then the namespace, and waits until all objects are deleted. In a namespace
/// that `admit fakes deploy` did not create, only its own objects are deleted. Also removes the objects of an interrupted
/// command.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// Use the fakes in this namespace
    #[arg(short, long, default_value = NAME)]
    namespace: FakesNamespace,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Wait up to this many seconds for the objects to be deleted
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
}

/// The kinds of deployed objects in the namespace.
const WORKLOAD: [Kind; 4] = [Kind::DEPLOYMENT, Kind::SERVICE, Kind::CONFIG_MAP, Kind::SECRET];
const CREATED_BY_CONTROLLERS: [Kind; 3] = [Kind::REPLICA_SET, Kind::POD, Kind::ENDPOINT_SLICE];

impl Delete {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let api = Api::new(self.cluster.connect().await?);
        let progress = Progress::new(Duration::from_secs(self.timeout));
        let removal = Removal { api: &api, progress: &progress, namespace: &self.namespace };
        if removal.remove().await? == 0 {
            progress.tell(&format!("nothing to delete: no fakes in namespace {}", self.namespace.as_str()));
        } else {
            progress.tell("all objects are deleted");
        }
        Ok(ExitCode::Ok)
    }
}

/// The removal of deployed fakes from a cluster.
pub(crate) struct Removal<'a> {
    /// The API of the cluster.
    pub(crate) api: &'a Api,
    /// The output and timeout for the removal.
    pub(crate) progress: &'a Progress,
    pub(crate) namespace: &'a FakesNamespace,
}

impl Removal<'_> {
    /// Deletes all objects, waits until they no longer exist, and returns their number.
    ///
    /// # Errors
    /// Returns an error if the cluster does not respond, rejects a request, or does not delete an object before the
    /// timeout.
    pub(crate) async fn remove(&self) -> Result<usize, Failure> {
        let mut deleted = 0;
        // Configurations are deleted before their webhooks.
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
        let everything =
            [Kind::VALIDATING, Kind::MUTATING].into_iter().chain(WORKLOAD).chain(CREATED_BY_CONTROLLERS);
        self.progress
            .until(async || {
                let namespace = self.api.get(path).await?;
                if namespace.is_some_and(|namespace| self.namespace.owns(&namespace)) {
                    return Ok(Look::Missing(format!(
                        "the deletion of Namespace {}",
                        self.namespace.as_str()
                    )));
                }
                for kind in everything.clone() {
                    if !self.found(kind).await?.is_empty() {
                        return Ok(Look::Missing(format!("the deletion of every {}", kind.name)));
                    }
                }
                Ok(Look::Done(()))
            })
            .await
    }
}
