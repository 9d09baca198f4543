//! Uses the in-process API server as a target: the client sends requests to the server's router.

use std::sync::Arc;

use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};

use super::arguments::AuditFiles;
use super::call_log::{CallIndex, CallLog};
use super::identity::Identities;
use super::storage::Storage;
use super::{
    AuditLog, Cleanup, FailedPolicies, FakesPlace, Leftovers, ReferencedServices, RunPolicies, Target,
    TargetArguments, TargetKind, UnknownFields, UnreachedCalls, connection,
};
use crate::Failure;
use crate::serve::TEXT;
use crate::serve::audit_file::{self, AuditFile};
use crate::static_manifests::Watch;
use admit_testing::audit_log::AuditIndex;

/// Creates a target with a new API server.
///
/// # Errors
/// Returns an error if `--admission-control-config-file` is invalid.
pub(super) fn target(arguments: &TargetArguments) -> Result<Target, Failure> {
    let index = AuditIndex::default();
    let recorded = index.clone();
    let calls = CallIndex::default();
    let made = calls.clone();
    let services = arguments.services();
    let selection = arguments.plugins.selection()?;
    let plugins = arguments.admission_control.read(&selection)?;
    let (audit_policy, log) = match &arguments.audit {
        Some(AuditFiles { policy, log }) => {
            let file = AuditFile::open(log, None, TEXT)?;
            (Some(audit_file::policy(policy)?), Some(file.sink()))
        }
        None => (None, None),
    };
    let server = ApiServer::new(Options {
        services: services.clone(),
        credentials: plugins.credentials,
        manifests: plugins.manifests.manifests,
        plugins: selection,
        plugin_configuration: arguments.plugins.configuration(plugins.in_tree),
        hostname: crate::hostname(),
        audit: Some(Arc::new(move |event| {
            recorded.record(event);
            if let Some(log) = &log {
                log(event);
            }
        })),
        audit_policy,
        observer: Some(Arc::new(move |request| made.record(&request))),
        ..Options::default()
    });
    // The user is the same as in envtest, including the uid, because reviews contain the user.
    let user = UserInfo {
        username: "admin".to_owned(),
        uid: "admin".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let router = server.router(Authentication::Always(user));
    let tell = |_, line: &str| crate::screen::status!("{line}");
    let manifests = Watch::start(plugins.manifests.folders, &server, Arc::new(tell));
    Ok(Target {
        kind: TargetKind::InProcess,
        client: kube::Client::new(router.clone(), "default"),
        connecting_client: connection::client(router),
        fakes: FakesPlace::loopback(),
        services,
        referenced: ReferencedServices::default(),
        unreached: UnreachedCalls::default(),
        failed_policies: FailedPolicies::default(),
        unknown_fields: UnknownFields::default(),
        audit: AuditLog::recorded(index),
        calls: CallLog::Recorded(calls),
        run: Cleanup::new_run(),
        leftovers: Leftovers::Removed,
        policies: RunPolicies::default(),
        identities: Identities::InProcess(server.clone()),
        storage: Storage::InProcess(server),
        _manifests: manifests,
    })
}
