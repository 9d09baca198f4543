//! Tests `admit pull` against `admit serve` and a real kube-apiserver.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "what a test does not expect may panic")]

mod kube_apiserver;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::helpers::serve::Serve;

/// The value of Secrets, which must not reach the disk.
const CANARY: &str = "canary-4711";

/// Objects that decide about admission, each with the path of the request that creates it.
fn objects() -> Vec<(&'static str, Value)> {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    let metadata = |name: &str| json!({"name": name});
    let policy = |name: &str, param_kind: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata(name),
            "spec": {
                "paramKind": {"apiVersion": "v1", "kind": param_kind},
                "matchConstraints": {"resourceRules": [{
                    "operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                }]},
                "validations": [{"expression": "params.metadata.name == 'x'"}],
            },
        })
    };
    let binding = |name: &str, param: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata(name),
            "spec": {"policyName": name, "paramRef": param, "validationActions": ["Deny"]},
        })
    };
    let config_map =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name)});
    let webhooks = json!([{
        "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "shop", "name": "hook"}},
        // The objects below are created after this configuration.
        "rules": [{"operations": ["CREATE"], "apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]}],
    }]);
    let service = |name: &str| {
        let spec = json!({"clusterIP": "None", "ports": [{"port": 443}]});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(name), "spec": spec})
    };
    let last_applied = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    vec![
        (
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": "shop", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}, "annotations": last_applied,
            }}),
        ),
        (
            "/api/v1/namespaces/shop/secrets",
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": metadata("param"), "stringData": {"value": CANARY},
            }),
        ),
        (
            "/api/v1/namespaces/shop/limitranges",
            json!({
                "apiVersion": "v1", "kind": "LimitRange", "metadata": metadata("defaults"),
                "spec": {"limits": [{"type": "Container", "default": {"memory": "64Mi"}, "max": {"memory": "1Gi"}}]},
            }),
        ),
        (
            "/api/v1/namespaces/shop/serviceaccounts",
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "builder", "annotations": {"example.com/note": CANARY}},
                "imagePullSecrets": [{"name": "param"}],
            }),
        ),
        ("/api/v1/namespaces/shop/configmaps", config_map("limits")),
        ("/api/v1/namespaces/shop/configmaps", config_map("unrelated")),
        ("/api/v1/namespaces/shop/services", service("hook")),
        ("/api/v1/namespaces/shop/services", service("unrelated")),
        (ADMISSION, policy("replicas", "ConfigMap")),
        (ADMISSION, binding("replicas", json!({"name": "limits", "parameterNotFoundAction": "Deny"}))),
        (
            ADMISSION,
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": metadata("hook"), "webhooks": webhooks,
            }),
        ),
    ]
}

/// A policy whose param is a Secret.
fn secret_policy() -> Vec<(&'static str, Value)> {
    let mut policies: Vec<(&str, Value)> =
        objects().into_iter().filter(|(_, object)| object["metadata"]["name"] == "replicas").collect();
    for (_, object) in &mut policies {
        object["metadata"]["name"] = "secret".into();
    }
    policies[0].1["spec"]["paramKind"]["kind"] = "Secret".into();
    policies[1].1["spec"]["policyName"] = "secret".into();
    policies[1].1["spec"]["paramRef"] =
        json!({"name": "param", "namespace": "shop", "parameterNotFoundAction": "Deny"});
    policies
}

async fn create(client: &kube::Client, objects: Vec<(&str, Value)>) {
    for (root, object) in objects {
        let plural = match object["kind"].as_str().unwrap() {
            "ValidatingAdmissionPolicy" => "/validatingadmissionpolicies",
            "ValidatingAdmissionPolicyBinding" => "/validatingadmissionpolicybindings",
            "ValidatingWebhookConfiguration" => "/validatingwebhookconfigurations",
            _ => "",
        };
        let request = http::Request::post(format!("{root}{plural}"));
        let request =
            request.header("Content-Type", "application/json").body(object.to_string().into_bytes());
        client.request::<Value>(request.unwrap()).await.unwrap();
    }
}

async fn delete(client: &kube::Client, path: &str) {
    client.request::<Value>(http::Request::delete(path).body(Vec::new()).unwrap()).await.unwrap();
}

/// Runs `admit pull` with these arguments in `folder`.
fn pull(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit"))
        .arg("pull")
        .args(line.split(' '))
        .current_dir(folder)
        .env("KUBECONFIG", "kubeconfig")
        .output()
        .unwrap()
}

