//! Formats the messages of the checks.

use std::collections::BTreeSet;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::plugins::containers;

/// Returns the field at `path` in the security context of a container or a Pod.
pub(super) fn context<'a>(owner: &'a Value, path: &[&str]) -> &'a Value {
    at(at(owner, &["securityContext"]), path)
}

/// Formats names as `"a", "b"`.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    items.into_iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", ")
}

/// Returns `one` if `count` is 1, otherwise `several`.
pub(super) fn plural(count: usize, one: &'static str, several: &'static str) -> &'static str {
    if count == 1 { one } else { several }
}

/// Formats names as `container "a"` or `containers "a", "b"`.
pub(super) fn named(containers: &[&str]) -> String {
    let what = plural(containers.len(), "container", "containers");
    format!("{what} {}", quoted(containers.iter().copied()))
}

/// Returns the names of the containers for which `is_bad` returns true.
pub(super) fn bad<'a>(spec: &'a Value, mut is_bad: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
    containers::all(spec).filter(|container| is_bad(container)).map(name).collect()
}

pub(super) fn name(container: &Value) -> &str {
    text(container, &["name"])
}

/// Formats the owners of forbidden values as `pod and containers "a", "b"`; `None` if there are no owners.
pub(super) fn setters(is_pod: bool, containers: &[&str]) -> Option<String> {
    let pod = is_pod.then(|| "pod".to_owned());
    let containers = (!containers.is_empty()).then(|| named(containers));
    let setters: Vec<String> = pod.into_iter().chain(containers).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

/// The distinct forbidden values, sorted.
pub(super) type Values<'a> = BTreeSet<&'a str>;
