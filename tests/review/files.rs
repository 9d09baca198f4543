//! Runs the `admit` binary in its own directory.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use expect_test::Expect;
use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: web, image: nginx}]}
";

/// A temporary directory with files, in which the command runs.
pub(crate) struct Files(TempDir);

/// The exit status and the output of the command.
pub(crate) struct CommandOutput {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn files<const COUNT: usize>(files: [(&str, &str); COUNT]) -> Files {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Files(folder)
}

impl Files {
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn review(&self, line: &str) -> CommandOutput {
        self.review_with_input(line, "")
    }

    pub(crate) fn review_with_input(&self, line: &str, input: &str) -> CommandOutput {
        let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
            .arg("review")
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        CommandOutput {
            status: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the command with `-o json`, and returns its only report.
    pub(crate) fn report(&self, line: &str) -> Value {
        let said = self.review(&format!("{line} -o json"));
        serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.stderr))
    }
}

impl CommandOutput {
    #[track_caller]
    pub(crate) fn check(&self, status: i32, expected: &Expect) {
        let masked = Regex::new(r"\d+ ms|\d\.\d s").unwrap().replace_all(&self.stdout, "N ms");
        let masked = Regex::new(r"127\.0\.0\.1:\d+").unwrap().replace_all(&masked, "127.0.0.1:PORT");
        expected.assert_eq(&masked);
        assert_eq!((self.status, self.stderr.as_str()), (status, ""));
    }
}

/// Returns a fakes file whose webhooks match all objects that the tests send.
pub(crate) fn fakes(webhooks: &[&str]) -> String {
    let rules = "rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*']}]";
    let entries: Vec<String> = webhooks.iter().map(|webhook| format!("- {{{webhook}, {rules}}}\n")).collect();
    format!("version: 1\nwebhooks:\n{}", entries.concat())
}

pub(crate) fn configuration(kind: &str, client_config: &str, fields: &str) -> String {
    format!(
        "\
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata: {{name: hooks}}
webhooks:
- name: hook.example.com
  clientConfig: {client_config}
  rules: [{{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*']}}]
  sideEffects: None
  admissionReviewVersions: [v1]
{fields}"
    )
}

/// The `clientConfig` of an unreachable webhook: nothing listens on port 1.
pub(crate) const NOWHERE: &str = "{url: 'https://127.0.0.1:1/'}";
