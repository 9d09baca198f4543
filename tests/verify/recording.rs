//! Tests V38 to V40 on the command line: webhooks write to the API server that the command runs for them.

use std::process::Stdio;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::CertificateAuthority;
use fake_webhooks::{Authority, Behavior, Fake, FakeWebhook};
use harness::verify::report::{CheckReport, Report, Tally};
use serde_json::{Value, json};

use super::command::written;
use super::environment::{configuration, entry, pods};

/// The path for creating `ConfigMap`s.
const OBJECTS: &str = "/api/v1/namespaces/default/configmaps";
/// The path of a request that does not store anything.
const QUESTIONS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Returns a behavior that sends `body` to this path of a kubeconfig's server with each call.
fn writing(path: &str, body: Value) -> impl FnOnce(&Value) -> Value {
    move |kubeconfig| {
        let text = |pointer: &str| kubeconfig.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let ca_bundle = STANDARD.decode(text("/clusters/0/cluster/certificate-authority-data"));
        let ca_bundle = String::from_utf8(ca_bundle.expect("base64")).expect("PEM");
        let url = format!("{}{path}", text("/clusters/0/cluster/server"));
        let token = text("/users/0/user/token");
        json!({"side-effect": {"write": {"url": url, "token": token, "caBundle": ca_bundle, "body": body}}})
    }
}

fn config_map(metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Returns a behavior that allows dry runs, and applies `behavior` to other requests.
fn honest(behavior: &Value) -> Value {
    json!({"when": {"if": {"dry-run": true}, "then": "allow", "otherwise": behavior}})
}

/// Runs `admit verify` on a webhook that uses the kubeconfig from `--api-server-out`.
///
/// Returns the exit status, and the verdicts of V38, V39, and V40 with the messages of findings and the reasons for
/// skipped checks.
async fn verify(behavior: impl FnOnce(&Value) -> Value) -> (Option<i32>, [(Tally, String); 3]) {
    let (status, said) = verify_with("V38,V39,V40", behavior).await;
    (status, said.try_into().expect("three checks"))
}

/// Returns the same as [`verify`], for these checks.
async fn verify_with(
    checks: &str,
    behavior: impl FnOnce(&Value) -> Value,
) -> (Option<i32>, Vec<(Tally, String)>) {
    let (status, report) = report_of(checks, behavior).await;
    let said = |check: CheckReport| {
        let result = only(check.results);
        let findings = check.findings.iter().map(|finding| &finding.message);
        let texts: Vec<&str> = findings.chain(result.not_checked.keys()).map(String::as_str).collect();
        (result.verdict, texts.join("; "))
    };
    (status, report.checks.into_iter().map(said).collect())
}

async fn report_of(checks: &str, behavior: impl FnOnce(&Value) -> Value) -> (Option<i32>, Report) {
    report_about(&pods()[..1], checks, behavior).await
}

async fn report_about(
    objects: &[Value],
    checks: &str,
    behavior: impl FnOnce(&Value) -> Value,
) -> (Option<i32>, Report) {
    let authority = Arc::new(CertificateAuthority::new("test").expect("an authority"));
    let first = Fake { authority: Authority::Shared(Arc::clone(&authority)), ..Fake::default() };
    let fake = FakeWebhook::start(first).await.expect("the fake starts");
    let folder = tempfile::tempdir().expect("a folder");
    let entry = entry("w", &fake.url(), fake.ca_bundle());
    let configuration = configuration("ValidatingWebhookConfiguration", "c", &[entry]);
    std::fs::write(folder.path().join("c.yaml"), configuration.to_string()).expect("the file is written");
    let objects: Vec<String> = objects.iter().map(ToString::to_string).collect();
    std::fs::write(folder.path().join("p.yaml"), objects.join("\n---\n")).expect("the file is written");
    // The webhook listens only once it is started with the kubeconfig.
    let listen = fake.address();
    fake.stop().await;
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["verify", "-c", "c.yaml", "-f", "p.yaml", "--check", checks, "--wait", "60"]);
    command.args(["--api-server-out", "kubeconfig", "-o", "json"]).current_dir(folder.path());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let running = tokio::spawn(async move { command.output().await });

    let kubeconfig = written(&folder.path().join("kubeconfig")).await;
    let behavior = behavior(&kubeconfig).to_string();
    let behavior: Behavior = serde_saphyr::from_str(&behavior).expect("a behavior");
    let authority = Authority::Shared(authority);
    let started = FakeWebhook::start(Fake { behavior, authority, listen, ..Fake::default() }).await;
    let _fake = started.expect("the fake starts again");
    let output = running.await.expect("the command ends").expect("the command runs");
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("a report"))
}

