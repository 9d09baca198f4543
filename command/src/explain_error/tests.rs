//! Explanations of recorded messages of kube-apiserver and of user input.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fake_webhooks::{Class, catalog};
use serde_json::{Value, json};

use super::explanation::{Service, explain};
use super::text;

/// Faults whose message does not mention a webhook.
const OTHERS: [(&str, &str); 6] = [
    ("M15", "the object names a PriorityClass that does not exist"),
    (
        "M29-finalizer",
        "what the server says to anybody who adds a finalizer to an object that is being deleted",
    ),
    ("P17", "the object does not exist"),
    ("X04-no-kind", "what the server says of any object without a kind"),
    ("X14-null", "it does not say what could not be read"),
    ("X14-text", "it does not say what could not be read"),
];

/// Returns the messages of kube-apiserver in a recorded case.
fn recorded(fault: &fake_webhooks::Fault) -> BTreeSet<String> {
    let case = format!("../tests/cases/faults/{}-{}/apiserver.yaml", fault.id.to_lowercase(), fault.name);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(case);
    let recording: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let requests = recording["requests"].as_array().unwrap();
    let bodies = requests.iter().map(|request| &request["answer"]["body"]);
    let failures = bodies.filter(|body| body["status"] == "Failure");
    // Recordings contain placeholders such as `<port of fail>`.
    let ports = ["<port of fail>", "<port of converter>"];
    let plain =
        |message: &str| ports.iter().fold(message.to_owned(), |text, port| text.replace(port, "8443"));
    failures.map(|body| plain(body["message"].as_str().unwrap())).collect()
}

#[test]
fn message_of_every_fault_is_recognized() {
    let mut explained = 0;
    for fault in catalog() {
        for message in recorded(fault) {
            let explanations = explain(&message);
            if OTHERS.iter().any(|(id, _)| *id == fault.id) {
                assert!(explanations.is_empty(), "{}: {explanations:?}", fault.id);
                continue;
            }
            let [explanation] = explanations.as_slice() else { panic!("{}: {message}", fault.id) };
            let ids: Vec<&str> = explanation.faults.iter().map(|fault| fault.id).collect();
            assert!(ids.contains(&fault.id.as_str()), "{} is not in {ids:?}: {message}", fault.id);
            assert!(!explanation.meaning.contains('{'), "{}: {}", fault.id, explanation.meaning);
            assert!(!explanation.consequence.is_empty() && fault.class != Class::Accepted, "{}", fault.id);
            explained += 1;
        }
    }
    assert!(explained > 150, "{explained} messages");
}

#[test]
fn every_fault_of_a_cause_was_recorded_with_it() {
    for cause in &*super::causes::CAUSES {
        for fault in cause.faults() {
            let messages = recorded(fault);
            let causes: Vec<&str> =
                messages.iter().flat_map(|message| explain(message)).map(|it| it.cause).collect();
            assert!(causes.contains(&cause.id.as_str()), "{}: {} has {causes:?}", cause.id, fault.id);
        }
    }
}

const TIMEOUT: &str = r#"failed calling webhook "pods.example.com": failed to call webhook: Post "https://hook.apps.svc:443/mutate?timeout=10s": context deadline exceeded"#;

#[test]
fn kubectl_message_is_explained_with_webhook_and_service() {
    let shown = format!(
        "Error from server (InternalError): error when creating \"pod.yaml\": Internal error occurred: {TIMEOUT}\n"
    );
    let explanations = explain(&shown);
    let [explanation] = explanations.as_slice() else { panic!("{explanations:?}") };
    assert_eq!(explanation.cause, "timeout");
    assert_eq!(explanation.webhook.as_deref(), Some("pods.example.com"));
    let service = Service { namespace: "apps".to_owned(), name: "hook".to_owned(), port: 443 };
    assert_eq!(explanation.service, Some(service));
    assert!(explanation.meaning.contains("timeoutSeconds (10s)"), "{}", explanation.meaning);
    assert!(explanation.look.iter().any(|line| line == "kubectl -n apps get pods -o wide"));
    let text = text(explanation);
    for part in [
        "webhook pods.example.com, Service apps/hook port 443",
        "With Ignore it would have been admitted",
        "fault: H01",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn commands_contain_the_webhook_and_keep_other_braces() {
    let explanations = explain(
        r#"failed calling webhook "a.example.com": failed to call webhook: Post "https://hook.apps.svc:443/?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority"#,
    );
    let look = &explanations.first().unwrap().look;
    let [session, bundle] = look.as_slice() else { panic!("{look:?}") };
    assert!(session.starts_with("kubectl -n apps port-forward service/hook 8443:443 &"), "{session}");
    assert!(
        bundle.contains(r#"[?(@.name=="a.example.com")]}{.clientConfig.caBundle}{"\n"}{end}'"#),
        "{bundle}"
    );
    // Port forwarding requires a Service.
    let explanations = explain(
        r#"failed calling webhook "a.example.com": failed to call webhook: Post "https://10.0.0.1/": x509: certificate signed by unknown authority"#,
    );
    assert_eq!(explanations.first().unwrap().look, std::slice::from_ref(bundle));
}

#[test]
fn a_log_is_explained_once_for_each_cause() {
    let quoted = TIMEOUT.replace('"', "\\\"");
    let log = format!(
        "I1122 10:00:00 starting\nW1122 10:00:01 dispatcher.go:225] Failed calling webhook, failing open pods.example.com: {TIMEOUT}\n\
         E1122 10:00:02 \"Unhandled\" err=\"{quoted}\"\n\
         {{\"msg\":\"conversion webhook for example.com/v1, Kind=Widget failed: Post \\\"https://w.default.svc:443/?timeout=30s\\\": dial tcp 10.0.0.1:443: connect: connection refused\"}}\n"
    );
    let found: Vec<Value> = explain(&log)
        .iter()
        .map(|it| json!([it.cause, it.count, it.webhook, it.converts, it.consequence.split(':').next()]))
        .collect();
    assert_eq!(
        found,
        [
            json!(["timeout", 2, "pods.example.com", null, "failurePolicy is Ignore"]),
            json!([
                "connection-refused",
                1,
                null,
                "example.com/v1, Kind=Widget",
                "Conversion webhooks have no failure policy"
            ]),
        ]
    );
}

#[test]
fn a_status_and_a_broken_line_are_read() {
    let status =
        json!({"kind": "Status", "message": format!("Internal error occurred: {TIMEOUT}")}).to_string();
    let broken = TIMEOUT.replace(' ', "\n  ");
    for message in [status, broken] {
        assert_eq!(explain(&message).first().map(|it| it.cause), Some("timeout"), "{message}");
    }
}

#[test]
fn failing_to_authenticate_is_explained() {
    for (problem, cause) in [
        ("the server has asked for the client to provide credentials", "credentials-required"),
        (
            r#"Post "https://a.b.svc:443/?timeout=10s": getting credentials: exec: executable p failed with exit code 1"#,
            "no-credentials",
        ),
    ] {
        let message = format!(r#"failed calling webhook "a.example.com": failed to call webhook: {problem}"#);
        assert_eq!(explain(&message).first().map(|it| it.cause), Some(cause), "{message}");
    }
}

#[test]
fn what_is_not_about_a_webhook_is_not_explained() {
    for message in [
        "",
        "Error from server (NotFound): configmaps \"settings\" not found",
        "the server could not find the requested resource",
        "Unable to connect to the server: x509: certificate signed by unknown authority",
        "pods \"a\" is forbidden: exceeded quota: q",
    ] {
        assert!(explain(message).is_empty(), "{message}");
    }
}
