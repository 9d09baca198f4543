//! Tests users whose credentials come from a program (`exec` in a kubeconfig).

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::CertificateAuthority;
use fake_webhooks::{Authority, Connection, Fake, FakeWebhook};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{admission, calls, configuration, entry, machine, run};

/// A credential plugin that prints the credentials that its arguments name, and counts its runs.
const PLUGIN: &str = include_str!("plugin.sh");
const REFUSED: &str = include_str!("refused.yaml");

/// A user, the webhooks that are called with its credentials, and what kube-apiserver 1.37.1 does.
struct Situation {
    name: String,
    /// The number of webhooks in the configuration. They have the same URL, and are called in order.
    calls: usize,
    /// The user entry, with the placeholders NAME for the situation and FOLDER for the directory of the kubeconfig.
    user: String,
    /// The expected number of runs of the plugin.
    runs: usize,
    expect: Expect,
}

enum Expect {
    /// The `Authorization` header of each call.
    Sent(&'static [&'static str]),
    /// The `Authorization` header of each call to a webhook that responds with status 401.
    Unauthorized(&'static [&'static str]),
    /// The token is a Base64-encoded `KUBERNETES_EXEC_INFO` with this `spec`.
    Info(&'static str, fn(&FakeWebhook) -> Value),
    /// The webhook requires a client certificate for `jane`, and the plugin prints one.
    Certificate,
    /// The webhook is not called. Contains a part of the error message.
    Refused(String),
}

/// Returns a user entry with the plugin for `client.authentication.k8s.io/v1`, with arguments after its name.
fn plugin(arguments: &str) -> String {
    format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: ./plugin.sh, \
         env: [{{name: WHO, value: jane}}], args: [NAME, {arguments}]}}"
    )
}

fn sent(name: &str, user: String, headers: &'static [&'static str]) -> Situation {
    Situation { name: name.to_owned(), calls: headers.len(), user, runs: 1, expect: Expect::Sent(headers) }
}

fn cluster(webhook: &FakeWebhook) -> Value {
    json!({
        "server": format!("https://127.0.0.1:{}", webhook.address().port()),
        "certificate-authority-data": STANDARD.encode(webhook.ca_bundle()),
        "config": null,
    })
}

fn situations() -> Vec<Situation> {
    let beta = "apiVersion: client.authentication.k8s.io/v1beta1, command: ./plugin.sh";
    let info = "command: ./plugin.sh, args: [NAME, info], provideClusterInfo: true, apiVersion";
    let mut situations = vec![
        sent("arguments-and-env", plugin("token, a, 'b c'"), &["Bearer jane-a-b c"]),
        sent("yaml", plugin("yaml"), &["Bearer yaml"]),
        sent("v1beta1", format!("exec: {{{beta}, args: [NAME, beta]}}"), &["Bearer beta"]),
        sent(
            "found-in-path",
            "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: plugin.sh, args: [NAME, beta]}"
                .to_owned(),
            &["Bearer beta"],
        ),
        sent("cached", plugin("count"), &["Bearer run-1", "Bearer run-1"]),
        Situation {
            runs: 2,
            ..sent("expired", plugin("expired"), &["Bearer run-1", "Bearer run-2"])
        },
        sent(
            "without-its-kind",
            plugin("print, '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"t\"}}'"),
            &["Bearer t"],
        ),
        // The first call ends before the plugin prints.
        Situation { calls: 2, ..sent("too-late-for-the-first", plugin("late"), &["Bearer run-1"]) },
        sent("good-until-later", plugin("good"), &["Bearer run-1", "Bearer run-1"]),
        Situation {
            runs: 0,
            ..sent("token-before-exec", format!("token: t, {}", plugin("count")), &["Bearer t"])
        },
        Situation {
            runs: 0,
            ..sent("basic-before-exec", format!("username: a, password: b, {}", plugin("count")), &["Basic YTpi"])
        },
        Situation {
            name: "unauthorized".to_owned(),
            calls: 2,
            user: plugin("count"),
            runs: 3,
            expect: Expect::Unauthorized(&["Bearer run-1", "Bearer run-2"]),
        },
        Situation {
            name: "client-certificate".to_owned(),
            calls: 2,
            user: plugin("file, certificate.json"),
            runs: 1,
            expect: Expect::Certificate,
        },
        Situation {
            name: "info".to_owned(),
            calls: 1,
            user: plugin("info"),
            runs: 1,
            expect: Expect::Info("v1", |_| json!({"interactive": false})),
        },
        Situation {
            name: "info-of-the-cluster".to_owned(),
            calls: 1,
            user: format!("exec: {{{info}: client.authentication.k8s.io/v1, interactiveMode: IfAvailable}}"),
            runs: 1,
            expect: Expect::Info("v1", |webhook| json!({"interactive": false, "cluster": cluster(webhook)})),
        },
        Situation {
            name: "info-of-v1beta1".to_owned(),
            calls: 1,
            user: format!("exec: {{{}: client.authentication.k8s.io/v1beta1}}", info.replace("info", "info-beta")),
            runs: 1,
            expect: Expect::Info("v1beta1", |webhook| {
                json!({"interactive": false, "cluster": cluster(webhook)})
            }),
        },
    ];
    situations.extend(refusals());
    situations
}

