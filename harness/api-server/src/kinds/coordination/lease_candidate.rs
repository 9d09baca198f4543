//! Implements `LeaseCandidate` objects.

use crate::kinds::kind::Kind;

/// The behavior of `LeaseCandidate` objects.
pub(crate) const KIND: Kind = Kind {
    group: "coordination.k8s.io",
    resource: "leasecandidates",
    kind: "LeaseCandidate",
    requires_resource_version: true,
    is_created_by_update: true,
    ..Kind::PLAIN
};