fn only<T>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_creates_something_with_each_call_is_found_by_all_three() {
    let always_another = config_map(&json!({"generateName": "seen-"}));
    let (status, said) = verify(writing(OBJECTS, always_another)).await;
    assert_eq!((status, said.each_ref().map(|(verdict, _)| *verdict)), (Some(1), [Tally::Found; 3]));
    let [dry, real, again] = said.each_ref().map(|(_, text)| text.as_str());
    let expected =
        "in 2 dry runs, beginning with CREATE of pods bare, the webhook wrote 2 times, first POST ";
    assert!(dry.starts_with(expected) && dry.contains(OBJECTS), "{dry}");
    assert!(real.contains("the webhook wrote to the API server: ") && real.contains(OBJECTS), "{real}");
    assert_eq!(
        again,
        format!(
            "in 2 calls with a body that it had already answered, the webhook created 2 objects, first POST {OBJECTS}"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_invalid_response_does_not_hide_what_the_webhook_writes() {
    let is_bare = json!({"equals": {"/metadata/name": "bare"}});
    let invalid = |behavior: Value| json!({"when": {"if": is_bare, "then": {"fault": "E07-missing"}, "otherwise": behavior}});
    let always_another = config_map(&json!({"generateName": "seen-"}));
    let writes = |kubeconfig: &Value| invalid(writing(OBJECTS, always_another)(kubeconfig));
    let (status, report) = report_about(&pods(), "V38,V39,V40", writes).await;
    let verdicts: Vec<Tally> = report.checks.iter().map(|check| check.results[0].verdict).collect();
    assert_eq!((status, verdicts), (Some(1), vec![Tally::Found; 3]));

    let review =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}});
    let reads = |kubeconfig: &Value| invalid(writing(QUESTIONS, review)(kubeconfig));
    let (status, report) = report_about(&pods(), "V38,V39,V40", reads).await;
    // The run is incomplete, because the invalid response was not judged.
    assert_eq!(status, Some(6));
    for check in &report.checks {
        let result = &check.results[0];
        assert_eq!((result.verdict, result.held), (Tally::Passed, 1), "{check:#?}");
        let reasons: Vec<&str> = result.not_checked.keys().map(String::as_str).collect();
        assert!(matches!(reasons[..], [reason] if reason.contains("expected response.uid")), "{reasons:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_creates_an_object_once_is_found_for_its_declaration() {
    let once = writing(OBJECTS, config_map(&json!({"name": "once"})));
    let (status, said) = verify(|kubeconfig| honest(&once(kubeconfig))).await;
    let verdicts = [Tally::Passed, Tally::Found, Tally::Passed];
    assert_eq!((status, said.each_ref().map(|(verdict, _)| *verdict)), (Some(1), verdicts));
    assert!(said[1].1.contains("first POST"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limited_client_is_probed_before_it_stops_writing() {
    let always_another = config_map(&json!({"generateName": "seen-"}));
    // As many as client-go's event recorder allows at once.
    let limited = |kubeconfig: &Value| {
        let write = writing(OBJECTS, always_another)(kubeconfig);
        json!({"first": {"calls": 25, "of": write, "then": "allow"}})
    };
    let (status, said) = verify_with("V11,V38", limited).await;
    let verdicts: Vec<Tally> = said.iter().map(|(verdict, _)| *verdict).collect();
    assert_eq!((status, verdicts), (Some(1), vec![Tally::Passed, Tally::Found]), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_only_reads_passes() {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let passed = (Tally::Passed, String::new());
    let (status, said) = verify(writing(QUESTIONS, review)).await;
    assert_eq!((status, said), (Some(0), [passed.clone(), passed.clone(), passed]));
}

#[tokio::test(flavor = "multi_thread")]
async fn late_first_request_to_the_api_server_is_not_reported_as_missing() {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    // It sends a request about unreadable objects, which only V22 sends, after V38, V39, and V40.
    let asks = |kubeconfig: &Value| {
        let asking = writing(QUESTIONS, review)(kubeconfig);
        json!({"when": {"if": {"equals": {"/metadata": "unreadable"}}, "then": asking, "otherwise": "allow"}})
    };
    let (status, said) = verify_with("V38,V39,V40,V22", asks).await;
    assert_eq!(said.len(), 4);
    let unclear: Vec<&String> = said.iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
    assert_eq!((status, unclear), (Some(0), Vec::<&String>::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_webhook_that_does_not_use_the_kubeconfig_nothing_can_be_said() {
    let (status, said) = verify(|_| json!("allow")).await;
    assert_eq!(status, Some(6));
    for (verdict, reason) in said {
        assert_eq!(verdict, Tally::NotChecked);
        assert!(reason.contains("Check that it uses that kubeconfig"), "{reason}");
        assert!(reason.contains("omit --api-server-out"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unserved_resources_are_reported_once() {
    let (_, report) = report_of("V38,V39", writing("/apis/example.com/v1/widgets", json!({}))).await;
    let told: Vec<String> = report.unserved.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["create example.com/v1 widgets: 404 page not found"]);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "type": "kubernetes.io/dockercfg", "data": {".dockercfg": "eA=="},
    });
    let (_, report) = report_of("V38,V39", writing("/api/v1/namespaces/default/secrets", secret)).await;
    let told: Vec<String> = report.unserved.iter().map(ToString::to_string).collect();
    let expected = "create v1 secrets: 501 admit does not support this: the message for a Secret whose Docker \
                    configuration is not a JSON object";
    assert_eq!(told, [expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_of_a_silent_server_are_reported_together() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = silent.local_addr().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let entries = ["a", "b"].map(|name| {
        let mut entry = entry(name, &format!("https://{address}/{name}"), "");
        entry["timeoutSeconds"] = json!(1);
        entry
    });
    let configuration = configuration("ValidatingWebhookConfiguration", "c", &entries);
    std::fs::write(folder.path().join("c.yaml"), configuration.to_string()).expect("the file is written");
    std::fs::write(folder.path().join("p.yaml"), pods()[0].to_string()).expect("the file is written");
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["verify", "-v", "-c", "c.yaml", "-f", "p.yaml", "--check", "V11,V22", "--wait", "1"]);
    let output = command.current_dir(folder.path()).kill_on_drop(true).output().await.expect("it runs");
    let text = String::from_utf8(output.stdout).expect("a text");
    let why = format!("no TLS server at {address} within the 1 s of --wait");
    assert!(
        text.contains(&format!("warning: could not reach c/a.example.com, c/b.example.com: {why}\n")),
        "{text}"
    );
    assert!(
        text.contains(&format!("V11 not checked     c/a.example.com, c/b.example.com: {why}\n")),
        "{text}"
    );
    assert!(!text.contains("failed to call webhook"), "{text}");
    assert_eq!(output.status.code(), Some(6), "{text}");
}
