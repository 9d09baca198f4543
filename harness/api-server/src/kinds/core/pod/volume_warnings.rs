//! Warns about overlapping paths in volumes.

use kubernetes_types::quoting::quote;
use serde_json::Value;

use crate::kinds::common::fields::{get, list, set, text, word};
use crate::kinds::common::warnings::Warnings;

/// A path and its source. The source is empty if messages do not contain it.
#[derive(Clone, PartialEq, Eq)]
struct Target<'a> {
    path: &'a str,
    source: String,
}

impl Target<'_> {
    fn shown(&self) -> String {
        let path = quote(self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }

    /// Returns whether one path contains or equals the other.
    fn hides(&self, other: &Self) -> bool {
        let is_below = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.path.is_empty()
            && !other.path.is_empty()
            && (is_below(self.path, other.path) || is_below(other.path, self.path))
    }
}

/// Warns about overlapping paths in the volumes of a Pod.
///
/// Source: kubernetes pkg/api/pod/warnings.go, `warningsForOverlappingVirtualPaths`.
/// Rule: VLO-26.
pub(crate) fn overlapping(warnings: &mut Warnings, spec: &Value) {
    for volume in list(spec, "volumes") {
        let name = quote(text(volume, "name"));
        let mut alone = |source: &Value, kind: &str| {
            let targets = items(source, "");
            warn(warnings, &name, kind, &targets);
        };
        if let Some(source) = set(volume, "configMap") {
            alone(source, &format!("ConfigMap {}", quote(text(source, "name"))));
        }
        if let Some(source) = set(volume, "secret") {
            alone(source, &format!("Secret {}", quote(text(source, "secretName"))));
        }
        if let Some(source) = set(volume, "downwardAPI") {
            alone(source, "DownwardAPI");
        }
        if let Some(projected) = set(volume, "projected") {
            let mut targets = Vec::new();
            for source in list(projected, "sources") {
                let is_empty = source.as_object().is_none_or(|source| source.values().all(Value::is_null));
                if is_empty {
                    // In the order of kube-apiserver, which checks one source after the other.
                    warn(warnings, &name, "Projected", &targets);
                    warnings.push(format!("volume {name} (Projected) has no sources provided"));
                    continue;
                }
                targets.extend(targets_of(source));
            }
            warn(warnings, &name, "Projected", &targets);
        }
    }
}

/// Returns the paths of the items in a source.
fn items<'a>(source: &'a Value, shown: &str) -> Vec<Target<'a>> {
    list(source, "items").iter().map(|item| target(text(item, "path"), shown)).collect()
}

fn target<'a>(path: &'a str, source: &str) -> Target<'a> {
    Target { path: path.trim_end_matches('/'), source: source.to_owned() }
}

fn targets_of(source: &Value) -> Vec<Target<'_>> {
    let named = |kind: &str, owner: &Value| format!("{kind} {}", quote(text(owner, "name")));
    let (config_map, secret) = (get(source, "configMap"), get(source, "secret"));
    if set(config_map, "items").is_some() {
        return items(config_map, &named("ConfigMap", config_map));
    }
    if set(secret, "items").is_some() {
        return items(secret, &named("Secret", secret));
    }
    if set(get(source, "downwardAPI"), "items").is_some() {
        return items(get(source, "downwardAPI"), "DownwardAPI");
    }
    if let Some(token) = set(source, "serviceAccountToken") {
        return vec![target(text(token, "path"), "ServiceAccountToken")];
    }
    if let Some(bundle) = set(source, "clusterTrustBundle") {
        let name = word(bundle, "name").unwrap_or_else(|| text(bundle, "signerName"));
        return vec![target(text(bundle, "path"), &format!("ClusterTrustBundle {}", quote(name)))];
    }
    let certificate = get(source, "podCertificate");
    [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ]
    .into_iter()
    .filter(|(field, _)| !text(certificate, field).is_empty())
    .map(|(field, shown)| target(text(certificate, field), shown))
    .collect()
}

fn warn(warnings: &mut Warnings, volume: &str, kind: &str, targets: &[Target<'_>]) {
    /// The maximum number of comparisons. Objects of typical size do not reach this limit.
    const MAX_COMPARISONS: usize = 4_000_000;
    let mut left = MAX_COMPARISONS;
    for (index, later) in targets.iter().enumerate() {
        let Some(rest) = left.checked_sub(index) else { return };
        left = rest;
        if warnings.is_full() {
            return;
        }
        for earlier in targets.iter().take(index).filter(|earlier| later.hides(earlier)) {
            let (later, earlier) = (later.shown(), earlier.shown());
            warnings.push(format!("volume {volume} ({kind}): overlapping paths: {later} with {earlier}"));
        }
    }
}
