//! Tests the controllers by the requests that they send.
//!
//! The expected requests are those that kube-controller-manager 1.37.1 sent to kube-apiserver for the same changes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::server::{ApiServer, Controllers, ObservedRequest, Options};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{MERGE_PATCH, delete, get, patch, post};

const MAPS: &str = "/api/v1/namespaces/demo/configmaps";
const GARBAGE: &str = "generic-garbage-collector";

/// A server with controllers and the namespace `demo`, and the recorded requests from the controllers.
struct Cluster {
    server: ApiServer,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Cluster {
    async fn start() -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&asked);
        let observer = Arc::new(move |request: ObservedRequest| {
            if let Some(line) = line(&request) {
                kept.lock().unwrap().push(line);
            }
        });
        let controllers = Controllers { root_certificates: "PEM".to_owned() };
        let server = ApiServer::new(Options {
            observer: Some(observer),
            controllers: Some(controllers),
            ..Options::default()
        });
        tokio::spawn(server.run_controllers());
        let cluster = Self { server, asked };
        cluster.create("/api/v1/namespaces", json!({"metadata": {"name": "demo"}})).await;
        cluster.until("/api/v1/namespaces/demo/serviceaccounts/default", |(code, _)| *code == 200).await;
        cluster.until(&format!("{MAPS}/kube-root-ca.crt"), |(code, _)| *code == 200).await;
        cluster
    }

    async fn create(&self, path: &str, object: Value) -> Value {
        let (code, created) = post(&self.server, path, &object).await;
        assert_eq!(code, 201, "{created}");
        created
    }

    /// Creates a ConfigMap with the given owners.
    async fn owned(&self, name: &str, owners: &[&Value]) -> Value {
        let reference = |owner: &&Value| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
            })
        };
        let references: Vec<Value> = owners.iter().map(reference).collect();
        self.create(MAPS, json!({"metadata": {"name": name, "ownerReferences": references}})).await
    }

    async fn delete(&self, path: &str, policy: &str) {
        let (code, answer) = delete(&self.server, path, Some(json!({"propagationPolicy": policy}))).await;
        assert_eq!(code, 200, "{answer}");
    }

    /// Waits until an object satisfies a condition.
    async fn until(&self, path: &str, is_so: impl Fn(&(u16, Value)) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let found = get(&self.server, path).await;
            if is_so(&found) {
                return found.1;
            }
            assert!(Instant::now() < deadline, "{path}: {} {}", found.0, found.1);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn gone(&self, path: &str) {
        self.until(path, |(code, _)| *code == 404).await;
    }

    /// Waits until a controller has sent these requests since the last call, in any order.
    ///
    /// A request is recorded when its response is complete. Its effect may be visible earlier, also to the controller.
    async fn has_asked(&self, controller: &str, expected: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut seen: Vec<String> = Vec::new();
        while seen.len() < expected.len() {
            assert!(Instant::now() < deadline, "{seen:#?}");
            for line in std::mem::take(&mut *self.asked.lock().unwrap()) {
                seen.extend(line.strip_prefix(controller).map(|line| line.trim_start().to_owned()));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, expected);
    }

    /// Returns the requests of the controllers since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// Formats a request as `generic-garbage-collector delete configmaps a Background`; `None` for other clients.
fn line(request: &ObservedRequest) -> Option<String> {
    let user = request.user.username.strip_prefix("system:serviceaccount:kube-system:")?;
    assert_eq!(request.user.groups.len(), 3, "{:?}", request.user);
    let ObservedRequest { verb, resource, subresource, name, code, .. } = request;
    let sent = request.sent.clone().unwrap_or_default();
    let what = match verb.as_str() {
        "delete" | "deletecollection" => sent["propagationPolicy"].as_str().unwrap_or_default().to_owned(),
        "patch"
            if sent["metadata"]["finalizers"].is_null() && sent["metadata"]["ownerReferences"].is_null() =>
        {
            "without finalizers".to_owned()
        }
        "patch" if sent["metadata"]["ownerReferences"][0]["$patch"] == "delete" => {
            "without an owner".to_owned()
        }
        "patch" if sent["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] == false => {
            "unblocked".to_owned()
        }
        _ => String::new(),
    };
    let resource = format!("{}/{subresource}", resource.resource);
    let words = [user, verb, resource.trim_end_matches('/'), name, &what];
    assert!((200..300).contains(code), "{words:?}: {code} {:?}", request.answer);
    Some(words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
}

/// Rule: CTL-01, CTL-02.
#[tokio::test]
async fn each_namespace_gets_an_account_and_certificates() {
    let cluster = Cluster::start().await;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        cluster.until(&path, |(code, _)| *code == 200).await;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
        cluster.until(&path, |(_, map)| map["data"] == json!({"ca.crt": "PEM"})).await;
    }
    let account = "/api/v1/namespaces/demo/serviceaccounts/default";
    let uid = get(&cluster.server, account).await.1["metadata"]["uid"].clone();
    cluster.delete(account, "Background").await;
    cluster.until(account, |(code, account)| *code == 200 && account["metadata"]["uid"] != uid).await;
    let map = format!("{MAPS}/kube-root-ca.crt");
    let (code, _) = patch(&cluster.server, &map, MERGE_PATCH, &json!({"data": {"ca.crt": "x"}})).await;
    assert_eq!(code, 200);
    cluster.until(&map, |(_, map)| map["data"]["ca.crt"] == "PEM").await;
    cluster.has_asked("service-account-controller", &["create serviceaccounts default"; 6]).await;
}

/// Rule: CTL-05, CTL-06, CTL-07.
#[tokio::test]
async fn orphaned_object_is_collected() {
    let cluster = Cluster::start().await;
    let owner = cluster.create(MAPS, json!({"metadata": {"name": "a"}})).await;
    let other = cluster.create(MAPS, json!({"metadata": {"name": "b"}})).await;
    cluster.owned("child", &[&owner]).await;
    cluster.owned("shared", &[&owner, &other]).await;
    cluster.delete(&format!("{MAPS}/a"), "Background").await;
    cluster.gone(&format!("{MAPS}/child")).await;
    let is_of_one = |(_, map): &(u16, Value)| {
        map["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1)
    };
    cluster.until(&format!("{MAPS}/shared"), is_of_one).await;
    let expected = ["delete configmaps child Background", "patch configmaps shared without an owner"];
    cluster.has_asked(GARBAGE, &expected).await;

    let foreground = cluster.create(MAPS, json!({"metadata": {"name": "foreground"}})).await;
    cluster.owned("first", &[&foreground]).await;
    cluster.delete(&format!("{MAPS}/foreground"), "Foreground").await;
    cluster.gone(&format!("{MAPS}/foreground")).await;
    cluster.gone(&format!("{MAPS}/first")).await;
    let expected = ["delete configmaps first Background", "patch configmaps foreground without finalizers"];
    cluster.has_asked(GARBAGE, &expected).await;

    let orphan = cluster.create(MAPS, json!({"metadata": {"name": "orphan"}})).await;
    cluster.owned("free", &[&orphan]).await;
    cluster.delete(&format!("{MAPS}/orphan"), "Orphan").await;
    cluster.gone(&format!("{MAPS}/orphan")).await;
    let free = get(&cluster.server, &format!("{MAPS}/free")).await;
    assert_eq!((free.0, &free.1["metadata"]["ownerReferences"]), (200, &Value::Null));
    let expected = ["patch configmaps free without an owner", "patch configmaps orphan without finalizers"];
    cluster.has_asked(GARBAGE, &expected).await;

    // An object created for a missing owner is also deleted.
    cluster.owned("late", &[&orphan]).await;
    cluster.gone(&format!("{MAPS}/late")).await;
    cluster.has_asked(GARBAGE, &["delete configmaps late Background"]).await;
}

/// Rule: CTL-06.
#[tokio::test]
async fn ownership_cycle_is_collected() {
    let cluster = Cluster::start().await;
    let one = cluster.create(MAPS, json!({"metadata": {"name": "one"}})).await;
    let two = cluster.owned("two", &[&one]).await;
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": two["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    let owners = json!({"metadata": {"ownerReferences": reference}});
    assert_eq!(patch(&cluster.server, &format!("{MAPS}/one"), MERGE_PATCH, &owners).await.0, 200);
    cluster.delete(&format!("{MAPS}/one"), "Foreground").await;
    cluster.gone(&format!("{MAPS}/one")).await;
    cluster.gone(&format!("{MAPS}/two")).await;
}

/// Rule: CTL-03, CTL-04.
#[tokio::test]
async fn namespace_is_removed_once_empty() {
    let cluster = Cluster::start().await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    cluster.create(MAPS, held).await;
    cluster.create("/api/v1/namespaces/demo/secrets", json!({"metadata": {"name": "a"}})).await;
    let demo = "/api/v1/namespaces/demo";
    cluster.delete(demo, "Background").await;
    let waits = |(_, namespace): &(u16, Value)| namespace["status"]["conditions"].is_array();
    let namespace = cluster.until(demo, waits).await;
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let conditions = namespace["status"]["conditions"].as_array().unwrap();
    let shown: Vec<String> = conditions
        .iter()
        .map(|it| {
            let text = |field: &str| it[field].as_str().unwrap();
            format!("{} {} {}: {}", text("type"), text("status"), text("reason"), text("message"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered",
            "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed",
            "NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization",
            "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances",
            "NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: \
             example.com/hold in 1 resource instances",
        ]
    );
    let free = json!({"metadata": {"finalizers": null}});
    assert_eq!(patch(&cluster.server, &format!("{MAPS}/held"), MERGE_PATCH, &free).await.0, 200);
    cluster.gone(demo).await;
    // The other controllers work in the meantime.
    let asked: Vec<String> =
        cluster.asked().into_iter().filter(|line| line.starts_with("namespace-controller ")).collect();
    let expected = [
        "deletecollection configmaps Background",
        "deletecollection secrets Background",
        "deletecollection serviceaccounts Background",
        "update namespaces/status demo",
    ];
    let expected = expected.map(|line| format!("namespace-controller {line}"));
    assert!(asked.starts_with(&expected), "{asked:#?}");
}
