//! Normalizes the data sources of `PersistentVolumeClaim`s.

use serde_json::{Map, Value};

const SOURCE: &str = "dataSource";

const REFERENCE: &str = "dataSourceRef";

/// Synchronizes `dataSource` and `dataSourceRef`.
///
/// Drops a reference to another namespace unless the old claim had a reference. Drops a `dataSource` without a
/// `dataSourceRef` that is neither a claim nor a snapshot, unless the old claim had a source.
///
/// Source: kubernetes pkg/api/persistentvolumeclaim/util.go, `DropDisabledFields`,
/// `EnforceDataSourceBackwardsCompatibility` and `NormalizeDataSources`.
pub(crate) fn normalize_data_sources(claim: &mut Value, old: Option<&Value>) {
    let had =
        |field: &str| old.is_some_and(|old| old["spec"].get(field).is_some_and(|source| !source.is_null()));
    let had_one = had(SOURCE) || had(REFERENCE);
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let is_elsewhere = member(spec, REFERENCE).is_some_and(|source| !text(source, "namespace").is_empty());
    if is_elsewhere && !had(REFERENCE) {
        spec.remove(REFERENCE);
    }
    if !had_one
        && member(spec, REFERENCE).is_none()
        && !member(spec, SOURCE).is_some_and(is_claim_or_snapshot)
    {
        spec.remove(SOURCE);
    }
    let (from, to) = match (member(spec, SOURCE), member(spec, REFERENCE)) {
        (Some(source), None) => (source, REFERENCE),
        (None, Some(reference)) if text(reference, "namespace").is_empty() => (reference, SOURCE),
        _ => return,
    };
    let mut copy = from.clone();
    copy.remove("namespace");
    spec.insert(to.to_owned(), copy.into());
}

fn member<'a>(spec: &'a Map<String, Value>, field: &str) -> Option<&'a Map<String, Value>> {
    spec.get(field).and_then(Value::as_object)
}

fn text<'a>(source: &'a Map<String, Value>, field: &str) -> &'a str {
    source.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_claim_or_snapshot(source: &Map<String, Value>) -> bool {
    matches!(
        (text(source, "apiGroup"), text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: &Value, old: Option<&Value>, expected: &Value) {
        let mut claim = json!({"spec": spec});
        normalize_data_sources(&mut claim, old.map(|spec| json!({"spec": spec})).as_ref());
        assert_eq!(claim["spec"], *expected);
    }

    #[test]
    fn data_source_fields_are_synchronized() {
        let claim = json!({"kind": "PersistentVolumeClaim", "name": "c"});
        let both = json!({"dataSource": claim, "dataSourceRef": claim});
        check(&json!({"dataSource": claim}), None, &both);
        check(&json!({"dataSourceRef": claim}), None, &both);
        let elsewhere = json!({"dataSourceRef": {"kind": "X", "name": "x", "namespace": "n"}});
        check(&elsewhere, None, &json!({}));
        check(&elsewhere, Some(&elsewhere), &elsewhere);
        let other = json!({"apiGroup": "example.com", "kind": "X", "name": "x"});
        check(&json!({"dataSource": other}), None, &json!({}));
        let kept = json!({"dataSource": other, "dataSourceRef": other});
        check(&json!({"dataSource": other}), Some(&kept), &kept);
        check(&json!({"dataSourceRef": other}), None, &kept);
    }
}
