//! Tests the credentials in `--admission-control-config-file` on admit and kube-apiserver.
//!
//! Both must send the same requests to webhooks.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]

mod configurations;
mod exec;
mod fakes;
mod proves;
mod shipped;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use serde_json::{Value, json};

use crate::helpers::machine;

/// A user, and the request or the error of kube-apiserver 1.37.1 for a webhook that is called as this user.
struct Situation {
    name: &'static str,
    /// The name of the user entry, with the placeholder PORT; empty without an entry.
    user: &'static str,
    credentials: &'static str,
    expect: Result<&'static [&'static str], &'static str>,
}

const SITUATIONS: [Situation; 12] = [
    Situation {
        name: "token",
        user: "127.0.0.1:PORT",
        credentials: "token: secret",
        expect: Ok(&["authorization: Bearer secret"]),
    },
    Situation {
        name: "token-of-a-wildcard",
        user: "*.0.1:PORT",
        credentials: "token: wild",
        expect: Ok(&["authorization: Bearer wild"]),
    },
    Situation {
        name: "token-file",
        user: "127.0.0.1:PORT",
        credentials: "tokenFile: token",
        expect: Ok(&["authorization: Bearer from-the-file"]),
    },
    Situation {
        name: "token-file-before-token",
        user: "127.0.0.1:PORT",
        credentials: "token: spare, tokenFile: token",
        expect: Ok(&["authorization: Bearer from-the-file"]),
    },
    Situation {
        name: "token-without-its-file",
        user: "127.0.0.1:PORT",
        credentials: "token: spare, tokenFile: nowhere",
        expect: Ok(&["authorization: Bearer spare"]),
    },
    Situation {
        name: "basic",
        user: "127.0.0.1:PORT",
        credentials: "username: jane, password: doe",
        expect: Ok(&["authorization: Basic amFuZTpkb2U="]),
    },
    Situation {
        name: "impersonation",
        user: "127.0.0.1:PORT",
        credentials: "token: t, as: jane, as-uid: '7', as-groups: [g, h], as-user-extra: {a/b: [x]}",
        expect: Ok(&[
            "authorization: Bearer t",
            "impersonate-extra-a%2fb: x",
            "impersonate-group: g",
            "impersonate-group: h",
            "impersonate-uid: 7",
            "impersonate-user: jane",
        ]),
    },
    Situation { name: "anonymous", user: "", credentials: "", expect: Ok(&[]) },
    Situation {
        name: "token-and-basic",
        user: "127.0.0.1:PORT",
        credentials: "token: t, username: jane",
        expect: Err("could not get REST client: username/password or bearer token may be set, but not both"),
    },
    Situation {
        name: "no-token-file",
        user: "127.0.0.1:PORT",
        credentials: "tokenFile: nowhere",
        expect: Err("could not get REST client: open FOLDER/nowhere: no such file or directory"),
    },
    Situation {
        name: "no-certificate-file",
        user: "127.0.0.1:PORT",
        credentials: "client-certificate: nowhere, client-key: nowhere",
        expect: Err("could not get REST client: open FOLDER/nowhere: no such file or directory"),
    },
    Situation {
        name: "auth-provider",
        user: "127.0.0.1:PORT",
        credentials: "auth-provider: {name: gcp}",
        expect: Err("could not get REST client: auth provider not supported"),
    },
];

/// Webhooks that allow requests, and a directory with a configuration, a kubeconfig, manifests, and a feature.
struct Stage {
    folder: tempfile::TempDir,
    webhooks: Vec<FakeWebhook>,
    /// The webhook that the validating plugin calls. The plugin has a separate kubeconfig.
    validating: FakeWebhook,
    /// A webhook that redirects to `anonymous`.
    redirecting: FakeWebhook,
}

async fn webhook(behavior: Value) -> FakeWebhook {
    let behavior = serde_json::from_value(behavior).expect("a behavior");
    FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the webhook starts")
}

/// Returns the entry of a webhook at the URL of the first of `webhooks`. It trusts the CAs of all `webhooks`.
fn entry(name: &str, webhooks: &[&FakeWebhook]) -> Value {
    let bundle: String = webhooks.iter().map(|webhook| webhook.ca_bundle()).collect();
    let webhook = webhooks.first().expect("a webhook to call");
    let rule =
        json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
    let client = json!({
        "url": format!("https://127.0.0.1:{}/", webhook.address().port()),
        "caBundle": STANDARD.encode(bundle),
    });
    json!({
        "name": format!("{name}.example.com"), "rules": [rule], "clientConfig": client,
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    })
}

fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> String {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": webhooks,
    })
    .to_string()
}

/// Writes the configuration file for both webhook plugins: one configuration is inline, the other in a separate file.
///
/// The server ignores the last entries in the file: duplicates of a plugin, and entries of disabled plugins.
fn admission(folder: &Path, mutating: &str, validating: &str) -> String {
    let configuration = |kubeconfig: &str| {
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": folder.join(kubeconfig),
        })
    };
    let beside = configuration(validating).to_string();
    std::fs::write(folder.join("webhook-admission.json"), beside).expect("it is written");
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [
            {"name": "MutatingAdmissionWebhook", "configuration": configuration(mutating)},
            {"name": "ValidatingAdmissionWebhook", "path": "webhook-admission.json"},
            {"name": "MutatingAdmissionWebhook", "path": "nowhere"},
            {"name": "ImagePolicyWebhook", "path": "nowhere"},
        ],
    });
    configuration.to_string()
}

