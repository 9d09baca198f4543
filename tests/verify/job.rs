//! Runs the commands of the example Job's pods locally.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry_of_service, pods};

const JOB: &str = include_str!("../../examples/verify-job.yaml");

fn job() -> Value {
    serde_saphyr::from_str(JOB).expect("the example is YAML")
}

#[test]
fn it_is_a_job_whose_pods_know_their_index() {
    let job = job();
    let typed: k8s_openapi::api::batch::v1::Job = serde_json::from_value(job.clone()).expect("a Job");
    assert_eq!(serde_json::to_value(typed).expect("JSON"), job, "a field that no Job has");
    assert_eq!(job["spec"]["completionMode"], "Indexed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_logs_of_its_pods_become_one_report() {
    let stage = Stage::with("non-idempotent").await;
    let behind = entry_of_service("w", stage.fake.ca_bundle());
    stage.write("configuration.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[behind])]);
    stage.write("objects.yaml", &pods());

    let job = job();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<String> = container["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .skip(1)
        // The test's directory replaces the pod's directory, and there is no cluster network.
        .map(|argument| argument.replace("/verify/", ""))
        .map(|argument| argument.replace("webhook.injector.svc:443", &stage.fake.address().to_string()))
        .chain(["--check=V01".to_owned()])
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let completions = job["spec"]["completions"].as_u64().expect("a number");
    let mut logs = Vec::new();
    for index in 0..completions {
        let mut pod = stage.command(&arguments);
        pod.env("JOB_COMPLETION_INDEX", index.to_string());
        let output = Stage::run(pod).await;
        // A pod without objects in its shard also succeeds.
        ends_with(&output, 0);
        logs.extend(output.stdout);
        logs.extend(output.stderr);
    }

    let mut merge = stage.command(&["merge", "-"]);
    merge.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut merge = merge.spawn().expect("the command starts");
    merge.stdin.take().expect("a pipe").write_all(&logs).expect("the reports are taken");
    let output = merge.wait_with_output().expect("the command ends");
    let text = ends_with(&output, 1);
    assert!(text.contains("NOT idempotent") && text.contains("; 3 objects, "), "{text}");
}
