//! etcd and kube-apiserver, started from KUBEBUILDER_ASSETS on loopback ports and stopped again.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use certs::{CertificateAuthority, Leaf};
use harness::server::ServiceName;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::arguments::AuditFiles;
use super::identity::Identities;
use super::relay::Relay;
use super::storage::Storage;
use super::watchdog::Watchdog;
use super::{
    AuditLog, CallLog, Cleanup, FakesPlace, LOOPBACK, Leftovers, Target, TargetArguments, TargetKind,
};
use crate::Failure;
use crate::static_manifests::Watch;

/// Where services listen: host and port.
type Services = BTreeMap<ServiceName, (String, u16)>;

/// The two servers and their folder. Dropped means killed and removed.
#[derive(Debug)]
pub(super) struct Envtest {
    // Fields are dropped in this order: who watches the servers, the servers, what they call, their folder.
    _watchdog: Watchdog,
    _apiserver: Server,
    _etcd: Server,
    _relays: Vec<Relay>,
    _folder: TempDir,
}

#[derive(Debug)]
struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// Starts both servers and waits until the API server is ready; `tell` hears what is being waited for.
pub(super) async fn start(
    arguments: &TargetArguments,
    tell: impl Fn(&str),
) -> Result<(Target, Envtest), Failure> {
    let assets = Assets::find()?;
    let mut attempt = 1;
    loop {
        match start_once(arguments, &assets, &tell).await {
            // Somebody else took a port between our look and the server's start.
            Err(failure) if attempt < ATTEMPTS && failure.to_string().contains("address already in use") => {
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

async fn start_once(
    arguments: &TargetArguments,
    assets: &Assets,
    tell: &impl Fn(&str),
) -> Result<(Target, Envtest), Failure> {
    let folder = tempfile::Builder::new()
        .prefix("admit-envtest-")
        .tempdir()
        .map_err(|error| Failure::environment(format!("cannot make a temporary folder: {error}")))?;
    let mut files = Files::write(folder.path())?;
    let [client_port, peer_port, secure_port] = free_ports()?;
    let etcd_url = format!("http://127.0.0.1:{client_port}");

    let (services, relays) = reachable(arguments.services()).await?;
    tell("starting etcd and kube-apiserver");
    let started = Instant::now();
    let mut watchdog = Watchdog::start(folder.path()).map_err(|error| {
        Failure::environment(format!("cannot start sh, which is to watch the servers: {error}"))
    })?;
    let flags = etcd_flags(folder.path(), &etcd_url, peer_port);
    let mut etcd = Server::spawn("etcd", &assets.etcd, folder.path(), &flags, &mut watchdog)?;
    if let Some(AuditFiles { policy, log }) = arguments.audit.clone() {
        (files.audit_policy, files.audit_log) = (policy, log);
    }
    let mut flags = apiserver_flags(folder.path(), &files, &etcd_url, secure_port);
    flags.extend(arguments.plugins.for_kube_apiserver()?);
    if let Some(file) = &arguments.admission_control.file {
        let file = std::path::absolute(file)
            .map_err(|error| Failure::environment(format!("{}: {error}", file.display())))?;
        flags.push(flag("admission-control-config-file", file.display()));
    }
    let mut apiserver =
        Server::spawn("kube-apiserver", &assets.apiserver, folder.path(), &flags, &mut watchdog)?;
    let config = config(&files, secure_port).await?;
    let client = kube::Client::try_from(config.clone()).map_err(|error| no_client(&error))?;
    while !is_ready(&client).await {
        etcd.still_runs()?;
        apiserver.still_runs()?;
        if started.elapsed() > LONGEST_START {
            return Err(Failure::environment(format!(
                "kube-apiserver was not ready after {} s; its log ends with:\n{}",
                LONGEST_START.as_secs(),
                end_of(&apiserver.log)
            )));
        }
        tell(&format!("starting etcd and kube-apiserver ({:.0} s)", started.elapsed().as_secs_f64()));
        sleep(ASK_AGAIN_AFTER).await;
    }
    let audit = AuditLog::follow_from_end(&files.audit_log)
        .map_err(|error| Failure::environment(format!("kube-apiserver writes no audit log: {error}")))?;
    let target = Target {
        kind: TargetKind::Envtest,
        connecting_client: client.clone(),
        client,
        fakes: FakesPlace::loopback(),
        services,
        audit,
        calls: CallLog::NotShown,
        run: Cleanup::new_run(),
        leftovers: Leftovers::Removed,
        identities: Identities::Tokens(Box::new(config)),
        storage: Storage::Etcd(etcd_url),
        _manifests: Watch::default(),
    };
    let servers =
        Envtest { _watchdog: watchdog, _apiserver: apiserver, _etcd: etcd, _relays: relays, _folder: folder };
    Ok((target, servers))
}

/// The services where kube-apiserver reaches them by a name: those at IPv6 addresses through a relay.
async fn reachable(mut services: Services) -> Result<(Services, Vec<Relay>), Failure> {
    let mut relays = Vec::new();
    for (host, port) in services.values_mut().filter(|(host, _)| host.contains(':')) {
        let relay = Relay::start(host, *port).await?;
        (*host, *port) = (relay.address().ip().to_string(), relay.address().port());
        relays.push(relay);
    }
    Ok((services, relays))
}

struct Assets {
    etcd: PathBuf,
    apiserver: PathBuf,
}

impl Assets {
    fn find() -> Result<Self, Failure> {
        const ADVICE: &str =
            "  get them with: setup-envtest use 1.37.x -p env   (and evaluate what it prints)";
        let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) else {
            return Err(Failure::environment(format!(
                "--target envtest needs KUBEBUILDER_ASSETS: a folder with etcd and kube-apiserver\n{ADVICE}"
            )));
        };
        let find = |name: &str| {
            let path = folder.join(name);
            if path.is_file() {
                return Ok(path);
            }
            Err(Failure::environment(format!(
                "no {name} in KUBEBUILDER_ASSETS ({})\n{ADVICE}",
                folder.display()
            )))
        };
        Ok(Self { etcd: find("etcd")?, apiserver: find("kube-apiserver")? })
    }
}

/// What kube-apiserver reads and writes beside etcd's data.
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
    fn write(folder: &Path) -> Result<Self, Failure> {
        let (authority, leaf) = certificate()?;
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map(|()| path).map_err(|error| {
                Failure::environment(format!("cannot write {name} into {}: {error}", folder.display()))
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

fn certificate() -> Result<(String, Leaf), Failure> {
    let failed =
        |error: certs::Error| Failure::environment(format!("no certificate for kube-apiserver: {error}"));
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
        // Without it a machine without a default route has no address to advertise, and the server does not start.
        flag("advertise-address", LOOPBACK),
        // It is advertised to nobody: the service `kubernetes` refuses a loopback address.
        flag("endpoint-reconciler-type", "none"),
        flag("secure-port", secure_port),
        flag("cert-dir", folder.join("certs").display()),
        flag("tls-cert-file", files.certificate.display()),
        flag("tls-private-key-file", files.key.display()),
        // The serving certificate carries a public key, and a service account's tokens are used by nobody.
        flag("service-account-key-file", files.certificate.display()),
        flag("service-account-signing-key-file", files.key.display()),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("token-auth-file", files.tokens.display()),
        flag("authorization-mode", "RBAC"),
        // As on every cluster that has a network plugin; who may do it is left to admission.
        flag("allow-privileged", true),
        flag("service-cluster-ip-range", "10.0.0.0/24"),
        flag("audit-policy-file", files.audit_policy.display()),
        flag("audit-log-path", files.audit_log.display()),
        // An event is in the file before its response is sent.
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
    ) -> Result<Self, Failure> {
        let log = folder.join(format!("{name}.log"));
        let child = fs::File::create(&log).and_then(|file| {
            let child = Command::new(program)
                .args(flags)
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(file.try_clone()?)
                .stderr(file)
                // Ctrl-C on the terminal is for us: the servers are needed until the running scenarios have ended.
                .process_group(0)
                .kill_on_drop(true)
                .spawn()?;
            child.id().map_or(Ok(()), |pid| watchdog.watch(pid))?;
            Ok(child)
        });
        let child = child
            .map_err(|error| Failure::environment(format!("cannot start {}: {error}", program.display())))?;
        Ok(Self { name, child, log })
    }

    fn still_runs(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Failure::environment(format!(
                "{} ended while it started ({status}); its log ends with:\n{}",
                self.name,
                end_of(&self.log)
            ))),
            Err(error) => Err(Failure::environment(format!("cannot watch {}: {error}", self.name))),
        }
    }
}

/// What the server stored is thrown away, so it does not have to end cleanly; but its folder can only be removed once it
/// has ended, also on the way out of a failure or a panic, where nothing can be awaited.
impl Drop for Server {
    fn drop(&mut self) {
        let killed = self.child.start_kill();
        for _ in 0..LONGEST_STOP_MILLISECONDS {
            if killed.is_err() || !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The last lines of a log, indented.
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

async fn config(files: &Files, port: u16) -> Result<kube::Config, Failure> {
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
    // The client would send a request again that a webhook refused with 429, 503 or 504.
    config.default_retry = false;
    // Loopback is reached directly, whatever HTTPS_PROXY says.
    config.proxy_url = None;
    Ok(config)
}

fn no_client(error: &dyn std::error::Error) -> Failure {
    Failure::environment(format!("no client for kube-apiserver: {error}"))
}

async fn is_ready(client: &kube::Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    client.request_text(request).await.is_ok_and(|text| text == "ok")
}

/// Ports that were free a moment ago. All are held until the last is found, so that they differ.
fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT], Failure> {
    let failed = |error: std::io::Error| Failure::environment(format!("no free port on {LOOPBACK}: {error}"));
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
const LONGEST_START: Duration = Duration::from_secs(60);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);
const LONGEST_STOP_MILLISECONDS: u32 = 2_000;
const LOG_LINES: usize = 12;
