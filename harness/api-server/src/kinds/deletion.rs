//! Marks objects as being deleted and decides whether they are removed immediately.

use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::finalizers::{FOREGROUND, ORPHAN};
use crate::kinds::kind::{DeleteEffect, Kind};

/// Returns the effect of a DELETE with these `options` on an object.
///
/// In a cluster, the garbage collector and the kubelet finish the deletion. They are not part of the API server.
///
/// Source: apiserver pkg/registry/rest/delete.go, `BeforeDelete`; pkg/registry/generic/registry/store.go, `Delete`,
/// `deletionFinalizersForGarbageCollection` and `markAsDeleting`.
///
/// `by_name` is false for the deletion of a collection.
pub(crate) fn mark(stored: &Value, options: &Value, kind: &Kind, by_name: bool) -> DeleteEffect {
    if let Some(effect) = (kind.delete)(stored, options, by_name) {
        return effect;
    }
    let mut object = stored.clone();
    let grace = match kind.grace_period {
        None => 0,
        Some(grace_period) => match grace_period(stored, options) {
            Some(seconds) => seconds,
            None => return DeleteEffect::Pending,
        },
    };
    let finalizers = finalizers(stored, options, kind);
    let gone = grace == 0 && finalizers.is_empty();
    // An object that is removed immediately is not marked first unless its kind has a grace period.
    if !gone || is_graceful(stored, kind) {
        metadata::set(&mut object, "finalizers", finalizers.into());
        set_deletion(&mut object, grace);
    }
    kubernetes_types::schema::normalize_metadata(&mut object);
    DeleteEffect::Changed { object, gone }
}

/// Returns whether an object is marked before it is removed, even if it could be removed immediately.
///
/// This is true only for Pods. It is false for a Pod that is already being deleted with a grace period of zero.
///
/// Source: apiserver pkg/registry/rest/delete.go, `BeforeDelete`.
pub(crate) fn is_graceful(stored: &Value, kind: &Kind) -> bool {
    let left = stored.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    kind.grace_period.is_some() && !(metadata::is_deleting(stored) && left.unwrap_or_default() == 0)
}

fn set_deletion(object: &mut Value, grace: i64) {
    if !metadata::is_deleting(object) {
        if let Some(generation) = object.pointer("/metadata/generation").and_then(Value::as_i64) {
            metadata::set(object, "generation", generation.wrapping_add(1).into());
        }
        metadata::set(object, "deletionTimestamp", metadata::seconds_from_now(grace).into());
        metadata::set(object, "deletionGracePeriodSeconds", grace.into());
    } else if object.pointer("/metadata/deletionGracePeriodSeconds").is_none() {
        // A custom resource definition is first marked without a grace period.
        metadata::set(object, "deletionGracePeriodSeconds", grace.into());
    } else if object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64) != Some(grace) {
        metadata::set(object, "deletionTimestamp", metadata::seconds_from_now(grace).into());
        metadata::set(object, "deletionGracePeriodSeconds", grace.into());
    }
}

/// Returns the finalizers of an object after the DELETE, including the garbage collector's finalizers.
///
/// The order of the finalizers changes only if the set changes.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `deletionFinalizersForGarbageCollection`.
/// Rule: CHN-14.
fn finalizers(stored: &Value, options: &Value, kind: &Kind) -> Vec<String> {
    let own: Vec<&str> = metadata::finalizers(stored).collect();
    let policy = policy(&own, options, kind);
    let mut all: Vec<String> =
        own.iter().filter(|own| ![ORPHAN, FOREGROUND].contains(own)).map(|own| (*own).to_owned()).collect();
    all.extend(policy.map(str::to_owned));
    let are_same = own.iter().all(|own| all.iter().any(|it| it == own))
        && all.iter().all(|it| own.contains(&it.as_str()));
    if are_same { own.into_iter().map(str::to_owned).collect() } else { all }
}

