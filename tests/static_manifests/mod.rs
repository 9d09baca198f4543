//! Tests webhook configurations in files (`staticManifestsDir`) on admit and kube-apiserver.
//!
//! Both must reject the same files, call the same webhooks, and report the same errors and metrics.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]

mod commands;
mod refusals;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use admit_command::target::{Launched, TargetArguments};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser as _;
use fake_webhooks::{Fake, FakeWebhook};
use http::Request;
use serde_json::{Value, json};

use crate::helpers::machine;

/// The targets that start an API server.
const IN_PROCESS: &str = "in-process";
const ENVTEST: &str = "envtest";

/// Writes the configuration of the webhook plugins. Valid paths of directories begin with `/`.
fn write_plugins(file: &Path, mutating: &str, validating: Option<&str>) {
    let plugin = |name: &str, folder: &str| {
        json!({"name": name, "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
            "staticManifestsDir": folder,
        }})
    };
    let mut plugins = vec![plugin("MutatingAdmissionWebhook", mutating)];
    plugins.extend(validating.map(|folder| plugin("ValidatingAdmissionWebhook", folder)));
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins,
    });
    fs::write(file, configuration.to_string()).expect("the configuration is written");
}

fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": webhooks,
    })
}

fn entry(name: &str, fake: &FakeWebhook, rules: &Value) -> Value {
    let url = format!("https://127.0.0.1:{}/", fake.address().port());
    json!({
        "name": name, "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": url, "caBundle": STANDARD.encode(fake.ca_bundle())},
    })
}

fn rule(group: &str, resource: &str) -> Value {
    json!([{"operations": ["*"], "apiGroups": [group], "apiVersions": ["*"], "resources": [resource]}])
}

async fn fake(behavior: Value) -> FakeWebhook {
    let behavior = serde_json::from_value(behavior).expect("a behavior");
    FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the webhook starts")
}

/// Two directories of manifests, and their webhooks.
struct Stage {
    folder: tempfile::TempDir,
    /// A webhook that adds an annotation. A file in `mutating` configures it.
    first: FakeWebhook,
    /// A webhook that adds an annotation.
    ///
    /// It is configured through the API, with a name that sorts before those in files.
    by_api: FakeWebhook,
    /// A webhook that allows everything. A file in `validating` configures it.
    watching: FakeWebhook,
}

/// The answer to a request, with its audit annotations.
struct Answer {
    code: u16,
    body: Value,
    annotations: BTreeMap<String, String>,
}

impl Answer {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server that the target started.
struct Server(Launched);

impl Server {
    async fn start(target: &str, plugins: &Path) -> Self {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            target: TargetArguments,
        }
        let plugins = plugins.to_str().expect("the path is text");
        let command =
            Command::parse_from(["test", "--target", target, "--admission-control-config-file", plugins]);
        Self(Launched::start(&command.target, |_| ()).await.expect("the server starts"))
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let id = uuid::Uuid::new_v4().to_string();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", "application/json")
            .header("Audit-ID", &id)
            .body(kube::client::Body::from(body.to_string().into_bytes()))
            .expect("a request");
        let target = &self.0.target;
        let answer = target.client.send(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.expect("a body");
        let body = serde_json::from_slice(&body).expect("JSON");
        let annotations = target.audit.annotations(&id).await.expect("an audit event");
        Answer { code, body, annotations }
    }

    async fn create(&self, path: &str, object: &Value) -> Answer {
        self.send("POST", path, object).await
    }

    /// Returns the metrics about manifests, without times: a map from the name and the labels to the value.
    async fn reloads(&self) -> BTreeMap<String, String> {
        let request = Request::get("/metrics").body(Vec::new()).expect("a request");
        let text = self.0.target.client.request_text(request).await.expect("the metrics");
        let of_manifests = |line: &&str| line.contains("apiserver_manifest_admission_config_controller");
        text.lines()
            .filter(of_manifests)
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                let value = if name.contains("timestamp_seconds{") { "TIME" } else { value };
                (name.to_owned(), value.to_owned())
            })
            .collect()
    }

    /// Waits until the metrics of a plugin contain this text.
    async fn wait_for(&self, what: &str) {
        let wait = async {
            while !self.reloads().await.iter().any(|(name, value)| format!("{name} {value}").contains(what)) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(90), wait).await;
        assert!(waited.is_ok(), "{what} is not in {:#?}", self.reloads().await);
    }
}

