//! Tests V12 and V23 to V28: requirements for responses, including parallel calls and other review versions.

use harness::verify::report::Tally;
use harness::verify::{Settings, Severity};
use serde_json::json;

use super::environment::{TestedWebhook, finds, passes, pods, verdict, verify, verify_objects, verify_with};

/// The kind of the finding for a fake that responds regardless of the requested version.
const BLIND: &str = "admits in an unsupported version";

#[tokio::test]
async fn v12_finds_answers_under_another_uid() {
    for tested in [TestedWebhook::mutating, TestedWebhook::validating] {
        finds(&verify("V12", vec![tested("fault: M26")]).await, &["another request's uid"]);
    }
}

#[tokio::test]
async fn v12_passes_a_webhook_without_shared_state() {
    for behavior in ["sidecar", "deny", "allow"] {
        passes(&verify("V12", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v12_ignores_random_results_and_missing_responses() {
    for behavior in ["fault: M05-random-name", "bad-response: closed"] {
        let check = verify("V12", vec![TestedWebhook::mutating(behavior)]).await;
        assert_eq!(verdict(&check).0, Tally::NotChecked, "{behavior}");
    }
}

#[tokio::test]
async fn v23_finds_a_listed_version_that_is_not_answered() {
    let behavior = "when: {if: {review-version: v1beta1}, then: {bad-response: {status: 400}}}";
    let tested = TestedWebhook::mutating(behavior).with("admissionReviewVersions", json!(["v1", "v1beta1"]));
    finds(&verify("V23", vec![tested]).await, &["fails in v1beta1", BLIND]);
}

#[tokio::test]
async fn v23_does_not_report_a_response_that_is_invalid_in_every_version() {
    let behavior =
        "when: {if: {equals: {/metadata/name: bare}}, then: {bad-response: {status: 500}}, otherwise: allow}";
    for versions in [json!(["v1"]), json!(["v1", "v1beta1"])] {
        let tested = TestedWebhook::validating(behavior).with("admissionReviewVersions", versions);
        let check = verify("V23", vec![tested]).await;
        finds(&check, &[BLIND]);
        // The webhook fails on the creation and the update of the object.
        assert_eq!(check.results[0].not_checked.values().sum::<u64>(), 2, "{check:#?}");
    }
}

#[tokio::test]
async fn one_invalid_response_does_not_keep_a_check_from_judging_the_others() {
    let behavior =
        "when: {if: {equals: {/metadata/name: bare}}, then: {fault: E07-missing}, otherwise: allow}";
    for id in ["V12", "V41", "V44"] {
        let settings = Settings { overload: 8, ..Settings::default() };
        let check = verify_with(id, vec![TestedWebhook::validating(behavior)], settings).await;
        passes(&check);
    }
}

#[tokio::test]
async fn v23_skips_webhooks_that_do_not_answer() {
    let check = verify("V23", vec![TestedWebhook::mutating("bad-response: {status: 400}")]).await;
    assert_eq!(verdict(&check).0, Tally::NotChecked);
}

#[tokio::test]
async fn v23_finds_another_answer_in_another_version() {
    let tested =
        TestedWebhook::validating("fault: M20").with("admissionReviewVersions", json!(["v1", "v1beta1"]));
    finds(&verify("V23", vec![tested]).await, &["different response in v1beta1", BLIND]);
}

#[tokio::test]
async fn v23_finds_a_careless_envelope_that_v1beta1_lets_pass() {
    let bare = "when: {if: {review-version: v1beta1}, then: {raw: {json: {response: {allowed: true}}}}}";
    let tested = TestedWebhook::validating(bare).with("admissionReviewVersions", json!(["v1beta1"]));
    let check = verify("V23", vec![tested]).await;
    finds(&check, &["apiVersion in v1beta1", "kind in v1beta1", "response.uid in v1beta1", BLIND]);
    assert!(check.findings[..3].iter().all(|finding| finding.severity == Severity::Warning));
}

#[tokio::test]
async fn v23_notes_a_webhook_that_answers_an_unknown_version() {
    let blind = "raw: {text: '{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\
                 \"response\":{\"uid\":\"{uid}\",\"allowed\":true}}'}";
    let check = verify("V23", vec![TestedWebhook::validating(blind)]).await;
    finds(&check, &[BLIND]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v23_passes_a_webhook_that_answers_in_the_version_of_the_review() {
    let careful = "when: {if: {any: [{review-version: v1}, {review-version: v1beta1}]}, then: sidecar, \
                   otherwise: {bad-response: {status: 400}}}";
    for versions in [json!(["v1"]), json!(["v1beta1", "v1", "v9"])] {
        let tested = TestedWebhook::mutating(careful).with("admissionReviewVersions", versions);
        passes(&verify("V23", vec![tested]).await);
    }
}

#[tokio::test]
async fn v24_finds_patches_in_other_forms() {
    for (fault, kind) in [
        ("P01-no-patch-type", "patch without patchType"),
        ("P01-no-patch", "patchType without patch"),
        ("P02-merge-patch", "patchType"),
        ("P03-unpadded", "not base64"),
        ("P03-url-safe", "not base64"),
        ("P04-line-breaks", "base64 with line breaks"),
        ("P04-numbers", "patch as numbers"),
        ("P05", "not base64"),
        ("E23", "denial with a patch"),
    ] {
        let check = verify("V24", vec![TestedWebhook::mutating(&format!("fault: {fault}"))]).await;
        finds(&check, &[kind]);
    }
    finds(
        &verify("V24", vec![TestedWebhook::validating("fault: P18-both")]).await,
        &["validating webhook patches"],
    );
}

#[tokio::test]
async fn v24_passes_patches_in_the_right_form_and_none() {
    passes(&verify("V24", vec![TestedWebhook::mutating("sidecar")]).await);
    for behavior in ["allow", "deny"] {
        let check = verify("V24", vec![TestedWebhook::mutating(behavior)]).await;
        assert_eq!(verdict(&check).0, Tally::NotExercised, "{behavior}");
    }
    passes(&verify("V24", vec![TestedWebhook::validating("allow")]).await);
}

#[tokio::test]
async fn v25_finds_denials_without_a_useful_message() {
    for (behavior, kinds) in [
        ("fault: E22-nothing", ["no message", "no message when it cannot decode the object"]),
        ("deny: {code: 200, message: no}", ["code", "code when it cannot decode the object"]),
        (
            "deny: {message: \"runtime error: index out of range\\n\\ngoroutine 7 [running]:\"}",
            ["stack trace", "stack trace when it cannot decode the object"],
        ),
    ] {
        finds(&verify("V25", vec![TestedWebhook::validating(behavior)]).await, &kinds);
    }
}

#[tokio::test]
async fn v25_checks_the_error_path_of_a_webhook_without_denials() {
    let behavior = "when: {if: {equals: {/spec: 7}}, then: {deny: {message: \"panicked at src/main.rs:7\"}}}";
    let check = verify("V25", vec![TestedWebhook::mutating(behavior)]).await;
    finds(&check, &["stack trace when it cannot decode the object"]);
}

#[tokio::test]
async fn v25_finds_a_message_that_differs_each_time() {
    let behavior = "cycle: [{deny: {message: one}}, {deny: {message: two}}]";
    let pod = pods().remove(0);
    let check = verify_objects("V25", vec![TestedWebhook::validating(behavior)], vec![pod], &[]).await;
    finds(&check, &["message varies"]);
}

#[tokio::test]
async fn v25_finds_a_secret_in_a_message() {
    let rule =
        json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]});
    let tested = TestedWebhook::validating("deny: {message: hunter2-the-second is no password}");
    let tested = tested.with("rules", json!([rule]));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque",
        "data": {"password": "aHVudGVyMi10aGUtc2Vjb25k"}});
    let check = verify_objects("V25", vec![tested], vec![secret], &[]).await;
    finds(&check, &["reveals a secret"]);
    assert_eq!(check.findings[0].severity, Severity::Error);
}

#[tokio::test]
async fn v25_passes_a_message_for_people() {
    passes(
        &verify(
            "V25",
            vec![TestedWebhook::validating("deny: {code: 403, message: set hostNetwork to false}")],
        )
        .await,
    );
    let check = verify("V25", vec![TestedWebhook::validating("allow")]).await;
    assert_eq!(verdict(&check).0, Tally::NotExercised);
}

#[tokio::test]
async fn v26_finds_warnings_that_do_not_arrive() {
    for (fault, kinds) in [
        ("E15-long", vec!["too long"]),
        ("E15-control-characters", vec!["control characters"]),
        ("E15-empty", vec!["empty"]),
        ("E15-many", vec!["lost"]),
    ] {
        finds(&verify("V26", vec![TestedWebhook::validating(&format!("fault: {fault}"))]).await, &kinds);
    }
}

#[tokio::test]
async fn v26_passes_a_short_warning_and_is_not_about_none() {
    passes(
        &verify("V26", vec![TestedWebhook::mutating("allow: {warnings: [spec.foo is deprecated]}")]).await,
    );
    assert_eq!(verdict(&verify("V26", vec![TestedWebhook::mutating("allow")]).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v26_and_v27_say_why_there_is_nothing_to_look_at() {
    for (id, reason) in
        [("V26", "the response has no warnings"), ("V27", "the response has no audit annotations")]
    {
        let (_, reasons) = verdict(&verify(id, vec![TestedWebhook::mutating("allow")]).await);
        assert_eq!(reasons.into_keys().collect::<Vec<_>>(), [reason]);
        // A webhook that was not called has another reason than one without a finding.
        let (_, reasons) =
            verdict(&verify(id, vec![TestedWebhook::mutating("allow").on(&["CONNECT"])]).await);
        assert_eq!(reasons.into_keys().collect::<Vec<_>>(), ["the rules do not match the request"]);
    }
    // The API server rejects the whole response, so clients do not get the warning.
    let refused = "raw: {text: '{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\
                   \"response\":{\"uid\":\"{uid}\",\"allowed\":true,\"warnings\":\"a text\",\
                   \"auditAnnotations\":\"a text\"}}'}";
    for id in ["V26", "V27"] {
        let (found, reasons) = verdict(&verify(id, vec![TestedWebhook::mutating(refused)]).await);
        assert_eq!(found, Tally::NotChecked);
        assert!(reasons.keys().all(|reason| reason.contains("cannot unmarshal")), "{reasons:?}");
    }
}

#[tokio::test]
async fn v27_finds_keys_that_the_audit_log_drops() {
    let check = verify("V27", vec![TestedWebhook::mutating("fault: E14")]).await;
    finds(&check, &["key is dropped"]);
    assert!(check.findings[0].message.contains("a.example.com/no key!"));
    let domain = "allow: {auditAnnotations: {example.com/key: 'yes'}}";
    finds(&verify("V27", vec![TestedWebhook::validating(domain)]).await, &["key is dropped"]);
}

#[tokio::test]
async fn v27_passes_plain_keys_and_is_not_about_none() {
    passes(&verify("V27", vec![TestedWebhook::mutating("allow: {auditAnnotations: {key: 'yes'}}")]).await);
    assert_eq!(verdict(&verify("V27", vec![TestedWebhook::mutating("allow")]).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v28_finds_redirects_and_retry_after() {
    for (behavior, kind) in [
        ("raw: {status: 302, headers: {location: /elsewhere}}", "redirects to a GET"),
        (
            "raw: {status: 307, headers: {location: 'http://127.0.0.1:9/'}}",
            "redirects to another host or without TLS",
        ),
        ("first: {calls: 1, of: {raw: {status: 308, headers: {location: /elsewhere}}}}", "redirects"),
        ("first: {calls: 1, of: {raw: {status: 503, headers: {retry-after: '0'}}}}", "sends Retry-After"),
    ] {
        let check = verify("V28", vec![TestedWebhook::mutating(behavior)]).await;
        finds(&check, &[kind]);
    }
}

#[tokio::test]
async fn v28_passes_a_webhook_without_redirects() {
    passes(&verify("V28", vec![TestedWebhook::mutating("sidecar")]).await);
    passes(&verify("V28", vec![TestedWebhook::validating("bad-response: {status: 503}")]).await);
    let check = verify("V28", vec![TestedWebhook::mutating("bad-response: closed")]).await;
    assert_eq!(verdict(&check).0, Tally::NotChecked);
}
