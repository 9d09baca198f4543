//! Runs `admit serve` for a test.

#![allow(dead_code, reason = "each test borrows something else")]

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};

/// A running `admit serve`. It is killed on drop.
pub(crate) struct Serve(Child);

impl Serve {
    /// Starts the server in `folder` with these flags. Returns the server and a client for its kubeconfig.
    pub(crate) async fn start(folder: &Path, flags: &[&str]) -> (Self, kube::Client) {
        Self::start_with(folder, flags, Stdio::inherit()).await
    }

    /// Starts the server with the file `log` as standard error.
    pub(crate) async fn start_logged(folder: &Path, flags: &[&str], log: &Path) -> (Self, kube::Client) {
        Self::start_with(folder, flags, File::create(log).unwrap().into()).await
    }

    async fn start_with(folder: &Path, flags: &[&str], stderr: Stdio) -> (Self, kube::Client) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["serve", "--kubeconfig-out", "kubeconfig"])
            .args(flags)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let server = Self(child);
        // It has written the kubeconfig when it prints its address.
        BufReader::new(output).read_line(&mut String::new()).unwrap();
        (server, kube::Client::try_from(config(folder).await).unwrap())
    }
}

/// Returns the client configuration from the kubeconfig in `folder`.
pub(crate) async fn config(folder: &Path) -> kube::Config {
    let kubeconfig = Kubeconfig::read_from(folder.join("kubeconfig")).unwrap();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // A 503 is an answer to compare, as it is on the target that `Envtest` starts.
    config.default_retry = false;
    config
}

impl Drop for Serve {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
