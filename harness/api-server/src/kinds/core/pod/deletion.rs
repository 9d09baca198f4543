//! Computes the grace period of Pods.

use serde_json::Value;

use crate::apimachinery::metadata;

/// Returns the new grace period of a Pod, in seconds.
///
/// Returns `None` if the Pod is already being deleted and the DELETE does not shorten its grace period.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `CheckGracefulDelete`.
pub(crate) fn grace_of_pod(pod: &Value, options: &Value) -> Option<i64> {
    let wanted = options.get("gracePeriodSeconds").and_then(Value::as_i64);
    let wanted = wanted.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if metadata::is_deleting(pod)
        && let Some(left) = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64)
    {
        return if left == 0 { Some(0) } else { wanted.filter(|wanted| *wanted < left) };
    }
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/nodeName").is_empty() || ["Succeeded", "Failed"].contains(&text("/status/phase")) {
        return Some(0);
    }
    let of_spec = || pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let seconds = wanted.or_else(of_spec).unwrap_or(0);
    // A negative period means one second.
    Some(if seconds < 0 { 1 } else { seconds })
}
