//! Tests the explanations of messages that were recorded from kube-apiserver, and of user input.

mod policies;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fake_webhooks::{Class, catalog};
use serde_json::{Value, json};

use super::explanation::{self, Explanation, Service};
use super::text;

fn explain(text: &str) -> Vec<Explanation> {
    explanation::explain(text, None).known
}

/// The faults whose messages do not mention a webhook.
const OTHERS: [(&str, &str); 4] = [
    ("P17", "the object does not exist"),
    ("X04-no-kind", "what the server says of any object without a kind"),
    ("X14-null", "it does not say what could not be read"),
    ("X14-text", "it does not say what could not be read"),
];

/// Returns kube-apiserver's messages in a recorded case.
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
            for command in &explanation.look {
                let ranges = command.matches("{range ").count();
                assert_eq!(command.matches("{end}").count(), ranges, "{}: {command}", fault.id);
            }
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
        "With Ignore, the request would have continued",
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
fn error_of_a_conversion_webhook_leads_to_its_custom_resource_definition() {
    let convert = |problem: &str| {
        let message = format!(
            "conversion webhook for example.com/v1, Kind=Foo failed: Post \"https://foo.hooks.svc:443/convert?timeout=30s\": {problem}"
        );
        explain(&message).remove(0)
    };
    let missing = convert("service \"foo\" not found");
    assert_eq!(missing.cause, "service-not-found");
    assert!(missing.faults.is_empty(), "{missing:?}");
    assert!(missing.look.iter().all(|line| !line.contains("webhookconfigurations")), "{missing:?}");
    assert!(missing.look.iter().any(|line| line.contains("(@.spec.names.kind==\"Foo\")")), "{missing:?}");
    let untrusted =
        convert("tls: failed to verify certificate: x509: certificate signed by unknown authority");
    let faults: Vec<&str> = untrusted.faults.iter().map(|fault| fault.id).collect();
    assert_eq!(faults, ["X13-authority"]);
}

#[test]
fn no_placeholder_has_the_name_of_a_jsonpath_keyword() {
    for cause in &*super::causes::CAUSES {
        let names: Vec<&str> = cause.pattern.capture_names().flatten().collect();
        assert!(!names.contains(&"end") && !names.contains(&"range"), "{}: {names:?}", cause.id);
    }
}

