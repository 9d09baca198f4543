//! Opens the pages of `admit report` and `--html` in Chromium, and rebuilds the bundle of scripts and styles.
//!
//! Needs Node.js, the packages of `report` (`npm ci --prefix report`), and Chromium; without them, tests are skipped
//! with a message. The tests write screenshots to `target/report`.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use fake_webhooks::{Behavior, Fake, FakeWebhook};
use serde_json::{Value, json};

use super::helpers::machine;

const POD: &str = include_str!("../report/example/pod.yaml");

/// A Pod in a namespace that the webhooks of [`FAKES`] ignore.
const SYSTEM_POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: db, namespace: kube-system}
spec: {containers: [{name: db, image: postgres}]}
";

/// A fakes file: one webhook is reinvoked, one fails open, one denies, and some are not called.
const FAKES: &str = include_str!("../report/example/fakes.yaml");

const FEATURE: &str = "Feature: Failures
  Scenario: An object with another label
    Given a mutating webhook \"labels\" for configmaps
    And \"labels\" adds the label \"team=blue\"
    When this object is created:
      \"\"\"
      {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      \"\"\"
    Then the stored configmap \"a\" contains:
      \"\"\"
      metadata: {labels: {team: red}}
      \"\"\"
";

/// A fakes file with webhooks whose messages and patches contain markup and scripts.
const HOSTILE: &str = r#"version: 1
webhooks:
- name: evil
  type: mutating
  namespaceSelector: {}
  behavior:
    patch:
      operations:
      - op: add
        path: /metadata/annotations
        value: {x: "</script><script>globalThis.pwned = 1</script>\u2028", y: "<img src=x onerror='globalThis.pwned=1'>\u202etxt"}
      warnings: ["<script>globalThis.pwned = 1</script>"]
- name: worse
  type: validating
  namespaceSelector: {}
  behavior: {deny: {message: "<img src=x onerror='globalThis.pwned = 1'>\n</pre></script><script>pwned = 1</script>"}}
"#;

/// The marker of a directory of `admit pull`, which could not read a resource.
const PULL: &str = "apiVersion: admit.dev/v1alpha1
kind: Pull
format: 1
serverVersion: v1.37.1
unread:
- {resource: limitranges, code: 403, reason: Forbidden, message: m, uncertain: the limits of Pods}
files: []
";

/// A fakes file with a webhook whose response repeats the request.
const ECHO: &str = "version: 1
webhooks:
- name: echo
  type: validating
  namespaceSelector: {}
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods, secrets], operations: [CREATE]}]
  behavior: {bad-response: echoed-request}
";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn admit(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .env_remove("GITHUB_ACTIONS")
        .output()
        .unwrap()
}

/// Runs `admit` with the arguments in `line`. It must exit with one of these statuses.
fn run(folder: &Path, line: &str, statuses: &[i32]) {
    let output = admit(folder, line);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(statuses.contains(&output.status.code().unwrap()), "{line}: {text}");
}

/// Returns whether the packages of `report` are installed; otherwise skips the test.
pub(crate) fn has_packages() -> bool {
    let is_installed = root().join("report/node_modules/esbuild").is_dir();
    if !is_installed {
        machine::skipped("the packages of report are not installed: run npm ci --prefix report");
    }
    is_installed && machine::has_node()
}

pub(crate) fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file());
    if found.is_none() {
        machine::skipped("chromium is not on PATH");
    }
    found
}

pub(crate) fn node(arguments: &[&Path], chromium: Option<&Path>) {
    let mut command = Command::new("node");
    if let Some(chromium) = chromium {
        command.env("CHROMIUM", chromium);
    }
    let output = command.args(arguments).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
}

#[test]
fn committed_bundle_matches_its_sources() {
    if has_packages() {
        node(&[&root().join("report/build.mjs"), Path::new("--check")], None);
    }
}

#[test]
fn unknown_report_is_rejected_with_its_name_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old.json"), r#"{"version": 1, "checks": [], "leftOut": {}}"#).unwrap();
    let output = admit(folder.path(), "report old.json --html out.html");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        error,
        "error: old.json: unsupported report of admit verify of version 1: expected version 2\n"
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn reviews_and_responses_are_shown_on_request_but_not_for_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("fakes.yaml", ECHO);
    write("pod.yaml", POD);
    write(
        "secret.yaml",
        "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: hunter2hunter2}}",
    );
    let first = |line: &str| -> Value {
        let output = admit(folder.path(), line);
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report.pointer_mut("/calls/0").unwrap().take()
    };
    let call = first("review -f pod.yaml --fakes fakes.yaml -o json");
    assert_eq!((call.get("request"), call.get("response")), (None, None));
    let call = first("review -f pod.yaml --fakes fakes.yaml -o json --show-reviews");
    assert_eq!(call.pointer("/request/uid"), call.pointer("/response/response/uid"));
    let call = first("review -f secret.yaml --fakes fakes.yaml -o json --show-reviews");
    assert_eq!(call.get("response"), None);
    assert!(!call.to_string().contains("hunter2hunter2"), "{call}");
}

