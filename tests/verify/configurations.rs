//! Tests the static checks of all configurations together: V52 and V56.

use harness::verify::Settings;
use harness::verify::report::{CheckReport, Tally};
use serde_json::{Value, json};

use super::environment::{configuration, entry, finds, only, passes, run, verdict};

/// Returns the result of a check for mutating webhooks that match Pods and have these additional fields.
///
/// Their configurations are called `a`, `b`, and so on.
async fn check(id: &str, webhooks: &[Value]) -> CheckReport {
    let configurations: Vec<Value> = webhooks
        .iter()
        .zip('a'..='z')
        .map(|(fields, name)| {
            let name = name.to_string();
            let mut webhook = entry(&name, &format!("https://{name}.example.com/"), "");
            for (field, value) in fields.as_object().into_iter().flatten() {
                webhook[field] = value.clone();
            }
            configuration("MutatingWebhookConfiguration", &name, &[webhook])
        })
        .collect();
    only(run(id, &configurations, Vec::new(), Settings::default()).await)
}

fn labeled(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

#[tokio::test]
async fn v52_finds_timeouts_that_add_up() {
    let webhooks = [
        json!({"timeoutSeconds": 10, "reinvocationPolicy": "IfNeeded"}),
        json!({"timeoutSeconds": 5}),
        json!({"timeoutSeconds": 10, "objectSelector": labeled("app", "Exists", &[])}),
    ];
    let found = check("V52", &webhooks).await;
    finds(&found, &["timeouts add up"]);
    assert_eq!(
        found.findings[0].message,
        "for CREATE of pods, labeled app=yes, the API server may wait for a/a.example.com 10 s twice, \
         b/b.example.com 5 s, c/c.example.com 10 s"
    );
    let twice = json!({"timeoutSeconds": 15, "reinvocationPolicy": "IfNeeded"});
    finds(&check("V52", &[twice]).await, &["timeouts add up"]);
}

#[tokio::test]
async fn v52_passes_timeouts_that_no_request_meets_together() {
    passes(&check("V52", &[json!({"timeoutSeconds": 14, "reinvocationPolicy": "IfNeeded"})]).await);
    let apart = ["x", "y", "z"]
        .map(|team| json!({"timeoutSeconds": 14, "namespaceSelector": labeled("team", "In", &[team])}));
    passes(&check("V52", &apart).await);
    assert_eq!(verdict(&check("V52", &[json!({"rules": []})]).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v52_passes_the_long_timeout_of_a_single_call() {
    passes(&check("V52", &[json!({"timeoutSeconds": 30})]).await);
    // Together with a webhook that is called for the same requests, the timeouts add up.
    finds(
        &check("V52", &[json!({"timeoutSeconds": 30}), json!({"timeoutSeconds": 1})]).await,
        &["timeouts add up"],
    );
}

#[tokio::test]
async fn v56_finds_labels_for_which_a_product_is_called_twice() {
    let of_product = |name: &str, namespaces: Value, objects: Value| {
        let name = format!("{name}.sidecar-injector.example.com");
        json!({"name": name, "namespaceSelector": namespaces, "objectSelector": objects})
    };
    let webhooks = [
        of_product("namespace", labeled("inject", "In", &["yes"]), json!({})),
        of_product("object", json!({}), labeled("inject", "In", &["yes"])),
    ];
    let found = check("V56", &webhooks).await;
    finds(
        &found,
        &["a/namespace.sidecar-injector.example.com and b/object.sidecar-injector.example.com overlap"],
    );
    let message = &found.findings[0].message;
    assert!(
        message
            .ends_with("both called for CREATE of pods in a namespace with inject=yes, labeled inject=yes"),
        "{message}"
    );
}

#[tokio::test]
async fn v56_finds_a_handler_that_is_called_twice() {
    let same = json!({"url": "https://injector.example.com/inject"});
    let found = check("V56", &[json!({"clientConfig": same}), json!({"clientConfig": same})]).await;
    finds(&found, &["a/a.example.com and b/b.example.com overlap"]);
}

#[tokio::test]
async fn v56_passes_a_product_that_divides_the_requests_and_is_not_about_two() {
    let same = json!({"url": "https://injector.example.com/inject"});
    let webhooks = [
        json!({"clientConfig": same, "namespaceSelector": labeled("inject", "In", &["yes"])}),
        json!({"clientConfig": same, "namespaceSelector": labeled("inject", "NotIn", &["yes"])}),
    ];
    passes(&check("V56", &webhooks).await);
    assert_eq!(verdict(&check("V56", &[json!({}), json!({})]).await).0, Tally::NotApplicable);
}
