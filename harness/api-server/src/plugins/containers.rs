//! Iterates over the containers in the `spec` of a Pod for admission plugins.

use serde_json::Value;

use kubernetes_types::json::{at, text};

/// The container lists in upstream's order.
///
/// Source: kubernetes pkg/api/pod/util.go, `VisitContainers`; pod-security-admission policy/visitor.go.
pub(super) const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Returns the items of the list `value[field]`; no items if absent.
pub(super) fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    at(value, &[field]).as_array().into_iter().flatten()
}

/// Returns all containers: init containers, containers, and ephemeral containers.
pub(super) fn all(spec: &Value) -> impl Iterator<Item = &Value> {
    LISTS.into_iter().flat_map(|list| items(spec, list))
}

/// Returns the names of the Secrets in a container's environment, each with its variable; `None` for `envFrom`.
///
/// Source: kubernetes pkg/api/pod/util.go, `visitContainerSecretNames`.
pub(super) fn secrets(container: &Value) -> impl Iterator<Item = (Option<&str>, &str)> {
    let of_variables = items(container, "env").filter_map(|variable| {
        let reference = at(variable, &["valueFrom", "secretKeyRef"]);
        (!reference.is_null()).then(|| (Some(text(variable, &["name"])), text(reference, &["name"])))
    });
    let whole = items(container, "envFrom").filter_map(|source| {
        let reference = at(source, &["secretRef"]);
        (!reference.is_null()).then(|| (None, text(reference, &["name"])))
    });
    of_variables.chain(whole)
}
