//! Implements `ServiceAccount` objects.

use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use serde_json::Value;

/// The behavior of `ServiceAccount` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "serviceaccounts",
    kind: "ServiceAccount",
    returns_deleted_object: true,
    prepare_create: crate::kinds::strategy::create::keep_names_of_secrets,
    prepare_update: |object, _| crate::kinds::strategy::create::keep_names_of_secrets(object),
    warn: warn,
    cells: Some(crate::kinds::tables::cluster::name_and_age),
    ..Kind::PLAIN
};

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let enforce = "kubernetes.io/enforce-mountable-secrets";
    if crate::kinds::common::warnings::has_annotation(object, enforce)
        && !old.is_some_and(|old| crate::kinds::common::warnings::has_annotation(old, enforce))
    {
        warnings.push(format!(
            "metadata.annotations[{enforce}]: deprecated in v1.32+; prefer separate namespaces to isolate \
             access to mounted secrets"
        ));
    }
}
