//! Checks that findings with the same cause are reported as a single finding.

use fake_webhooks::{Behavior, Fake, FakeWebhook};
use harness::verify::report::{Finding, Report};
use harness::verify::{Settings, Severity, checks};
use serde_json::{Value, json};

use super::environment::{configuration, entry, pods, run_checks};

/// Returns the report of all checks for a mutating webhook that sends these operations.
async fn report(operations: Value) -> Report {
    report_of(json!({"patch": {"operations": operations}})).await
}

async fn report_of(behavior: Value) -> Report {
    let ids: Vec<&str> = checks::ALL.iter().map(|check| check.id).collect();
    report_of_checks(&ids, behavior).await
}

async fn report_of_checks(ids: &[&str], behavior: Value) -> Report {
    let checks: Vec<_> = ids.iter().map(|id| checks::find(id).expect("there is such a check")).collect();
    let behavior: Behavior = serde_json::from_value(behavior).expect("a behavior");
    let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the fake starts");
    let webhook = entry("w", &fake.url(), fake.ca_bundle());
    let configurations = [configuration("MutatingWebhookConfiguration", "a", &[webhook])];
    run_checks(&checks, &configurations, pods(), Settings::default(), &[]).await
}

/// Returns the findings of checks that send objects, except for notes, by check.
fn grave(report: &Report) -> Vec<(&str, &Finding)> {
    let ids = ["V03", "V04", "V08", "V09", "V10", "V14", "V17", "V18", "V19", "V21", "V34", "V58"];
    let found = report
        .findings()
        .filter(|(check, finding)| ids.contains(&check.id.as_str()) && finding.severity > Severity::Note);
    found.map(|(check, finding)| (check.id.as_str(), finding)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_replaces_the_whole_object_has_one_error() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}});
    let report = report(json!([{"op": "replace", "path": "", "value": pod}])).await;
    let found = grave(&report);
    let ids: Vec<&str> = found.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["V03"], "{found:#?}");
    let (_, cause) = found[0];
    for id in ["V03", "V08", "V10", "V14", "V17"] {
        assert!(cause.consequences.iter().any(|it| it.check == id), "{id}: {:#?}", cause.consequences);
    }
    // The checks did not pass, although they list no finding.
    let v14 = report.checks.iter().find(|check| check.id == "V14").expect("it is there");
    assert_eq!(v14.results[0].verdict, harness::verify::report::Tally::Found);
    assert_eq!(report.cause_of(v14, "a/a.example.com").map(|(check, _)| check.id.as_str()), None);
    assert_eq!(report.cause_of(v14, "a/w.example.com").map(|(check, _)| check.id.as_str()), Some("V03"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_rejects_comes_first() {
    let report = report(json!([{"op": "remove", "path": "/spec/containers"}])).await;
    let found = grave(&report);
    assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["V19"], "{found:#?}");
    let (_, cause) = found[0];
    assert!(cause.message.starts_with("the API server rejects the result: "), "{}", cause.message);
    assert!(cause.consequences.iter().any(|it| it.check == "V21"), "{:#?}", cause.consequences);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_rejects_on_an_update_comes_first() {
    let env =
        json!([{"op": "add", "path": "/spec/containers/0/env", "value": [{"name": "A", "value": "b"}]}]);
    let behavior =
        json!({"when": {"if": {"operations": ["UPDATE"]}, "then": {"patch": {"operations": env}}}});
    let report = report_of(behavior).await;
    let found = grave(&report);
    assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["V09"], "{found:#?}");
    let (_, cause) = found[0];
    assert!(
        cause.message.starts_with("the API server rejects a second apply: ")
            && cause.message.ends_with("; without the webhooks' changes, it does not report this error"),
        "{}",
        cause.message
    );
    assert!(cause.consequences.iter().any(|it| it.check == "V34"), "{:#?}", cause.consequences);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_type_meta_is_one_finding() {
    let report =
        report(json!([{"op": "remove", "path": "/apiVersion"}, {"op": "remove", "path": "/kind"}])).await;
    let found = grave(&report);
    assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["V18"], "{found:#?}");
}

/// By chance, a webhook that sometimes skips an object may seem to skip it because of another webhook.
#[tokio::test(flavor = "multi_thread")]
async fn responses_of_a_nondeterministic_webhook_are_not_compared() {
    for period in [19, 23, 25, 29, 31, 37, 41] {
        let cycle = [vec![json!("sidecar"); period - 1], vec![json!("allow")]].concat();
        let report = report_of_checks(&["V02", "V11", "V21"], json!({"cycle": cycle})).await;
        let found: Vec<&str> = report.findings().map(|(check, _)| check.id.as_str()).collect();
        assert!(!found.contains(&"V02") && !found.contains(&"V21"), "period {period}: {found:?}");
        let not_checked = &report.checks[0].results[0].not_checked;
        let reasons: Vec<&str> = not_checked.keys().map(String::as_str).collect();
        assert!(reasons.iter().all(|reason| reason.ends_with("see V11")), "{reasons:?}");
    }
}
