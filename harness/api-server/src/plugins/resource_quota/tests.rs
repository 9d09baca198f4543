//! Tests of what a recording cannot show: conflicts, parallel requests, and quotas that admit does not support.

use kubernetes_admission::attributes::Operation;
use serde_json::{Map, json};

use super::super::tests::request;
use super::*;

/// The stored quotas. An update needs the current version, and a conflict precedes it if there are any left.
#[derive(Debug, Default)]
struct StoredQuotas {
    quotas: Mutex<Vec<Arc<Value>>>,
    conflicts: Mutex<usize>,
}

impl StoredQuotas {
    fn new(hard: &Map<String, Value>, conflicts: usize) -> Arc<Self> {
        let used: Map<String, Value> = hard.keys().map(|name| (name.clone(), "0".into())).collect();
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "ns", "resourceVersion": "1"},
            "status": {"hard": hard, "used": used},
        });
        Arc::new(Self { quotas: Mutex::new(vec![Arc::new(quota)]), conflicts: Mutex::new(conflicts) })
    }

    fn update(&self, changed: &Value) -> Result<(), Box<Status>> {
        let conflict = || Box::new(Status::conflict("", "resourcequotas", "q", "it has changed"));
        let mut conflicts = self.conflicts.lock().unwrap();
        if *conflicts > 0 {
            *conflicts -= 1;
            return Err(conflict());
        }
        let mut quotas = self.quotas.lock().unwrap();
        let version = changed["metadata"]["resourceVersion"].as_str().unwrap();
        if quotas[0]["metadata"]["resourceVersion"] != version {
            return Err(conflict());
        }
        let mut changed = changed.clone();
        changed["metadata"]["resourceVersion"] = json!((version.parse::<u64>().unwrap() + 1).to_string());
        quotas[0] = Arc::new(changed);
        Ok(())
    }

    fn used(&self, name: &str) -> Value {
        self.quotas.lock().unwrap()[0]["status"]["used"][name].clone()
    }
}

impl ObjectReader for Arc<StoredQuotas> {
    fn get(&self, _group: &str, _resource: &str, _namespace: &str, _name: &str) -> Option<Arc<Value>> {
        None
    }

    fn list(&self, _group: &str, _resource: &str, _namespace: &str) -> Vec<Arc<Value>> {
        self.quotas.lock().unwrap().clone()
    }
}

impl ObjectWriter for Arc<StoredQuotas> {
    fn put<'a>(
        &'a self,
        path: String,
        object: &'a Value,
    ) -> Pin<Box<dyn Future<Output = Result<(), Box<Status>>> + Send + 'a>> {
        assert_eq!(path, "/api/v1/namespaces/ns/resourcequotas/q/status");
        Box::pin(async move {
            // Other requests run between the read and the update.
            tokio::task::yield_now().await;
            self.update(object)
        })
    }
}

fn plugin(stored: &Arc<StoredQuotas>) -> ResourceQuota {
    let writer = QuotaWriter::default();
    writer.set(Box::new(Arc::clone(stored))).unwrap();
    ResourceQuota::new(Arc::new(Arc::clone(stored)), writer)
}

fn creation(resource: &str, object: Value) -> Attributes {
    request(Operation::Create, resource, "X", object)
}

async fn create(plugin: &ResourceQuota, resource: &str, object: Value) -> Result<(), Box<Status>> {
    let attributes = creation(resource, object);
    match plugin.charge(&attributes) {
        Some(charge) => charge.await,
        None => Ok(()),
    }
}

fn limits(limited: &str, most: &str) -> Map<String, Value> {
    [(limited.to_owned(), most.into())].into_iter().collect()
}

#[tokio::test]
async fn conflicting_updates_of_the_quota_are_repeated_three_times() {
    for (conflicts, code) in [(0, None), (3, None), (4, Some(409))] {
        let stored = StoredQuotas::new(&limits("configmaps", "1"), conflicts);
        let created = create(&plugin(&stored), "configmaps", json!({"metadata": {"name": "a"}})).await;
        assert_eq!(created.err().map(|status| status.code), code, "{conflicts} conflicts");
        assert_eq!(stored.used("configmaps"), if code.is_none() { "1" } else { "0" });
    }
}

#[tokio::test]
async fn parallel_requests_do_not_exceed_the_quota() {
    let stored = StoredQuotas::new(&limits("configmaps", "5"), 0);
    let plugin = Arc::new(plugin(&stored));
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..20 {
        let plugin = Arc::clone(&plugin);
        let name = format!("c{number}");
        requests
            .spawn(async move { create(&plugin, "configmaps", json!({"metadata": {"name": name}})).await });
    }
    let codes: Vec<i32> =
        requests.join_all().await.into_iter().filter_map(Result::err).map(|status| status.code).collect();
    assert_eq!(codes, [403; 15]);
    assert_eq!(stored.used("configmaps"), "5");
}

#[tokio::test(start_paused = true)]
async fn evaluation_times_out() {
    let stored = StoredQuotas::new(&limits("configmaps", "5"), 0);
    let plugin = plugin(&stored);
    let lock = plugin.lock("ns");
    let _held = lock.lock().await;
    let status = create(&plugin, "configmaps", json!({"metadata": {"name": "a"}})).await.unwrap_err();
    assert_eq!(status.message, "Internal error occurred: resource quota evaluation timed out");
}

#[tokio::test]
async fn limits_that_depend_on_device_classes_are_not_supported() {
    for (limited, resource, code) in [
        ("requests.example.com/gpu", "resourceclaims", Some(501)),
        ("requests.deviceclass.resource.kubernetes.io/a", "resourceclaims", Some(501)),
        ("a.deviceclass.resource.k8s.io/devices", "resourceclaims", None),
        ("requests.example.com/gpu", "configmaps", None),
    ] {
        let stored = StoredQuotas::new(&limits(limited, "0"), 0);
        let mut attributes = creation(resource, json!({"metadata": {"name": "a"}}));
        if resource == "resourceclaims" {
            attributes.resource.group = "resource.k8s.io".to_owned();
        }
        let plugin = plugin(&stored);
        let outcome = plugin.charge(&attributes).unwrap().await;
        assert_eq!(outcome.err().map(|status| status.code), code, "{limited} {resource}");
    }
}
