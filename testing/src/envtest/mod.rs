//! Runs etcd and kube-apiserver from KUBEBUILDER_ASSETS on loopback ports.

mod watchdog;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use certs::{CertificateAuthority, Leaf};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use self::watchdog::Watchdog;
use crate::LOOPBACK;

/// Running etcd and kube-apiserver processes.
///
/// When this value is dropped, the processes are stopped and their folder is removed.
#[derive(Debug)]
pub struct Envtest {
    config: kube::Config,
    etcd_url: String,
    audit_log: PathBuf,
    // Dropped in this order: the watchdog, the servers, their folder.
    _watchdog: Watchdog,
    apiserver: Server,
    _etcd: Server,
    _folder: TempDir,
}

/// The settings of kube-apiserver that differ from the defaults.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Additional flags, such as `--enable-admission-plugins=AlwaysPullImages`.
    pub flags: Vec<String>,
    /// The values of `--audit-policy-file` and `--audit-log-path`.
    ///
    /// By default, each request is logged once, at level `Request`, in [`Envtest::audit_log`].
    pub audit: Option<(PathBuf, PathBuf)>,
}

/// The reason why the servers could not start, with advice for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EnvtestError(String);

impl EnvtestError {
    fn new(message: impl std::fmt::Display) -> Self {
        Self(message.to_string())
    }
}

#[derive(Debug)]
struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Envtest {
    /// Starts both servers from KUBEBUILDER_ASSETS on free ports of 127.0.0.1 and waits until the API server is ready.
    ///
    /// `progress` receives progress messages.
    ///
    /// # Errors
    /// Returns an error if KUBEBUILDER_ASSETS is not set, if a program is missing, or if a server does not start within
    /// a minute. The error contains the end of the server's log.
    pub async fn start(settings: Settings, progress: impl Fn(&str)) -> Result<Self, EnvtestError> {
        let assets = Assets::find()?;
        let mut attempt = 1;
        loop {
            match start_once(&settings, &assets, &progress).await {
                // Another process took a port before the server started.
                Err(error) if attempt < ATTEMPTS && error.0.contains("address already in use") => {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Returns the configuration for a client in the group `system:masters`. The client does not retry requests.
    pub fn config(&self) -> &kube::Config {
        &self.config
    }

    /// Returns the URL of etcd.
    pub fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    /// Returns the path of the audit log. kube-apiserver writes each event as a line before it sends the response.
    pub fn audit_log(&self) -> &Path {
        &self.audit_log
    }

    /// Returns the path of kube-apiserver's log.
    pub fn server_log(&self) -> &Path {
        &self.apiserver.log
    }
}

async fn start_once(
    settings: &Settings,
    assets: &Assets,
    progress: &impl Fn(&str),
) -> Result<Envtest, EnvtestError> {
    let folder = tempfile::Builder::new()
        .prefix("admit-envtest-")
        .tempdir()
        .map_err(|error| EnvtestError::new(format!("cannot create a temporary folder: {error}")))?;
    let mut files = Files::write(folder.path())?;
    let [client_port, peer_port, secure_port] = free_ports()?;
    let etcd_url = format!("http://127.0.0.1:{client_port}");

    progress("starting etcd and kube-apiserver");
    let started = Instant::now();
    let mut watchdog = Watchdog::start(folder.path()).map_err(|error| {
        EnvtestError::new(format!("cannot start sh as the watchdog of the servers: {error}"))
    })?;
    let flags = etcd_flags(folder.path(), &etcd_url, peer_port);
    let mut etcd = Server::spawn("etcd", &assets.etcd, folder.path(), &flags, &mut watchdog)?;
    if let Some((policy, log)) = settings.audit.clone() {
        (files.audit_policy, files.audit_log) = (policy, log);
    }
    let mut flags = apiserver_flags(folder.path(), &files, &etcd_url, secure_port);
    flags.extend(settings.flags.iter().cloned());
    let mut apiserver =
        Server::spawn("kube-apiserver", &assets.apiserver, folder.path(), &flags, &mut watchdog)?;
    let config = config(&files, secure_port).await?;
    let client = kube::Client::try_from(config.clone()).map_err(|error| no_client(&error))?;
    while !is_ready(&client).await {
        etcd.still_runs()?;
        apiserver.still_runs()?;
        if started.elapsed() > START_TIMEOUT {
            return Err(EnvtestError::new(format!(
                "kube-apiserver was not ready after {} s; its log ends with:\n{}",
                START_TIMEOUT.as_secs(),
                end_of(&apiserver.log)
            )));
        }
        progress(&format!("starting etcd and kube-apiserver ({:.0} s)", started.elapsed().as_secs_f64()));
        sleep(POLL_INTERVAL).await;
    }
    Ok(Envtest {
        config,
        etcd_url,
        audit_log: files.audit_log,
        _watchdog: watchdog,
        apiserver,
        _etcd: etcd,
        _folder: folder,
    })
}

struct Assets {
    etcd: PathBuf,
    apiserver: PathBuf,
}

impl Assets {
    fn find() -> Result<Self, EnvtestError> {
        const ADVICE: &str = "  get them with: export KUBEBUILDER_ASSETS=$(setup-envtest use 1.37.x -p path)";
        let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) else {
            return Err(EnvtestError::new(format!(
                "KUBEBUILDER_ASSETS is not set: it must name a directory with etcd and kube-apiserver\n{ADVICE}"
            )));
        };
        let find = |name: &str| {
            let path = folder.join(name);
            if path.is_file() {
                return Ok(path);
            }
            Err(EnvtestError::new(format!(
                "no {name} in KUBEBUILDER_ASSETS ({})\n{ADVICE}",
                folder.display()
            )))
        };
        Ok(Self { etcd: find("etcd")?, apiserver: find("kube-apiserver")? })
    }
}

/// The paths of kube-apiserver's files.
struct Files {
    authority: String,
    certificate: PathBuf,
    key: PathBuf,
    token: String,
    tokens: PathBuf,
    audit_policy: PathBuf,
    audit_log: PathBuf,
}

impl Files {
    fn write(folder: &Path) -> Result<Self, EnvtestError> {
        let (authority, leaf) = certificate()?;
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map(|()| path).map_err(|error| {
                EnvtestError::new(format!("cannot write {name} into {}: {error}", folder.display()))
            })
        };
        Ok(Self {
            authority,
            certificate: write("serving.crt", &leaf.certificate_pem)?,
            key: write("serving.key", &leaf.key_pem)?,
            tokens: write("tokens.csv", &format!("{token},admin,admin,\"system:masters\"\n"))?,
            token,
            audit_policy: write("audit-policy.json", &audit_policy().to_string())?,
            audit_log: folder.join("audit.log"),
        })
    }
}

fn audit_policy() -> serde_json::Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Request"}],
    })
}

