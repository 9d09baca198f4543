//! Tests requests through a chain without running webhooks.

use kubernetes_admission::event::{CallResult, Mismatch};

use super::*;

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    })
}

/// Returns a configuration whose webhook is unreachable: no process listens on port 1.
fn configuration(failure_policy: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nobody"},
        "webhooks": [{
            "name": "nobody.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
            "failurePolicy": failure_policy, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

fn chain() -> Chain {
    Chain::new(Options::default())
}

#[tokio::test]
async fn unmatched_request_is_admitted_with_defaults() {
    let sent = chain().send(&Request::create(pod("web"))).await.unwrap();
    assert_eq!((sent.verdict, sent.code), (Verdict::Admitted, 201));
    assert_eq!(sent.calls().count(), 0);
    let read = sent.read.unwrap();
    assert_eq!(read["spec"]["restartPolicy"], "Always");
    assert_eq!(sent.body["spec"]["containers"], read["spec"]["containers"]);
    // The decoded body does not contain the changes that plugins make.
    assert_eq!((&sent.body["spec"]["priority"], &read["spec"]["priority"]), (&json!(0), &json!(null)));
}

#[tokio::test]
async fn failed_call_is_undecided_or_ignored() {
    for (policy, verdict) in [("Fail", Verdict::Undecided), ("Ignore", Verdict::Admitted)] {
        let chain = chain();
        chain.put(configuration(policy)).unwrap();
        let sent = chain.send(&Request { dry_run: true, ..Request::create(pod("web")) }).await.unwrap();
        assert_eq!(sent.verdict, verdict, "{}", sent.body);
        let call = sent.calls().next().unwrap();
        assert!(matches!(call.result, CallResult::Failed { .. }), "{call:?}");
        assert!(call.reply.is_none());
        let review: Value = serde_json::from_slice(&call.review).unwrap();
        assert_eq!(review["request"]["dryRun"], true);
        assert_eq!(review["request"]["userInfo"]["username"], "kubernetes-admin");
    }
}

#[tokio::test]
async fn stored_objects_affect_requests() {
    let chain = chain();
    let sent = chain.send(&Request::update(pod("web"))).await.unwrap();
    assert_eq!((sent.verdict, sent.code), (Verdict::Denied, 404));
    let put = chain.put(pod("web")).unwrap();
    assert_eq!(put["metadata"]["namespace"], "default");
    assert_eq!(put["status"]["phase"], "Pending");
    let sent = chain.send(&Request::update(pod("web"))).await.unwrap();
    assert_eq!(sent.verdict, Verdict::Admitted, "{}", sent.body);
    assert_eq!(sent.body["metadata"]["uid"], put["metadata"]["uid"]);
    let sent = chain.send(&Request::delete(&pod("web"))).await.unwrap();
    assert_eq!(sent.verdict, Verdict::Admitted, "{}", sent.body);
    let kind = GroupVersionKind::new("", "v1", "Pod");
    assert_eq!(chain.server().take(&kind, "default", "web"), Ok(false));
}

#[tokio::test]
async fn stored_objects_keep_their_identity() {
    let chain = chain();
    let mut old = pod("web");
    old["metadata"]["uid"] = "u".into();
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
    old["status"] = json!({"phase": "Running"});
    for _ in 0..2 {
        let put = chain.put(old.clone()).unwrap();
        assert_eq!(put["metadata"]["uid"], "u");
        assert_eq!(put["metadata"]["creationTimestamp"], "2020-01-01T00:00:00Z");
        assert_eq!(put["status"]["phase"], "Running");
    }
}

#[tokio::test]
async fn namespace_is_created_once() {
    let chain = chain();
    let request = Request { namespace: "shop".to_owned(), ..Request::create(pod("web")) };
    assert_eq!(chain.send(&request).await.unwrap().code, 404);
    assert_eq!(chain.ensure_namespace("shop"), Ok(true));
    assert_eq!(chain.ensure_namespace("shop"), Ok(false));
    assert_eq!(chain.send(&request).await.unwrap().code, 201);
    assert!(chain.ensure_namespace("No Name").is_err());
}

#[tokio::test]
async fn stored_definition_is_served_immediately() {
    let chain = chain();
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1},
    });
    let kind = GroupVersionKind::from_object(&widget);
    let error = chain.send(&Request::create(widget.clone())).await.unwrap_err();
    assert_eq!(error, RequestError::UnknownKind(kind));
    assert_eq!(error.to_string(), r#"no matches for kind "Widget" in version "example.com/v1""#);
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    chain
        .put(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Cluster", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        }))
        .unwrap();
    let sent = chain.send(&Request::create(widget)).await.unwrap();
    assert_eq!(sent.verdict, Verdict::Admitted, "{}", sent.body);
}

#[tokio::test]
async fn connection_is_admitted_without_being_opened() {
    let chain = chain();
    chain.put(pod("web")).unwrap();
    chain.put(configuration("Ignore")).unwrap();
    let request = Request {
        operation: Operation::Connect,
        subresource: "exec".to_owned(),
        body: None,
        query: vec![("command".to_owned(), "sh -c &".to_owned())],
        ..Request::create(pod("web"))
    };
    let sent = chain.send(&request).await.unwrap();
    assert_eq!(sent.verdict, Verdict::Admitted, "{}", sent.body);
    let review: Value = serde_json::from_slice(&sent.calls().next().unwrap().review).unwrap();
    assert_eq!(review["request"]["object"]["command"], json!(["sh -c &"]));
}

#[tokio::test]
async fn proxy_path_is_appended_to_the_url() {
    for (path, expected) in [
        (Some("/metrics"), json!("/metrics")),
        (Some("a b/?c%2F"), json!("/a b/?c%2F")),
        (Some("//a/"), json!("/a/")),
        (Some(""), json!(null)),
        (None, json!(null)),
    ] {
        let chain = chain();
        chain.put(configuration("Ignore")).unwrap();
        let request = Request {
            operation: Operation::Connect,
            subresource: "proxy".to_owned(),
            body: None,
            query: path.map(|path| ("path".to_owned(), path.to_owned())).into_iter().collect(),
            ..Request::create(pod("web"))
        };
        let sent = chain.send(&request).await.unwrap();
        assert_eq!(sent.verdict, Verdict::Admitted, "{}", sent.body);
        let review: Value = serde_json::from_slice(&sent.calls().next().unwrap().review).unwrap();
        assert_eq!(review["request"]["object"]["path"], expected, "{path:?}");
    }
}

#[tokio::test]
async fn invalid_name_stays_one_path_segment() {
    let chain = chain();
    let mut request = Request::delete(&pod("b?c é"));
    let sent = chain.send(&request).await.unwrap();
    assert_eq!(sent.body["message"], r#"pods "b?c é" not found"#);
    request.name.clear();
    assert_eq!(chain.send(&request).await.unwrap_err(), RequestError::NoName);
}

#[tokio::test]
async fn skipped_webhook_is_recorded() {
    let chain = chain();
    let mut configuration = configuration("Fail");
    configuration["webhooks"][0]["objectSelector"] = json!({"matchLabels": {"a": "b"}});
    chain.put(configuration).unwrap();
    let sent = chain.send(&Request::create(pod("web"))).await.unwrap();
    let Some(kubernetes_admission::event::Event::Skipped { mismatch, .. }) = sent.record.events.last() else {
        panic!("{:?}", sent.record.events);
    };
    assert_eq!(*mismatch, Mismatch::ObjectSelector);
}

#[test]
fn invalid_configuration_is_rejected_with_the_field() {
    let status = chain().put(configuration("Maybe")).unwrap_err();
    assert!(status.message.contains("webhooks[0].failurePolicy"), "{}", status.message);
}

#[tokio::test]
async fn overlong_uri_is_an_error() {
    let name = "x".repeat(70_000);
    let error = chain().send(&Request::delete(&pod(&name))).await.unwrap_err();
    assert!(matches!(&error, RequestError::NoUri { bytes, .. } if *bytes > 70_000), "{error}");
}

#[test]
fn definition_with_invalid_names_is_rejected() {
    let chain = chain();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{"name": "v 1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let refused = chain.put(definition).unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("spec.versions[0].name: Invalid value: \"v 1\""), "{}", refused.message);
}
