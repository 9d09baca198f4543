//! A cluster that a kubeconfig names, as a target.

use std::net::{IpAddr, Ipv4Addr};

use super::{AuditLog, Target, TargetArguments, TargetKind};
use crate::Failure;

/// The cluster that the arguments name, once it has answered.
pub(super) async fn target(arguments: &TargetArguments) -> Result<Target, Failure> {
    let Some(fakes_host) = arguments.fakes_host.clone() else {
        return Err(Failure::usage(
            "--target cluster needs --fakes-host HOST: the name or address under which the cluster's API server \
             reaches this machine (kind on Linux: the gateway of the docker network `kind`)",
        ));
    };
    let audit = match &arguments.audit_log {
        Some(path) => AuditLog::follow_from_end(path).map_err(|error| {
            Failure::environment(format!("cannot read the audit log {}: {error}", path.display()))
        })?,
        None => AuditLog::not_shown(),
    };
    Ok(Target {
        kind: TargetKind::Cluster,
        client: arguments.cluster.connect().await?,
        fakes_host,
        fakes_listen: arguments.fakes_listen.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        services: arguments.services(),
        audit,
    })
}
