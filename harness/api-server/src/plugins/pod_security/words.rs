//! How the checks name what they found.

use std::collections::BTreeSet;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::plugins::containers;

/// The member of a container's or a Pod's security context.
pub(super) fn context<'a>(owner: &'a Value, path: &[&str]) -> &'a Value {
    at(at(owner, &["securityContext"]), path)
}

/// `"a", "b"`.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    items.into_iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", ")
}

/// The word for one, or for several.
pub(super) fn plural(count: usize, one: &'static str, several: &'static str) -> &'static str {
    if count == 1 { one } else { several }
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn named(containers: &[&str]) -> String {
    let what = plural(containers.len(), "container", "containers");
    format!("{what} {}", quoted(containers.iter().copied()))
}

/// The names of the containers of which `is_bad` holds.
pub(super) fn bad<'a>(spec: &'a Value, mut is_bad: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
    containers::all(spec).filter(|container| is_bad(container)).map(name).collect()
}

pub(super) fn name(container: &Value) -> &str {
    text(container, &["name"])
}

/// `pod and containers "a", "b"`: who set something that is bad; nothing if nobody did.
pub(super) fn setters(is_pod: bool, containers: &[&str]) -> Option<String> {
    let pod = is_pod.then(|| "pod".to_owned());
    let containers = (!containers.is_empty()).then(|| named(containers));
    let setters: Vec<String> = pod.into_iter().chain(containers).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

/// Bad values, each once and sorted.
pub(super) type Values<'a> = BTreeSet<&'a str>;
