//! Tests `admit serve --fakes`.

use std::fs;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::serve;
use crate::helpers::serve::Serve;

/// A fake that requires a token, and then denies.
const GUARDED: &str = "version: 1
webhooks:
- name: guarded
  type: validating
  behavior: {demand: {credentials: {token: s3cret}, then: {deny: {message: not today}}}}
";

/// Creates a ConfigMap, and returns the server's message if it is not created.
async fn create(client: &kube::Client, namespace: &str) -> Result<(), String> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let object = serde_json::from_value(json!({"metadata": {"name": "settings"}})).unwrap();
    match api.create(&PostParams::default(), &object).await {
        Ok(_created) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fakes_are_called_with_their_credentials_and_logged() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::write(folder.path().join("guarded.yaml"), GUARDED).unwrap();
    let flags = ["--fakes", "guarded.yaml"];
    let (_server, client) = Serve::start_logged(folder.path(), &flags, &log).await;
    let denied = r#"admission webhook "guarded.fakes.local" denied the request: not today"#;
    assert_eq!(create(&client, "default").await, Err(denied.to_owned()));
    // Only the namespace `default` has the label that fakes select.
    assert_eq!(create(&client, "kube-system").await, Ok(()));
    let log = fs::read_to_string(log).unwrap();
    let calls: Vec<&str> = log.lines().filter(|line| line.contains(" guarded.fakes.local ")).collect();
    let [call] = calls.as_slice() else { panic!("{log}") };
    assert!(call.starts_with("admit serve: 2"), "{call}");
    assert!(call.contains("CREATE ConfigMap default/settings by a token: denied"), "{call}");
}

#[test]
fn invalid_fakes_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("guarded.yaml", GUARDED.to_owned());
    write("misspelled.yaml", GUARDED.replace("demand:", "demnad:"));
    write("empty.yaml", "version: 1\nwebhooks: []\n".to_owned());
    let condition =
        "- {name: a, type: validating, behavior: allow, matchConditions: [{name: a, expression: '1 +'}]}";
    write("condition.yaml", format!("version: 1\nwebhooks:\n{condition}\n"));
    for (files, message) in [
        (&["missing.yaml"][..], "error: missing.yaml: No such file or directory"),
        (&["misspelled.yaml"], "error: misspelled.yaml:5:14: "),
        (&["empty.yaml"], "error: empty.yaml: `webhooks` is empty: must contain at least one"),
        (&["guarded.yaml", "guarded.yaml"], "error: --fakes: duplicate configuration name `admit-fakes`"),
        (&["condition.yaml"], "error: --fakes: ValidatingWebhookConfiguration.admissionregistration.k8s.io"),
    ] {
        let mut command = serve(&folder.path().join("kubeconfig"));
        for file in files {
            command.args(["--fakes", file]);
        }
        let output = command.current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(message), "{text}");
        assert_eq!(output.status.code(), Some(2), "{text}");
    }
}
