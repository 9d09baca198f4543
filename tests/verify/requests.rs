//! Tests V22, V29, and V32: the requests, and the form of the responses.

use harness::verify::Severity;
use harness::verify::report::Tally;

use super::environment::{TestedWebhook, finds, kinds, passes, pods, verdict, verify, verify_objects};

/// Returns a behavior that applies `then` if the object cannot be read.
fn unreadable(then: &str) -> String {
    format!("when: {{if: {{equals: {{/metadata: unreadable}}}}, then: {then}}}")
}

#[tokio::test]
async fn v22_finds_errors_in_the_response() {
    for (behavior, expected) in [
        ("bad-response: wrong-uid", "uid when it answers"),
        ("fault: E07-missing", "uid when it answers"),
        ("bad-response: wrong-kind", "kind when it answers"),
        ("bad-response: no-response", "response when it answers"),
        ("bad-response: not-json", "body when it answers"),
        ("bad-response: {status: 500}", "HTTP status when it answers"),
        ("fault: E08-missing", "allowed when it answers"),
    ] {
        let check = verify("V22", vec![TestedWebhook::mutating(behavior)]).await;
        assert!(kinds(&check).contains(&expected), "{behavior}: {:?}", kinds(&check));
        assert!(!check.findings[0].steps.is_empty());
    }
}

#[tokio::test]
async fn v22_names_the_field_and_the_object() {
    let check = verify("V22", vec![TestedWebhook::mutating("fault: E07-missing")]).await;
    let finding = check.findings.iter().find(|it| it.kind == "uid when it answers").expect("it is found");
    assert_eq!(
        finding.message,
        "when it allows the object, response.uid is missing: must be the uid of the request"
    );
    assert_eq!(
        (finding.differences[0].path.as_str(), &finding.differences[0].found),
        ("response.uid", &None)
    );
    assert_eq!(finding.examples[0], "Pod bare");
    assert!(finding.object.is_some());
}

#[tokio::test]
async fn v22_shows_the_start_of_the_body_of_an_http_error() {
    let check = verify("V22", vec![TestedWebhook::mutating("raw: {status: 500, json: {error: boom}}")]).await;
    let finding = &check.findings[0];
    let body = "; the response begins with: {\"error\":\"boom\"}";
    assert_eq!(finding.message, format!("the webhook responds with HTTP status 500 instead of 200{body}"));
    assert!(finding.help.as_ref().is_some_and(|help| help.contains("the webhook's log")), "{finding:#?}");
    let undecodable = "returns HTTP 500 instead of a review that denies the request";
    assert!(finding.consequences[0].message.ends_with(undecodable), "{finding:#?}");
}

#[tokio::test]
async fn v22_warns_about_an_undecodable_object_only_if_the_webhook_stops_or_hangs() {
    // The first two calls are the creation and the undecodable object.
    for (behavior, severity) in [
        (unreadable("{bad-response: closed}"), Severity::Note),
        ("first: {calls: 1, of: allow, then: {bad-response: closed}}".to_owned(), Severity::Warning),
    ] {
        let pod = pods().swap_remove(0);
        let check = verify_objects("V22", vec![TestedWebhook::validating(&behavior)], vec![pod], &[]).await;
        let finding = check.findings.iter().find(|it| it.kind.starts_with("no response"));
        assert_eq!(finding.map(|finding| finding.severity), Some(severity), "{check:#?}");
    }
}

#[tokio::test]
async fn v22_looks_at_denials() {
    let check = verify("V22", vec![TestedWebhook::validating("sequence: [allow, deny]")]).await;
    passes(&check);
}

