//! Tests the arguments, the output, and the exit statuses of `admit verify`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use fake_webhooks::{Behavior, Fake, FakeWebhook};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::environment::{configuration, entry, pods};

/// A running webhook, and a directory with its files.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) fake: FakeWebhook,
}

impl Stage {
    pub(crate) async fn with(behavior: &str) -> Self {
        let behavior: Behavior = serde_saphyr::from_str(behavior).expect("a behavior");
        let fake = FakeWebhook::start(Fake {
            behavior,
            names: vec!["webhook.injector.svc".to_owned()],
            ..Fake::default()
        });
        let fake = fake.await.expect("the fake starts");
        let stage = Self { folder: tempfile::tempdir().expect("a folder"), fake };
        let entry = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
        stage.write("configuration.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[entry])]);
        stage.write("pods.yaml", &pods());
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, objects: &[Value]) {
        let documents: Vec<String> = objects.iter().map(ToString::to_string).collect();
        std::fs::write(self.path(name), documents.join("\n---\n")).expect("the file is written");
    }

    /// Runs `admit verify` in the directory while the fake runs, and returns the output.
    pub(crate) async fn verify(&self, arguments: &[&str]) -> Output {
        Self::run(self.command(arguments)).await
    }

    /// Returns an `admit verify` command in the directory, without the environment variables of a CI workflow.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.arg("verify").args(arguments).current_dir(self.folder.path()).env("NO_COLOR", "1");
        command.env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY");
        command.stdin(std::process::Stdio::null());
        command
    }

    pub(crate) async fn run(mut command: Command) -> Output {
        tokio::task::spawn_blocking(move || command.output().expect("the command runs"))
            .await
            .expect("the command ends")
    }
}

