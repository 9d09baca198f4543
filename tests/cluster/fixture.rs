//! Provides the cluster for a test, and runs commands on it.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;

use crate::helpers::machine;

/// A cluster with a namespace and a fakes file that only one test uses.
pub(crate) struct Cluster {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) kubectl: PathBuf,
    namespace: &'static str,
    pub(crate) folder: tempfile::TempDir,
}

impl Cluster {
    /// Returns the test cluster. If there is none, prints the reason and returns `None`.
    pub(crate) fn of_tests(namespace: &'static str) -> Option<Self> {
        let Some(kubeconfig) = std::env::var_os("ADMIT_TEST_CLUSTER") else {
            machine::skipped("ADMIT_TEST_CLUSTER does not name the kubeconfig of a cluster for tests");
            return None;
        };
        let kubectl = machine::kubectl_for_a_cluster()?;
        let folder = tempfile::tempdir().unwrap();
        Some(Self { kubeconfig: kubeconfig.into(), kubectl, namespace, folder })
    }

    pub(crate) fn command(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        let output = command.args(arguments).env("KUBECONFIG", &self.kubeconfig).output().unwrap();
        print!("{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    pub(crate) fn admit(&self, arguments: &[&str]) -> Output {
        let started = Instant::now();
        let mut all = vec!["fakes"];
        all.extend(arguments);
        all.extend(["--namespace", self.namespace]);
        let output = self.command(env!("CARGO_BIN_EXE_admit"), &all);
        println!("{:.1} s: admit fakes {}", started.elapsed().as_secs_f64(), arguments.join(" "));
        output
    }

    /// Runs `admit fakes deploy` with `fakes`.
    pub(crate) fn deploy(&self, fakes: &str, arguments: &[&str]) -> Output {
        let file = self.folder.path().join("fakes.yaml");
        fs::write(&file, fakes).unwrap();
        let mut all = vec!["deploy", "-f", file.to_str().unwrap()];
        all.extend(arguments);
        self.admit(&all)
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Output {
        self.command(&self.kubectl, arguments)
    }

    pub(crate) fn get(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["get", "-o", "json"];
        all.extend(arguments);
        let output = self.kubectl(&all);
        assert!(output.status.success(), "kubectl {}", all.join(" "));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns the names of all objects of the deployment, of any kind and in any namespace.
    pub(crate) fn left(&self) -> String {
        let kinds = self.kubectl(&["api-resources", "--verbs=list", "--output=name"]);
        let kinds = String::from_utf8(kinds.stdout).unwrap();
        let kinds: Vec<_> = kinds.lines().filter(|kind| !kind.starts_with("componentstatuses")).collect();
        assert!(kinds.len() > 30, "{kinds:?}");
        let labels = format!("app.kubernetes.io/instance={}", self.namespace);
        let all = ["get", &kinds.join(","), "--all-namespaces", "-l", &labels, "-o", "name"];
        let found = self.kubectl(&all);
        assert!(found.status.success());
        String::from_utf8(found.stdout).unwrap()
    }

    /// Deletes the fakes, checks that no objects remain, and returns the standard error of the command.
    pub(crate) fn delete(&self) -> String {
        let deleted = self.admit(&["delete"]);
        assert!(deleted.status.success());
        assert_eq!(self.left(), "");
        String::from_utf8(deleted.stderr).unwrap()
    }
}

/// Cleans up after a failed test, so that the next run begins with a clean cluster.
impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let target = format!("{}-target", self.namespace);
            self.command(env!("CARGO_BIN_EXE_admit"), &["fakes", "delete", "-n", self.namespace]);
            self.kubectl(&["delete", "namespace", "--ignore-not-found", self.namespace, &target]);
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a fakes file with a unique configuration name. Its webhooks match only the namespace of their test.
pub(crate) fn fakes(name: &str, webhooks: &[&str]) -> String {
    let selector =
        format!("namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {name}-target}}}}");
    let webhooks: Vec<_> = webhooks.iter().map(|fields| format!("- {{{fields}, {selector}}}\n")).collect();
    format!("version: 1\nname: {name}\nwebhooks:\n{}", webhooks.concat())
}