/// Pulls with `-o json`, and returns the report.
#[track_caller]
fn report(folder: &Path, line: &str, status: i32) -> Value {
    let output = pull(folder, &format!("{line} -o json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    assert_eq!(errors, "");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the text of each file below `folder`, by its relative path.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[tokio::test]
async fn directory_contains_what_decides_about_admission_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = Serve::start(folder.path(), &[]).await;
    create(&client, objects()).await;
    let report = report(folder.path(), "--out c -n shop", 0);
    assert_eq!(report["complete"], true);
    assert_eq!(report["objects"]["configmaps"], 1, "{report}");
    let files = files(&folder.path().join("c"));
    let own: Vec<&str> =
        files.keys().map(String::as_str).filter(|path| path.starts_with("namespaces/")).collect();
    let expected = [
        "namespaces/shop/configmaps/limits.yaml",
        "namespaces/shop/limitranges/defaults.yaml",
        "namespaces/shop/serviceaccounts/builder.yaml",
        "namespaces/shop/services/hook.yaml",
    ];
    assert_eq!(own, expected);
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  labels:\n    kubernetes.io/metadata.name: shop\n    \
                     pod-security.kubernetes.io/enforce: baseline\n  name: shop\nspec:\n  finalizers:\n  - kubernetes\n";
    assert_eq!(files["cluster/namespaces/shop.yaml"], namespace);
    assert!(files.values().all(|text| !text.contains(CANARY)));
    assert!(files.values().all(|text| !text.contains("managedFields") && !text.contains("uid:")));
}

#[tokio::test]
async fn second_pull_changes_only_the_files_of_changed_and_deleted_objects() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = Serve::start(folder.path(), &[]).await;
    create(&client, objects()).await;
    let out = folder.path().join("c");
    report(folder.path(), "--out c", 0);
    let first = files(&out);
    let again = report(folder.path(), "--out c", 0);
    let count = first.len() - 1;
    assert_eq!(again["files"], json!({"added": 0, "changed": 0, "removed": 0, "unchanged": count}));
    assert_eq!(files(&out), first);
    fs::write(out.join("namespaces/shop/limitranges/notes.md"), "mine").unwrap();
    delete(&client, "/api/v1/namespaces/shop/limitranges/defaults").await;
    delete(&client, "/api/v1/namespaces/shop/serviceaccounts/builder").await;
    let last = report(folder.path(), "--out c", 0);
    assert_eq!(last["files"], json!({"added": 0, "changed": 0, "removed": 2, "unchanged": count - 2}));
    let mut expected = first;
    expected.remove("namespaces/shop/limitranges/defaults.yaml").unwrap();
    expected.remove("namespaces/shop/serviceaccounts/builder.yaml").unwrap();
    expected.insert("namespaces/shop/limitranges/notes.md".to_owned(), "mine".to_owned());
    let mut found = files(&out);
    for all in [&mut expected, &mut found] {
        all.remove(".admit-pull.yaml").unwrap();
    }
    assert_eq!(found, expected);
    assert!(!out.join("namespaces/shop/serviceaccounts").exists());
}

#[tokio::test]
async fn secret_that_is_a_param_is_reported_and_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let (_server, client) = Serve::start(folder.path(), &["--audit-log", "audit.log"]).await;
    create(&client, objects()).await;
    create(&client, secret_policy()).await;
    let report = report(folder.path(), "--out c", 6);
    let unread = report["unread"].as_array().unwrap();
    assert_eq!(unread.len(), 1, "{report}");
    assert_eq!(unread[0]["resource"], "secrets");
    assert_eq!(unread[0]["message"], "admit pull does not read Secrets");
    let files = files(&folder.path().join("c"));
    assert!(files.values().all(|text| !text.contains(CANARY)));
    let events = fs::read_to_string(log).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reads = events.iter().filter(|event| event["verb"] != "create");
    let mut count = 0;
    for event in reads {
        count += 1;
        assert!(matches!(event["verb"].as_str(), Some("get" | "list")), "{event}");
        assert_ne!(event["objectRef"]["resource"], "secrets", "{event}");
    }
    assert!(count > 15, "{count}");
}

#[tokio::test]
async fn list_with_several_pages_is_read_completely() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = Serve::start(folder.path(), &[]).await;
    let account = |index: usize| {
        let metadata = json!({"name": format!("a{index}")});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    };
    let accounts = (0..201).map(|index| ("/api/v1/namespaces/default/serviceaccounts", account(index)));
    create(&client, accounts.collect()).await;
    let report = report(folder.path(), "--out c", 0);
    assert_eq!(report["objects"]["serviceaccounts"], 201);
}

/// Replaces the token in the kubeconfig.
fn use_token(folder: &Path, token: &str) {
    let path = folder.join("kubeconfig");
    let text = fs::read_to_string(&path).unwrap();
    let replaced = regex::Regex::new("token: .*").unwrap().replace(&text, format!("token: {token}"));
    fs::write(path, replaced.as_ref()).unwrap();
}

