//! Tests invalid files for `--admission-control-config-file`: admit and kube-apiserver report the same errors.

use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::helpers::machine;

const CONFIGURATIONS: &str = include_str!("configurations.yaml");

/// An invalid configuration in `configurations.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refused {
    pub(crate) name: String,
    /// The content of the file; `None` if the entry contains only the configuration of a plugin.
    file: Option<Value>,
    plugin: Option<Value>,
    message: String,
}

pub(crate) fn all() -> Vec<Refused> {
    serde_saphyr::from_str(CONFIGURATIONS).expect("the file can be read")
}

async fn check(target: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let feature = folder.path().join("a.feature");
    let scenario = "Feature: f\n  Scenario: s\n    When a pod is created\n    Then the request is admitted\n";
    std::fs::write(&feature, scenario).expect("it is written");
    let all = all();
    assert!(!all.is_empty());
    for Refused { name, file, plugin, message } in all {
        let file = file.unwrap_or_else(|| {
            let plugin = json!({"name": "MutatingAdmissionWebhook", "configuration": plugin});
            json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [plugin]})
        });
        let path = folder.path().join("admission.json");
        std::fs::write(&path, file.to_string()).expect("it is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.arg("run").arg(&feature).args(["--target", target]).env("NO_COLOR", "1");
        command.arg("--admission-control-config-file").arg(path);
        let output = tokio::task::spawn_blocking(move || command.output().expect("the command runs"));
        let output = output.await.expect("it ends");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name}: {text}");
        // kube-apiserver quotes the error in its log.
        let text = text.replace("\\\\\\\"", "\"").replace("\\\"", "\"");
        assert!(text.contains(&message), "{name}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_rejects_an_invalid_file() {
    check("in-process").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_rejects_it_in_the_same_words() {
    if machine::has_kube_apiserver() {
        check("envtest").await;
    }
}