#[test]
fn a_log_is_explained_once_for_each_cause() {
    let quoted = TIMEOUT.replace('"', "\\\"");
    let log = format!(
        "I1122 10:00:00 starting\nW1122 10:00:01 dispatcher.go:225] Failed calling webhook, failing open pods.example.com: {TIMEOUT}\n\
         E1122 10:00:02 \"Unhandled Error\" err=\"{quoted}\"\n\
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
fn ignored_and_rejected_failures_of_one_webhook_are_separate() {
    let json = |log: Value| format!("{log}\n");
    let log = json(json!({"msg": "Unhandled Error", "err": TIMEOUT}))
        + &json(json!({"msg": format!("Failed calling webhook, failing open pods.example.com: {TIMEOUT}")}))
        + &json(
            json!({"msg": format!("Failed calling webhook, failing closed pods.example.com: {TIMEOUT}")}),
        )
        + &format!("Warning FailedCreate Error creating: Internal error occurred: {TIMEOUT}\n");
    let found: Vec<Value> = explain(&log)
        .iter()
        .map(|it| json!([it.cause, it.count, it.consequence.split(':').next()]))
        .collect();
    let expected = ["failurePolicy is Ignore", "failurePolicy is Fail"];
    assert_eq!(found, expected.map(|consequence| json!(["timeout", 2, consequence])));
}

#[test]
fn a_denial_may_begin_with_a_blank_line() {
    let denial = "admission webhook \"validate.kyverno.svc-fail\" denied the request: ";
    let text = "resource Pod/default/web was blocked due to the following policies";
    for log in [
        format!("Error from server: {denial}\n\n{text}\n\nrequire-labels:\n  check: missing\nnext line\n"),
        format!("I1122 10:00:00 starting\nError from server: {denial}\n\n{text}\nI1122 10:00:00 next"),
    ] {
        let found: Vec<_> = explain(&log).iter().map(|it| (it.cause, it.meaning.clone())).collect();
        assert_eq!(found, [("denied", format!("The webhook denied the request: {text}"))]);
    }
    let cut = explain(&format!("I1122 10:00:00 starting\nError from server: {denial}\n"));
    assert_eq!(cut.iter().map(|it| it.cause).collect::<Vec<_>>(), ["denied"]);
}

#[test]
fn the_end_of_a_message_about_an_invalid_response_is_explained() {
    for (message, cause) in [
        (
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            "wrong-review-kind",
        ),
        ("received invalid webhook response: expected response.uid=\"a\", got \"b\"", "wrong-uid"),
    ] {
        assert_eq!(explain(message).iter().map(|it| it.cause).collect::<Vec<_>>(), [cause]);
    }
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
fn message_that_is_found_only_in_the_joined_text_has_no_line() {
    let broken = format!("idle\n{}", TIMEOUT.replace(' ', "\n\n  "));
    let found = explanation::explain(&broken, Some("server.log")).known;
    let [explanation] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((explanation.cause, &explanation.lines, &explanation.file), ("timeout", &vec![], &None));
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

const CALL: &str = r#"failed calling webhook "a.example.com": failed to call webhook: Post "https://hook.apps.svc:443/?timeout=10s": "#;

#[test]
fn errors_of_managed_and_small_clusters_are_explained() {
    let call = |problem: &str| format!("{CALL}{problem}");
    for (message, cause, part) in [
        (
            call("tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match hook.apps.svc"),
            "certificate-for-no-name",
            "requires hook.apps.svc",
        ),
        (call("Address is not allowed"), "address-not-allowed", "not allowed to connect"),
        (
            call("proxy error from 127.0.0.1:6443 while dialing 10.42.0.5:8443, code 502: 502 Bad Gateway"),
            "egress-proxy",
            "cannot connect to 10.42.0.5:8443",
        ),
        (
            "Pod \"web\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`".to_owned(),
            "pod-update-changes-the-spec",
            "An update changes fields of a Pod",
        ),
        (
            "pods \"c\" is forbidden: the integer value of priority (3) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name".to_owned(),
            "priority-differs",
            "spec.priority is 3, but the PriorityClass of the Pod has the value 0",
        ),
        (
            "conversion webhook for shop.example.com/v1, Kind=Widget failed: Post \"https://w.default.svc:443/?timeout=30s\": proxy error from 127.0.0.1:6443 while dialing 10.42.0.5:8443, code 503: 503 Service Unavailable".to_owned(),
            "egress-proxy",
            "cannot connect to 10.42.0.5:8443",
        ),
    ] {
        let explanations = explain(&message);
        let [explanation] = explanations.as_slice() else { panic!("{message}: {explanations:?}") };
        assert_eq!(explanation.cause, cause, "{message}");
        assert!(explanation.meaning.contains(part), "{}", explanation.meaning);
    }
}

#[test]
fn hints_name_the_escape_of_a_slash_and_the_null_objects() {
    let usually = |message: &str| explain(message).first().unwrap().usually.join("\n");
    let patch = "Internal error occurred: add operation does not apply: doc is missing path: /metadata/annotations/a: missing value";
    assert!(usually(patch).contains("`~1`"), "{}", usually(patch));
    let condition = "expression 'oldObject.spec.x == 1' resulted in error: no such key: spec";
    assert!(usually(condition).contains("oldObject is null on CREATE"), "{}", usually(condition));
}

#[test]
fn messages_of_terraform_and_json_logs_and_wrapped_messages_are_read() {
    let expired = format!(
        "{CALL}tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-27T00:00:00Z is after 2026-01-01T00:00:00Z"
    );
    let wrapped = expired.replace("x509: ", "x509:\n");
    let terraform = format!("│ {}\n", wrapped.trim_end().replace('\n', "\n│ "));
    let terraform = format!("╷\n│ Error: Internal error occurred:\n{terraform}│ \n╵\n");
    let entry = json!({"level": "error", "msg": "Reconciler error", "error": format!("Internal error occurred: {expired}")});
    let log = format!("E1122 10:00:00 {wrapped}\nE1122 10:00:01 {TIMEOUT}\n");
    for (text, causes) in [
        (terraform, vec!["certificate-expired"]),
        (entry.to_string(), vec!["certificate-expired"]),
        (format!("{entry}\n{entry}\n"), vec!["certificate-expired"]),
        (wrapped, vec!["certificate-expired"]),
        (log, vec!["certificate-expired", "timeout"]),
    ] {
        let found: Vec<&str> = explain(&text).iter().map(|it| it.cause).collect();
        assert_eq!(found, causes, "{text}");
    }
}

#[test]
fn denial_has_a_behavior_instead_of_faults_and_other_errors_have_few_faults() {
    let [denial] = &explain("admission webhook \"a.example.com\" denied the request: no")[..] else {
        panic!()
    };
    let shown = anstream::adapter::strip_str(&super::text(denial)).to_string();
    assert!(shown.ends_with("\n  - behavior: {deny: {message: not today}}\n"), "{shown}");
    let invalid = "failed calling webhook \"a\": received invalid webhook response: expected response.uid=\"a\", got \"b\"";
    let [uid] = &explain(invalid)[..] else { panic!() };
    assert!(uid.faults.len() > super::MAX_FAULTS);
    let shown = anstream::adapter::strip_str(&super::text(uid)).to_string();
    assert_eq!(shown.matches("fault: ").count(), super::MAX_FAULTS, "{shown}");
    let last = uid.faults.last().unwrap().id;
    let more = uid.faults.len() - super::MAX_FAULTS;
    assert!(shown.contains(&format!("and {more} more: ")), "{shown}");
    assert!(shown.ends_with(&format!("{last}; see `admit fakes list`\n")), "{shown}");
}

/// Returns the causes of the messages in `text`, each with its webhook.
fn causes(text: &str) -> Vec<String> {
    let shown = |it: &Explanation| format!("{} {}", it.webhook.as_deref().unwrap_or("-"), it.cause);
    explain(text).iter().map(shown).collect()
}

fn call(webhook: &str, problem: &str) -> String {
    format!(
        r#"failed calling webhook "{webhook}": failed to call webhook: Post "https://{webhook}.ns.svc:443/?timeout=10s": {problem}"#
    )
}

#[test]
fn each_message_of_several_lines_is_explained() {
    let (a, b) =
        (call("a", r#"no endpoints available for service "a""#), call("b", "context deadline exceeded"));
    let expected = ["a no-endpoints", "b timeout"];
    for text in [
        format!("Internal error occurred: {a}\nInternal error occurred: {b}\n"),
        format!(
            "Error from server (InternalError): Internal error occurred: {a}\nhelm: Internal error occurred: {b}"
        ),
        format!("{a}\n{b}\n"),
        format!(
            "LAST SEEN   TYPE      REASON         OBJECT       MESSAGE\n\
             2m          Warning   FailedCreate   replicaset/w Error creating: Internal error occurred: {a}\n\
             90s         Normal    Scheduled      pod/x        Successfully assigned default/x\n\
             3m (x2 over 4m)   Warning   FailedCreate   job/v   Error creating: Internal error occurred: {b}\n"
        ),
        format!("  * Internal error occurred: {a}\n  * Internal error occurred: {b}\n\n"),
        format!("[Internal error occurred: {a}, Internal error occurred: {b}]"),
        format!("Internal error occurred: {a}\npod/web created\ndeployment.apps/x unchanged\n{b}\n"),
    ] {
        assert_eq!(causes(&text), expected, "{text}");
    }
    // The last line does not name a webhook.
    let patch = r#"Internal error occurred: jsonpatch add operation does not apply: doc is missing path: "/x": missing value"#;
    let text =
        format!("Internal error occurred: {a}\n{patch}\nThe Pod \"web\" is invalid: spec: Required value\n");
    assert_eq!(causes(&text), ["a no-endpoints", "- patch-parent-missing"]);
    let explanations = explain(&format!(
        "{a}\npods \"c\" is forbidden: no new finalizers can be added if the object is being deleted"
    ));
    assert_eq!(explanations.len(), 2);
    assert_eq!(explanations[0].message, a);
}

#[test]
fn a_line_that_a_terminal_broke_within_words_is_one_message() {
    let message =
        format!("Internal error occurred: {}", call("validate.nginx.example", "context deadline exceeded"));
    let characters: Vec<char> = message.chars().collect();
    for width in 41..=characters.len() {
        let broken: Vec<String> = characters.chunks(width).map(|line| line.iter().collect()).collect();
        let found = explain(&format!("{}\n{}\n", broken.join("\n"), call("b", "EOF")));
        let found: Vec<_> = found.iter().map(|it| (it.webhook.as_deref(), it.cause)).collect();
        assert_eq!(found.last(), Some(&(Some("b"), "connection-closed")), "{broken:#?}");
        assert_eq!(found.first(), Some(&(Some("validate.nginx.example"), "timeout")), "{broken:#?}");
    }
}

#[test]
fn the_end_of_a_message_is_explained_without_its_beginning() {
    for (text, cause) in [
        ("remote error: tls: bad certificate", "certificate-rejected-by-client"),
        (
            "2024/03/11 12:00:00 http: TLS handshake error from 10.244.0.0:45646: remote error: tls: bad certificate",
            "certificate-rejected-by-client",
        ),
        ("http: TLS handshake error from 10.0.0.1:1: EOF", "handshake-closed"),
        ("http: server gave HTTP response to HTTPS client", "plain-http"),
        (r#"Post "https://a.ns.svc:443/": http: server gave HTTP response to HTTPS client"#, "plain-http"),
        ("x509: certificate is valid for foo.svc, not bar.svc", "certificate-for-another-name"),
        (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "unknown-authority",
        ),
        (r#"no endpoints available for service "a""#, "no-endpoints"),
        ("dial tcp 10.0.0.1:443: connect: connection refused", "connection-refused"),
        ("dial tcp 10.0.0.1:443: connect: no route to host", "not-reachable"),
        (r#"expected response.uid="a", got """#, "wrong-uid"),
    ] {
        let explanations = explain(text);
        let [explanation] = explanations.as_slice() else { panic!("{text}: {explanations:?}") };
        assert_eq!(explanation.cause, cause, "{text}");
        assert!(explanation.consequence.starts_with("If the call fails, "), "{}", explanation.consequence);
        assert!(!explanation.meaning.contains('{'), "{}", explanation.meaning);
    }
}

#[test]
fn a_message_whose_cause_is_not_known_is_counted() {
    let text = format!(
        "{}\n{}\n{}\n",
        call("b", "EOF"),
        call("a", "the moon is full"),
        call("a", "the moon is full")
    );
    let found = explanation::explain(&text, Some("server.log"));
    let [unknown] = found.unknown.as_slice() else { panic!("{:?}", found.unknown) };
    assert_eq!((unknown.text.as_str(), unknown.line), (call("a", "the moon is full").as_str(), 2));
    assert_eq!(found.known.len(), 1);
}

#[test]
fn explanation_of_a_log_has_its_lines() {
    let log = format!("I1127 started\n{TIMEOUT}\nI1127 idle\n{TIMEOUT}\n{TIMEOUT}\n");
    let known = explanation::explain(&log, Some("server.log")).known;
    let [explanation] = known.as_slice() else { panic!("{known:?}") };
    assert_eq!((explanation.count, explanation.lines.as_slice()), (3, [2, 4, 5].as_slice()));
    assert!(text(explanation).contains("\n  server.log:2, 4, 5\n"), "{}", text(explanation));
    let many = explanation::explain(&format!("{TIMEOUT}\n").repeat(7), Some("server.log")).known;
    assert!(text(many.first().unwrap()).contains("\n  server.log:1, 2, 3, 4, 5 and 2 more\n"));
    // A message on the command line does not have lines.
    let known = explanation::explain(&log, None).known;
    assert!(known.first().unwrap().lines.is_empty());
}

#[test]
fn refused_connection_shows_how_to_list_the_ports_of_the_webhook() {
    let message = "failed calling webhook \"a.example.com\": failed to call webhook: Post \
                   \"https://hook.apps.svc:443/?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused";
    let found = explain(message);
    let [explanation] = found.as_slice() else { panic!("{found:?}") };
    let command = "kubectl -n apps debug -it POD --image=busybox -- netstat -tln";
    assert!(explanation.look.iter().any(|line| line == command), "{:?}", explanation.look);
}
