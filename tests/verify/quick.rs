//! Tests `admit verify --quick`.

use serde_json::{Value, json};

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry};

#[tokio::test(flavor = "multi_thread")]
async fn quick_runs_the_checks_about_reinvocation_and_dry_runs_and_reports_the_others_as_skipped() {
    let stage = Stage::with("non-idempotent").await;
    let arguments = ["-c", "configuration.yaml", "--quick", "-o", "json"];
    let output = stage.verify(&arguments).await;
    ends_with(&output, 1);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("a list");
    let ran = checks.iter().filter(|check| check["skipped"].is_null());
    let ran: Vec<&str> = ran.filter_map(|check| check["id"].as_str()).collect();
    assert_eq!(ran, ["V01", "V02", "V03", "V05", "V07", "V08", "V11", "V15", "V38", "V39", "V40"]);
    assert_eq!(checks[0]["results"][0]["verdict"], "found");
    assert!(checks.iter().all(|it| it["skipped"].is_null() || it["skipped"] == "skipped by --quick"));
    let text = ends_with(&stage.verify(&["-c", "configuration.yaml", "--quick"]).await, 1);
    assert!(
        text.contains(": NOT idempotent")
            && text.contains("note: c/w.example.com: dry runs were not checked: "),
        "{text}"
    );
    ends_with(&stage.verify(&["-c", "configuration.yaml", "--quick", "--thorough"]).await, 2);
    ends_with(&stage.verify(&["-c", "configuration.yaml", "--quick", "--check", "V01"]).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn quick_run_finds_a_patch_that_does_not_apply_to_objects_without_labels() {
    let stage =
        Stage::with("patch: {operations: [{op: add, path: /metadata/labels/team, value: blue}]}").await;
    let text = ends_with(&stage.verify(&["-c", "configuration.yaml", "--quick"]).await, 1);
    assert!(text.starts_with("c/w.example.com: patches do NOT apply"), "{text}");
    assert!(text.contains("error[V15]: the patch does not apply to the object as it is"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_on_a_failing_webhook_has_the_http_status_and_the_start_of_the_body() {
    let stage = Stage::with("raw: {status: 500, json: {error: 'boom; no \"a\": b'}}").await;
    let cause =
        r#"could not be checked: HTTP status 500, the response begins with: {"error":"boom; no \"a\": b"}"#;
    for selected in [&["--quick"][..], &["--check", "V01"]] {
        let arguments = [&["-c", "configuration.yaml", "-f", "pods.yaml"][..], selected].concat();
        let text = ends_with(&stage.verify(&arguments).await, 6);
        assert!(text.starts_with(&format!("c/w.example.com: {cause}\n")), "{text}");
    }
    // The body may quote the values of a Secret.
    let mut secrets = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    secrets["rules"][0]["resources"] = json!(["secrets"]);
    stage.write("secrets.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[secrets])]);
    stage.write("secret.yaml", &[json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})]);
    let text = ends_with(&stage.verify(&["-c", "secrets.yaml", "-f", "secret.yaml", "--quick"]).await, 6);
    assert!(text.contains("could not be checked: HTTP status 500\n") && !text.contains("boom"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn valid_response_to_some_calls_keeps_the_body_of_the_others_in_one_remark() {
    let stage = Stage::with(
        "when: {if: {equals: {/metadata/name: bare}}, then: {raw: {status: 500, json: {error: 'a; b'}}}, otherwise: allow}",
    )
    .await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01"];
    let text = ends_with(&stage.verify(&arguments).await, 6);
    let expected = "HTTP status 500, the response begins with: {\"error\":\"a; b\"}\n  = help: run with --check V22 to examine";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn quick_run_for_all_kinds_makes_fewer_than_18_calls_per_object() {
    let stage = Stage::with("mutate: [{set: {/metadata/labels/mine: 'yes'}}]").await;
    let mut wide = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    wide["rules"] = json!([{"operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
    stage.write("wide.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[wide])]);
    let output = stage.verify(&["-c", "wide.yaml", "--quick", "-o", "json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let count = |field: &str| report[field].as_u64().expect("a number");
    assert!(count("objects") > 100 && count("calls") < 18 * count("objects"), "{report:#}");
    let verdict = |id: &str| {
        let checks = report["checks"].as_array().expect("a list");
        let check = checks.iter().find(|check| check["id"] == id).expect("it ran");
        check["results"][0]["verdict"].clone()
    };
    assert_eq!(["V08", "V11"].map(verdict), ["passed"; 2]);
    // Objects of the user are tried as often as without --quick.
    let calls = async |more: &[&str]| {
        let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "-o", "json"];
        let output = stage.verify(&[&arguments[..], more].concat()).await;
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["webhooks"]["c/w.example.com"]["called"].clone()
    };
    let same = ["--check", "V01,V02,V03,V05,V07,V08,V11,V15,V38,V39,V40"];
    assert_eq!(calls(&["--quick"]).await, calls(&same).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_a_service_without_an_address_are_not_counted() {
    let stage = Stage::with("allow").await;
    let mut behind = entry("w", "", "");
    behind["clientConfig"] = json!({"service": {"namespace": "n", "name": "s"}});
    stage.write("behind.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[behind])]);
    let output = stage.verify(&["-c", "behind.yaml", "--quick", "-o", "json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["calls"], report["objects"].as_u64() > Some(1)), (&json!(0), true), "{report:#}");
}