/// What the user `viewer` may do: the rights of `view`, and reading webhook configurations and namespaces.
fn viewer() -> Vec<(&'static str, Value)> {
    const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let rule = json!({
        "apiGroups": ["admissionregistration.k8s.io"], "verbs": ["list"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    });
    let binding = |role: &str| {
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"});
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("viewer-{role}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": [subject],
        })
    };
    vec![
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "hooks"}, "rules": [rule],
            }),
        ),
        (BINDINGS, binding("view")),
        (BINDINGS, binding("hooks")),
    ]
}

#[tokio::test]
async fn missing_rights_are_reported_with_the_rule_and_what_is_uncertain() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tokens.csv"), "viewer,viewer,1,\"\"\n").unwrap();
    let flags = ["--authorization-mode", "RBAC", "--token-auth-file", "tokens.csv"];
    let (_server, client) = Serve::start(folder.path(), &flags).await;
    create(&client, objects()).await;
    create(&client, viewer()).await;
    report(folder.path(), "--out c", 0);
    use_token(folder.path(), "viewer");
    let report = report(folder.path(), "--out c", 6);
    assert_eq!(report["complete"], false);
    let unread = report["unread"].as_array().unwrap();
    let resources: Vec<&str> = unread.iter().map(|it| it["resource"].as_str().unwrap()).collect();
    let expected = [
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "ingressclasses.networking.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "priorityclasses.scheduling.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "storageclasses.storage.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    ];
    assert_eq!(resources, expected);
    let limits = &unread[6];
    assert_eq!((&limits["code"], &limits["reason"]), (&json!(403), &json!("Forbidden")));
    let rule =
        json!({"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list"]});
    assert_eq!(limits["missingRule"], rule);
    assert_eq!(limits["uncertain"], "whether the priority class of a Pod exists, and its default priority");
    // The files that this user cannot read are removed: the directory describes one pull.
    assert!(!folder.path().join("c/cluster/clusterroles.rbac.authorization.k8s.io").exists());
    assert!(folder.path().join("c/namespaces/shop/limitranges/defaults.yaml").exists());
    let text = String::from_utf8(pull(folder.path(), "--out c").stdout).unwrap();
    let item = "\n  ingressclasses.networking.k8s.io: 403 Forbidden\n    uncertain: the default class of Ingresses\n    \
                missing rule: {apiGroups: [\"networking.k8s.io\"], resources: [\"ingressclasses\"], verbs: [\"list\"]}\n";
    assert!(text.contains("the directory is incomplete: 13 items could not be read\n"), "{text}");
    assert!(text.contains(item), "{text}");
}

#[tokio::test]
async fn files_that_pull_did_not_write_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = Serve::start(folder.path(), &[]).await;
    let errors = |line: &str| {
        let output = pull(folder.path(), line);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(folder.path().join("other/a.txt"), "mine").unwrap();
    let expected = "error: --out other: the directory contains files and is not from `admit pull`: pass a new or empty \
                    directory\n";
    assert_eq!(errors("--out other"), expected);
    let expected = "error: --namespace nowhere: the cluster does not have this namespace\n";
    assert_eq!(errors("--out d -n nowhere"), expected);
    report(folder.path(), "--out c", 0);
    let before = files(&folder.path().join("c"));
    fs::write(folder.path().join("c/cluster/namespaces/shop.yaml"), "mine").unwrap();
    create(&client, objects()).await;
    let expected = "error: c/cluster/namespaces/shop.yaml: the file exists and was not written by `admit pull`: move it\n";
    assert_eq!(errors("--out c"), expected);
    fs::remove_file(folder.path().join("c/cluster/namespaces/shop.yaml")).unwrap();
    assert_eq!(files(&folder.path().join("c")), before);
}

#[tokio::test]
async fn marker_cannot_make_pull_remove_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, _client) = Serve::start(folder.path(), &[]).await;
    report(folder.path(), "--out c", 0);
    fs::write(folder.path().join("mine.yaml"), "mine").unwrap();
    let marker = folder.path().join("c/.admit-pull.yaml");
    let text = fs::read_to_string(&marker).unwrap();
    fs::write(&marker, text.replace("files:\n", "files:\n- cluster/../../mine.yaml\n")).unwrap();
    let output = pull(folder.path(), "--out c");
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: c/.admit-pull.yaml: invalid file \"cluster/../../mine.yaml\": expected a path below cluster or \
                    namespaces\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    assert_eq!(fs::read_to_string(folder.path().join("mine.yaml")).unwrap(), "mine");
}
