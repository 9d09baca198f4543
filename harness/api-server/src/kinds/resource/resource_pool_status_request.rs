//! Implements `ResourcePoolStatusRequest` objects.

use crate::kinds::kind::Kind;

/// The behavior of `ResourcePoolStatusRequest` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourcepoolstatusrequests",
    kind: "ResourcePoolStatusRequest",
    returns_deleted_object: true,
    ..Kind::PLAIN
};
