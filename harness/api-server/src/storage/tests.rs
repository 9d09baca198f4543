//! Tests of concurrent writes and of the weight of objects.

use serde_json::json;

use super::space::MAX_OBJECT_BYTES;
use super::*;

fn key(name: &str) -> Key {
    Key {
        group: String::new(),
        resource: "configmaps".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn write_over_a_replaced_object_conflicts() {
    let storage = Storage::default();
    let object = || json!({"metadata": {}});
    let first = storage.insert(&key("a"), object()).unwrap();
    let second = storage.replace(&key("a"), Some(&first), object()).unwrap();
    assert_eq!(second["metadata"]["resourceVersion"], "2");
    assert_eq!(storage.replace(&key("a"), Some(&first), object()), Err(WriteConflict));
    assert_eq!(storage.remove(&key("a"), &first), Err(WriteConflict));
    assert_eq!(storage.remove(&key("a"), &second), Ok(3));
    assert_eq!(storage.at(&key("a")), None);
}

/// Checks that replaced versions of an object count toward the size limit of the history.
#[test]
fn replaced_objects_count_in_the_history() {
    let storage = Storage::default();
    let object = || json!({"metadata": {}, "data": "x".repeat(10 << 20)});
    let mut stored = storage.insert(&key("a"), object()).unwrap();
    for _ in 0..15 {
        stored = storage.replace(&key("a"), Some(&stored), object()).unwrap();
    }
    assert!((10 << 20..(10 << 20) + 1000).contains(&storage.read().weight));
    // The history has room for twelve replaced objects of ten megabytes each.
    assert_eq!(storage.changes_after(4, 50).unwrap().len(), 12);
    assert_eq!(storage.changes_after(3, 50).unwrap_err(), HistoryExpired { oldest: 4 });
    storage.remove(&key("a"), &stored).unwrap();
    assert_eq!(storage.read().weight, 0);
}

#[test]
fn object_without_space_is_rejected_like_etcd() {
    let storage = Storage::default();
    let check = |object: &Value, name: &str, message: Option<&str>| {
        let refused = storage.check_space(&key(name), object).err();
        assert_eq!(refused.map(|status| status.message).as_deref(), message);
    };
    let large = json!("x".repeat(MAX_OBJECT_BYTES));
    check(&large, "new", Some("etcdserver: request is too large"));
    let object = json!({"metadata": {"resourceVersion": "1"}, "data": "xx"});
    storage.insert(&key("a"), object.clone()).unwrap();
    let quota = storage.read().quota;
    storage.write().weight = quota;
    check(&object, "new", Some("etcdserver: mvcc: database space exceeded"));
    check(&object, "a", None);
    check(
        &json!({"metadata": {"resourceVersion": "1"}, "data": "xxx"}),
        "a",
        Some("etcdserver: mvcc: database space exceeded"),
    );
}

#[test]
fn namespaced_list_has_only_its_objects() {
    let storage = Storage::default();
    for (namespace, name) in [("a", "x"), ("b", "x"), ("b", "y"), ("c", "x")] {
        let key = Key { namespace: namespace.to_owned(), ..key(name) };
        let object = json!({"metadata": {"name": name, "namespace": namespace}});
        storage.insert(&key, object).unwrap();
    }
    assert_eq!(storage.list("", "configmaps", "b").len(), 2);
    assert_eq!(storage.list("", "configmaps", "").len(), 4);
}
