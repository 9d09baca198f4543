//! Runs the shipped feature about authentication, with the configuration that it requires.

use std::path::Path;
use std::process::Command;

use super::{admission, machine};

/// Runs the complete feature. If it skipped scenarios, the last line of the output would report them.
async fn check(target: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    };
    write("mutating", "users: [{name: '*', user: {token: s3cret}}]");
    write("validating", "users: [{name: '*', user: {username: jane, password: d0e}}]");
    write("admission.json", &admission(folder.path(), "mutating", "validating"));
    let feature = Path::new(env!("CARGO_MANIFEST_DIR")).join("features/authentication.feature");
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.arg("run").arg(feature).args(["--target", target, "--admission-control-config-file"]);
    command.arg(folder.path().join("admission.json")).env("NO_COLOR", "1");
    let output = tokio::task::spawn_blocking(move || command.output().expect("the command runs"));
    let output = output.await.expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().last(), Some("6 passed, 0 failed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_feature_passes_in_process() {
    check("in-process").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_feature_passes_on_kube_apiserver() {
    if machine::has_kube_apiserver() {
        check("envtest").await;
    }
}
