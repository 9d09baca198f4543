//! Tests what happens when the user interrupts a run.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::command::{Stage, ends_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_run_with_a_report_of_what_was_found() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        // It answers only the first calls.
        let stage =
            Stage::with("first: {calls: 60, of: non-idempotent, then: {timeout: {hang: forever}}}").await;
        let pods: Vec<Value> = (0..100)
            .map(|number| {
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{number}")},
                    "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}})
            })
            .collect();
        stage.write("many.yaml", &pods);
        let arguments = ["-c", "configuration.yaml", "-f", "many.yaml", "--check", "V01", "--jobs", "1"];
        let mut command = stage.command(&[&arguments[..], &["--sarif", "log.sarif"]].concat());
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        stage.fake.wait_for_calls(61, Duration::from_secs(300)).await.expect("the run begins");
        kill_process(Pid::from_child(&running), signal).expect("it runs");
        let output = tokio::task::spawn_blocking(|| running.wait_with_output().expect("it ends"));
        let text = ends_with(&output.await.expect("it ends"), status);
        assert!(text.starts_with("warning: the run was interrupted after "), "{text}");
        assert!(text.contains("\nc/w.example.com: NOT idempotent (1 error)\n"), "{text}");
        assert!(text.contains("\nerror[V01]: "), "{text}");
        let sarif = std::fs::read_to_string(stage.path("log.sarif")).expect("it is written");
        assert!(sarif.contains("\"ruleId\": \"V01\""), "{sarif}");
    }
}
