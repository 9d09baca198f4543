//! Implements `RoleBinding` objects.

use crate::kinds::kind::Kind;

/// The behavior of `RoleBinding` objects.
pub(crate) const KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "rolebindings",
    kind: "RoleBinding",
    validate_name: |name, _| crate::kinds::object_names::path_segment_errors(name),
    set_defaults: Some(crate::kinds::defaulting::extensions::role_binding),
    is_created_by_update: true,
    validate: |errors, object, change| {
        errors.extend(crate::kinds::rbac::validation::binding(object, change.map(|change| change.old), true))
    },
    cells: Some(crate::kinds::tables::cluster::binding),
    ..Kind::PLAIN
};

/// The behavior of `ClusterRoleBinding`s.
pub(crate) const CLUSTER: Kind = Kind {
    resource: "clusterrolebindings",
    kind: "ClusterRoleBinding",
    validate: |errors, object, change| {
        errors.extend(crate::kinds::rbac::validation::binding(object, change.map(|change| change.old), false))
    },
    ..KIND
};
