//! Implements `RoleBinding` objects.

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, items, name, row};
use crate::kinds::common::defaults::{each, ensure, fill};
use crate::kinds::common::formats;
use crate::kinds::kind::Kind;
use crate::kinds::{common, rbac};

/// The behavior of `RoleBinding` objects.
pub(crate) const KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "rolebindings",
    kind: "RoleBinding",
    validate_name: |name, _| formats::path_segment_errors(name),
    set_defaults: Some(set_defaults),
    is_created_by_update: true,
    validate: |errors, object, change| {
        errors.extend(rbac::validation::binding(object, change.map(|change| change.old), true));
    },
    cells: Some(cells),
    ..Kind::PLAIN
};

/// The behavior of `ClusterRoleBinding`s.
pub(crate) const CLUSTER: Kind = Kind {
    resource: "clusterrolebindings",
    kind: "ClusterRoleBinding",
    validate: |errors, object, change| {
        errors.extend(rbac::validation::binding(object, change.map(|change| change.old), false));
    },
    ..KIND
};

/// Sets the defaults of a `RoleBinding` or a `ClusterRoleBinding`.
///
/// Source: kubernetes pkg/apis/rbac/v1/defaults.go.
pub(crate) fn set_defaults(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    ensure(object, "metadata");
    if let Some(role) = ensure(object, "roleRef") {
        fill(role, "apiGroup", GROUP);
    }
    each(object, "subjects", |subject| {
        if matches!(common::defaults::text(subject, "kind"), "User" | "Group") {
            fill(subject, "apiGroup", GROUP);
        }
    });
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let subjects = items(object, &["subjects"]).iter();
        let names = subjects.filter(|subject| text(subject, &["kind"]) == kind).map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, &["namespace"]), text(subject, &["name"])),
            _ => text(subject, &["name"]).to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let role = at(object, &["roleRef"]);
    row![
        name(object),
        format!("{}/{}", text(role, &["kind"]), text(role, &["name"])),
        age_of(object, context),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