fn certificate() -> Result<(String, Leaf), EnvtestError> {
    let failed =
        |error: certs::Error| EnvtestError::new(format!("no certificate for kube-apiserver: {error}"));
    let authority = CertificateAuthority::new("admit envtest").map_err(failed)?;
    let leaf = authority.issue(&[certs::Name::Ip(LOOPBACK)]).map_err(failed)?;
    Ok((authority.certificate_pem().to_owned(), leaf))
}

fn etcd_flags(folder: &Path, url: &str, peer_port: u16) -> Vec<String> {
    let peer = format!("http://127.0.0.1:{peer_port}");
    vec![
        flag("data-dir", folder.join("etcd").display()),
        flag("listen-client-urls", url),
        flag("advertise-client-urls", url),
        flag("listen-peer-urls", &peer),
        flag("initial-advertise-peer-urls", &peer),
        flag("initial-cluster", format_args!("default={peer}")),
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn apiserver_flags(folder: &Path, files: &Files, etcd_url: &str, secure_port: u16) -> Vec<String> {
    vec![
        flag("etcd-servers", etcd_url),
        flag("bind-address", LOOPBACK),
        // Required on machines without a default route.
        flag("advertise-address", LOOPBACK),
        // The service `kubernetes` does not allow a loopback address.
        flag("endpoint-reconciler-type", "none"),
        flag("secure-port", secure_port),
        flag("cert-dir", folder.join("certs").display()),
        flag("tls-cert-file", files.certificate.display()),
        flag("tls-private-key-file", files.key.display()),
        // Service account tokens are not used, so any public key works.
        flag("service-account-key-file", files.certificate.display()),
        flag("service-account-signing-key-file", files.key.display()),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("token-auth-file", files.tokens.display()),
        flag("authorization-mode", "RBAC"),
        // As on clusters with a network plugin; admission decides who can use it.
        flag("allow-privileged", true),
        flag("service-cluster-ip-range", "10.0.0.0/24"),
        flag("audit-policy-file", files.audit_policy.display()),
        flag("audit-log-path", files.audit_log.display()),
        // The log is followed and must not be rotated.
        flag("audit-log-maxsize", 0),
        // Events are written before the response is sent.
        flag("audit-log-mode", "blocking"),
    ]
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

impl Server {
    fn spawn(
        name: &'static str,
        program: &Path,
        folder: &Path,
        flags: &[String],
        watchdog: &mut Watchdog,
    ) -> Result<Self, EnvtestError> {
        let log = folder.join(format!("{name}.log"));
        let child = fs::File::create(&log).and_then(|file| {
            let child = Command::new(program)
                .args(flags)
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(file.try_clone()?)
                .stderr(file)
                // Ctrl-C must not stop the servers, which are needed until the running scenarios end.
                .process_group(0)
                .kill_on_drop(true)
                .spawn()?;
            child.id().map_or(Ok(()), |pid| watchdog.watch(pid))?;
            Ok(child)
        });
        let child = child
            .map_err(|error| EnvtestError::new(format!("cannot start {}: {error}", program.display())))?;
        Ok(Self { name, child, log })
    }

    fn still_runs(&mut self) -> Result<(), EnvtestError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(EnvtestError::new(format!(
                "{} ended while it started ({status}); its log ends with:\n{}",
                self.name,
                end_of(&self.log)
            ))),
            Err(error) => Err(EnvtestError::new(format!("cannot monitor {}: {error}", self.name))),
        }
    }
}

/// Kills the server and waits until the process has ended. Its folder cannot be removed before that.
impl Drop for Server {
    fn drop(&mut self) {
        let killed = self.child.start_kill();
        for _ in 0..STOP_TIMEOUT_MILLISECONDS {
            if killed.is_err() || !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the last lines of a log, with indentation.
fn end_of(log: &Path) -> String {
    let text = match fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("  (no log: {error})"),
    };
    let lines: Vec<_> = text.lines().collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(LOG_LINES))
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

async fn config(files: &Files, port: u16) -> Result<kube::Config, EnvtestError> {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "envtest", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": BASE64_STANDARD.encode(&files.authority),
        }}],
        "users": [{"name": "admin", "user": {"token": files.token}}],
        "contexts": [{"name": "envtest", "context": {"cluster": "envtest", "user": "admin"}}],
        "current-context": "envtest",
    });
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).map_err(|error| no_client(&error))?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| no_client(&error))?;
    // The client would retry requests that a webhook denied with 429, 503, or 504.
    config.default_retry = false;
    // Loopback addresses do not use HTTPS_PROXY.
    config.proxy_url = None;
    Ok(config)
}

fn no_client(error: &dyn std::error::Error) -> EnvtestError {
    EnvtestError::new(format!("no client for kube-apiserver: {error}"))
}

async fn is_ready(client: &kube::Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    client.request_text(request).await.is_ok_and(|text| text == "ok")
}

/// Finds distinct free ports. Each port stays reserved until all ports are found.
fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT], EnvtestError> {
    let failed = |error: std::io::Error| EnvtestError::new(format!("no free port on {LOOPBACK}: {error}"));
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind((LOOPBACK, 0)).map_err(failed)?;
        *port = listener.local_addr().map_err(failed)?.port();
        held.push(listener);
    }
    Ok(ports)
}

const ATTEMPTS: u32 = 3;
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const STOP_TIMEOUT_MILLISECONDS: u32 = 2_000;
const LOG_LINES: usize = 12;