/// Returns the names of all situations.
pub(crate) fn names() -> impl Iterator<Item = String> {
    situations().into_iter().map(|situation| situation.name)
}

/// A plugin in `refused.yaml` whose credentials are rejected, or that does not run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RejectedPlugin {
    name: String,
    /// The arguments of a plugin that runs.
    prints: Option<String>,
    /// A user entry whose plugin does not run.
    user: Option<String>,
    message: String,
}

fn refusals() -> impl Iterator<Item = Situation> {
    let refusals: Vec<RejectedPlugin> = serde_saphyr::from_str(REFUSED).expect("the file can be read");
    assert!(!refusals.is_empty());
    refusals.into_iter().map(|RejectedPlugin { name, prints, user, message }| {
        let (user, runs) = match (prints, user) {
            (Some(prints), None) => (plugin(&prints), 1),
            (None, Some(user)) => (user, 0),
            (Some(_), Some(_)) | (None, None) => panic!("{name}: either `prints` or `user` is wanted"),
        };
        Situation { name, calls: 1, user, runs, expect: Expect::Refused(message) }
    })
}

/// The webhooks, and a directory with the plugin, a configuration, a kubeconfig, manifests, and a feature.
struct Stage {
    folder: tempfile::TempDir,
    situations: Vec<(Situation, FakeWebhook)>,
}

