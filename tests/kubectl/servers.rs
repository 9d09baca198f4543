//! Starts etcd and kube-apiserver from a directory, as envtest does.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use certs::CertificateAuthority;
use serde_json::json;

use crate::helpers::ports::free_port;

/// The running servers. They are killed on drop.
pub(crate) struct Servers {
    processes: Vec<Child>,
    port: u16,
    folder: tempfile::TempDir,
}

/// The maximum number of times to check whether the API server is ready; the checks take two minutes in total.
const TRIES: usize = 1200;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

impl Servers {
    /// Starts the servers, and waits until the port is open and the API server is ready according to kubectl.
    pub(crate) fn start(assets: &Path, kubectl: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let authority = CertificateAuthority::new("clients").unwrap();
        let issuer = authority.issue_for_client("issuer").unwrap();
        let (key, public) = (write("sa.key", &issuer.key_pem), write("sa.crt", &issuer.certificate_pem));
        let tokens = write("tokens.csv", "admin,admin,7,\"system:masters\"\n");
        let (port, etcd) = (free_port(), format!("http://127.0.0.1:{}", free_port()));
        let of_etcd = [
            format!("--advertise-client-urls={etcd}"),
            format!("--data-dir={}", folder.path().join("etcd").display()),
            format!("--listen-client-urls={etcd}"),
            format!("--listen-peer-urls=http://127.0.0.1:{}", free_port()),
            "--unsafe-no-fsync=true".to_owned(),
        ];
        let of_apiserver = [
            "--advertise-address=127.0.0.1".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", folder.path().join("certs").display()),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--etcd-servers={etcd}"),
            format!("--secure-port={port}"),
            "--service-account-issuer=https://127.0.0.1/".to_owned(),
            format!("--service-account-key-file={public}"),
            format!("--service-account-signing-key-file={key}"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={tokens}"),
        ];
        let start = |name: &str, flags: &[String]| {
            let log = File::create(folder.path().join(format!("{name}.log"))).unwrap();
            let mut command = Command::new(assets.join(name));
            command.args(flags).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
            command.spawn().unwrap()
        };
        let processes = vec![start("etcd", &of_etcd), start("kube-apiserver", &of_apiserver)];
        let servers = Self { processes, port, folder };
        servers.wait(kubectl);
        servers
    }

    fn wait(&self, kubectl: &Path) {
        let kubeconfig = self.kubeconfig("default");
        let is_ready = || {
            let mut command = Command::new(kubectl);
            command.args(["get", "--raw", "/readyz"]).env("KUBECONFIG", &kubeconfig);
            command.output().is_ok_and(|output| output.stdout == b"ok")
        };
        let mut tries = 0..TRIES;
        while !is_ready() {
            assert!(tries.next().is_some(), "{}", self.log());
            std::thread::sleep(BETWEEN_TRIES);
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("kube-apiserver.log")).unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a kubeconfig whose default namespace is `namespace`, and returns its path.
    pub(crate) fn kubeconfig(&self, namespace: &str) -> PathBuf {
        let url = format!("https://127.0.0.1:{}", self.port);
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": true}}],
            "users": [{"name": "u", "user": {"token": "admin"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
            "current-context": "x",
        });
        let path = self.folder.path().join(format!("kubeconfig-{namespace}"));
        fs::write(&path, text.to_string()).unwrap();
        path
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            // The process may have exited already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
