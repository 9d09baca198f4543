//! Tests `admit serve`: its process, its socket, and its behavior for clients.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

mod fakes;
mod kubectl;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use fake_webhooks::{Behavior, Deny, Fake, FakeWebhook};
use futures::StreamExt as _;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::helpers::machine;

const DENIAL: &str = r#"admission webhook "deny.example.com" denied the request: not today"#;

/// A running `admit serve`. It is killed on drop.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
    lines: Vec<String>,
}

impl Server {
    /// Starts the server and waits until it reports that it is ready.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        Self::starting(folder, &log)
    }

    /// Starts the server with this file as its audit log.
    fn with_audit_log(log: &Path) -> Self {
        Self::starting(tempfile::tempdir().unwrap(), log)
    }

    fn starting(folder: tempfile::TempDir, log: &Path) -> Self {
        let mut process = serve(&folder.path().join("kubeconfig"))
            .arg("--audit-log")
            .arg(log)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let lines: Vec<String> = output.lines().take(2).map(Result::unwrap).collect();
        Self { process, folder, lines }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn url(&self) -> &str {
        self.lines[0].strip_prefix("admit serve: ").unwrap()
    }

    async fn client(&self) -> kube::Client {
        self.client_with(|_| {}).await
    }

    async fn client_with(&self, change: impl FnOnce(&mut kube::Config)) -> kube::Client {
        // Another test may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        change(&mut config);
        kube::Client::try_from(config).unwrap()
    }

    fn audit_events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("audit.log")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn signal(self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.wait()
    }

    fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.arg("serve").arg("--kubeconfig-out").arg(kubeconfig);
    command
}

