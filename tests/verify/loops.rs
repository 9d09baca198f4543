//! Tests V49: circular dependencies between webhooks at startup, derived only from configurations.

use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Settings, Severity};
use serde_json::{Value, json};

use super::environment::{configuration, entry, finds, only, passes, run, verdict};

/// Returns the configuration of a webhook behind the Service `webhook` in `namespace`.
///
/// The webhook is called for pods in all namespaces except those in `but`.
fn behind(namespace: &str, but: &[&str]) -> Value {
    let mut configuration =
        configuration("ValidatingWebhookConfiguration", namespace, &[entry(namespace, "", "")]);
    let webhook = &mut configuration["webhooks"][0];
    webhook["clientConfig"] = json!({"service": {"namespace": namespace, "name": "webhook"}});
    webhook["namespaceSelector"] = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": but},
    ]});
    configuration
}

fn with(mut configuration: Value, field: &str, value: Value) -> Value {
    configuration["webhooks"][0][field] = value;
    configuration
}

fn annotated(mut configuration: Value, key: &str, value: &str) -> Value {
    configuration["metadata"]["annotations"] = json!({key: value});
    configuration
}

async fn check(configurations: &[Value]) -> CheckReport {
    only(run("V49", configurations, Vec::new(), Settings::default()).await)
}

fn rules(groups: &[&str], resources: &[&str]) -> Value {
    json!([{"operations": ["*"], "apiGroups": groups, "apiVersions": ["*"], "resources": resources}])
}

#[tokio::test]
async fn v49_finds_two_webhooks_that_wait_for_each_other() {
    let found = check(&[behind("gate", &["gate"]), behind("mesh", &["mesh"])]).await;
    finds(&found, &["gate/webhook, mesh/webhook wait for each other"]);
    let finding = &found.findings[0];
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(
        finding.message,
        "gate/webhook waits: mesh/mesh.example.com is called for pods in gate, needed for its own backend; mesh/webhook waits: \
         gate/gate.example.com is called for pods in mesh, needed for its own backend; once all of them are down, a cluster operator has to delete a configuration by hand"
    );
}

#[tokio::test]
async fn v49_finds_a_longer_loop_and_only_warns_where_labels_may_break_it() {
    let some = |field: &str| {
        let spared = ["a", "b", "c"].into_iter().filter(|namespace| *namespace != field);
        spared.collect::<Vec<_>>()
    };
    let labeled = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
    let configurations = [
        behind("a", &some("b")),
        with(behind("b", &some("c")), "objectSelector", labeled),
        behind("c", &some("a")),
    ];
    let found = check(&configurations).await;
    finds(&found, &["a/webhook, b/webhook, c/webhook wait for each other"]);
    assert_eq!(found.findings[0].severity, Severity::Warning);
    let broken = [configurations[0].clone(), configurations[1].clone()];
    passes(&check(&broken).await);
}

#[tokio::test]
async fn v49_passes_webhooks_that_admit_each_other_and_reports_unknowns() {
    passes(&check(&[behind("gate", &["gate", "mesh"]), behind("mesh", &["mesh"])]).await);
    let open = with(behind("gate", &["gate"]), "failurePolicy", json!("Ignore"));
    let third = behind("third", &["third", "mesh"]);
    passes(&check(&[open, behind("mesh", &["mesh"]), third]).await);

    let elsewhere = with(behind("x", &["x"]), "clientConfig", json!({"url": "https://x.example.com/"}));
    let found =
        check(&[elsewhere.clone(), behind("gate", &["gate", "mesh"]), behind("mesh", &["mesh"])]).await;
    passes(&found);
    assert!(
        found.results[0].notes[0].starts_with("the clientConfig of x/x.example.com has a URL"),
        "{found:#?}"
    );
    assert_eq!(verdict(&check(&[elsewhere]).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v49_is_not_about_one_backend_and_not_about_webhooks_that_fail_open() {
    assert_eq!(verdict(&check(&[behind("gate", &["gate"])]).await).0, Tally::NotApplicable);
    let open = |namespace: &str| with(behind(namespace, &["x"]), "failurePolicy", json!("Ignore"));
    assert_eq!(verdict(&check(&[open("gate"), open("mesh")]).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v49_finds_a_webhook_that_blocks_the_renewal_of_its_certificate() {
    let all = |configuration| with(configuration, "rules", rules(&["*"], &["*/*"]));
    for (configuration, words) in [
        (
            annotated(all(behind("gate", &["gate"])), "cert-manager.io/inject-ca-from", "gate/serving"),
            "is called for pods, replicasets, deployments in cert-manager, needed for cert-manager, which issues",
        ),
        (
            annotated(
                all(behind("gate", &["gate", "cert-manager"])),
                "cert-manager.io/inject-ca-from",
                "pki/serving",
            ),
            "is called for secrets, certificates, certificaterequests in pki, needed for its certificate",
        ),
        (
            annotated(all(behind("gate", &["gate"])), "service.beta.openshift.io/inject-cabundle", "true"),
            "in openshift-service-ca, needed for the Service CA",
        ),
    ] {
        let found = check(&[configuration]).await;
        finds(&found, &["gate/webhook blocks the renewal of its own certificate"]);
        let message = &found.findings[0].message;
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn v49_finds_a_loop_through_the_issuer() {
    let issuer = with(
        behind("cert-manager", &["cert-manager"]),
        "rules",
        rules(&["cert-manager.io"], &["certificates", "certificaterequests"]),
    );
    let issuer = annotated(issuer, "cert-manager.io/inject-ca-from-secret", "cert-manager/webhook-ca");
    // It waits for the certificate. cert-manager's own webhook reviews certificate requests, and waits for its pods.
    let gate = annotated(behind("gate", &["gate"]), "cert-manager.io/inject-ca-from", "gate/serving");
    let found = check(&[issuer.clone(), gate]).await;
    finds(
        &found,
        &[
            "cert-manager/webhook, gate/webhook wait for each other",
            "gate/webhook blocks the renewal of its own certificate",
        ],
    );
    // cert-manager is in the namespace of its webhook.
    let mut moved = issuer.clone();
    moved["webhooks"][0]["name"] = json!("webhook.cert-manager.io");
    moved["webhooks"][0]["clientConfig"]["service"]["namespace"] = json!("pki");
    let gate = annotated(behind("gate", &["gate", "pki"]), "cert-manager.io/inject-ca-from", "gate/serving");
    passes(&check(&[moved, gate]).await);
    let polite = annotated(
        behind("gate", &["gate", "cert-manager"]),
        "cert-manager.io/inject-ca-from",
        "gate/serving",
    );
    passes(&check(&[issuer, polite]).await);
}
