//! Tests `admit assets`: the replacements for envtest's binaries, compared with the real ones.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

mod files;
mod service_accounts;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::{CertificateAuthority, Leaf};
use http_body_util::BodyExt as _;
use kube::client::Body;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::helpers::{machine, ports};

fn admit(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit")).args(arguments).output().unwrap()
}

/// Runs `admit assets` and returns the directory that it creates in `folder`.
fn stand_ins(folder: &Path) -> PathBuf {
    let made = folder.join("assets");
    let output = admit(&["assets", "--dir", made.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

#[test]
fn directory_is_writable_only_by_its_owner_under_any_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("a/assets");
    let command = format!("umask 0; '{}' assets --dir '{}'", env!("CARGO_BIN_EXE_admit"), made.display());
    let output = Command::new("/bin/sh").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for folder in [made.parent().unwrap(), &made] {
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o755, "{}", folder.display());
    }
}

fn run(program: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.code(), text)
}

/// A pair of etcd and kube-apiserver from a directory, started as envtest starts them. They are killed on drop.
struct Servers {
    processes: Vec<Child>,
    port: u16,
    etcd: String,
    folder: tempfile::TempDir,
}

/// The client that sends a request.
#[derive(Clone, Copy, Debug)]
enum By {
    Nobody,
    Token(&'static str),
    /// A client with a certificate for this user, in this group.
    Certificate(&'static str, Option<&'static str>),
    /// A client with a certificate from an unknown certificate authority.
    Stranger,
}

impl Servers {
    /// Starts the servers, and waits until they are healthy.
    async fn start(assets: &Path, authority: &CertificateAuthority) -> Self {
        Self::with_environment(assets, authority, &[]).await
    }