#[track_caller]
pub(crate) fn ends_with(output: &Output, status: i32) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn passing_run_exits_with_0() {
    let stage = Stage::with("always-mutate").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V02", "--check", "v11"];
    let text = ends_with(&stage.verify(&arguments).await, 0);
    assert!(text.starts_with("c/w.example.com: idempotent\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_checks_exit_with_6_and_skipped_checks_have_a_reason() {
    let stage = Stage::with("allow").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V11,V38"];
    let text = ends_with(&stage.verify(&arguments).await, 6);
    assert!(text.contains("\n1 check not completed: V38 (-v says why)\n"), "{text}");
    let reason =
        "\nexit status 6: V38 could not be completed for c/w.example.com: the responses are the same, but";
    assert!(text.contains(reason), "{text}");

    let skipped = [&arguments[..], &["--skip", "V38=it has no client"]].concat();
    let text = ends_with(&stage.verify(&skipped).await, 0);
    assert!(text.contains("\n1 check skipped: V38 (-v says why)\n"), "{text}");
    ends_with(&stage.verify(&["-c", "configuration.yaml", "--skip", "V38"]).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_without_its_option_fails_the_run_only_if_selected() {
    let stage = Stage::with("allow").await;
    stage.write("pod.yaml", &pods()[..1]);
    let skip = ["--skip", "V41=takes time", "--skip", "V50=it is meant for all pods"];
    let arguments =
        [&["-v", "-c", "configuration.yaml", "-f", "pod.yaml", "--horizon", "1"][..], &skip].concat();
    let text = ends_with(&stage.verify(&arguments).await, 0);
    assert!(text.contains("V38 not checked") && text.contains("--api-server-out"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_behind_the_webhook_has_the_other_objects_of_the_configurations() {
    let stage = Stage::with("allow").await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let metadata = json!({"name": "w", "namespace": "admit-verify"});
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata});
    // The definition may follow the objects that it defines.
    stage.write("around.yaml", &[widget, definition]);
    let arguments = ["-c", "configuration.yaml", "around.yaml", "--wait", "60", "--check", "V45"];
    let mut command = stage.command(&[&arguments[..], &["--api-server-out", "kubeconfig"]].concat());
    command.args(["--service", "nobody/listens=127.0.0.1:1"]);
    let silent = json!({"service": {"namespace": "nobody", "name": "listens"}});
    let mut entry = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    entry["clientConfig"] = silent;
    stage.write("configuration.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[entry])]);
    let mut running = command.stderr(std::process::Stdio::null()).spawn().expect("the command runs");

    let client = client(&stage.path("kubeconfig")).await;
    let request = http::Request::get("/apis/example.com/v1/namespaces/admit-verify/widgets/w");
    let found: Value =
        client.request(request.body(Vec::new()).expect("a request")).await.expect("it is there");
    assert_eq!(found["kind"], "Widget");
    // As in a cluster, the namespaces and service accounts of the objects exist.
    for path in [
        "admit-verify/serviceaccounts/default",
        "admit-verify/serviceaccounts/builder",
        "default/serviceaccounts/default",
    ] {
        let request = http::Request::get(format!("/api/v1/namespaces/{path}"));
        let found: Value =
            client.request(request.body(Vec::new()).expect("a request")).await.expect("it is there");
        assert_eq!(found["kind"], "ServiceAccount", "{path}");
    }
    running.kill().expect("the command can be ended");
    running.wait().expect("the command ends");

    let nonsense = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    stage.write("around.yaml", &[nonsense]);
    let arguments = ["-c", "configuration.yaml", "around.yaml", "--api-server-out", "kubeconfig"];
    let text = ends_with(&stage.verify(&arguments).await, 2);
    assert!(text.contains("--api-server-out: the Widget `w` cannot be stored:"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_built_in_corpus_get_the_annotations_by_which_a_webhook_acts() {
    let behavior = "when: {if: {annotation: {inject: 'yes'}}, then: non-idempotent, otherwise: allow}";
    let stage = Stage::with(behavior).await;
    let arguments = ["-c", "configuration.yaml", "--check", "V01"];
    let text = ends_with(&stage.verify(&arguments).await, 0);
    assert!(text.starts_with("c/w.example.com: never changed an object\n"), "{text}");
    assert!(
        text.contains(
            " times and never changed an object: its mutation was not tested\n  = help: with -f, which replaces the \
             built-in corpus, pass objects"
        ),
        "{text}"
    );
    assert!(text.contains("such keys often begin with its domain, as in example.com/inject"), "{text}");
    let annotated = [&arguments[..], &["--annotation", "inject=yes"]].concat();
    let text = ends_with(&stage.verify(&annotated).await, 1);
    assert!(text.contains("error[V01]"), "{text}");
    let text = ends_with(&stage.verify(&[&arguments[..], &["--annotation", "inject"]].concat()).await, 2);
    assert!(text.contains("expected KEY=VALUE"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_without_matching_objects_is_not_a_success() {
    let stage = Stage::with("non-idempotent").await;
    let mut picky = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    let condition = "has(object.metadata.labels) && 'inject' in object.metadata.labels";
    picky["matchConditions"] = json!([{"name": "asked", "expression": condition}]);
    picky["objectSelector"] = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
    stage.write("picky.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[picky])]);
    let arguments = ["-c", "picky.yaml", "--check", "V01,V50"];
    let text = ends_with(&stage.verify(&arguments).await, 4);
    assert!(
        text.starts_with("c/w.example.com: never called\n")
            && text.contains(
                "the webhook was not called for any of 18 objects: its match condition asked is false\n  = help: with -f, \
                 which replaces the built-in corpus, pass objects for which the matchConditions\n          are true"
            ),
        "{text}"
    );
    let labeled = [&arguments[..], &["--label", "inject=yes", "-o", "json"]].concat();
    let output = stage.verify(&labeled).await;
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tried = &report["webhooks"]["c/w.example.com"];
    assert_eq!((&tried["mutating"], &tried["selects"]), (&json!(true), &json!(["skip"])));
    assert!(tried["called"].as_u64() >= tried["patched"].as_u64() && tried["patched"] != 0, "{tried}");
    // Checks that need no call run without one.
    ends_with(&stage.verify(&["-c", "picky.yaml", "--check", "V50"]).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_to_which_no_check_applies_does_not_count_as_never_called() {
    let stage = Stage::with("always-mutate").await;
    let webhook = || entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    let of = |kind: &str, name: &str| configuration(kind, name, &[webhook()]);
    let configurations = [of("MutatingWebhookConfiguration", "c"), of("ValidatingWebhookConfiguration", "v")];
    stage.write("both.yaml", &configurations);
    let text = ends_with(&stage.verify(&["-c", "both.yaml", "-f", "pods.yaml", "--check", "V01"]).await, 0);
    assert!(text.contains("v/w.example.com: no check applies\n"), "{text}");
    assert!(!text.contains("never called") && !text.contains("nothing was tested"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configurations_may_come_from_a_cluster() {
    let stage = Stage::with("allow").await;
    let mut serve = tokio::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    serve.args(["serve", "--kubeconfig-out", "kubeconfig"]).current_dir(stage.folder.path());
    serve.stdout(std::process::Stdio::null()).kill_on_drop(true);
    let _serving = serve.spawn().expect("the server starts");
    let path = stage.path("kubeconfig");
    let client = client(&path).await;
    let webhook = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    let configuration = configuration("ValidatingWebhookConfiguration", "stored", &[webhook]);
    let kind = kube::core::GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    );
    let resource = kube::core::ApiResource::from_gvk(&kind);
    let api: kube::Api<kube::core::DynamicObject> = kube::Api::all_with(client, &resource);
    let object = serde_json::from_value(configuration).expect("an object");
    api.create(&kube::api::PostParams::default(), &object).await.expect("it is stored");

    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["verify", "--context", "admit", "-f", "pods.yaml", "--check", "V22"]);
    command.current_dir(stage.folder.path()).env("KUBECONFIG", &path).env("NO_COLOR", "1");
    let output = tokio::task::spawn_blocking(move || command.output().expect("the command runs"));
    let text = ends_with(&output.await.expect("the command ends"), 0);
    assert!(text.contains("stored/w.example.com"), "{text}");
}

/// Waits until a kubeconfig exists, and returns a client for its API server.
pub(crate) async fn client(path: &Path) -> kube::Client {
    written(path).await;
    let kubeconfig = kube::config::Kubeconfig::read_from(path).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    kube::Client::try_from(config).expect("a client")
}

/// Waits until a kubeconfig exists, and returns its content.
pub(crate) async fn written(path: &Path) -> Value {
    let reading = async {
        loop {
            if let Ok(text) = std::fs::read_to_string(path) {
                return serde_saphyr::from_str(&text).expect("YAML");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading).await.expect("the kubeconfig is written")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_checked_ends_with_4() {
    let stage = Stage::with("allow").await;
    // No rule matches a ConfigMap.
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    stage.write("objects.yaml", &[object]);
    let text = ends_with(
        &stage.verify(&["-c", "configuration.yaml", "-f", "objects.yaml", "--check", "V01"]).await,
        4,
    );
    assert!(text.contains("\n1 check not applicable (-v lists them)\n"), "{text}");
    let only_validating = ["-v", "-c", "validating.yaml", "-f", "objects.yaml", "--check", "V06,V22"];
    let webhook = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    stage.write("validating.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[webhook])]);
    let text = ends_with(&stage.verify(&only_validating).await, 4);
    assert!(text.contains("(there is no mutating webhook)"), "{text}");
    stage.write("nothing.yaml", &pods());
    let text = ends_with(&stage.verify(&["-c", "nothing.yaml"]).await, 4);
    assert!(text.contains("the configurations do not contain a webhook"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_severity_decides_what_fails() {
    // The order of the operations varies, which is a note.
    let stage = Stage::with("fault: M19").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V11"];
    let text = ends_with(&stage.verify(&arguments).await, 0);
    assert!(text.contains("note[V11]"), "{text}");
    ends_with(&stage.verify(&[&arguments[..], &["--fail-on", "note"]].concat()).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_report_has_a_version_and_every_check() {
    let stage = Stage::with("allow").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V22", "-o", "json"];
    let output = stage.verify(&arguments).await;
    ends_with(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["version"], &report["objects"]), (&json!(2), &json!(3)));
    let ids: Vec<&Value> =
        report["checks"].as_array().into_iter().flatten().map(|check| &check["id"]).collect();
    assert_eq!(ids, ["V01", "V22"]);
    assert_eq!(report["checks"][0]["results"][0]["verdict"], "notExercised");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_beyond_this_machine_is_called_unasked() {
    let stage = Stage::with("allow").await;
    let remote = entry("w", "https://192.0.2.1:8443/", stage.fake.ca_bundle());
    stage.write("remote.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[remote])]);
    let text = ends_with(&stage.verify(&["-c", "remote.yaml", "-f", "pods.yaml"]).await, 2);
    assert!(text.contains("c/w.example.com at 192.0.2.1:8443") && text.contains("pass --yes"), "{text}");
    // The webhook is on this machine if its address is redirected.
    let url = stage.fake.url();
    let arguments = ["-c", "remote.yaml", "-f", "pods.yaml", "--endpoint", &url, "--check", "V22"];
    ends_with(&stage.verify(&arguments).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_is_called_at_the_given_address_under_its_own_name() {
    let stage = Stage::with("allow").await;
    let mut behind = entry("w", "", stage.fake.ca_bundle());
    behind["clientConfig"] = json!({"service": {"namespace": "injector", "name": "webhook"}});
    stage.write("service.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[behind])]);
    std::fs::write(stage.path("ca.pem"), stage.fake.ca_bundle()).expect("the file is written");
    let base = ["-c", "service.yaml", "-f", "pods.yaml", "--ca-file", "ca.pem", "--check", "V22,V45"];

    let text = ends_with(&stage.verify(&base).await, 6);
    assert!(text.contains("pass --service injector/webhook=HOST:PORT"), "{text}");
    let service = format!("injector/webhook={}", stage.fake.address());
    ends_with(&stage.verify(&[&base[..], &["--service", &service]].concat()).await, 0);
    ends_with(&stage.verify(&[&base[..], &["--endpoint", &stage.fake.url()]].concat()).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_corpus_has_objects_for_the_rules() {
    let stage = Stage::with("allow").await;
    let arguments = ["-c", "configuration.yaml", "--check", "V22", "-o", "json", "--thorough"];
    let output = stage.verify(&arguments).await;
    ends_with(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["objects"], &report["leftOut"]), (&json!(216), &json!({})));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_left_out_without_thorough_are_reported() {
    let stage = Stage::with("allow").await;
    let arguments = ["-c", "configuration.yaml", "--check", "V22"];
    let text = ends_with(&stage.verify(&arguments).await, 0);
    assert!(!text.contains("were skipped"), "{text}");
    let text = ends_with(&stage.verify(&[&arguments[..], &["-v"]].concat()).await, 0);
    let expected = "198 objects were skipped: without --thorough, only representative objects of the built-in corpus are sent";
    assert!(text.contains(expected), "{text}");
    // Every object belongs to one shard, and so does every skipped object.
    let mut sums = (0, 0);
    for index in 1..=3 {
        let shard = format!("{index}/3");
        let output = stage.verify(&[&arguments[..], &["--shard", &shard, "-o", "json"]].concat()).await;
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let left_out: u64 =
            report["leftOut"].as_object().expect("a map").values().filter_map(Value::as_u64).sum();
        sums = (sums.0 + report["objects"].as_u64().expect("a number"), sums.1 + left_out);
    }
    assert_eq!(sums, (18, 198));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_corpus_has_objects_in_every_version_that_is_served() {
    let stage = Stage::with("allow").await;
    for (policy, status, verdict) in [("Equivalent", 0, "passed"), ("Exact", 1, "found")] {
        let mut webhook = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
        webhook["matchPolicy"] = json!(policy);
        webhook["rules"][0]["apiGroups"] = json!(["autoscaling"]);
        webhook["rules"][0]["apiVersions"] = json!(["v2"]);
        webhook["rules"][0]["resources"] = json!(["horizontalpodautoscalers"]);
        stage.write("versions.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[webhook])]);
        let output = stage.verify(&["-c", "versions.yaml", "--check", "V33", "-o", "json"]).await;
        ends_with(&output, status);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["checks"][0]["results"][0]["verdict"], verdict, "{policy}: {report:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_shows_denials_and_findings_by_severity() {
    let denying = "when: {if: {absent: /metadata/labels}, then: {deny: {message: set a label}}, otherwise: non-idempotent}";
    let stage = Stage::with(denying).await;
    let base = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V20"];
    let text = ends_with(&stage.verify(&base).await, 1);
    assert!(text.contains("\nc/w.example.com denied 2 of 3 objects\n      2  set a label\n"), "{text}");
    assert!(text.contains("\n1 check passed (-v lists them)\n1 finding (1 error); 3 objects, "), "{text}");
    let json = stage.verify(&[&base[..], &["-o", "json"]].concat()).await;
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(report["webhooks"]["c/w.example.com"]["denied"], json!({"set a label": 2}));
    // Configurations alone deny nothing.
    let text = ends_with(&stage.verify(&["-c", "configuration.yaml", "--check", "V57"]).await, 0);
    assert!(!text.contains("denied"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_without_built_in_objects_are_named() {
    let stage = Stage::with("allow").await;
    let mut webhook = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    webhook["rules"][0]["apiGroups"] = json!(["storage.k8s.io"]);
    webhook["rules"][0]["resources"] = json!(["csinodes"]);
    stage.write("nodes.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[webhook])]);
    let text = ends_with(&stage.verify(&["-v", "-c", "nodes.yaml", "--check", "V22"]).await, 4);
    assert!(text.contains("the rules match storage.k8s.io/v1 CSINode, but the built-in corpus"), "{text}");
    assert!(text.contains("(there was no object to try)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_ask_the_authorizer_have_a_caveat_and_the_roles_of_the_files() {
    let stage = Stage::with("non-idempotent").await;
    let mut sometimes = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    let expression = "!authorizer.group('example.com').resource('webhooks').check('skip').allowed()";
    sometimes["matchConditions"] = json!([{"name": "not-trusted", "expression": expression}]);
    let always = entry("x", &stage.fake.url(), stage.fake.ca_bundle());
    let file = configuration("MutatingWebhookConfiguration", "c", &[sometimes, always]);
    stage.write("conditions.yaml", &[file]);
    let base = ["-c", "conditions.yaml", "-f", "pods.yaml", "--check", "V01,V55"];
    let text = ends_with(&stage.verify(&[&base[..], &["--proofs", "proofs"]].concat()).await, 1);
    let caveat = "its matchConditions (not-trusted) check permissions";
    assert!(text.contains(&format!("\nnote: c/w.example.com: {caveat}")), "{text}");
    assert!(text.contains(&format!("  = caveat: {caveat}")), "{text}");
    assert!(text.contains("  = webhooks: c/w.example.com, c/x.example.com\n"), "{text}");
    let proof = std::fs::read_to_string(stage.path("proofs/V01-1-c_w.example.com/c_w.example.com.yaml"));
    assert!(proof.expect("it is there").contains("not-trusted"));

    let json = stage.verify(&[&base[..], &["-o", "json"]].concat()).await;
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(report["caveats"].as_object().map(serde_json::Map::len), Some(1), "{}", report["caveats"]);
    let markdown = stage.verify(&[&base[..], &["-o", "markdown"]].concat()).await;
    let text = String::from_utf8_lossy(&markdown.stdout).into_owned();
    assert!(text.contains(&format!("> **note** c/w.example.com: {caveat}")), "{text}");

    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "trusted"},
        "rules": [{"apiGroups": ["example.com"], "resources": ["webhooks"], "verbs": ["skip"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "trusted"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "trusted"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "admit-verify"}]});
    stage.write("roles.yaml", &[role, binding]);
    let trusted = ["-c", "conditions.yaml", "roles.yaml", "-f", "pods.yaml", "--check", "V01", "-o", "json"];
    let report: Value = serde_json::from_slice(&stage.verify(&trusted).await.stdout).expect("JSON");
    let results = &report["checks"][0]["results"];
    assert_eq!((&results[0]["verdict"], &results[1]["verdict"]), (&json!("notApplicable"), &json!("found")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_cannot_be_read_is_named_with_file_and_line() {
    let stage = Stage::with("allow").await;
    let text = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: c}\n\
                webhooks:\n- name: a.example.com\n  clientConfig: {url: 'https://127.0.0.1:1/'}\n  sideEffects: Some\n  \
                admissionReviewVersions: [v1]\n";
    std::fs::write(stage.path("wrong.yaml"), text).expect("the file is written");
    let text = ends_with(&stage.verify(&["-c", "wrong.yaml"]).await, 2);
    assert!(text.contains("wrong.yaml:5: c: webhooks[0].sideEffects: must be one of"), "{text}");
    let text =
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nwebhooks: []\n";
    std::fs::write(stage.path("unnamed.yaml"), text).expect("the file is written");
    let text = ends_with(&stage.verify(&["-c", "unnamed.yaml"]).await, 2);
    assert!(text.contains("error: unnamed.yaml:1: metadata.name: is required\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_client_config_is_an_error_even_if_it_is_replaced() {
    let stage = Stage::with("allow").await;
    let mut webhook = entry("w", "", "");
    webhook["clientConfig"] = json!(stage.fake.url());
    stage.write("text.yaml", &[configuration("ValidatingWebhookConfiguration", "c", &[webhook])]);
    std::fs::write(stage.path("ca.pem"), stage.fake.ca_bundle()).expect("the file is written");
    let text = ends_with(&stage.verify(&["-c", "text.yaml", "--ca-file", "ca.pem"]).await, 2);
    let expected = "webhooks[0].clientConfig: must be an object, found a string";
    assert!(text.contains("text.yaml:1: ") && text.contains(expected), "{text}");
}