impl Stage {
    async fn new() -> Self {
        let authority = Arc::new(CertificateAuthority::new("authority").expect("an authority"));
        let certificate = authority.issue_for_client("jane").expect("a certificate");
        let mut situations = Vec::new();
        for situation in self::situations() {
            let behavior = match situation.expect {
                Expect::Unauthorized(_) => json!({"raw": {"status": 401}}),
                Expect::Certificate => json!({"demand": {"credentials": {"certificate": "jane"}}}),
                Expect::Sent(_) | Expect::Info(..) | Expect::Refused(_) => json!("allow"),
            };
            let behavior = serde_json::from_value(behavior).expect("a behavior");
            let connection = match situation.expect {
                Expect::Certificate => Connection::ClientCertificate,
                Expect::Sent(_) | Expect::Unauthorized(_) | Expect::Info(..) | Expect::Refused(_) => {
                    Connection::Accepted
                }
            };
            let authority = Authority::Shared(Arc::clone(&authority));
            let fake = Fake { behavior, connection, authority, ..Fake::default() };
            let webhook = FakeWebhook::start(fake).await.expect("the webhook starts");
            situations.push((situation, webhook));
        }
        let stage = Self { folder: tempfile::tempdir().expect("a folder"), situations };
        let printed = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"clientCertificateData": certificate.certificate_pem, "clientKeyData": certificate.key_pem},
        });
        let file = stage.folder.path().join("certificate.json");
        std::fs::write(file, printed.to_string()).expect("it is written");
        stage.write();
        stage
    }

    fn write(&self) {
        let folder = self.folder.path();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it is written");
        let executable = |name: &str| {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(folder.join(name), mode).expect("it is executable");
        };
        write("plugin.sh", PLUGIN);
        executable("plugin.sh");
        write("no-script", "echo\n");
        executable("no-script");
        std::fs::create_dir(folder.join("folder")).expect("a folder");
        let mut users = String::from("users:\n");
        let mut feature = String::from("Feature: Credential plugins\n");
        for (situation, webhook) in &self.situations {
            let Situation { name, calls, user, expect, .. } = situation;
            let port = webhook.address().port();
            let user = user.replace("NAME", name).replace("FOLDER", &folder.display().to_string());
            let _ = writeln!(users, "- {{name: \"127.0.0.1:{port}\", user: {{{user}}}}}");
            let entries = (0..*calls).map(|index| {
                let mut entry = entry(&format!("hook-{index}"), &[webhook]);
                let members = entry.as_object_mut().expect("an object");
                if *calls > 1 {
                    members.insert("failurePolicy".to_owned(), json!("Ignore"));
                }
                if index == 0 && user.contains("late]") {
                    members.insert("timeoutSeconds".to_owned(), json!(1));
                }
                entry
            });
            let entries: Vec<Value> = entries.collect();
            write(&format!("{name}.json"), &configuration("MutatingWebhookConfiguration", name, &entries));
            let outcome = match expect {
                Expect::Sent(_) | Expect::Info(..) | Expect::Unauthorized(_) | Expect::Certificate => {
                    "Then the request is admitted".to_owned()
                }
                Expect::Refused(text) => {
                    let text = text.replace("FOLDER", &folder.display().to_string());
                    let parts =
                        text.split('\n').flat_map(|line| line.split('"')).filter(|part| !part.is_empty());
                    let mut steps = String::from("Then the request is rejected with 500");
                    for part in parts {
                        let _ = write!(steps, "\n    And the message contains \"{part}\"");
                    }
                    steps
                }
            };
            let _ = write!(
                feature,
                "  Scenario: {name}\n    Given the objects in the file \"{name}.json\" exist\n    \
                 When a pod is created\n    {outcome}\n"
            );
        }
        write("kubeconfig", &users);
        write("authentication.feature", &feature);
        write("admission.json", &admission(folder, "kubeconfig", "kubeconfig"));
    }

    /// Runs the feature, and checks the webhook calls and the number of plugin runs.
    async fn check(&self, target: &str) {
        run(self.folder.path(), target, Path::new("admission.json")).await;
        for (situation, webhook) in &self.situations {
            let name = &situation.name;
            let found = calls(webhook, "/");
            let headers = |headers: &[&str]| {
                headers.iter().map(|header| vec![format!("authorization: {header}")]).collect::<Vec<_>>()
            };
            match &situation.expect {
                Expect::Sent(expect) | Expect::Unauthorized(expect) => {
                    assert_eq!(found, headers(expect), "{name}");
                }
                Expect::Certificate => {
                    let journal = webhook.journal();
                    let shown: Vec<_> = journal.iter().map(|call| call.certificate.as_deref()).collect();
                    assert_eq!(shown, [Some("jane"); 2], "{name}");
                    assert_eq!(found, [[""; 0]; 2], "{name}");
                }
                Expect::Refused(_) => assert!(found.is_empty(), "{name}: {found:?}"),
                Expect::Info(version, spec) => {
                    let info = json!({
                        "apiVersion": format!("client.authentication.k8s.io/{version}"),
                        "kind": "ExecCredential",
                        "spec": spec(webhook),
                    });
                    assert_eq!(
                        found.iter().flatten().map(|header| decoded(header)).collect::<Vec<_>>(),
                        [info],
                        "{name}"
                    );
                }
            }
            let runs = std::fs::read(self.folder.path().join(format!("runs-{name}"))).unwrap_or_default();
            assert_eq!(runs.len(), situation.runs, "{name}");
        }
    }
}

/// Decodes the JSON object in a bearer token.
fn decoded(header: &str) -> Value {
    let token = header.strip_prefix("authorization: Bearer ").expect("a token");
    let text = STANDARD.decode(token).expect("it is Base64");
    assert!(text.ends_with(b"}\n"), "{}", String::from_utf8_lossy(&text));
    serde_json::from_slice(&text).expect("it is JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_uses_the_credentials_that_a_plugin_prints() {
    Stage::new().await.check("in-process").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_takes_the_same() {
    if machine::has_kube_apiserver() {
        Stage::new().await.check("envtest").await;
    }
}