#[tokio::test]
async fn v22_finds_errors_in_responses_to_undecodable_objects() {
    for (then, expected) in [
        ("{bad-response: wrong-uid}", "uid when it cannot decode the object"),
        ("{bad-response: closed}", "no response when it cannot decode the object"),
        ("{bad-response: {status: 500}}", "HTTP status when it cannot decode the object"),
    ] {
        let check = verify("V22", vec![TestedWebhook::validating(&unreadable(then))]).await;
        finds(&check, &[expected]);
        assert_eq!(check.findings[0].severity, Severity::Note);
        // The advice is about the error path.
        assert!(
            check.why_of(&check.findings[0]).contains("does not send"),
            "{}",
            check.why_of(&check.findings[0])
        );
        let help = check.help_of(&check.findings[0]);
        let is_about_uid = expected.starts_with("uid ");
        let begin =
            if is_about_uid { "Copy request.uid to response.uid" } else { "Handle errors and exceptions" };
        assert!(help.starts_with(begin), "{help}");
        let sent = &check.findings[0].steps[0].review;
        assert_eq!(sent["request"]["object"]["metadata"], "unreadable");
        let message = &check.findings[0].message;
        assert!(message.contains("(metadata is a string, spec and data are numbers)"), "{message}");
    }
}

#[tokio::test]
async fn v22_passes_complete_answers() {
    passes(&verify("V22", vec![TestedWebhook::mutating("deny")]).await);
    for behavior in ["allow", "always-mutate"] {
        passes(&verify("V22", vec![TestedWebhook::mutating(behavior)]).await);
    }
    passes(
        &verify("V22", vec![TestedWebhook::validating(&unreadable("{deny: {message: cannot read it}}"))])
            .await,
    );
}

#[tokio::test]
async fn v29_finds_failures_on_a_null_object() {
    for (behavior, expected) in [
        ("{patch: {operations: [{op: add, path: /a, value: 1}]}}", "sends a patch on"),
        ("{bad-response: closed}", "fails on"),
        ("{deny: {code: 400, message: there is no content to decode}}", "misses the object on"),
        ("{deny: {code: 500, message: 'Cannot read properties of null'}}", "misses the object on"),
    ] {
        let behavior = format!("when: {{if: {{operations: [DELETE]}}, then: {behavior}}}");
        let check = verify("V29", vec![TestedWebhook::mutating(&behavior).on(&["*"])]).await;
        let expected = ["DELETE", "the deletion of a collection"].map(|what| format!("{expected} {what}"));
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        finds(&check, &expected);
        let sent = &check.findings[0].steps[0].review["request"];
        assert!(sent["object"].is_null() && sent["oldObject"].is_object(), "{sent:#}");
    }
}

#[tokio::test]
async fn v29_passes_a_webhook_that_reads_the_old_object() {
    let denials = [
        "deny: {code: 403, message: it is protected}",
        "deny: {code: 500, message: spec.size must not be null}",
        "deny: {code: 555, message: not today}",
    ];
    for behavior in ["allow"].into_iter().chain(denials) {
        for tested in [TestedWebhook::mutating, TestedWebhook::validating] {
            passes(&verify("V29", vec![tested(behavior).on(&["DELETE"])]).await);
        }
    }
}

#[tokio::test]
async fn v29_is_not_about_webhooks_that_are_not_called_for_deletions() {
    let check = verify("V29", vec![TestedWebhook::mutating("allow")]).await;
    assert_eq!(verdict(&check).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v32_finds_a_webhook_that_requires_a_name() {
    let behavior = "when: {if: {absent: /metadata/name}, then: {deny: {message: name is required}}}";
    let check = verify("V32", vec![TestedWebhook::mutating(behavior)]).await;
    finds(&check, &["requires metadata.name"]);
}

#[tokio::test]
async fn v32_passes_webhooks_that_tolerate_missing_fields() {
    // The API server sets the namespace before it calls a webhook.
    let namespace = "when: {if: {absent: /metadata/namespace}, then: deny}";
    for behavior in ["always-mutate", "sidecar", "allow", namespace] {
        passes(&verify("V32", vec![TestedWebhook::mutating(behavior)]).await);
    }
}