/// Starts webhooks with defects and writes their configuration.
async fn webhooks(folder: &Path) -> Vec<FakeWebhook> {
    let mut fakes = Vec::new();
    let mut configurations = Vec::new();
    let overwrites = json!({"mutate": [{"set": {"/metadata/annotations/example.com~1injected": "no"}}]});
    for (kind, configuration, name, behavior) in [
        ("Mutating", "hooks", "injector", json!({"non-idempotent": {"annotation": "example.com/injected"}})),
        ("Mutating", "zzz", "overwriter", overwrites),
        ("Validating", "hooks", "policy", json!("deny")),
        ("Validating", "hooks", "fine", json!("allow")),
    ] {
        let behavior: Behavior = serde_json::from_value(behavior).unwrap();
        let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap();
        let ca_bundle = base64::engine::general_purpose::STANDARD.encode(fake.ca_bundle());
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE", "UPDATE"]});
        configurations.push(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": configuration},
            "webhooks": [{
                "name": format!("{name}.example.com"), "rules": [rule], "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "clientConfig": {"url": fake.url(), "caBundle": ca_bundle},
            }],
        }));
        fakes.push(fake);
    }
    let documents: Vec<String> = configurations.iter().map(Value::to_string).collect();
    fs::write(folder.join("webhooks.yaml"), documents.join("\n---\n")).unwrap();
    fakes
}

/// Returns a report of a request for a large object, with 1,000 webhooks.
fn large() -> Value {
    let data: serde_json::Map<String, Value> =
        (0..20_000).map(|key| (format!("key-{key}"), format!("{key:040}").into())).collect();
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data});
    let webhooks: Vec<Value> = (0..1_000)
        .map(|number| {
            json!({
                "type": "validating", "configuration": "many", "name": format!("w{number}.example.com"),
                "failurePolicy": "Fail", "considered": true, "called": false,
                "skipped": [{"round": 1, "test": "rules", "reason": "none of its rules matches the request"}],
            })
        })
        .collect();
    json!({
        "apiVersion": "admit.dev/v1alpha1", "kind": "AdmissionReport", "source": {"file": "large.yaml", "line": 1},
        "request": {
            "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"}, "namespace": "default",
            "name": "large", "userInfo": {"username": "jane"}, "dryRun": false, "object": object,
        },
        "decision": {"verdict": "admitted", "allowed": true, "code": 201, "message": "configmap/large created"},
        "warnings": [], "auditAnnotations": {}, "webhooks": webhooks, "calls": [], "steps": [], "object": object,
        "notes": [], "durationMs": 12.5,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_work_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let fakes = webhooks(folder.path()).await;
    let folder_path = folder.path().to_owned();
    let test = move || {
        let folder = folder_path.as_path();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("pods.yaml", &format!("{POD}---\n{SYSTEM_POD}"));
        write("pod.yaml", POD);
        write("fakes.yaml", FAKES);
        write("hostile.yaml", HOSTILE);
        write("differs.feature", FEATURE);
        write("large.json", &large().to_string());
        fs::copy(root().join("tests/features/passes.feature"), folder.join("passes.feature")).unwrap();
        fs::copy(root().join("tests/features/fails.feature"), folder.join("fails.feature")).unwrap();
        fs::create_dir(folder.join("pages")).unwrap();
        run(folder, "review -f pod.yaml --fakes fakes.yaml --html pages/review.html", &[1]);
        run(folder, "review -f pods.yaml --fakes fakes.yaml --html pages/requests.html", &[1]);
        run(folder, "review -f pod.yaml --fakes hostile.yaml --html pages/hostile.html", &[1]);
        fs::create_dir(folder.join("cluster")).unwrap();
        write("cluster/.admit-pull.yaml", PULL);
        fs::copy(folder.join("webhooks.yaml"), folder.join("cluster/webhooks.yaml")).unwrap();
        run(folder, "review -f pod.yaml --cluster cluster --html pages/conditional.html", &[6]);
        run(
            folder,
            "run passes.feature fails.feature differs.feature --html pages/run.html --json run.json",
            &[1],
        );
        fs::copy(root().join("tests/lint/findings/L19-field.yaml"), folder.join("policies.yaml")).unwrap();
        run(folder, "lint -c webhooks.yaml policies.yaml --html pages/lint.html", &[0, 1]);
        let checks = "--check V01,V06,V09,V10,V17,V21,V23,V25,V38";
        run(folder, &format!("verify -c webhooks.yaml -f pod.yaml {checks} --html pages/verify.html"), &[1]);
        run(folder, "report large.json --html pages/large.html", &[0]);
        run(folder, "report run.json large.json --html pages/several.html", &[0]);
        let pages = fs::read_dir(folder.join("pages")).unwrap();
        assert!(pages.flatten().all(|page| page.metadata().unwrap().len() < 1 << 20));
        if has_packages()
            && let Some(chromium) = chromium()
        {
            let (script, screenshots) =
                (root().join("report/test/browser.mjs"), root().join("target/report"));
            node(&[&script, &folder.join("pages"), &screenshots], Some(&chromium));
        }
    };
    tokio::task::spawn_blocking(test).await.unwrap();
    drop(fakes);
}
