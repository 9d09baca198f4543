//! Tests V14 and V15: patches to objects with new fields, and to objects without optional fields.

use harness::verify::report::Tally;

use super::environment::{TestedWebhook, finds, kinds, passes, verdict, verify};

#[tokio::test]
async fn v14_finds_a_webhook_that_writes_its_own_types() {
    let check = verify("V14", vec![TestedWebhook::mutating("fault: M11")]).await;
    finds(&check, &["drops unknown fields"]);
    let finding = &check.findings[0];
    let paths: Vec<&str> = finding.differences.iter().map(|difference| difference.path.as_str()).collect();
    assert!(paths.contains(&"spec.containers[app].admitUnknownField"), "{paths:?}");
}

#[tokio::test]
async fn v14_finds_a_webhook_that_denies_unknown_fields() {
    let strict = "when: {if: {present: /spec/admitUnknownField}, then: {deny: {message: unknown field}}}";
    for tested in [TestedWebhook::mutating, TestedWebhook::validating] {
        finds(&verify("V14", vec![tested(strict)]).await, &["denies unknown fields"]);
    }
}

#[tokio::test]
async fn v14_finds_a_result_that_the_api_server_rejects_only_with_unknown_fields() {
    let invalid = |then: &str| {
        let patch =
            format!("{{patch: {{operations: [{{op: add, path: /spec/restartPolicy, value: {then}}}]}}}}");
        TestedWebhook::mutating(&format!("when: {{if: {{present: /spec/admitUnknownField}}, then: {patch}}}"))
    };
    let check = verify("V14", vec![invalid("Sometimes")]).await;
    finds(&check, &["the API server rejects an object with unknown fields"]);
    passes(&verify("V14", vec![invalid("Never")]).await);
}

#[tokio::test]
async fn v14_passes_patches_of_single_fields() {
    for behavior in ["always-mutate", "sidecar", "container-env", "allow"] {
        passes(&verify("V14", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v15_finds_a_patch_that_needs_annotations() {
    let patch = "patch: {operations: [{op: add, path: /metadata/annotations/x, value: y}]}";
    let check = verify("V15", vec![TestedWebhook::mutating(patch)]).await;
    let found = kinds(&check);
    assert!(found.contains(&"patch does not apply as it is"), "{check:#?}");
    assert!(found.contains(&"patch does not apply without annotations"), "{check:#?}");
}

#[tokio::test]
async fn v15_names_the_operation_the_missing_parent_and_a_similar_field() {
    for (operation, expected) in [
        (
            "{op: replace, path: /metadata/label/team, value: blue}",
            "The patch operation (`replace`) replaces /metadata/label/team: the object does not have /metadata/label \
             (did you mean /metadata/labels?).",
        ),
        (
            "{op: add, path: /spec/volume/-, value: {name: a}}",
            "The patch operation (`add`) writes /spec/volume/-: the object does not have /spec/volume (did you mean \
             /spec/volumes?).",
        ),
        (
            "{op: add, path: /metadata/annotations/a, value: b}",
            "The patch operation (`add`) writes /metadata/annotations/a: the object does not have \
             /metadata/annotations; if the map is missing, first add it with the value {}, or add it with its content.",
        ),
    ] {
        let patch = format!("patch: {{operations: [{operation}]}}");
        let check = verify("V15", vec![TestedWebhook::mutating(&patch)]).await;
        assert_eq!(check.help_of(&check.findings[0]), expected, "{operation}");
    }
}

#[tokio::test]
async fn v15_finds_a_webhook_that_fails_without_volumes() {
    let behavior = "when: {if: {absent: /spec/volumes}, then: {bad-response: {status: 500}}}";
    let check = verify("V15", vec![TestedWebhook::mutating(behavior)]).await;
    assert!(kinds(&check).contains(&"fails without volumes"), "{check:#?}");
}

#[tokio::test]
async fn v15_passes_patches_that_create_missing_parents() {
    for behavior in ["always-mutate", "sidecar", "container-env"] {
        passes(&verify("V15", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v15_is_not_passed_by_a_webhook_that_always_fails() {
    let check = verify("V15", vec![TestedWebhook::mutating("bad-response: {status: 500}")]).await;
    assert_eq!(verdict(&check).0, Tally::NotChecked);
}
