//! Tests `--ready-command`, `--rotate-command`, and `--stop-command`.
//!
//! These commands control webhooks that run in separate processes.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use super::command::{Stage, ends_with};

/// A running `admit fakes`. It is killed if the test fails before stopping it.
struct Fakes(Child);

impl Drop for Fakes {
    fn drop(&mut self) {
        // The process has exited already, unless the test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fakes {
    /// Starts a webhook for pods, and writes its configuration to `configuration.yaml` in the stage's directory.
    fn beside(stage: &Stage) -> Self {
        let fakes = "{version: 1, webhooks: [{name: w, type: validating, behavior: allow, \
                     namespaceSelector: {}, \
                     rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]}]}";
        std::fs::write(stage.path("fakes.yaml"), fakes).expect("the file is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["fakes", "-f"]).arg(stage.path("fakes.yaml"));
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the fakes start");
        let mut configurations = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        // The stream ends although the fakes continue to run.
        stdout.read_to_string(&mut configurations).expect("the configurations are printed");
        std::fs::write(stage.path("configuration.yaml"), configurations).expect("the file is written");
        Self(child)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_before_the_webhooks_are_ended() {
    let stage = Stage::with("allow").await;
    let mut fakes = Fakes::beside(&stage);
    std::fs::write(stage.path("new.pem"), stage.fake.ca_bundle()).expect("the file is written");
    let stop = format!("kill -s TERM {}", fakes.0.id());
    let base = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V43,V46", "--quiet"];
    let rotate =
        ["--rotate-command", "echo renewed", "--rotate-within", "1", "--rotated-ca-bundle", "new.pem"];
    let stop = ["--stop-command", &stop, "--drain", "1"];
    let output = stage.verify(&[&base[..], &rotate, &stop].concat()).await;
    let text = ends_with(&output, 1);
    // Nothing was renewed, so only the calls to the running webhook count; fakes stop listening immediately.
    assert!(text.contains("]: 1.0 s after the end of --rotate-command"), "{text}");
    assert!(text.contains(" failed: ") && text.contains("connection refused"), "{text}");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        printed.contains("renewed") && !String::from_utf8_lossy(&output.stdout).contains("renewed\n"),
        "{text}"
    );
    assert!(fakes.0.wait().expect("it ends").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_command_is_not_a_finding_and_selected_checks_require_their_options() {
    let stage = Stage::with("allow").await;
    let base = ["-v", "-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V43,V46"];
    let text = ends_with(&stage.verify(&base).await, 6);
    assert!(text.contains("--stop-command") && text.contains("--rotate-command"), "{text}");
    let failing = ["--rotate-command", "exit 7", "--stop-command", "exit 8", "--drain", "0"];
    let text = ends_with(&stage.verify(&[&base[..], &failing].concat()).await, 6);
    assert!(text.contains("--rotate-command: `exit 7`: exit status: 7"), "{text}");
    assert!(text.contains("--stop-command: `exit 8`: exit status: 8"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_is_ready_when_the_command_succeeds() {
    let stage = Stage::with("allow").await;
    let base = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V11", "--ready-command"];
    // The command succeeds the second time.
    let ready = "test -e asked || ! : > asked";
    ends_with(&stage.verify(&[&base[..], &[ready, "--wait", "60"]].concat()).await, 0);
    assert!(stage.path("asked").exists());

    let text =
        ends_with(&stage.verify(&[&base[..], &["echo no >&2; exit 7", "--wait", "1"]].concat()).await, 3);
    let expected = "--ready-command: `echo no >&2; exit 7` has not succeeded within the 1 s of --wait: exit status: 7: no";
    assert!(text.contains(expected), "{text}");
    let text = ends_with(&stage.verify(&[&base[..], &["true"]].concat()).await, 2);
    assert!(text.contains("--wait <SECONDS>"), "{text}");
}
