//! Tests `admit verify` with the conversion webhook of a definition from a file or a cluster.

use base64::Engine as _;
use serde_json::{Value, json};

use super::command::{Stage, client, ends_with};

const GOOD: &str =
    "convert: {versions: [v1, v2], moves: [{version: v2, from: /spec/size, to: /spec/replicas}]}";
const LOSSY: &str = "convert: {versions: [v1, v2], moves: [{version: v2, from: /spec/size, to: /spec/replicas}], objects: {/spec/color: null}}";

fn version(name: &str, size: &str) -> Value {
    let spec = json!({
        "type": "object", "required": [size], "properties": {
            size: {"type": "integer", "minimum": 2, "maximum": 9},
            "color": {"type": "string", "pattern": "^#[0-9a-f]{6}$"},
            "since": {"type": "string", "format": "date-time"},
        },
        "x-kubernetes-validations": [{"rule": format!("self.{size} % 2 == 0"), "message": "the size must be even"}],
    });
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
}

fn definition(stage: &Stage) -> Value {
    let ca_bundle = base64::engine::general_purpose::STANDARD.encode(stage.fake.ca_bundle());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.g.example.com"},
        "spec": {
            "group": "g.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": stage.fake.url(), "caBundle": ca_bundle},
            }},
            "versions": [version("v1", "size"), version("v2", "replicas")],
        },
    })
}

fn report(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flawless_conversion_webhook_of_a_file_passes() {
    let stage = Stage::with(GOOD).await;
    stage.write("crd.yaml", &[definition(&stage)]);
    let text = ends_with(&stage.verify(&["-c", "crd.yaml"]).await, 0);
    assert!(text.contains("\n9 checks passed, ") && text.contains("\n0 findings; "), "{text}");
    let report = report(&stage.verify(&["-c", "crd.yaml", "-o", "json"]).await);
    let left_out = report["leftOut"].as_object().expect("reasons");
    let reasons: Vec<&String> = left_out.keys().collect();
    let of_rules =
        |reason: &&String| reason.contains("is not valid: spec: ") && reason.ends_with("must be even");
    assert!(reasons.len() == 2 && reasons.iter().all(of_rules), "{reasons:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_lost_by_a_conversion_webhook_are_found() {
    let stage = Stage::with(LOSSY).await;
    stage.write("crd.yaml", &[definition(&stage)]);
    let text = ends_with(&stage.verify(&["-c", "crd.yaml"]).await, 1);
    assert!(text.contains("widgets.g.example.com/conversion"), "{text}");
    assert!(
        text.contains(
            "an object converted from g.example.com/v1 to g.example.com/v2 and back loses /spec/color"
        ),
        "{text}"
    );

    let output = stage.verify(&["-c", "crd.yaml", "--check", "V59", "-o", "json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let report = report(&output);
    let findings = report["checks"][0]["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 2);
    let spec = findings[0]["object"]["spec"].as_object().expect("a spec");
    assert_eq!(spec.keys().collect::<Vec<_>>(), ["color", "size"], "{spec:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_definition_may_come_from_a_cluster() {
    let stage = Stage::with(LOSSY).await;
    let mut serve = tokio::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    let kubeconfig = stage.path("kubeconfig");
    serve.args(["serve", "--kubeconfig-out"]).arg(&kubeconfig);
    serve.stdout(std::process::Stdio::null()).kill_on_drop(true);
    let _serving = serve.spawn().expect("the server starts");
    let client = client(&kubeconfig).await;
    let kind = kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = kube::core::ApiResource::from_gvk(&kind);
    let api: kube::Api<kube::core::DynamicObject> = kube::Api::all_with(client, &resource);
    let object = serde_json::from_value(definition(&stage)).expect("an object");
    api.create(&kube::api::PostParams::default(), &object).await.expect("it is stored");

    let mut command = stage.command(&["--context", "admit", "--check", "V59,V62", "-o", "json"]);
    command.env("KUBECONFIG", &kubeconfig);
    let output = Stage::run(command).await;
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(&output);
    let found: Vec<usize> =
        (0..2).map(|check| report["checks"][check]["findings"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(found, [2, 0]);
    assert_eq!(report["checks"][1]["results"][0]["webhook"], "widgets.g.example.com/conversion");
}
