//! Compares pulls from `admit serve` and a real kube-apiserver, and what `admit review` does with them.

use super::*;
use crate::helpers::{machine, serve};
use crate::kubectl::servers::Servers;

/// Starts a kube-apiserver, and writes its kubeconfig to `folder`.
async fn kube_apiserver(folder: &Path, kubectl: &Path) -> (Servers, kube::Client) {
    let assets = PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS").unwrap());
    let servers = Servers::start(&assets, kubectl);
    fs::copy(servers.kubeconfig("default"), folder.join("kubeconfig")).unwrap();
    let client = kube::Client::try_from(serve::config(folder).await).unwrap();
    // A controller creates them after the server is ready.
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let get = || http::Request::get(format!("/api/v1/namespaces/{namespace}")).body(Vec::new()).unwrap();
        wait(async || client.request::<Value>(get()).await.is_ok()).await;
    }
    (servers, client)
}

/// Waits until `is_done` returns true, for up to a minute.
async fn wait(is_done: impl AsyncFn() -> bool) {
    let mut tries = 0..600;
    while !is_done().await {
        assert!(tries.next().is_some(), "the server is not in the expected state after a minute");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn kube_apiserver_has_the_same_files() {
    let (Some(kubectl), true) = (machine::kubectl(), machine::has_kube_apiserver()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = Serve::start(folder.path(), &["--authorization-mode", "RBAC"]).await;
    create(&client, objects()).await;
    report(folder.path(), "--out own", 0);
    let (_servers, client) = kube_apiserver(folder.path(), &kubectl).await;
    create(&client, objects()).await;
    report(folder.path(), "--out real", 0);
    let comparable = |name: &str| {
        let mut files = files(&folder.path().join(name));
        files.remove(".admit-pull.yaml").unwrap();
        // kube-controller-manager, which does not run, fills in the rules of aggregated roles.
        for text in files.values_mut().filter(|text| text.starts_with("aggregationRule:")) {
            text.truncate(text.find("\nrules:").unwrap());
        }
        files
    };
    let (own, real) = (comparable("own"), comparable("real"));
    assert_eq!(own.keys().collect::<Vec<_>>(), real.keys().collect::<Vec<_>>());
    assert!(real.values().all(|text| !text.contains(CANARY)));
    for (path, text) in &real {
        assert_eq!(&own[path], text, "{path}");
    }
}

/// Returns objects that the server rejects, each with the plural of its kind and the HTTP status code.
fn rejected() -> Vec<(&'static str, Value, i64)> {
    let pod = |name: &str, container: Value| {
        let mut container = container;
        container["name"] = "web".into();
        container["image"] = "nginx".into();
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"containers": [container]},
        })
    };
    let labels = json!({"app": "web"});
    let pod_spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod_spec});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    });
    let config_map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more", "namespace": "shop"}});
    let privileged = json!({"securityContext": {"privileged": true}});
    let large = json!({"resources": {"limits": {"memory": "2Gi"}}});
    vec![
        ("/apis/apps/v1/namespaces/shop/deployments", deployment, 422),
        ("/api/v1/namespaces/shop/pods", pod("privileged", privileged), 403),
        ("/api/v1/namespaces/shop/pods", pod("large", large), 403),
        ("/api/v1/namespaces/shop/configmaps", config_map, 403),
    ]
}

#[tokio::test]
async fn review_of_a_pulled_directory_decides_as_kube_apiserver_does() {
    let (Some(kubectl), true) = (machine::kubectl(), machine::has_kube_apiserver()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_servers, client) = kube_apiserver(folder.path(), &kubectl).await;
    let hard = json!({"configmaps": "2"});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "objects"}, "spec": {"hard": hard},
    });
    let mut all = objects();
    all.push(("/api/v1/namespaces/shop/resourcequotas", quota));
    create(&client, all).await;
    // kube-controller-manager, which does not run, counts the objects.
    let status = json!({"status": {"hard": hard, "used": hard}}).to_string().into_bytes();
    let request = http::Request::patch("/api/v1/namespaces/shop/resourcequotas/objects/status");
    let request = request.header("Content-Type", "application/merge-patch+json").body(status).unwrap();
    client.request::<Value>(request).await.unwrap();
    report(folder.path(), "--out c", 0);
    let review = |object: &Value, options: &str, status: i32| -> Value {
        fs::write(folder.path().join("object.json"), object.to_string()).unwrap();
        let line = "-f object.json --dry-run=server -o json --disable-admission-plugins ServiceAccount";
        let output = Command::new(env!("CARGO_BIN_EXE_admit"))
            .arg("review")
            .args(format!("{options} {line}").split(' '))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{options}, {object}: {errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let send = async |path: &str, object: &Value| {
        let request = http::Request::post(format!("{path}?dryRun=All"));
        let request = request.header("Content-Type", "application/json");
        client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await
    };
    for (path, object, code) in rejected() {
        // The server reads policies and quotas from its caches.
        wait(async || send(path, &object).await.is_err()).await;
        let Err(kube::Error::Api(real)) = send(path, &object).await else { panic!("{object}: no status") };
        assert_eq!(i64::from(real.code), code, "{object}: {}", real.message);
        for options in ["--with c", "--cluster c"] {
            let own = review(&object, options, 1);
            assert_eq!(own["decision"]["status"]["message"], real.message, "{object}");
            assert_eq!(own["decision"]["code"], code, "{object}");
        }
    }
    let mut lost = rejected().remove(1).1;
    lost["metadata"]["namespace"] = "missing".into();
    let Err(kube::Error::Api(real)) = send("/api/v1/namespaces/missing/pods", &lost).await else {
        panic!("the namespace exists")
    };
    let own = review(&lost, "--cluster c", 1);
    assert_eq!((&own["decision"]["status"]["message"], real.code), (&real.message.as_str().into(), 404));
    assert_eq!(own["decision"]["code"], 404);

    let path = "/api/v1/namespaces/missing/pods/privileged?dryRun=All";
    let request = http::Request::delete(path).body(Vec::new()).unwrap();
    let Err(kube::Error::Api(real)) = client.request::<Value>(request).await else {
        panic!("the object exists")
    };
    let own = review(&lost, "--cluster c --operation delete", 1);
    assert_eq!(own["decision"]["status"]["message"], real.message);

    let admitted = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "small", "namespace": "shop"},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    });
    let real = send("/api/v1/namespaces/shop/pods", &admitted).await.unwrap();
    let own = review(&admitted, "--cluster c", 0);
    assert_eq!(own["object"]["spec"], real["spec"]);
    assert_eq!(own["object"]["spec"]["containers"][0]["resources"]["limits"]["memory"], "64Mi");

    // The webhook does not run. kube-apiserver fails the request, and another webhook could allow it.
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": "shop"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "web", "image": "nginx"}]}}},
    });
    let Err(kube::Error::Api(real)) = send("/apis/batch/v1/namespaces/shop/jobs", &job).await else {
        panic!("the webhook was called")
    };
    assert!(real.message.contains("failed calling webhook \"hook.example.com\""), "{}", real.message);
    let own = review(&job, "--cluster c", 6);
    let webhook = json!({
        "type": "validating", "configuration": "hook", "name": "hook.example.com", "service": "shop/hook",
        "couldChange": false,
    });
    assert_eq!(own["decision"]["condition"]["webhooks"], json!([webhook]));
}