/// Checks that the server does not start with these arguments, and that it reports the reason.
#[track_caller]
fn check_refusal(arguments: &[&str], code: i32, message: &str) {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let output = serve(&kubeconfig).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(message), "{text}");
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(!kubeconfig.exists(), "half written");
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn configuration(fake: &FakeWebhook) -> Value {
    use base64::Engine as _;

    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "deny"},
        "webhooks": [{
            "name": "deny.example.com",
            "clientConfig": {
                "url": fake.url(),
                "caBundle": base64::engine::general_purpose::STANDARD.encode(fake.ca_bundle()),
            },
            "rules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            }],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "denied"}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

async fn denying() -> FakeWebhook {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let deny = Deny { message: Some("not today".to_owned()), ..Deny::default() };
    FakeWebhook::start(Fake { behavior: Behavior::Deny(deny), ..Fake::default() }).await.unwrap()
}

/// Starts a server whose standard error can be read.
fn logging() -> (Server, ChildStderr) {
    let folder = tempfile::tempdir().unwrap();
    let mut process = serve(Path::new("kubeconfig"))
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let lines: Vec<String> = output.lines().take(2).map(Result::unwrap).collect();
    let errors = process.stderr.take().unwrap();
    (Server { process, folder, lines }, errors)
}

#[tokio::test]
async fn calls_that_fail_open_and_namespaces_that_are_not_deleted_are_logged() {
    let (server, mut errors) = logging();
    // The line works in a shell with another working directory.
    let path = server.kubeconfig().canonicalize().unwrap();
    assert_eq!(server.lines[1], format!("export KUBECONFIG={}", path.display()));

    let client = server.client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = object(json!({"metadata": {"name": "denied"}}));
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let fake = denying().await;
    let mut configuration = configuration(&fake);
    drop(fake);
    configuration["webhooks"][0]["failurePolicy"] = json!("Ignore");
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    configurations.create(&PostParams::default(), &object(configuration)).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::namespaced(client, "denied");
    let config_map = object(json!({"metadata": {"name": "a"}}));
    config_maps.create(&PostParams::default(), &config_map).await.unwrap();
    namespaces.delete("denied", &DeleteParams::default()).await.unwrap();

    assert!(server.signal(Signal::TERM).success());
    let mut text = String::new();
    errors.read_to_string(&mut text).unwrap();
    let failed = "admit serve: Failed calling webhook, failing open deny.example.com: failed calling webhook \
                  \"deny.example.com\": failed to call webhook: Post \"https://127.0.0.1:";
    assert!(text.contains(failed), "{text}");
    let stays = "admit serve: the namespace \"denied\" stays Terminating, because no namespace controller runs: \
                 --with-controllers empties and removes deleted namespaces\n";
    assert!(text.contains(stays), "{text}");
}

#[tokio::test]
async fn log_says_once_how_to_set_the_address_of_an_unknown_service() {
    let (server, mut errors) = logging();
    let client = server.client().await;
    let fake = denying().await;
    let mut configuration = configuration(&fake);
    configuration["webhooks"][0]["namespaceSelector"] = json!({});
    let client_config = &mut configuration["webhooks"][0]["clientConfig"];
    client_config.as_object_mut().unwrap().remove("url");
    client_config["service"] = json!({"namespace": "shop", "name": "hook"});
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    configurations.create(&PostParams::default(), &object(configuration)).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::namespaced(client, "default");
    for name in ["a", "b"] {
        let config_map = object(json!({"metadata": {"name": name}}));
        let failure = config_maps.create(&PostParams::default(), &config_map).await.unwrap_err();
        assert!(failure.to_string().contains("service \"hook\" not found"), "{failure}");
    }

    assert!(server.signal(Signal::TERM).success());
    let mut text = String::new();
    errors.read_to_string(&mut text).unwrap();
    let advice = "admit serve: the Service of the webhook \"deny.example.com\" does not exist: set the address of the \
                  webhook with --service shop/hook=HOST:PORT, or create the Service\n";
    assert_eq!(text.matches(advice).count(), 1, "{text}");
}

#[test]
fn it_says_where_it_listens_and_how_to_use_it() {
    let server = Server::start();
    assert!(server.url().starts_with("https://127.0.0.1:"), "{:?}", server.lines);
    assert_eq!(server.lines[1], format!("export KUBECONFIG={}", server.kubeconfig().display()));
    for file in [server.kubeconfig(), server.folder.path().join("audit.log")] {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn it_ends_cleanly_on_both_signals() {
    for signal in [Signal::INT, Signal::TERM] {
        let server = Server::start();
        // A client that stays connected does not delay the shutdown.
        let address = server.url().strip_prefix("https://").unwrap().to_owned();
        let mut idle = std::net::TcpStream::connect(address).unwrap();
        idle.write_all(&[0x16]).unwrap();
        assert!(server.signal(signal).success(), "{signal:?}");
        let mut rest = Vec::new();
        // Closed or reset: both end the connection.
        let _ = idle.read_to_end(&mut rest);
    }
}

#[test]
fn an_occupied_port_is_named_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let message = format!("error: cannot listen on {address}: Address already in use");
    check_refusal(&["--listen", &address], 3, &message);
    check_refusal(&["--listen", &address], 3, "; choose another port, or 0 for a free one");
}

#[test]
fn listening_for_other_hosts_needs_a_flag() {
    check_refusal(&["--listen", "0.0.0.0:0"], 2, "use --allow-remote to allow that");
}

#[test]
fn wrong_arguments_say_what_was_expected() {
    check_refusal(&["--service", "hook=localhost:1"], 2, "expected NAMESPACE/NAME=HOST:PORT");
    check_refusal(&["--listen", "localhost"], 2, "invalid value 'localhost' for '--listen <ADDRESS:PORT>'");
    check_refusal(&["--audit-log", "/nowhere/audit.log"], 3, "cannot write the audit log /nowhere/audit.log");
}

#[test]
fn a_kubeconfig_that_cannot_be_written_is_named() {
    let output = serve(Path::new("/nowhere/kubeconfig")).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("error: cannot write the kubeconfig /nowhere/kubeconfig: No such file"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn devices_are_written_to_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for (device, code) in [("/dev/full", Some(3)), ("/dev/null", None)] {
        let path = folder.path().join("device");
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(device, &path).unwrap();
        let mut process = serve(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // Without a code it serves.
        let process = Server { process, folder: tempfile::tempdir().unwrap(), lines: Vec::new() };
        assert_eq!(line.is_empty(), code.is_some(), "{device}: {line}");
        match code {
            Some(code) => assert_eq!(process.wait().code(), Some(code)),
            None => assert!(process.signal(Signal::TERM).success()),
        }
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    }
}

#[tokio::test]
async fn an_audit_log_that_is_not_whole_is_a_failure() {
    let server = Server::with_audit_log(Path::new("/dev/full"));
    // It continues to serve.
    for _ in 0..2 {
        let namespaces = Api::<Namespace>::all(server.client().await);
        namespaces.list(&kube::api::ListParams::default()).await.unwrap();
    }
    assert_eq!(server.signal(Signal::TERM).code(), Some(3));
}

#[tokio::test]
async fn a_request_that_is_cut_off_is_in_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let server = Server::with_audit_log(&log);
    let client = server.client().await;
    let create = PostParams::default();
    let hang: Behavior = serde_json::from_value(json!({"timeout": {"hang": "30s"}})).unwrap();
    let fake = FakeWebhook::start(Fake { behavior: hang, ..Fake::default() }).await.unwrap();
    let namespace = object(json!({"metadata": {"name": "denied"}}));
    Api::<Namespace>::all(client.clone()).create(&create, &namespace).await.unwrap();
    let configurations = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    configurations.create(&create, &object(configuration(&fake))).await.unwrap();
    let config_map: ConfigMap = object(json!({"metadata": {"name": "x"}, "data": {"a": "b"}}));
    let config_maps = Api::<ConfigMap>::namespaced(client, "denied");
    let asked = async {
        while fake.journal().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = config_maps.create(&create, &config_map) => panic!("{answer:?}"),
        () = asked => {}
    }
    assert!(server.signal(Signal::TERM).success());
    let text = fs::read_to_string(&log).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_config_maps: Vec<&Value> =
        events.iter().filter(|event| event["objectRef"]["resource"] == "configmaps").collect();
    let [event] = of_config_maps.as_slice() else { panic!("{of_config_maps:?}") };
    assert_eq!((&event["stage"], &event["verb"]), (&json!("ResponseComplete"), &json!("create")));
    assert_eq!(event["user"]["username"], "admin");
    assert_eq!(event["responseStatus"]["code"], 504);
}

#[tokio::test]
async fn request_without_the_token_is_rejected() {
    let server = Server::start();
    for token in [None, Some("wrong".to_owned())] {
        let client = server.client_with(|config| config.auth_info.token = token.map(Into::into)).await;
        let error = Api::<Namespace>::all(client).list(&kube::api::ListParams::default()).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{error}") };
        assert_eq!(
            (status.code, status.reason.as_str(), status.message.as_str()),
            (401, "Unauthorized", "Unauthorized")
        );
    }
}

#[tokio::test]
async fn webhook_configuration_takes_effect_and_is_in_the_audit_log() {
    let server = Server::start();
    let fake = denying().await;
    let client = server.client().await;
    let create = PostParams::default();
    for name in ["denied", "open"] {
        let namespace = object(json!({"metadata": {"name": name}}));
        Api::<Namespace>::all(client.clone()).create(&create, &namespace).await.unwrap();
    }
    Api::<ValidatingWebhookConfiguration>::all(client.clone())
        .create(&create, &object(configuration(&fake)))
        .await
        .unwrap();

    let config_map: ConfigMap = object(json!({"metadata": {"name": "x"}, "data": {"a": "b"}}));
    Api::<ConfigMap>::namespaced(client.clone(), "open").create(&create, &config_map).await.unwrap();
    let error =
        Api::<ConfigMap>::namespaced(client, "denied").create(&create, &config_map).await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!((status.code, status.message.as_str()), (400, DENIAL));
    assert_eq!(fake.journal().len(), 1);

    let events = server.audit_events();
    let of_config_maps: Vec<&Value> =
        events.iter().filter(|event| event["objectRef"]["resource"] == "configmaps").collect();
    let told: Vec<Value> = of_config_maps
        .iter()
        .map(|event| {
            json!([
                event["verb"],
                event["objectRef"]["namespace"],
                event["responseStatus"]["code"],
                event["stage"]
            ])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!(["create", "open", 201, "ResponseComplete"]),
            json!(["create", "denied", 400, "ResponseComplete"])
        ]
    );
    assert_eq!(of_config_maps[1]["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(of_config_maps[1]["requestObject"]["data"], json!({"a": "b"}));
    assert_eq!(of_config_maps[1]["annotations"]["authorization.k8s.io/decision"], "allow");
}

#[tokio::test]
async fn watch_receives_changes_and_ends_with_the_command() {
    let server = Server::start();
    let config_maps = Api::<ConfigMap>::default_namespaced(server.client().await);
    let mut events =
        config_maps.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
    let created = object(json!({"metadata": {"name": "one"}}));
    config_maps.create(&PostParams::default(), &created).await.unwrap();
    let Some(Ok(WatchEvent::Added(added))) = events.next().await else { panic!("no event") };
    assert_eq!(added.metadata.name.as_deref(), Some("one"));
    assert!(server.signal(Signal::TERM).success());
    // A truncated stream is an error.
    let end = events.next().await;
    assert!(end.is_none(), "{end:?}");
}

/// A case cannot send a request during a watch. On kube-apiserver 1.37.1, the watch ends within a second.
#[tokio::test]
async fn a_watch_of_custom_resources_ends_when_their_schema_changes() {
    let server = Server::start();
    let client = server.client().await;
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let definition = object(json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    }));
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Foo"));
    let foos = Api::<DynamicObject>::all_with(client, &kind);
    let mut events = foos.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
    let foo = DynamicObject::new("one", &kind);
    foos.create(&PostParams::default(), &foo).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    let property = json!({"spec": {"versions": [{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
    }]}});
    definitions.patch("foos.example.com", &PatchParams::default(), &Patch::Merge(property)).await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
    assert!(matches!(end, Ok(None)), "{end:?}");
}
