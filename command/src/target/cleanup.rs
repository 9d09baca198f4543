//! What a run puts into a cluster, and takes out again however it ends.

use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::Failure;
use crate::fakes::{Api, FleetDeployment, Kind};
use harness::json::{at, text};

/// The label of all that a run makes outside of namespaces; its value is the run's own.
pub(crate) const RUN_LABEL: &str = "admit.example.com/run";

/// What becomes of what scenarios make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// It is removed.
    Removed,
    /// It stays, to be looked at.
    Kept,
}

/// Takes out of a cluster what a run put there.
pub(crate) struct Cleanup {
    run: String,
    leftovers: Leftovers,
    /// The cluster in which something may be.
    api: OnceLock<Api>,
    deployment: OnceLock<FleetDeployment>,
}

/// First what is called for every object, and last what holds the others.
const KINDS: [Kind; 4] =
    [Kind::VALIDATING, Kind::MUTATING, Kind::CUSTOM_RESOURCE_DEFINITION, Kind::NAMESPACE];

impl Cleanup {
    /// For a new run, which has put nothing anywhere yet.
    pub(crate) fn new(leftovers: Leftovers) -> Self {
        Self { run: Self::new_run(), leftovers, api: OnceLock::new(), deployment: OnceLock::new() }
    }

    /// A name that no other run has.
    pub(super) fn new_run() -> String {
        let mut run = uuid::Uuid::new_v4().simple().to_string();
        run.truncate(8);
        run
    }

    /// The name of the run.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn leftovers(&self) -> Leftovers {
        self.leftovers
    }

    /// From now on scenarios may make something in this cluster.
    pub(super) fn watch(&self, api: Api) {
        self.api.get_or_init(|| api);
    }

    /// From now on `deployment` may be in the cluster.
    pub(super) fn watch_fleet(&self, deployment: FleetDeployment) -> &FleetDeployment {
        self.deployment.get_or_init(|| deployment)
    }

    /// Removes what scenarios could not remove, and the fakes; or says what stays, if it has to stay.
    ///
    /// # Errors
    /// The cluster does not answer or refuses.
    pub(crate) async fn clean(&self) -> Result<(), Failure> {
        let Some(api) = self.api.get() else { return Ok(()) };
        match self.leftovers {
            Leftovers::Kept => {
                anstream::eprintln!("kept as it is; {}", self.advice());
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
        for kind in KINDS {
            for found in api.list(kind, "", &format!("{RUN_LABEL}={}", self.run)).await? {
                let name = text(&found, &["metadata", "name"]);
                if at(&found, &["metadata", "deletionTimestamp"]).is_null() {
                    api.delete(&kind.path("", name)).await?;
                }
            }
        }
        Ok(())
    }

    /// How a person removes what is there.
    pub(crate) fn advice(&self) -> String {
        let kinds = KINDS.map(|kind| kind.plural).join(",");
        let mut text = format!("remove it with:\n  kubectl delete {kinds} -l {RUN_LABEL}={}", self.run);
        if let Some(deployment) = self.deployment.get().filter(|deployment| deployment.is_ours()) {
            let namespace = deployment.namespace().as_str();
            let _ = write!(text, "\n  admit fakes delete --namespace {namespace}");
        }
        text
    }

    /// Whether there may be something in a cluster.
    pub(crate) fn is_due(&self) -> bool {
        self.api.get().is_some()
    }
}