/// Returns the garbage collector's finalizer that the deletion requires, if any.
fn policy(own: &[&str], options: &Value, kind: &Kind) -> Option<&'static str> {
    if kind.ignores_propagation_policy {
        return None;
    }
    if let Some(orphan) = options.get("orphanDependents").and_then(Value::as_bool) {
        return orphan.then_some(ORPHAN);
    }
    match options.get("propagationPolicy").and_then(Value::as_str) {
        Some("Orphan") => return Some(ORPHAN),
        Some("Foreground") => return Some(FOREGROUND),
        Some("Background") => return None,
        Some(_) | None => {}
    }
    let present = own.iter().find_map(|own| [ORPHAN, FOREGROUND].into_iter().find(|known| known == own));
    present.or_else(|| kind.orphans_dependents.then_some(ORPHAN))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::{batch, core};

    #[track_caller]
    fn check(kind: &Kind, object: &Value, options: &Value, finalizers: &Value, expect_gone: bool) {
        let DeleteEffect::Changed { object: marked, gone } = mark(object, options, kind, true) else {
            panic!("pending: {} {object} {options}", kind.resource);
        };
        assert_eq!(gone, expect_gone, "{} {object} {options}", kind.resource);
        let found = marked.pointer("/metadata/finalizers").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(found, *finalizers, "{} {object} {options}", kind.resource);
    }

    #[test]
    fn propagation_policy_sets_a_finalizer() {
        let plain = json!({"metadata": {}});
        check(&core::config_map::KIND, &plain, &json!({}), &json!([]), true);
        check(&core::config_map::KIND, &plain, &json!({"propagationPolicy": "Background"}), &json!([]), true);
        check(
            &core::config_map::KIND,
            &plain,
            &json!({"propagationPolicy": "Foreground"}),
            &json!([FOREGROUND]),
            false,
        );
        check(
            &core::config_map::KIND,
            &plain,
            &json!({"propagationPolicy": "Orphan"}),
            &json!([ORPHAN]),
            false,
        );
        check(&core::config_map::KIND, &plain, &json!({"orphanDependents": true}), &json!([ORPHAN]), false);
        check(&core::event::KIND, &plain, &json!({"propagationPolicy": "Orphan"}), &json!([]), true);
        check(&batch::job::KIND, &plain, &json!({}), &json!([ORPHAN]), false);
        check(&batch::job::KIND, &plain, &json!({"propagationPolicy": "Background"}), &json!([]), true);
        let kept = json!({"metadata": {"finalizers": ["a/b", "orphan"]}});
        check(&core::config_map::KIND, &kept, &json!({}), &json!(["a/b", "orphan"]), false);
        check(
            &core::config_map::KIND,
            &kept,
            &json!({"propagationPolicy": "Background"}),
            &json!(["a/b"]),
            false,
        );
        let first = json!({"metadata": {"finalizers": ["orphan", "a/b"]}});
        check(&core::config_map::KIND, &first, &json!({}), &json!(["orphan", "a/b"]), false);
        check(
            &core::config_map::KIND,
            &first,
            &json!({"propagationPolicy": "Foreground"}),
            &json!(["a/b", FOREGROUND]),
            false,
        );
    }

    #[test]
    fn a_pod_on_a_node_has_a_grace_period() {
        let pod = |node: &str, phase: &str| {
            json!({
                "metadata": {"generation": 1},
                "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30},
                "status": {"phase": phase},
            })
        };
        check(&core::pod::KIND, &pod("", "Pending"), &json!({"gracePeriodSeconds": 9}), &json!([]), true);
        check(&core::pod::KIND, &pod("n", "Failed"), &json!({}), &json!([]), true);
        check(&core::pod::KIND, &pod("n", "Running"), &json!({"gracePeriodSeconds": 0}), &json!([]), true);
        let DeleteEffect::Changed { object, gone: false } =
            mark(&pod("n", "Running"), &json!({}), &core::pod::KIND, true)
        else {
            panic!("the object is removed");
        };
        assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 30);
        assert_eq!(object["metadata"]["generation"], 2);
        assert_eq!(mark(&object, &json!({}), &core::pod::KIND, true), DeleteEffect::Pending);
        assert_eq!(
            mark(&object, &json!({"gracePeriodSeconds": 30}), &core::pod::KIND, true),
            DeleteEffect::Pending
        );
        let DeleteEffect::Changed { object, gone: true } =
            mark(&object, &json!({"gracePeriodSeconds": 0}), &core::pod::KIND, true)
        else {
            panic!("the object is not removed");
        };
        assert_eq!(object["metadata"]["generation"], 2);
    }
}
