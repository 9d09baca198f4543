//! Uses a cluster from a kubeconfig as a target.

use std::net::{IpAddr, Ipv4Addr};

use super::identity::Identities;
use super::storage::Storage;
use super::{
    AuditLog, CallLog, Cleanup, FailedPolicies, FakesPlace, Leftovers, ReferencedServices, RunPolicies,
    Target, TargetArguments, TargetKind, UnknownFields, UnreachedCalls,
};
use crate::Failure;
use crate::fakes::{Api, FakesNamespace, FleetDeployment};
use crate::static_manifests::Watch;

/// Connects to the cluster that the arguments specify. The fakes of the target run in this process.
pub(super) async fn target(arguments: &TargetArguments) -> Result<Target, Failure> {
    let fakes = here(arguments)?;
    new(arguments, arguments.cluster.connect().await?, fakes)
}

/// Connects to the cluster, starts the fakes that the arguments specify, and registers all objects with `cleanup`.
pub(super) async fn target_for_run(
    arguments: &TargetArguments,
    cleanup: &Cleanup,
) -> Result<Target, Failure> {
    let Some(namespace) = &arguments.fakes_in_cluster else {
        let target = target(arguments).await?;
        cleanup.watch(Api::new(target.client.clone()));
        return Ok(with_run(target, cleanup));
    };
    let client = arguments.cluster.connect().await?;
    let namespace = namespace.clone().unwrap_or_else(|| FakesNamespace::for_run(cleanup.run()));
    let api = Api::new(client.clone());
    cleanup.watch(api.clone());
    let deployment = FleetDeployment::new(api, namespace, &arguments.image)?;
    let fleet = cleanup.watch_fleet(deployment).put().await?;
    Ok(with_run(new(arguments, client, FakesPlace::InCluster(fleet))?, cleanup))
}

fn with_run(target: Target, cleanup: &Cleanup) -> Target {
    let (run, policies) = (cleanup.run().to_owned(), cleanup.policies());
    Target { run, leftovers: cleanup.leftovers(), policies, ..target }
}

fn here(arguments: &TargetArguments) -> Result<FakesPlace, Failure> {
    let Some(host) = arguments.fakes_host.clone() else {
        return Err(Failure::usage(
            "--target cluster requires --fakes-in-cluster, which runs the fakes in a pod behind a Service, or \
             --fakes-host HOST, the name or address at which the cluster's API server reaches this machine (for kind on \
             Linux, the gateway of the docker network `kind`)",
        ));
    };
    let listen = arguments.fakes_listen.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    Ok(FakesPlace::Here { host, listen })
}

fn new(arguments: &TargetArguments, client: kube::Client, fakes: FakesPlace) -> Result<Target, Failure> {
    let audit = match &arguments.audit_log {
        Some(path) => AuditLog::follow_from_end(path).map_err(|error| {
            Failure::environment(format!("cannot read the audit log {}: {error}", path.display()))
        })?,
        None => AuditLog::unavailable(),
    };
    Ok(Target {
        kind: TargetKind::Cluster,
        connecting_client: client.clone(),
        client,
        fakes,
        services: arguments.services(),
        referenced: ReferencedServices::default(),
        unreached: UnreachedCalls::default(),
        failed_policies: FailedPolicies::default(),
        unknown_fields: UnknownFields::default(),
        audit,
        calls: CallLog::NotShown,
        run: Cleanup::new_run(),
        leftovers: Leftovers::Removed,
        policies: RunPolicies::default(),
        identities: Identities::Fixed,
        storage: Storage::Inaccessible,
        _manifests: Watch::default(),
    })
}
