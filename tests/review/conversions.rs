//! Tests the output about the conversion webhooks of custom resource definitions.

use base64::Engine as _;
use expect_test::{Expect, expect};
use fake_webhooks::{Behavior, Fake, FakeWebhook};
use serde_json::{Value, json};

use super::files::{Files, fakes, files};

const WIDGET: &str = "\
apiVersion: g.example.com/v2
kind: Widget
metadata: {name: small, namespace: default}
spec: {replicas: 3}
";

fn definition(fake: &FakeWebhook) -> String {
    let ca_bundle = base64::engine::general_purpose::STANDARD.encode(fake.ca_bundle());
    let version = |name: &str| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.g.example.com"},
        "spec": {
            "group": "g.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": fake.url(), "caBundle": ca_bundle},
            }},
            "versions": [version("v1"), version("v2")],
        },
    });
    definition.to_string()
}

async fn converting(convert: Value) -> (FakeWebhook, Files) {
    let behavior: Behavior = serde_json::from_value(json!({"convert": convert})).unwrap();
    let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap();
    let policy = fakes(&["name: policy, type: validating, behavior: allow"]);
    let definition = definition(&fake);
    let files = files([("widget.yaml", WIDGET), ("definition.yaml", &definition), ("fakes.yaml", &policy)]);
    (fake, files)
}

async fn check(convert: Value, status: i32, expected: Expect) {
    let (_fake, files) = converting(convert).await;
    let review = move || files.review("-f widget.yaml --with definition.yaml --fakes fakes.yaml");
    tokio::task::spawn_blocking(review).await.unwrap().check(status, &expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn conversions_are_shown_with_their_versions() {
    let moves = json!({"moves": [{"version": "v2", "from": "/spec/size", "to": "/spec/replicas"}]});
    check(
        moves,
        0,
        expect![[r#"
        widget.g.example.com/small created

        Webhooks
          validating
            ok policy.fakes.local  N ms  allowed

        Conversions
            ok widgets.g.example.com  N ms  default/small from g.example.com/v2 to g.example.com/v1
            ok widgets.g.example.com  N ms  default/small from g.example.com/v1 to g.example.com/v2

        Object
          4 changes by the server (-v shows them)

    "#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversion_that_fails_is_shown_with_the_reason() {
    check(json!({"fail": "not today"}), 3, expect![[r#"
        error: conversion webhook for g.example.com/v2, Kind=Widget failed: not today
          = request: CREATE Widget default/small (widget.yaml:1)
          = status: 500
          = why: Conversion webhooks have no failure policy: every request that needs the conversion fails.
          = help: common causes: (1) the webhook returned the result Failure with this message; see its log;
                  (2) the object was stored in a version or with fields that the webhook does not support
          = docs: admit explain-error MESSAGE

        Webhooks
          validating
            ok policy.fakes.local  N ms  allowed

        Conversions
            x  widgets.g.example.com  N ms  default/small from g.example.com/v2 to g.example.com/v1: conversion webhook for g.example.com/v2, Kind=Widget failed: not today

    "#]]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_the_conversions_of_a_report() {
    let (_fake, files) = converting(json!({"fail": "not today"})).await;
    let report = move || files.report("-f widget.yaml --with definition.yaml --fakes fakes.yaml");
    let mut report = tokio::task::spawn_blocking(report).await.unwrap();
    let conversion = &mut report["conversions"][0];
    assert!(conversion["durationMs"].take().as_f64().unwrap() > 0.0);
    let message = "conversion webhook for g.example.com/v2, Kind=Widget failed: not today";
    let expected = json!([{
        "definition": "widgets.g.example.com", "namespace": "default", "name": "small",
        "from": "g.example.com/v2", "to": "g.example.com/v1", "durationMs": null, "converted": false,
        "message": message,
    }]);
    assert_eq!(report["conversions"], expected);
}
