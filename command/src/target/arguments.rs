//! Parses the options that select and describe a target.

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
    /// Run the scenarios against this target
    #[arg(long, value_enum, value_name = "TARGET", default_value = "in-process")]
    pub(crate) target: TargetKind,

    /// Call the webhooks behind this Service at this address; can be repeated
    #[arg(long, value_name = "NAMESPACE/NAME=HOST:PORT")]
    pub(crate) service: Vec<ServiceMapping>,

    /// Wait up to this many seconds for the addresses of --service to accept connections
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "service")]
    pub(crate) wait: u32,

    #[command(flatten)]
    pub(crate) admission_control: AdmissionControl,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    /// Run the fakes in a pod of the cluster behind a Service, like real webhooks. They run in this namespace, by default in
    /// a new one, and are removed at the end unless they existed before
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["fakes_host", "fakes_listen"])]
    #[expect(clippy::option_option, reason = "the option may stand without its value")]
    pub(crate) fakes_in_cluster: Option<Option<FakesNamespace>>,

    /// Use this image for the fakes in the cluster
    #[arg(long, default_value = DEFAULT_IMAGE, requires = "fakes_in_cluster")]
    pub(crate) image: String,

    /// Keep what the run created in the cluster, and print how to remove it
    #[arg(long)]
    pub(crate) keep: bool,

    /// Run the fakes on this machine, which the cluster reaches at this host name or address
    #[arg(long, value_name = "HOST")]
    pub(crate) fakes_host: Option<String>,

    /// Listen on this address for calls to fakes [default: 127.0.0.1, for a cluster 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) fakes_listen: Option<IpAddr>,

    /// Read the audit log of the cluster's API server from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,

    // Last, because later arguments would be listed under the heading of these flags.
    #[command(flatten)]
    pub(crate) plugins: PluginFlags,

    /// The audit policy and the audit log of the API server. No command-line option sets them.
    #[arg(skip)]
    pub(crate) audit: Option<AuditFiles>,
}

/// The paths of an audit policy and an audit log.
#[derive(Clone, Debug)]
pub(crate) struct AuditFiles {
    pub(crate) policy: PathBuf,
    pub(crate) log: PathBuf,
}

impl TargetArguments {
    /// Creates arguments for a target of the given kind, with default values.
    pub fn new(target: TargetKind) -> Self {
        Self {
            target,
            service: Vec::new(),
            wait: 0,
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

    /// Sets the audit policy and the audit log of the API server.
    #[must_use]
    pub fn with_audit(self, policy: PathBuf, log: PathBuf) -> Self {
        Self { audit: Some(AuditFiles { policy, log }), ..self }
    }

    /// Sets `--enable-admission-plugins` and `--disable-admission-plugins`.
    #[must_use]
    pub fn with_plugins(self, enable: &[String], disable: &[String]) -> Self {
        Self { plugins: PluginFlags::new(enable, disable), ..self }
    }

    /// Sets the file of `--admission-control-config-file`.
    #[must_use]
    pub fn with_admission_control_config_file(self, file: PathBuf) -> Self {
        Self { admission_control: AdmissionControl { file: Some(file) }, ..self }
    }

    /// Checks that the options match the target.
    ///
    /// # Errors
    /// Returns an error if an option is not supported by the target.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let given = [
            ("--fakes-in-cluster", self.fakes_in_cluster.is_some()),
            ("--fakes-host", self.fakes_host.is_some()),
            ("--keep", self.keep),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.target != TargetKind::Cluster => {
                Err(Failure::usage(format!("{option} requires --target cluster")))
            }
            Some(_) | None if self.admission_control.file.is_some() && self.target == TargetKind::Cluster => {
                let message = "--admission-control-config-file is not supported with --target cluster: it applies only to \
                               API servers that admit starts";
                Err(Failure::usage(message))
            }
            Some(_) | None => match self.plugins.for_own_servers() {
                Some(flag) if self.target == TargetKind::Cluster => Err(Failure::usage(format!(
                    "{flag} is not supported with --target cluster: it applies only to API servers that admit starts"
                ))),
                Some(_) | None => Ok(()),
            },
        }
    }

    /// Returns whether the objects of scenarios are removed or kept.
    pub(crate) fn leftovers(&self) -> Leftovers {
        if self.keep { Leftovers::Kept } else { Leftovers::Removed }
    }

    /// Returns the address of each Service that `--service` maps.
    pub(crate) fn services(&self) -> BTreeMap<ServiceName, (String, u16)> {
        service_map::by_service(self.service.clone())
    }
}