impl Stage {
    async fn new() -> Self {
        let annotate = |value: &str| json!({"always-mutate": {"annotations": {"by": value}}});
        let stage = Self {
            folder: tempfile::tempdir().expect("a folder"),
            first: fake(annotate("a-file")).await,
            by_api: fake(annotate("the-api")).await,
            watching: fake(json!("allow")).await,
        };
        for folder in ["mutating", "validating"] {
            fs::create_dir(stage.folder.path().join(folder)).expect("a folder");
        }
        let validating = ["z", "y"].map(|name| {
            let rules = json!([
                {"operations": ["*"], "apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"],
                    "resources": ["*"]},
                {"operations": ["*"], "apiGroups": ["authorization.k8s.io"], "apiVersions": ["*"], "resources": ["*"]},
            ]);
            let webhook = entry(&format!("{name}.example.com"), &stage.watching, &rules);
            configuration("ValidatingWebhookConfiguration", &format!("{name}.static.k8s.io"), &[webhook])
        });
        let list = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfigurationList",
            "items": validating,
        });
        stage.write("mutating/z.json", &stage.mutating("w.example.com").to_string());
        stage.write("validating/list.yaml", &list.to_string());
        write_plugins(&stage.plugins(), &stage.path("mutating"), Some(&stage.path("validating")));
        stage
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn plugins(&self) -> PathBuf {
        self.folder.path().join("admission.json")
    }

    fn write(&self, name: &str, text: &str) {
        // Atomically, so that the server does not read an incomplete file.
        let (file, new) = (self.folder.path().join(name), self.folder.path().join("new"));
        fs::write(&new, text).expect("the file is written");
        fs::rename(&new, &file).expect("the file gets its name");
    }

    /// Returns the content of the file in `mutating`: a list of two configurations.
    ///
    /// The webhook of the second configuration in alphabetical order has the name `webhook`.
    fn mutating(&self, webhook: &str) -> Value {
        let items = [("z", webhook), ("y", "w.example.com")].map(|(name, webhook)| {
            let webhook = entry(webhook, &self.first, &rule("", "configmaps"));
            configuration("MutatingWebhookConfiguration", &format!("{name}.static.k8s.io"), &[webhook])
        });
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    fn config_map(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    }

    /// Returns the number of calls to each fake since the last call of this function.
    fn calls(&self) -> [usize; 3] {
        [&self.first, &self.by_api, &self.watching].map(|fake| {
            let calls = fake.journal().len();
            fake.reset();
            calls
        })
    }

    /// LOAD-10, LOAD-13: webhooks from files are called first, regardless of the names of their configurations.
    async fn files_come_first(&self, server: &Server) {
        let by_api = entry("w.example.com", &self.by_api, &rule("", "configmaps"));
        let by_api = configuration("MutatingWebhookConfiguration", "a", &[by_api]);
        assert_eq!(server.create(CONFIGURATIONS, &by_api).await.code, 201);
        self.calls();
        let wait = async {
            // A configuration takes effect a moment after its creation.
            loop {
                let answer =
                    server.create(&format!("{CONFIG_MAPS}?dryRun=All"), &Self::config_map("try")).await;
                if self.calls()[1] > 0 {
                    break answer;
                }
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .expect("the configuration takes effect");
        assert_eq!(answer.body["metadata"]["annotations"]["by"], "the-api");
        let of = |index: u8| {
            let key = format!("mutation.webhook.admission.k8s.io/round_0_index_{index}");
            answer.annotations.get(&key).cloned().unwrap_or_default()
        };
        let expected = |configuration: &str, mutated: bool| {
            format!(r#"{{"configuration":"{configuration}","webhook":"w.example.com","mutated":{mutated}}}"#)
        };
        assert_eq!(of(0), expected("y.static.k8s.io", true));
        assert_eq!(of(1), expected("z.static.k8s.io", false));
        assert_eq!(of(2), expected("a", true));
    }

    /// EXM-02, EXM-03: only webhooks from files are called for admission configuration.
    ///
    /// No webhooks are called for access reviews.
    async fn configurations_are_reviewed(&self, server: &Server) {
        let all = entry("all.example.com", &self.by_api, &rule("*", "*"));
        let all = configuration("MutatingWebhookConfiguration", "b", &[all]);
        self.calls();
        assert_eq!(server.create(CONFIGURATIONS, &all).await.code, 201);
        assert_eq!(self.calls(), [0, 0, 2]);
        assert_eq!(server.send("DELETE", &format!("{CONFIGURATIONS}/b"), &json!({})).await.code, 200);
        assert_eq!(self.calls(), [0, 0, 2]);
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}},
        });
        let answer = server.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await;
        assert_eq!(answer.code, 201);
        assert_eq!(self.calls(), [0, 0, 0]);
    }

    /// LOAD-12: the API server rejects names that are reserved for files, and does not return objects from files.
    async fn names_are_reserved(&self, server: &Server) {
        let reserved = configuration("MutatingWebhookConfiguration", "c.static.k8s.io", &[]);
        let answer = server.create(CONFIGURATIONS, &reserved).await;
        assert_eq!(
            answer.message(),
            "MutatingWebhookConfiguration.admissionregistration.k8s.io \"c.static.k8s.io\" is invalid: metadata.name: \
             Invalid value: \"c.static.k8s.io\": names ending with \".static.k8s.io\" are reserved for static \
             manifest-based configurations and cannot be managed via the API"
        );
        let answer = server.send("GET", &format!("{CONFIGURATIONS}/z.static.k8s.io"), &json!({})).await;
        assert_eq!(answer.code, 404, "{}", answer.body);
        self.calls();
    }

    /// If a webhook from a file denies a request, the message contains its name, as for any other webhook.
    async fn refusals_name_the_webhook(&self, server: &Server) {
        self.watching.set_behavior(serde_json::from_value(json!("deny")).expect("a behavior"));
        let configuration = configuration("MutatingWebhookConfiguration", "d", &[]);
        let answer = server.create(CONFIGURATIONS, &configuration).await;
        let denied = |name: &str| format!("admission webhook \"{name}.example.com\" denied the request");
        assert!(["y", "z"].iter().any(|name| answer.message().starts_with(&denied(name))), "{}", answer.body);
        self.watching.set_behavior(serde_json::from_value(json!("allow")).expect("a behavior"));
        self.calls();
    }

    /// LOAD-14, MET-15: changes to files take effect while the server runs.
    ///
    /// If a file becomes invalid, the webhooks do not change. If the directory becomes empty, the server stops calling
    /// webhooks.
    async fn changes_take_effect(&self, server: &Server) {
        let plugin = |status: &str| {
            format!(
                "automatic_reloads_total{{apiserver_id_hash=\"HASH\",plugin=\"MutatingAdmissionWebhook\",status=\"{status}\"}}"
            )
        };
        let hash = |server: &BTreeMap<String, String>| {
            let name = server.keys().find(|name| name.contains("apiserver_id_hash=")).expect("a metric");
            name.split("apiserver_id_hash=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .expect("a label")
                .to_owned()
        };
        let hash = hash(&server.reloads().await);
        let count = |status: &str, count: &str| format!("{} {count}", plugin(status).replace("HASH", &hash));
        self.write("mutating/z.json", &self.mutating("new.example.com").to_string());
        server.wait_for(&count("success", "2")).await;
        let answer = server.create(&format!("{CONFIG_MAPS}?dryRun=All"), &Self::config_map("new")).await;
        let key = "mutation.webhook.admission.k8s.io/round_0_index_1";
        let new = r#"{"configuration":"z.static.k8s.io","webhook":"new.example.com","mutated":false}"#;
        assert_eq!(answer.annotations.get(key).map(String::as_str), Some(new));

        self.write("mutating/z.json", "{");
        server.wait_for(&plugin("failure").replace("HASH", &hash)).await;
        let answer = server.create(&format!("{CONFIG_MAPS}?dryRun=All"), &Self::config_map("bad")).await;
        assert_eq!(answer.annotations.get(key).map(String::as_str), Some(new));

        fs::remove_file(self.folder.path().join("mutating/z.json")).expect("the file is removed");
        server.wait_for(&count("success", "3")).await;
        self.calls();
        let answer = server.create(&format!("{CONFIG_MAPS}?dryRun=All"), &Self::config_map("none")).await;
        assert_eq!(answer.code, 201);
        assert_eq!(self.calls()[0], 0);
        let info =
            "last_config_info{apiserver_id_hash=\"HASH\",hash=\"\",plugin=\"MutatingAdmissionWebhook\"} 1";
        server.wait_for(&info.replace("HASH", &hash)).await;
    }
}