    /// Starts the servers with these environment variables.
    async fn with_environment(
        assets: &Path,
        authority: &CertificateAuthority,
        variables: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let issuer = authority.issue_for_client("issuer").unwrap();
        let (key, public) = (write("sa.key", &issuer.key_pem), write("sa.crt", &issuer.certificate_pem));
        let clients = write("clients.crt", authority.certificate_pem());
        let tokens = write("tokens.csv", "one,jane,7,\"g1,g2\"\nmaster,root,8,system:masters\n,nobody,9\n");
        let (port, etcd) = (ports::free_port(), format!("http://127.0.0.1:{}", ports::free_port()));
        let data = folder.path().join("etcd").display().to_string();
        let certs = folder.path().join("certs").display().to_string();
        let of_etcd = [
            format!("--advertise-client-urls={etcd}"),
            format!("--data-dir={data}"),
            format!("--listen-client-urls={etcd}"),
            format!("--listen-peer-urls=http://127.0.0.1:{}", ports::free_port()),
            "--unsafe-no-fsync=true".to_owned(),
        ];
        let of_apiserver = [
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={certs}"),
            format!("--client-ca-file={clients}"),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--etcd-servers={etcd}"),
            format!("--secure-port={port}"),
            "--service-account-issuer=https://127.0.0.1/".to_owned(),
            "--service-account-issuer=https://former".to_owned(),
            "--service-account-max-token-expiration=2h".to_owned(),
            "--api-audiences=api,https://127.0.0.1/".to_owned(),
            format!("--service-account-key-file={public}"),
            format!("--service-account-signing-key-file={key}"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={tokens}"),
        ];
        let start = |name: &str, flags: &[String]| {
            let log = File::create(folder.path().join(format!("{name}.log"))).unwrap();
            let mut command = Command::new(assets.join(name));
            command
                .args(flags)
                .envs(variables.iter().copied())
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log);
            command.spawn().unwrap()
        };
        let processes = vec![start("etcd", &of_etcd), start("kube-apiserver", &of_apiserver)];
        let servers = Self { processes, port, etcd, folder };
        let url = format!("https://127.0.0.1:{port}");
        let is_healthy = async {
            while servers.ask(&url, &By::Nobody.client(authority), "GET", "/readyz", None).await
                != Some((200, "ok".to_owned()))
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let started = tokio::time::timeout(Duration::from_secs(60), is_healthy).await;
        let log = || fs::read_to_string(servers.folder.path().join("kube-apiserver.log")).unwrap();
        assert!(started.is_ok(), "{}", log());
        servers
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Returns the status and the body of the answer, or `None` if the server does not answer.
    async fn ask(
        &self,
        url: &str,
        auth: &Value,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(u16, String)> {
        let kubeconfig: kube::config::Kubeconfig = serde_json::from_value(json!({
            "clusters": [{"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": true}}],
            "users": [{"name": "u", "user": auth}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }))
        .unwrap();
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
                .await
                .unwrap();
        config.default_retry = false;
        config.proxy_url = None;
        let client = kube::Client::try_from(config).unwrap();
        let request = http::Request::builder().uri(path).header("content-type", "application/json");
        let request = match method.strip_prefix("metadata of a ") {
            Some(what) => {
                let kind = if what == "list" { "PartialObjectMetadataList" } else { "PartialObjectMetadata" };
                request.header("accept", format!("application/json;as={kind};g=meta.k8s.io;v=v1"))
            }
            None => request.method(method),
        };
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes()));
        let response = client.send(request.body(body).unwrap()).await.ok()?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.ok()?.to_bytes();
        Some((status, String::from_utf8(bytes.to_vec()).unwrap()))
    }

    /// Stops the servers as envtest does: the API server first, because it needs etcd until it exits.
    fn terminate(mut self) -> Vec<ExitStatus> {
        let end = |process: &mut Child| {
            kill_process(Pid::from_child(process), Signal::TERM).unwrap();
            process.wait().unwrap()
        };
        self.processes.iter_mut().rev().map(end).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // The process may have exited already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl By {
    /// Returns the user entry for a kubeconfig.
    fn client(self, authority: &CertificateAuthority) -> Value {
        let of = |leaf: Leaf| {
            json!({
                "client-certificate-data": STANDARD.encode(leaf.certificate_pem),
                "client-key-data": STANDARD.encode(leaf.key_pem),
            })
        };
        match self {
            Self::Nobody => json!({}),
            Self::Token(token) => json!({ "token": token }),
            Self::Certificate(name, group) => of(authority.issue_for_member(name, group).unwrap()),
            Self::Stranger => {
                let other = CertificateAuthority::new("other").unwrap();
                of(other.issue_for_member("me", Some("system:masters")).unwrap())
            }
        }
    }
}

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Returns the client, method, and path of each request.
fn requests() -> Vec<(By, &'static str, &'static str)> {
    let (nobody, jane, master) = (By::Nobody, By::Token("one"), By::Token("master"));
    vec![
        (nobody, "GET", "/readyz?verbose"),
        (nobody, "GET", "/livez?verbose"),
        (nobody, "GET", "/healthz?verbose=false"),
        (nobody, "GET", "/readyz?verbose&exclude=etcd&exclude=foo&exclude=bar"),
        (nobody, "GET", "/readyz?exclude=foo"),
        (nobody, "GET", "/readyz/ping"),
        (nobody, "POST", "/readyz"),
        (nobody, "GET", "/api/v1/pods"),
        (nobody, "GET", "/"),
        (nobody, "POST", WHO),
        (By::Token("other"), "GET", "/readyz"),
        (jane, "POST", WHO),
        (jane, "GET", "/readyz/etcd"),
        (jane, "GET", "/readyz/"),
        (master, "GET", "/readyz/etcd?verbose"),
        (master, "GET", "/readyz/nope"),
        (master, "GET", "/livez/shutdown"),
        (master, "POST", "/readyz"),
        (master, "GET", "/livez/poststarthook/rbac/bootstrap-roles"),
        (By::Stranger, "GET", "/readyz"),
        (By::Certificate("joe", None), "POST", WHO),
        (By::Certificate("joe", None), "GET", "/api/v1/pods"),
        (By::Certificate("me", Some("system:masters")), "POST", WHO),
        (By::Certificate("", Some("system:masters")), "POST", WHO),
        (master, "GET", "/api/v1/namespaces/default/services/kubernetes"),
        (master, "GET", "/api/v1/services"),
        (master, "GET", "/api/v1/endpoints"),
        (master, "GET", "/apis/discovery.k8s.io/v1/endpointslices"),
        (master, "GET", "/api/v1/namespaces"),
        (master, "GET", "/api/v1/configmaps"),
        (master, "GET", "/apis/scheduling.k8s.io/v1/priorityclasses"),
        (master, "GET", "/apis/networking.k8s.io/v1/servicecidrs"),
        (master, "metadata of a list", "/api/v1/namespaces"),
        (master, "metadata of a single", "/api/v1/namespaces/default"),
        (master, "metadata of a single", "/api/v1/namespaces/none"),
        (
            master,
            "metadata of a watch",
            "/api/v1/namespaces?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Ddefault",
        ),
        (master, "GET", "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Da"),
    ]
}

/// Removes field ownership and the values that vary between runs.
fn settle(value: &mut Value, port: u16) {
    match value {
        Value::Object(members) => {
            for field in [
                "managedFields",
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "lastTransitionTime",
                "since",
                "expirationTimestamp",
                "kid",
                "x",
                "y",
            ] {
                members.remove(field);
            }
            members.values_mut().for_each(|value| settle(value, port));
        }
        Value::Array(items) => {
            for item in items {
                settle(item, port);
            }
        }
        Value::Number(number) if number.as_u64() == Some(port.into()) => *value = "PORT".into(),
        Value::String(text) if text.starts_with("https://127.0.0.1:") => {
            *text = text.replace(&format!(":{port}/"), ":PORT/");
        }
        Value::String(text) if text.starts_with("eyJ") => "JWT".clone_into(text),
        Value::String(text) if text.starts_with("JTI=") => "JTI=…".clone_into(text),
        Value::String(text) if text.starts_with("X509SHA256=") => "X509SHA256=…".clone_into(text),
        Value::String(text) if text.starts_with("-----BEGIN") => "PEM".clone_into(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Starts the servers from a directory, and returns their answer to each request.
async fn play(assets: &Path) -> Vec<String> {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = CertificateAuthority::new("clients").unwrap();
    let servers = Servers::start(assets, &authority).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let mut answers = Vec::new();
    for (by, method, path) in requests() {
        let body = (path == WHO).then_some(&review);
        let (status, text) =
            servers.ask(&servers.url(), &by.client(&authority), method, path, body).await.unwrap();
        let text = match serde_json::from_str::<Value>(&text) {
            Ok(mut document) => {
                // The UID of a user is one that the test sets.
                let uid = document.pointer("/status/userInfo/uid").cloned();
                settle(&mut document, servers.port);
                format!("{document} {}", uid.unwrap_or_default())
            }
            Err(_text) => text,
        };
        answers.push(format!("{by:?} {method} {path}: {status} {text}"));
    }
    answers.extend(servers.tokens_of_service_accounts().await);
    let health = servers.ask(&servers.etcd, &json!({}), "GET", "/health", None).await;
    answers.push(format!("etcd: {health:?}"));
    let ended = servers.terminate();
    let is_real = !assets.join("etcd").is_symlink();
    // The real etcd exits because of the signal.
    assert!(is_real || ended.iter().all(ExitStatus::success), "{ended:?}");
    answers
}

#[tokio::test]
async fn admit_answers_as_envtests_servers_do() {
    let folder = tempfile::tempdir().unwrap();
    let answers = play(&stand_ins(folder.path())).await;
    let of = |begin: &str| answers.iter().find(|answer| answer.starts_with(begin)).unwrap();
    assert_eq!(of("Nobody GET /readyz?exclude=foo"), "Nobody GET /readyz?exclude=foo: 200 ok");
    assert!(of("Stranger").contains("401"));
    assert!(of(r#"Certificate("me""#).contains(r#""username":"me""#));
    assert!(of(r#"Token("master") GET /api/v1/namespaces/default/services/kubernetes"#).contains("10.0.0.1"));
    assert_eq!(answers.last().unwrap(), r#"etcd: Some((200, "{\"health\":\"true\",\"reason\":\"\"}"))"#);
}

#[tokio::test]
async fn both_servers_answer_the_same() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let admit = play(&stand_ins(folder.path())).await;
    let real = play(Path::new(&std::env::var_os("KUBEBUILDER_ASSETS").unwrap())).await;
    for (admit, real) in admit.iter().zip(&real) {
        assert_eq!(admit, real);
    }
    assert_eq!(admit.len(), real.len());
}

/// Test suites may start their servers more than once, with the same record directory.
#[tokio::test]
async fn requests_to_all_servers_of_a_suite_are_recorded() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let assets = stand_ins(folder.path());
    let record = folder.path().join("record");
    let record = record.to_str().unwrap();
    let authority = CertificateAuthority::new("clients").unwrap();
    for namespace in ["one", "two"] {
        let servers = Servers::with_environment(&assets, &authority, &[("ADMIT_RECORD", record)]).await;
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let master = By::Token("master").client(&authority);
        let namespaces = "/api/v1/namespaces";
        let (code, _) =
            servers.ask(&servers.url(), &master, "POST", namespaces, Some(&object)).await.unwrap();
        assert_eq!(code, 201);
        assert!(servers.terminate().iter().all(ExitStatus::success));
    }
    let list = admit(&["review", "--record", record]);
    let text = String::from_utf8(list.stdout).unwrap();
    let objects: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(5)).collect();
    assert_eq!(objects, ["one", "two"], "{text}");
    assert_eq!(fs::read_dir(record).unwrap().count(), 2);
    let second = admit(&["review", "--record", record, "2"]);
    let text = String::from_utf8(second.stdout).unwrap();
    assert!(text.starts_with("namespace/two created\n"), "{text}");
}

#[tokio::test]
async fn controllers_run_on_request() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("clients").unwrap();
    let on = [("ADMIT_WITH_CONTROLLERS", "true")];
    let servers = Servers::with_environment(&stand_ins(folder.path()), &authority, &on).await;
    let master = By::Token("master").client(&authority);
    let map = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let is_there = async {
        loop {
            let (code, text) = servers.ask(&servers.url(), &master, "GET", map, None).await.unwrap();
            if code == 200 {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let map = tokio::time::timeout(Duration::from_secs(60), is_there).await.unwrap();
    let certificates = fs::read_to_string(servers.folder.path().join("certs/apiserver.crt")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&map).unwrap()["data"]["ca.crt"], certificates);
    assert!(servers.terminate().iter().all(ExitStatus::success));
}

#[test]
fn invalid_flags_are_rejected_as_by_kube_apiserver() {
    let folder = tempfile::tempdir().unwrap();
    let assets = stand_ins(folder.path());
    let (apiserver, etcd) = (assets.join("kube-apiserver"), assets.join("etcd"));
    for (arguments, expected) in [
        (&["--foo"][..], "Error: unknown flag: --foo\n"),
        (&["a", "b"], "Error: \"kube-apiserver\" does not take any arguments, got [\"a\" \"b\"]\n"),
        (
            &["--secure-port", "x"],
            "Error: invalid argument \"x\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"x\": invalid syntax\n",
        ),
    ] {
        assert_eq!(run(&apiserver, arguments), (Some(1), expected.to_owned()));
    }
    let (status, text) = run(&apiserver, &["--etcd-servers=http://x"]);
    assert!(status == Some(1) && text.contains("service-account-issuer is a required flag"), "{text}");
    let (status, text) = run(&apiserver, &["--oidc-issuer-url=https://x"]);
    assert_eq!((status, text.as_str()), (Some(5), "error: admit does not support this: --oidc-issuer-url\n"));
    let (status, text) = run(&etcd, &["--foo"]);
    assert!(status == Some(2) && text.starts_with("flag provided but not defined: -foo\n"), "{text}");
}

#[test]
fn help_lists_the_flags_that_envtest_looks_for() {
    let folder = tempfile::tempdir().unwrap();
    let assets = stand_ins(folder.path());
    let has = |text: &str, flag: &str| text.lines().any(|line| line.trim_start().starts_with(flag));
    let (status, text) = run(&assets.join("kube-apiserver"), &["--help"]);
    assert_eq!(status, Some(0));
    assert!(has(&text, "--client-ca-file ") && !has(&text, "--insecure-port"), "{text}");
    let (status, text) = run(&assets.join("etcd"), &["--help"]);
    assert_eq!(status, Some(0));
    assert!(has(&text, "--unsafe-no-fsync"), "{text}");
    let (_, text) = run(&assets.join("kube-apiserver"), &["--version"]);
    assert_eq!(text, format!("Kubernetes v{}+admit\n", harness::KUBERNETES_VERSION));
}

/// Both programs must list the same flags in `--help`.
#[test]
fn both_know_the_same_flags() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let real = PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS").unwrap());
    let folder = tempfile::tempdir().unwrap();
    let assets = stand_ins(folder.path());
    let flag = regex::Regex::new(r"(?m)^ +(?:-v, )?--([a-z0-9-]+)").unwrap();
    let names = |folder: &Path| {
        let (_, text) = run(&folder.join("kube-apiserver"), &["--help"]);
        flag.captures_iter(&text).map(|found| found[1].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&assets), names(&real));
}
