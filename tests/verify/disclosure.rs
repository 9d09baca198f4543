//! Tests which data leaves this machine, and how each output format and the proofs mask Secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry};

/// Starts a server that counts connections and never answers. Returns its port and the count.
async fn elsewhere() -> (u16, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connected = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connected);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, connected)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_here_sends_admit_elsewhere_only_with_yes() {
    for scheme in ["http", "https"] {
        let (port, connected) = elsewhere().await;
        let redirect = format!("raw: {{status: 307, headers: {{location: '{scheme}://127.0.0.1:{port}/'}}}}");
        let stage = Stage::with(&redirect).await;
        let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V28"];
        let text = ends_with(&stage.verify(&arguments).await, 1);
        assert!(text.contains("[V28]: HTTP status 307 redirects the review"), "{text}");
        assert!(text.contains("is not followed: it leaves the webhook's host and port"), "{text}");
        assert_eq!(connected.load(Ordering::SeqCst), 0, "{scheme}");

        let agreed = [&arguments[..], &["--yes"]].concat();
        ends_with(&stage.verify(&agreed).await, 1);
        assert!(connected.load(Ordering::SeqCst) > 0, "{scheme}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_behind_a_webhook_is_not_for_other_machines() {
    let stage = Stage::with("allow").await;
    let arguments = ["-c", "configuration.yaml", "--api-server-out", "kubeconfig"];
    let text =
        ends_with(&stage.verify(&[&arguments[..], &["--api-server-listen", "0.0.0.0:0"]].concat()).await, 2);
    assert!(text.contains("--api-server-listen: expected a loopback address"), "{text}");
    assert!(!stage.path("kubeconfig").exists());
}

/// The forms of `hunter2` and its mutation that could appear in output.
const VALUES: [&str; 4] = ["hunter2", "aHVudGVyMg", "correct horse", "Y29ycmVjdCBob3JzZQ"];

/// Starts a webhook for Secrets that changes a value in different ways, and responds only to reviews.
async fn stage() -> Stage {
    let patch = |operation: Value| json!({"patch": {"operations": [operation]}});
    let replaced = patch(json!({"op": "replace", "path": "/data/password", "value": "Y29ycmVjdCBob3JzZQ=="}));
    let added = patch(json!({"op": "add", "path": "/data/made", "value": "Y29ycmVjdCBob3JzZQ=="}));
    let behavior = json!({"when": {"if": {"in-review": "/request/uid"}, "then": {"cycle": [replaced, added]},
        "otherwise": {"bad-response": {"status": 500}}}})
    .to_string();
    let stage = Stage::with(&behavior).await;
    let mut entry = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    entry["rules"][0]["resources"] = json!(["secrets"]);
    stage.write("configuration.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[entry])]);
    let applied =
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVyMg=="}}).to_string();
    stage.write(
        "secrets.yaml",
        &[json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
            "data": {"password": "aHVudGVyMg=="}})],
    );
    stage
}

const EVERYWHERE: [&str; 15] = [
    "-c",
    "configuration.yaml",
    "-f",
    "secrets.yaml",
    "--check",
    "V01,V11,V16,V17,V20,V22,V24,V37",
    "--fail-on=never",
    "--junit",
    "junit.xml",
    "--sarif",
    "log.sarif",
    "--summary",
    "summary.md",
    "--proofs",
    "proofs",
];

/// Returns all files that a run has written.
fn written(stage: &Stage) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        ["junit.xml", "log.sarif", "summary.md"].map(|name| stage.path(name)).to_vec();
    for folder in std::fs::read_dir(stage.path("proofs")).expect("there are proofs") {
        let folder = folder.expect("it can be read").path();
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        files.extend(std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()));
    }
    files
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Returns the output of a run, with decoded patches.
fn said(output: &Output) -> String {
    legible(&format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Returns `text`, followed by the decoded form of the Base64-encoded patches in it.
fn legible(text: &str) -> String {
    use base64::Engine as _;
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"+/=".contains(letter));
    let decoded = words.filter_map(|word| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(word).ok()?;
        String::from_utf8(bytes).ok().filter(|text| text.starts_with('['))
    });
    let decoded: Vec<String> = decoded.collect();
    format!("{text}\n{}", decoded.join("\n"))
}

#[track_caller]
fn has_no_value(what: &str, text: &str) {
    for value in VALUES {
        assert!(!text.contains(value), "{value} in {what}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_secret_is_written_unless_it_is_asked_for() {
    let stage = stage().await;
    for format in ["text", "json", "yaml", "markdown"] {
        let mut command = stage.command(&[&EVERYWHERE[..], &["-o", format]].concat());
        command.env("GITHUB_ACTIONS", "true");
        let output = Stage::run(command).await;
        ends_with(&output, 0);
        has_no_value(format, &said(&output));
    }
    let files = written(&stage);
    assert!(files.len() > 10, "{files:?}");
    for file in &files {
        let text = std::fs::read_to_string(file).expect("it can be read");
        has_no_value(&file.display().to_string(), &legible(&text));
        assert_eq!(mode(file), 0o600, "{}: {:o}", file.display(), mode(file));
    }

    let shown = stage.verify(&[&EVERYWHERE[..], &["-o", "json", "--show-secrets"]].concat()).await;
    let text = said(&shown);
    assert!(text.contains("aHVudGVyMg==") && text.contains("Y29ycmVjdCBob3JzZQ=="), "{text}");
    // A report that was not masked is masked when it is merged.
    std::fs::write(stage.path("report.json"), &shown.stdout).expect("it is written");
    let merge = ["merge", "report.json", "-o", "json", "--fail-on=never"];
    has_no_value("merge", &said(&stage.verify(&merge).await));
    let text = said(&stage.verify(&[&merge[..], &["--show-secrets"]].concat()).await);
    assert!(text.contains("aHVudGVyMg=="), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn masked_proof_can_be_sent_and_states_that_it_is_masked() {
    let appending = json!({"patch": {"operations": [{"op": "add", "path": "/data/made", "value": "eA=="}]}});
    let stage = Stage::with(&json!({"sequence": [appending, "allow"]}).to_string()).await;
    let mut entry = entry("w", &stage.fake.url(), stage.fake.ca_bundle());
    entry["rules"][0]["resources"] = json!(["secrets"]);
    stage.write("configuration.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[entry])]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"password": "aHVudGVyMg=="}});
    stage.write("secrets.yaml", &[secret]);
    let arguments =
        ["-c", "configuration.yaml", "-f", "secrets.yaml", "--check", "V11", "--proofs", "proofs"];
    ends_with(&stage.verify(&arguments).await, 1);
    let proof = stage.path("proofs/V11-1-c_w.example.com");
    let readme = std::fs::read_to_string(proof.join("README.md")).expect("it can be read");
    assert!(
        readme.contains("Values of Secrets are masked") && readme.contains("`--show-secrets`"),
        "{readme}"
    );
    let line = readme.lines().find_map(|line| line.trim().strip_prefix("$ admit ")).expect("a command");
    let review = Command::new(env!("CARGO_BIN_EXE_admit")).args(line.split(' ')).current_dir(&proof).output();
    let review = review.expect("the command runs");
    assert_eq!(review.status.code(), Some(0), "{review:?}");
    let sent = stage.fake.journal().last().map(|call| call.body.clone()).expect("it is called");
    let sent: Value = serde_json::from_slice(&sent).expect("a review");
    assert_eq!(sent["request"]["object"]["data"], json!({"password": "Kioq"}));
}
