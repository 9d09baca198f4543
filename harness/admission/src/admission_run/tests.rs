//! Tests how often objects are converted, and how often equivalent resources are looked up.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::attributes::{GroupVersionResource, Operation};
use crate::testing::create_config_map;

/// A cluster state that records each conversion in the object.
#[derive(Default)]
struct Conversions {
    count: AtomicUsize,
    lookups: AtomicUsize,
}

impl ClusterState for Conversions {
    fn namespace(&self, _: &str) -> Option<Arc<Value>> {
        None
    }

    fn equivalent_resources(&self, _: &GroupVersionResource, _: &str) -> Arc<[EquivalentResource]> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        Arc::default()
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut object = object.clone();
        object["apiVersion"] = kind.api_version().into();
        object["way"] = format!("{}>{}", object["way"].as_str().unwrap_or("v1"), kind.version).into();
        Ok(object)
    }

    fn set_defaults(&self, _: &mut Value) {}

    fn is_built_in(&self, _: &GroupVersionKind) -> bool {
        true
    }
}

fn version(version: &str) -> GroupVersionKind {
    GroupVersionKind::new("", version, "ConfigMap")
}

fn update() -> Attributes {
    let create = create_config_map();
    Attributes { operation: Operation::Update, old_object: create.object.clone(), ..create }
}

#[track_caller]
fn check_way(run: &AdmissionRun<'_>, kind: &GroupVersionKind, object: &str, old: &str) {
    let objects = run.objects(kind);
    assert_eq!(objects.object.unwrap()["way"], object);
    assert_eq!(objects.old_object.unwrap()["way"], old);
}

#[test]
fn each_version_is_converted_once_until_the_object_changes() {
    let state = Conversions::default();
    let mut run = AdmissionRun::new(update(), TimePrecision::Seconds, &state);
    for kind in [version("v1"), version("v2"), version("v3"), version("v2"), version("v1")] {
        run.convert(&kind).unwrap();
    }
    assert_eq!(state.count.load(Ordering::Relaxed), 4);
    check_way(&run, &version("v2"), "v1>v2", "v1>v2");
    check_way(&run, &version("v3"), "v1>v3", "v1>v3");
    assert_eq!(run.attributes().object, update().object);

    let patched = run.objects(&version("v2")).object.unwrap().clone();
    run.patch(&version("v2"), patched, true);
    run.convert(&version("v2")).unwrap();
    check_way(&run, &version("v2"), "v1>v2", "v1>v2");
    run.convert(&version("v3")).unwrap();
    check_way(&run, &version("v3"), "v1>v2>v1>v3", "v1>v3");
    run.convert(&version("v2")).unwrap();
    check_way(&run, &version("v2"), "v1>v2>v1>v2", "v1>v2");
    assert_eq!(state.count.load(Ordering::Relaxed), 7);
}

#[test]
fn a_patched_object_is_converted_back_to_the_request_version() {
    let state = Conversions::default();
    let mut run = AdmissionRun::new(update(), TimePrecision::Nanos, &state);
    run.convert(&version("v2")).unwrap();
    let patched = run.objects(&version("v2")).object.unwrap().clone();
    run.patch(&version("v2"), patched, true);
    run.convert_to_request_version().unwrap();
    assert_eq!(run.attributes().object.as_ref().unwrap()["way"], "v1>v2>v1");
    run.convert_to_request_version().unwrap();
    assert_eq!(run.attributes().object.as_ref().unwrap()["way"], "v1>v2>v1");
    assert_eq!((run.round_times(), run.round_times()), (true, false));
}

#[test]
fn equivalents_are_looked_up_once() {
    let state = Conversions::default();
    let mut run = AdmissionRun::new(update(), TimePrecision::Seconds, &state);
    run.look_up_equivalents();
    run.look_up_equivalents();
    assert_eq!(state.lookups.load(Ordering::Relaxed), 1);
}
