//! Starts a webhook together with `admit verify`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use super::found::VerificationFindings;
use super::install::Installed;
use super::manifest::Manifest;
use super::ready;

/// The file that is created once a webhook is ready.
const READY: &str = "ready";

/// Runs `admit verify` on the webhook. The webhook uses the API server that the command runs.
pub(crate) fn verify(manifest: &Manifest, installed: &Installed) -> VerificationFindings {
    let stage = Stage::new();
    stage.write_certificate(manifest);
    let mut command = stage.verify(manifest, installed);
    let mut said = BufReader::new(command.0.stderr.take().expect("standard error is piped"));
    wait_for_api_server(&mut said);
    let webhook = stage.start(manifest, installed);
    if let Some(ready) = &manifest.ready {
        let address = SocketAddr::from(([127, 0, 0, 1], stage.ports[0]));
        if let Err(reason) = ready::wait(manifest, ready, address, stage.folder.path()) {
            let log = fs::read_to_string(stage.path("log")).expect("the log is text");
            panic!("{reason}\nThe webhook says:\n{log}");
        }
        File::create(stage.path(READY)).expect("a file");
    }
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("the command writes text");
    let status = command.0.wait().expect("the command ends");
    drop(webhook);
    let log = fs::read_to_string(stage.path("log")).expect("the log is text");
    assert!(status.success(), "{rest}\nThe webhook says:\n{log}");
    let report = fs::read_to_string(stage.path("report.json")).expect("the report is there");
    let masked = report.replace(&format!(":{}", stage.ports[0]), ":PORT");
    let report: harness::verify::Report = serde_json::from_str(&masked).expect("it is a report");
    VerificationFindings::from(report)
}

/// A directory and free ports for a run.
struct Stage {
    folder: TempDir,
    ports: [u16; 3],
}

/// A process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stage {
    fn new() -> Self {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("there is a free port"));
        let ports = listeners.map(|listener| listener.local_addr().expect("it has an address").port());
        Self { folder: tempfile::tempdir().expect("a folder"), ports }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the placeholders in `text`.
    fn fill(&self, text: &str) -> String {
        let [port, other, third] = self.ports.map(|port| port.to_string());
        text.replace("{port}", &port)
            .replace("{other-port}", &other)
            .replace("{third-port}", &third)
            .replace("{folder}", &self.folder.path().to_string_lossy())
    }

    fn write_certificate(&self, manifest: &Manifest) {
        let (namespace, name) = manifest.service.split_once('/').expect("a service is NAMESPACE/NAME");
        let service = format!("{name}.{namespace}");
        let output = admit().args(["certs", "--service", &service, "--out"]).arg(self.folder.path()).output();
        let output = output.expect("the command runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn verify(&self, manifest: &Manifest, installed: &Installed) -> Process {
        let mut command = admit();
        command.arg("verify").arg("-c").arg(manifest.folder().join("configuration.yaml"));
        command.args(manifest.definitions.iter().map(|file| installed.folder.join(file)));
        command.args(["--service", &format!("{}=127.0.0.1:{}", manifest.service, self.ports[0])]);
        command.arg("--ca-file").arg(self.path("ca.crt"));
        command.arg("--api-server-out").arg(self.path("kubeconfig"));
        command.args(["--wait=60", "--fail-on=never", "--output=json"]);
        if manifest.ready.is_some() {
            command.arg("--ready-command").arg(format!("test -e '{}'", self.path(READY).display()));
        }
        let objects = manifest.folder().join("objects.yaml");
        if objects.exists() {
            command.arg("-f").arg(objects);
        } else {
            command.arg("--thorough");
        }
        command.args(&manifest.verify).stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(File::create(self.path("report.json")).expect("a file"));
        Process(command.spawn().expect("the command runs"))
    }

    fn start(&self, manifest: &Manifest, installed: &Installed) -> Process {
        let here = manifest.folder();
        let fill = |text: &String| self.fill(text).replace("{here}", &here.to_string_lossy());
        for (name, text) in &manifest.files {
            fs::write(self.path(name), fill(text)).expect("the file is written");
        }
        let log = File::create(self.path("log")).expect("a file");
        let environment = manifest.environment.iter().map(|(name, value)| (name, fill(value)));
        let mut command = if manifest.in_cluster {
            self.in_pod(&installed.program)
        } else {
            Command::new(&installed.program)
        };
        command.args(&installed.arguments).args(manifest.arguments.iter().map(fill));
        command.envs(installed.environment.iter().map(|(name, value)| (name, value)));
        command.env("KUBECONFIG", self.path("kubeconfig")).envs(environment).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        Process(command.spawn().expect("the webhook runs"))
    }
}

impl Stage {
    /// Returns a command that starts `program` with the files that the kubelet mounts into a pod.
    ///
    /// Only this process can access the files.
    fn in_pod(&self, program: &Path) -> Command {
        let text = fs::read_to_string(self.path("kubeconfig")).expect("the kubeconfig is there");
        let kubeconfig: Value = serde_saphyr::from_str(&text).expect("the kubeconfig is YAML");
        let text =
            |pointer: &str| kubeconfig.pointer(pointer).and_then(Value::as_str).expect("a text").to_owned();
        let authority =
            STANDARD.decode(text("/clusters/0/cluster/certificate-authority-data")).expect("base64");
        fs::write(self.path("account-ca.crt"), authority).expect("the file is written");
        fs::write(self.path("account-token"), text("/users/0/user/token")).expect("the file is written");
        let server = text("/clusters/0/cluster/server");
        let (host, port) = server.trim_start_matches("https://").split_once(':').expect("a host and a port");
        let mut command = alone();
        command.args(["sh", "-ec", IN_POD, "sh"]).arg(program);
        command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
        command
    }
}

/// Mounts the files of the service account, and executes the program in the arguments.
const IN_POD: &str = r#"
mount -t tmpfs none /var/run
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
cp account-ca.crt /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
cp account-token /var/run/secrets/kubernetes.io/serviceaccount/token
exec "$@"
"#;

/// Returns a command with its own mount namespace.
fn alone() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--"]);
    command
}

/// Returns the reason why mount namespaces are not available; `None` if they are available.
pub(crate) fn no_mounts() -> Option<String> {
    match alone().args(["mount", "-t", "tmpfs", "none", "/var/run"]).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare cannot be run: {error}")),
    }
}

fn admit() -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_admit")));
    command.env("NO_COLOR", "1").env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY");
    command
}

/// Waits until the command reports that its API server is ready.
fn wait_for_api_server(said: &mut BufReader<ChildStderr>) {
    let mut line = String::new();
    while !line.contains("KUBECONFIG=") {
        line.clear();
        let length = said.read_line(&mut line).expect("the command writes text");
        assert!(length > 0, "the command ended before its API server was there");
    }
}
