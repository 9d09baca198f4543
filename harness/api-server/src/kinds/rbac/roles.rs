//! Implements Roles.

use crate::kinds::common::formats;
use crate::kinds::kind::Kind;
use crate::kinds::rbac;

/// The behavior of Roles.
pub(crate) const KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "roles",
    kind: "Role",
    validate_name: |name, _| formats::path_segment_errors(name),
    is_created_by_update: true,
    validate: |errors, object, _| errors.extend(rbac::validation::role(object, true)),
    has_default_columns: true,
    ..Kind::PLAIN
};

/// The behavior of `ClusterRole`s.
pub(crate) const CLUSTER: Kind = Kind {
    resource: "clusterroles",
    kind: "ClusterRole",
    validate: |errors, object, _| errors.extend(rbac::validation::role(object, false)),
    ..KIND
};
