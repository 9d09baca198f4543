//! Tests that objects and options become the expected requests.

use clap::Parser as _;
use harness::chain::Chain;
use serde_json::json;

use super::*;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    review: Review,
}

fn arguments(line: &str) -> Review {
    let words = ["review", "-f", "f", "-c", "c"].into_iter().chain(line.split_whitespace());
    Line::try_parse_from(words).unwrap().review
}

fn document(object: Value) -> Document {
    Document { place: DocumentLocation { file: "f".to_owned(), line: 1 }, object }
}

fn object(kind: &str, api_version: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": {"replicas": 3}})
}

fn deployment() -> Value {
    object("Deployment", "apps/v1")
}

fn planned(line: &str, under_review: Value, old: &[Value]) -> Result<Planned, String> {
    let old: Vec<Document> = old.iter().cloned().map(document).collect();
    let chain = Chain::new(harness::server::Options::default());
    let mut planned = plan(&arguments(line), vec![document(under_review)], &old, chain.server())
        .map_err(|failure| failure.to_string())?;
    assert_eq!(planned.len(), 1);
    Ok(planned.remove(0))
}

#[track_caller]
fn check_wrong(line: &str, under_review: Value, old: &[Value], expected: &str) {
    assert_eq!(planned(line, under_review, old).unwrap_err(), expected);
}

#[test]
fn object_is_created_in_the_named_namespace() {
    for (line, own, namespace) in [("", "", "default"), ("-n a", "", "a"), ("-n a", "a", "a"), ("", "b", "b")]
    {
        let mut pod = object("Pod", "v1");
        pod["metadata"]["namespace"] = own.into();
        let planned = planned(line, pod, &[]).unwrap();
        assert_eq!(
            (planned.request.operation, planned.request.namespace.as_str()),
            (Operation::Create, namespace)
        );
        assert_eq!(planned.before, None);
    }
    let mut pod = object("Pod", "v1");
    pod["metadata"]["namespace"] = "b".into();
    let expected = "f:1: the namespace from the provided object \"b\" does not match the namespace \"a\". You must pass \
                    '--namespace=b' to perform this operation.";
    check_wrong("-n a", pod, &[], expected);
}

#[test]
fn update_requires_the_old_object() {
    let old = object("Pod", "v1");
    let found = planned("--operation update", object("Pod", "v1"), std::slice::from_ref(&old)).unwrap();
    assert_eq!(found.before, Some(old));
    let expected =
        "f:1: an update requires the object before the update: pass it with --old FILE or --with FILE";
    check_wrong("--operation update", object("Pod", "v1"), &[], expected);
    let mut other = object("Pod", "v1");
    other["metadata"]["name"] = "other".into();
    let expected = "f:1: no request is about Pod other: --old takes the objects of -f before an \
                    update or a deletion, or the parents of a subresource";
    check_wrong("", object("Pod", "v1"), &[other], expected);
}

#[test]
fn deleted_object_exists_before_the_request() {
    let found = planned("--operation delete", object("Pod", "v1"), &[]).unwrap();
    assert_eq!((found.request.body, found.before), (None, Some(object("Pod", "v1"))));
}

#[test]
fn subresource_determines_the_operation_and_the_body() {
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}});
    let found = planned("--subresource scale", scale.clone(), &[deployment()]).unwrap();
    assert_eq!(found.request.operation, Operation::Update);
    assert_eq!(
        found.request.resource,
        ResourceName::OfKind(GroupVersionKind::new("apps", "v1", "Deployment"))
    );
    assert_eq!(found.request.body, Some(scale.clone()));
    let expected = "f:1: a Scale does not name its parent: pass the parent with --old FILE";
    check_wrong("--subresource scale", scale, &[], expected);

    let found = planned("--subresource scale", deployment(), &[deployment()]).unwrap();
    assert_eq!(found.request.body.unwrap()["spec"], json!({"replicas": 3}));

    let found = planned("--subresource eviction", object("Pod", "v1"), &[]).unwrap();
    assert_eq!(found.request.body.unwrap()["kind"], "Eviction");
    assert_eq!(found.before, Some(object("Pod", "v1")));

    let found = planned("--subresource exec --query command=sh", object("Pod", "v1"), &[]).unwrap();
    assert_eq!((found.request.operation, found.request.body), (Operation::Connect, None));
    assert_eq!(found.request.query, [("command".to_owned(), "sh".to_owned())]);
}

#[test]
fn an_admission_review_is_the_request_that_it_holds() {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE", "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "name": "web", "namespace": "shop",
        "userInfo": {"username": "jane", "groups": ["dev"]}, "dryRun": true,
        "object": deployment(), "oldObject": deployment(),
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions", "fieldManager": "me", "dryRun": ["All"]},
    }});
    let found = planned("", review.clone(), &[]).unwrap();
    let request = &found.request;
    assert_eq!((request.operation, request.namespace.as_str()), (Operation::Update, "shop"));
    assert_eq!((request.user.username.as_str(), request.dry_run), ("jane", true));
    assert_eq!(request.query, [("fieldManager".to_owned(), "me".to_owned())]);
    assert_eq!((&request.body, &found.before), (&Some(deployment()), &Some(deployment())));
    let expected = "f:1: an AdmissionReview already specifies the request: remove --operation";
    check_wrong("--operation delete", review, &[], expected);
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
    check_wrong("", review, &[], "f:1: the AdmissionReview has no `request`");
}