/// Runs `authentication.feature` in `folder` with a configuration file.
async fn run(folder: &Path, target: &str, configuration: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["run", "authentication.feature", "--jobs", "1", "--target", target]);
    command.arg("--admission-control-config-file").arg(configuration);
    command.current_dir(folder).env("NO_COLOR", "1");
    // Credential plugins are searched in PATH.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).expect("folders of PATH"));
    let output = tokio::task::spawn_blocking(move || command.output().expect("the command runs"));
    let output = output.await.expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the webhook of the situation that does not have a user entry.
fn anonymous(webhooks: &[FakeWebhook]) -> &FakeWebhook {
    let mut webhooks = SITUATIONS.iter().zip(webhooks);
    webhooks
        .find_map(|(situation, webhook)| situation.user.is_empty().then_some(webhook))
        .expect("one has no user")
}

impl Stage {
    async fn new() -> Self {
        let mut webhooks = Vec::new();
        for _ in &SITUATIONS {
            webhooks.push(webhook(json!("allow")).await);
        }
        let validating = webhook(json!("allow")).await;
        let anonymous =
            SITUATIONS.iter().position(|situation| situation.user.is_empty()).expect("one has no user");
        let anonymous = webhooks.get(anonymous).expect("a webhook for each situation");
        let to = format!("https://127.0.0.1:{}/led", anonymous.address().port());
        let redirecting = webhook(json!({"raw": {"status": 307, "headers": {"Location": to}}})).await;
        let stage =
            Self { folder: tempfile::tempdir().expect("a folder"), webhooks, validating, redirecting };
        stage.write();
        stage
    }

    fn write(&self) {
        let folder = self.folder.path();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it is written");
        write("token", "from-the-file\n");
        let mut users = String::from("users:\n");
        let mut feature = String::from("Feature: Authentication\n");
        let mut scenario = |name: &str, outcome: &str| {
            let _ = write!(
                feature,
                "  Scenario: {name}\n    Given the objects in the file \"{name}.json\" exist\n    \
                 When a pod is created\n    {outcome}\n"
            );
        };
        for (situation, webhook) in SITUATIONS.iter().zip(&self.webhooks) {
            let port = webhook.address().port().to_string();
            if !situation.user.is_empty() {
                let (user, credentials) = (situation.user.replace("PORT", &port), situation.credentials);
                let _ = writeln!(users, "- {{name: \"{user}\", user: {{{credentials}}}}}");
            }
            write(
                &format!("{}.json", situation.name),
                &configuration("MutatingWebhookConfiguration", situation.name, &[entry("hook", &[webhook])]),
            );
            scenario(
                situation.name,
                &match situation.expect {
                    Ok(_) => "Then the request is admitted".to_owned(),
                    Err(text) => format!(
                        "Then the request is rejected with 500\n    And the message contains \"{}\"",
                        text.replace("FOLDER", &folder.display().to_string())
                    ),
                },
            );
        }
        let redirecting = self.redirecting.address().port();
        let _ = writeln!(users, "- {{name: \"127.0.0.1:{redirecting}\", user: {{token: led-away}}}}");
        write("kubeconfig", &users);
        write(
            "redirecting.json",
            &configuration(
                "MutatingWebhookConfiguration",
                "redirecting",
                &[entry("hook", &[&self.redirecting, anonymous(&self.webhooks)])],
            ),
        );
        scenario("redirecting", "Then the request is admitted");
        write(
            "validating-kubeconfig",
            "users: [{name: v, user: {token: context}}]\ncontexts: [{name: c, context: {user: v}}]\ncurrent-context: c\n",
        );
        write(
            "validating.json",
            &configuration(
                "ValidatingWebhookConfiguration",
                "validating",
                &[entry("hook", &[&self.validating])],
            ),
        );
        scenario("validating", "Then the request is admitted");
        write("authentication.feature", &feature);
        write("admission.json", &admission(folder, "kubeconfig", "validating-kubeconfig"));
    }

    /// Runs the feature, and checks the webhook calls.
    async fn check(&self, target: &str) {
        run(self.folder.path(), target, Path::new("admission.json")).await;
        for (situation, webhook) in SITUATIONS.iter().zip(&self.webhooks) {
            let direct = calls(webhook, "/");
            let expect = situation.expect.map_or(Vec::new(), |headers| vec![headers.to_vec()]);
            assert_eq!(direct, expect, "{}", situation.name);
            // The credentials are also sent to the target of a redirect.
            let led: &[&[&str]] =
                if situation.user.is_empty() { &[&["authorization: Bearer led-away"]] } else { &[] };
            assert_eq!(calls(webhook, "/led"), led, "{}", situation.name);
        }
        assert_eq!(calls(&self.redirecting, "/"), [["authorization: Bearer led-away"]]);
        assert_eq!(calls(&self.validating, "/"), [["authorization: Bearer context"]]);
    }
}

/// Returns the authentication headers of each call to this path, in alphabetical order.
fn calls(webhook: &FakeWebhook, path: &str) -> Vec<Vec<String>> {
    let is_about_the_caller = |name: &str| name == "authorization" || name.starts_with("impersonate-");
    let of = |headers: &[(String, String)]| {
        let headers = headers.iter().map(|(name, value)| (name.to_lowercase(), value));
        let mut headers: Vec<String> = headers
            .filter(|(name, _)| is_about_the_caller(name))
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        headers.sort();
        headers
    };
    let journal = webhook.journal();
    journal.iter().filter(|call| call.path == path).map(|call| of(&call.headers)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_sends_the_credentials_of_a_kubeconfig() {
    Stage::new().await.check("in-process").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_sends_the_same() {
    if machine::has_kube_apiserver() {
        Stage::new().await.check("envtest").await;
    }
}
