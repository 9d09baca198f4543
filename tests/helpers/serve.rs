//! An `admit serve` that a test runs.

#![allow(dead_code, reason = "each test borrows something else")]

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};

/// A running `admit serve`; dropped means killed.
pub(crate) struct Serve(Child);

impl Serve {
    /// Starts one in `folder` with these flags. The client is that of its kubeconfig.
    pub(crate) async fn start(folder: &Path, flags: &[&str]) -> (Self, kube::Client) {
        Self::start_with(folder, flags, Stdio::inherit()).await
    }

    /// The same, whose standard error is the file `log`.
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
        // It has written the kubeconfig when it says where it listens.
        BufReader::new(output).read_line(&mut String::new()).unwrap();
        (server, kube::Client::try_from(config(folder).await).unwrap())
    }
}

/// The configuration of its client, as the kubeconfig in `folder` says.
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
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
