//! Tests requests through a chain without running webhooks.

use admission_webhook_client::CallableWebhooks;
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

/// Returns a chain that calls no webhooks, with a mutating and a validating webhook for the requests.
///
/// A policy denies `ConfigMap`s with the key `denied`.
fn offline(types: &[&str], failure_policy: &str) -> Chain {
    let chain =
        Chain::new(Options { callable_webhooks: Some(CallableWebhooks::default()), ..Options::default() });
    for kind in types {
        let mut configuration = configuration(failure_policy);
        configuration["kind"] = format!("{kind}WebhookConfiguration").into();
        configuration["webhooks"][0]["rules"][0]["resources"] = json!(["configmaps"]);
        chain.put(configuration).unwrap();
    }
    let rule =
        json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let expression =
        "request.operation == 'CREATE' ? !('denied' in object.data) : !('denied' in oldObject.data)";
    let (policy, binding) = (
        json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}),
        json!({"policyName": "p", "validationActions": ["Deny"]}),
    );
    for (kind, spec) in [("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)]
    {
        let api_version = "admissionregistration.k8s.io/v1";
        chain
            .put(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "p"}, "spec": spec}))
            .unwrap();
    }
    chain
}

fn config_map(namespace: &str, key: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": namespace}, "data": {key: ""},
    })
}

/// Returns the verdict, the provisional verdict, and the number of calls on which it depends.
async fn outcome(chain: &Chain, request: &Request) -> (Verdict, Verdict, usize) {
    let sent = chain.send(request).await.unwrap();
    assert!(sent.calls().all(|called| matches!(called.result, CallResult::Unknown)));
    assert_eq!(sent.audit_annotations.keys().filter(|key| key.contains("webhook")).count(), 0);
    (sent.verdict, sent.provisional, sent.open_calls(request.operation).count())
}

#[tokio::test]
async fn request_is_conditional_on_webhooks_that_are_not_called() {
    use Verdict::{Admitted, Conditional, Denied};
    const BOTH: [&str; 2] = ["Mutating", "Validating"];
    const UNKNOWN_NAMESPACE: &str = "missing";
    for (types, namespace, key, expected) in [
        (&BOTH[..], "default", "a", (Conditional, Admitted, 2)),
        (&BOTH[1..], "default", "a", (Conditional, Admitted, 1)),
        (&BOTH[..0], "default", "a", (Admitted, Admitted, 0)),
        // A mutating webhook could remove what the policy denies. A validating webhook could not.
        (&BOTH[..], "default", "denied", (Conditional, Denied, 1)),
        (&BOTH[1..], "default", "denied", (Denied, Denied, 0)),
        // The plugin NamespaceLifecycle rejects the request before any webhook.
        (&BOTH[..], UNKNOWN_NAMESPACE, "a", (Denied, Denied, 0)),
    ] {
        for policy in ["Fail", "Ignore"] {
            let chain = offline(types, policy);
            let found = outcome(&chain, &Request::create(config_map(namespace, key))).await;
            assert_eq!(found, expected, "{types:?} {policy} {namespace} {key}");
        }
    }
}

#[tokio::test]
async fn denial_after_validating_webhooks_is_definite() {
    let chain = offline(&["Validating"], "Fail");
    let hard = json!({"configmaps": "0"});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard}, "status": {"hard": hard, "used": hard},
    });
    chain.put(quota).unwrap();
    let request = Request::create(config_map("default", "a"));
    let sent = chain.send(&request).await.unwrap();
    assert_eq!((sent.verdict, sent.calls().count()), (Verdict::Denied, 1), "{}", sent.body);
    assert_eq!(sent.open_calls(request.operation).count(), 0);
}

#[tokio::test]
async fn webhook_cannot_change_a_deletion() {
    let chain = offline(&["Mutating"], "Fail");
    let denied = config_map("default", "denied");
    chain.put(denied.clone()).unwrap();
    assert_eq!(outcome(&chain, &Request::delete(&denied)).await, (Verdict::Denied, Verdict::Denied, 0));
    let allowed = config_map("default", "a");
    chain.put(allowed.clone()).unwrap();
    let expected = (Verdict::Conditional, Verdict::Admitted, 1);
    assert_eq!(outcome(&chain, &Request::delete(&allowed)).await, expected);
}

#[tokio::test]
async fn dry_run_is_rejected_for_side_effects_of_a_webhook_that_is_not_called() {
    let chain = offline(&[], "Fail");
    let mut configuration = configuration("Ignore");
    configuration["apiVersion"] = "admissionregistration.k8s.io/v1beta1".into();
    configuration["webhooks"][0]["sideEffects"] = "Some".into();
    chain.server().put_stored(configuration).unwrap();
    let sent =
        chain.send(&Request { dry_run: true, ..Request::create(config_map("default", "a")) }).await.unwrap();
    assert_eq!(sent.verdict, Verdict::Denied);
    assert!(sent.body["message"].as_str().unwrap().contains("does not support dry run"), "{}", sent.body);
}

#[tokio::test]
async fn only_the_listed_url_is_called() {
    let callable =
        CallableWebhooks { urls: ["https://127.0.0.1:1/".to_owned()].into(), ..Default::default() };
    let chain = Chain::new(Options { callable_webhooks: Some(callable), ..Options::default() });
    chain.put(configuration("Fail")).unwrap();
    let mut other = configuration("Fail");
    other["metadata"]["name"] = "other".into();
    other["webhooks"][0]["clientConfig"]["url"] = "https://127.0.0.1:1/other".into();
    chain.put(other).unwrap();
    let sent = chain.send(&Request::create(pod("web"))).await.unwrap();
    let results: Vec<bool> =
        sent.calls().map(|called| matches!(called.result, CallResult::Unknown)).collect();
    let names: Vec<&str> = sent.calls().map(|called| called.webhook.configuration.as_str()).collect();
    let unknown = names.iter().zip(&results).find(|(_, is_unknown)| **is_unknown).map(|(name, _)| *name);
    assert_eq!((results.len(), unknown), (2, Some("other")), "{names:?}");
    assert_eq!(sent.verdict, Verdict::Undecided, "the call to the listed URL fails");
}
