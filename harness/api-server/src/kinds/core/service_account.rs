//! Implements `ServiceAccount` objects.

use serde_json::Value;

use crate::kinds::common;
use crate::kinds::common::cells;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;

/// The behavior of `ServiceAccount` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "serviceaccounts",
    kind: "ServiceAccount",
    returns_deleted_object: true,
    prepare_create: keep_names_of_secrets,
    prepare_update: |object, _| keep_names_of_secrets(object),
    warn,
    cells: Some(cells::name_and_age),
    ..Kind::PLAIN
};

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let enforce = "kubernetes.io/enforce-mountable-secrets";
    if common::warnings::has_annotation(object, enforce)
        && !old.is_some_and(|old| common::warnings::has_annotation(old, enforce))
    {
        warnings.push(format!(
            "metadata.annotations[{enforce}]: deprecated in v1.32+; prefer separate namespaces to isolate \
             access to mounted secrets"
        ));
    }
}

/// Removes all fields from the secrets of a `ServiceAccount` except for their names.
///
/// Source: kubernetes pkg/registry/core/serviceaccount/strategy.go, `cleanSecretReferences`.
pub(crate) fn keep_names_of_secrets(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten();
    for secret in secrets {
        if let Some(members) = secret.as_object_mut() {
            members.retain(|field, _| field == "name");
        }
    }
}