/// Runs all situations; returns the metrics before and after the changes.
async fn play(target: &str) -> [BTreeMap<String, String>; 2] {
    let stage = Stage::new().await;
    let server = Server::start(target, &stage.plugins()).await;
    let before = server.reloads().await;
    stage.files_come_first(&server).await;
    stage.configurations_are_reviewed(&server).await;
    stage.names_are_reserved(&server).await;
    stage.refusals_name_the_webhook(&server).await;
    stage.changes_take_effect(&server).await;
    let after = server.reloads().await;
    [before, after].map(|metrics| {
        // The manifests of each stage have different ports and keys, and the number of reads of an invalid file
        // depends on the system.
        let hash = regex::Regex::new(r#",hash="sha256:[0-9a-f]{64}""#).expect("an expression");
        metrics
            .into_iter()
            .map(|(name, value)| {
                let is_failure = name.contains("status=\"failure\"");
                (
                    hash.replace(&name, ",hash=\"HASH\"").into_owned(),
                    if is_failure { "N".to_owned() } else { value },
                )
            })
            .collect()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_calls_webhooks_from_files() {
    let [before, _] = play(IN_PROCESS).await;
    assert_eq!(before.iter().filter(|(name, _)| name.starts_with("apiserver_")).count(), 6, "{before:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_does_the_same_and_its_metrics_are_the_same() {
    if machine::has_kube_apiserver() {
        assert_eq!(play(IN_PROCESS).await, play(ENVTEST).await);
    }
}
