//! Tests a server that serves its own webhook.

use serde_json::json;

use super::client::*;

/// Checks the limit on recursive calls.
///
/// Each call sends a request for which the webhook is called again, with a review that contains all previous reviews.
#[tokio::test]
async fn recursive_webhook_calls_are_limited() {
    let server = server();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "admissionreviews.admission.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": "admission.k8s.io", "scope": "Cluster",
            "names": {"plural": "admissionreviews", "kind": "AdmissionReview"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let path = "/apis/admission.k8s.io/v1/admissionreviews";
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "itself"},
        "webhooks": [{
            "name": "itself.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "kubernetes", "path": path}},
            "rules": [{
                "operations": ["CREATE"], "apiGroups": ["admission.k8s.io"], "apiVersions": ["v1"],
                "resources": ["admissionreviews"],
            }],
        }],
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    for (path, object) in [(definitions, definition), (configurations, configuration)] {
        let (code, answer) = post(&server, path, &object).await;
        assert_eq!(code, 201, "{answer}");
    }
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "metadata": {"name": "a"}});
    let (code, answer) = post(&server, path, &review).await;
    let message = answer["message"].as_str().unwrap();
    assert_eq!((code, message.matches("failed calling webhook").count()), (500, 9), "{message}");
    let end = "a webhook that is the API server itself and whose calls lead to more than 8 others";
    assert!(message.ends_with(end), "{message}");
}
