//! Removes the objects that a run created in a cluster.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::RunPolicies;
use crate::Failure;
use crate::fakes::{Api, FleetDeployment, Kind};
use harness::json::{at, text};

/// The label of cluster-scoped objects that a run creates; its value is the name of the run.
pub(crate) const RUN_LABEL: &str = "admit.example.com/run";

/// Whether the objects of scenarios are removed or kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// Objects are removed.
    Removed,
    /// Objects are kept for inspection.
    Kept,
}

/// The cleanup of a run, which removes its objects from a cluster.
pub(crate) struct Cleanup {
    run: String,
    leftovers: Leftovers,
    policies: RunPolicies,
    /// The client for the cluster. It is set as soon as the run may create objects in the cluster.
    api: OnceLock<Api>,
    deployment: OnceLock<FleetDeployment>,
}

/// The kinds of the objects to remove, in order. Policies and bindings are removed first if the run created any.
const KINDS: [Kind; 4] =
    [Kind::VALIDATING, Kind::MUTATING, Kind::CUSTOM_RESOURCE_DEFINITION, Kind::NAMESPACE];

impl Cleanup {
    /// Creates the cleanup for a new run.
    pub(crate) fn new(leftovers: Leftovers) -> Self {
        Self {
            run: Self::new_run(),
            leftovers,
            policies: RunPolicies::default(),
            api: OnceLock::new(),
            deployment: OnceLock::new(),
        }
    }

    /// Returns a unique name for a new run.
    pub(super) fn new_run() -> String {
        let mut run = uuid::Uuid::new_v4().simple().to_string();
        run.truncate(8);
        run
    }

    /// Returns the name of the run.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn leftovers(&self) -> Leftovers {
        self.leftovers
    }

    /// Returns the record of the admission policies that the run creates.
    pub(super) fn policies(&self) -> RunPolicies {
        self.policies.clone()
    }

    /// Returns the kinds of the objects to remove, in order.
    ///
    /// A server may not serve mutating policies, and a user may not be allowed to list policies.
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.policies.kinds().into_iter().chain(KINDS)
    }

    /// Registers the cluster of the run for cleanup.
    pub(super) fn watch(&self, api: Api) {
        self.api.get_or_init(|| api);
    }

    /// Registers the fakes in the cluster for cleanup.
    pub(super) fn watch_fleet(&self, deployment: FleetDeployment) -> &FleetDeployment {
        self.deployment.get_or_init(|| deployment)
    }

    /// Removes the remaining objects and the fakes, or prints how to remove them if the user wants to keep them.
    ///
    /// # Errors
    /// Returns an error if the cluster does not respond or rejects a request.
    pub(crate) async fn clean(&self) -> Result<(), Failure> {
        let Some(api) = self.api.get() else { return Ok(()) };
        match self.leftovers {
            Leftovers::Kept => {
                crate::screen::status!("objects are kept; {}", self.advice());
                Ok(())
            }
            Leftovers::Removed => {
                let swept = self.sweep(api).await;
                let removed = match self.deployment.get() {
                    Some(deployment) => deployment.remove().await,
                    None => Ok(()),
                };
                swept.and(removed)
            }
        }
    }

    async fn sweep(&self, api: &Api) -> Result<(), Failure> {
        for kind in self.kinds() {
            for found in api.list(kind, "", &format!("{RUN_LABEL}={}", self.run)).await? {
                let name = text(&found, &["metadata", "name"]);
                if at(&found, &["metadata", "deletionTimestamp"]).is_null() {
                    api.delete(&kind.path("", name)).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns the commands that remove the remaining objects.
    pub(crate) fn advice(&self) -> String {
        let kinds = self.kinds().map(|kind| kind.plural).collect::<Vec<_>>().join(",");
        let mut text = format!("remove them with:\n  kubectl delete {kinds} -l {RUN_LABEL}={}", self.run);
        if let Some(deployment) = self.deployment.get().filter(|deployment| deployment.is_ours()) {
            let namespace = deployment.namespace().as_str();
            let _ = write!(text, "\n  admit fakes delete --namespace {namespace}");
        }
        text
    }

    /// Returns whether the cluster may contain objects of the run.
    pub(crate) fn is_due(&self) -> bool {
        self.api.get().is_some()
    }
}
