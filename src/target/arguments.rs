//! The options that choose and describe a target.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use harness::server::ServiceName;

use super::TargetKind;
use crate::cluster_client::ClusterArguments;
use crate::service_map::{self, ServiceMapping};

/// The options that choose and describe a target.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Target")]
pub struct TargetArguments {
    /// What the scenarios run against
    #[arg(long, value_enum, value_name = "TARGET", default_value = "in-process")]
    pub(crate) target: TargetKind,

    /// Reach a service that a clientConfig names at this address; may be given several times
    #[arg(long, value_name = "NAMESPACE/NAME=HOST:PORT")]
    pub(crate) service: Vec<ServiceMapping>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    /// The host or address under which the cluster reaches the fakes on this machine (--target cluster needs it)
    #[arg(long, value_name = "HOST")]
    pub(crate) fakes_host: Option<String>,

    /// The address at which the fakes listen: 127.0.0.1, and for a cluster 0.0.0.0
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) fakes_listen: Option<IpAddr>,

    /// The audit log that the cluster's API server writes, if this machine can read it
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
}

impl TargetArguments {
    /// A target of this kind with everything else left out.
    pub fn of(target: TargetKind) -> Self {
        Self {
            target,
            service: Vec::new(),
            cluster: ClusterArguments::default(),
            fakes_host: None,
            fakes_listen: None,
            audit_log: None,
        }
    }

    /// Where services listen that a `clientConfig` names.
    pub(crate) fn services(&self) -> BTreeMap<ServiceName, (String, u16)> {
        service_map::by_service(self.service.clone())
    }
}
