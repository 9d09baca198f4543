//! The options that choose and describe a target.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use harness::server::ServiceName;

use super::{Leftovers, TargetKind};
use crate::Failure;
use crate::admission_control::AdmissionControl;
use crate::admission_plugins::PluginFlags;
use crate::cluster_client::ClusterArguments;
use crate::fakes::{DEFAULT_IMAGE, FakesNamespace};
use crate::service_map::{self, ServiceMapping};

/// The options that choose and describe a target.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Target")]
pub struct TargetArguments {
    /// Where to run the scenarios
    #[arg(long, value_enum, value_name = "TARGET", default_value = "in-process")]
    pub(crate) target: TargetKind,

    /// Reach a service that a clientConfig names at this address; may be given several times
    #[arg(long, value_name = "NAMESPACE/NAME=HOST:PORT")]
    pub(crate) service: Vec<ServiceMapping>,

    #[command(flatten)]
    pub(crate) admission_control: AdmissionControl,

    #[command(flatten)]
    pub(crate) plugins: PluginFlags,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    /// Run the fakes in a pod of the cluster, and refer to them by their Service, as with real webhooks. They run in
    /// this namespace, by default in a new one, and are removed at the end unless they were there before
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["fakes_host", "fakes_listen"])]
    #[expect(clippy::option_option, reason = "the option may stand without its value")]
    pub(crate) fakes_in_cluster: Option<Option<FakesNamespace>>,

    /// The image of those fakes, which the cluster must be able to pull
    #[arg(long, default_value = DEFAULT_IMAGE, requires = "fakes_in_cluster")]
    pub(crate) image: String,

    /// Keep what the run created in the cluster, and print how to remove it
    #[arg(long)]
    pub(crate) keep: bool,

    /// Run the fakes on this machine; the cluster reaches them by this host name or address
    #[arg(long, value_name = "HOST")]
    pub(crate) fakes_host: Option<String>,

    /// The address the fakes listen on [default: 127.0.0.1, for a cluster 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) fakes_listen: Option<IpAddr>,

    /// The audit log of the cluster's API server, if this machine can read it
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,

    /// The policy by which the API server is to write its audit log, and where; a run has its own.
    #[arg(skip)]
    pub(crate) audit: Option<AuditFiles>,
}

/// A policy and a log.
#[derive(Clone, Debug)]
pub(crate) struct AuditFiles {
    pub(crate) policy: PathBuf,
    pub(crate) log: PathBuf,
}

impl TargetArguments {
    /// A target of this kind with everything else left out.
    pub fn of(target: TargetKind) -> Self {
        Self {
            target,
            service: Vec::new(),
            admission_control: AdmissionControl::default(),
            plugins: PluginFlags::default(),
            cluster: ClusterArguments::default(),
            fakes_in_cluster: None,
            image: DEFAULT_IMAGE.to_owned(),
            keep: false,
            fakes_host: None,
            fakes_listen: None,
            audit_log: None,
            audit: None,
        }
    }

    /// The same with an audit log of one's own, on a server that is started. Steps about the audit log see nothing then.
    #[must_use]
    pub fn with_audit(self, policy: PathBuf, log: PathBuf) -> Self {
        Self { audit: Some(AuditFiles { policy, log }), ..self }
    }

    /// The same with other in-tree admission plugins, as `--enable-admission-plugins` and `--disable-admission-plugins` name
    /// them.
    #[must_use]
    pub fn with_plugins(self, enable: &[String], disable: &[String]) -> Self {
        Self { plugins: PluginFlags::new(enable, disable), ..self }
    }

    /// The same with this file of `--admission-control-config-file`.
    #[must_use]
    pub fn with_admission_control_config_file(self, file: PathBuf) -> Self {
        Self { admission_control: AdmissionControl { file: Some(file) }, ..self }
    }

    /// Says which options mean something for a cluster only.
    ///
    /// # Errors
    /// One of them is given, and the target is another one.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let given = [
            ("--fakes-in-cluster", self.fakes_in_cluster.is_some()),
            ("--fakes-host", self.fakes_host.is_some()),
            ("--keep", self.keep),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.target != TargetKind::Cluster => {
                Err(Failure::usage(format!("{option} needs --target cluster")))
            }
            Some(_) | None if self.admission_control.file.is_some() && self.target == TargetKind::Cluster => {
                let message = "--admission-control-config-file is for an API server that admit starts: that of a cluster \
                               has its own";
                Err(Failure::usage(message))
            }
            Some(_) | None if !self.plugins.is_empty() && self.target == TargetKind::Cluster => {
                let message = "--enable-admission-plugins and --disable-admission-plugins are for an API server that \
                               admit starts: that of a cluster has its own";
                Err(Failure::usage(message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What becomes of what the scenarios make.
    pub(crate) fn leftovers(&self) -> Leftovers {
        if self.keep { Leftovers::Kept } else { Leftovers::Removed }
    }

    /// Where services listen that a `clientConfig` names.
    pub(crate) fn services(&self) -> BTreeMap<ServiceName, (String, u16)> {
        service_map::by_service(self.service.clone())
    }
}
