//! Starts etcd and kube-apiserver from `KUBEBUILDER_ASSETS` as a target.

use std::collections::BTreeMap;

use admit_testing::envtest::{Envtest, Settings};
use harness::server::ServiceName;

use super::arguments::AuditFiles;
use super::identity::Identities;
use super::relay::Relay;
use super::storage::Storage;
use super::{
    AuditLog, CallLog, Cleanup, FailedPolicies, FakesPlace, Leftovers, ReferencedServices, RunPolicies,
    Target, TargetArguments, TargetKind, UnknownFields, UnreachedCalls,
};
use crate::Failure;
use crate::static_manifests::Watch;

/// The host and the port that each Service is mapped to.
type Services = BTreeMap<ServiceName, (String, u16)>;

/// The two servers and the relays to Services. They stop when this value is dropped.
#[derive(Debug)]
pub(super) struct Servers {
    _envtest: Envtest,
    _relays: Vec<Relay>,
}

/// Starts etcd and kube-apiserver, and waits until kube-apiserver is ready; `tell` receives progress messages.
pub(super) async fn start(
    arguments: &TargetArguments,
    tell: impl Fn(&str),
) -> Result<(Target, Servers), Failure> {
    let (services, relays) = reachable(arguments.services()).await?;
    let mut settings = Settings::default();
    settings.audit = arguments.audit.clone().map(|AuditFiles { policy, log }| (policy, log));
    settings.flags = arguments.plugins.for_kube_apiserver()?;
    if let Some(file) = &arguments.admission_control.file {
        let file = std::path::absolute(file)
            .map_err(|error| Failure::environment(format!("{}: {error}", file.display())))?;
        settings.flags.push(format!("--admission-control-config-file={}", file.display()));
    }
    let failed = |error| Failure::environment(format!("--target envtest: {error}"));
    let envtest = Envtest::start(settings, tell).await.map_err(failed)?;
    let audit = AuditLog::follow_from_end(envtest.audit_log()).map_err(|error| {
        Failure::environment(format!("cannot read the audit log of kube-apiserver: {error}"))
    })?;
    let client = kube::Client::try_from(envtest.config().clone()).map_err(|error| {
        Failure::environment(format!("cannot create a client for kube-apiserver: {error}"))
    })?;
    let target = Target {
        kind: TargetKind::Envtest,
        connecting_client: client.clone(),
        client,
        fakes: FakesPlace::loopback(),
        services,
        referenced: ReferencedServices::default(),
        unreached: UnreachedCalls::default(),
        failed_policies: FailedPolicies::default(),
        unknown_fields: UnknownFields::default(),
        audit,
        calls: CallLog::NotShown,
        run: Cleanup::new_run(),
        leftovers: Leftovers::Removed,
        policies: RunPolicies::default(),
        identities: Identities::Tokens(Box::new(envtest.config().clone())),
        storage: Storage::Etcd(envtest.etcd_url().to_owned()),
        _manifests: Watch::default(),
    };
    Ok((target, Servers { _envtest: envtest, _relays: relays }))
}

/// Replaces IPv6 addresses of Services with relays, because kube-apiserver reaches Services by host name.
async fn reachable(mut services: Services) -> Result<(Services, Vec<Relay>), Failure> {
    let mut relays = Vec::new();
    for (host, port) in services.values_mut().filter(|(host, _)| host.contains(':')) {
        let relay = Relay::start(host, *port).await?;
        (*host, *port) = (relay.address().ip().to_string(), relay.address().port());
        relays.push(relay);
    }
    Ok((services, relays))
}
