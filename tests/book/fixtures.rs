//! Provides the files, the input, and the webhook that the pages assume but do not show.

use base64::Engine;
use serde_json::{Value, json};

use super::sandbox::Sandbox;

/// The address at which the webhook of the reader listens.
const ADDRESS: &str = "127.0.0.1:8443";

/// The file of fakes that runs as the webhook of the reader.
const WEBHOOK: &str = "
version: 1
listen: 127.0.0.1:8443
host: webhook.injector.svc
webhooks:
- name: inject.example.com
  type: mutating
  path: /inject
  clientConfig: {url: null, service: {namespace: injector, name: webhook, path: /inject}}
  behavior: {sidecar: {name: proxy, image: envoy}}
";

/// The file to which the fake writes its configuration.
const CONFIGURATION: &str = ".fixtures/webhook.yaml";

/// The names that the pages give to the manifest of the webhook.
const MANIFESTS: [&str; 5] =
    ["deploy/", "deploy/webhook.yaml", "injector.yaml", "vault.yaml", "webhook.yaml"];

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: web, image: nginx}]}
";

const SERVICE_ACCOUNTS: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: injector, namespace: injector}
";

/// The error that kubectl prints when it applies `pod.yaml`.
const ERROR: &str = "Error from server (InternalError): error when creating \"pod.yaml\": Internal error occurred: failed \
                     calling webhook \"inject.example.com\": failed to call webhook: Post \
                     \"https://webhook.injector.svc:443/inject?timeout=10s\": context deadline exceeded\n";

/// Returns what a program that is not part of admit writes to its standard output.
pub(crate) fn output_of(program: &str, sandbox: &mut Sandbox) -> Vec<u8> {
    match program {
        "kubectl" => ERROR.into(),
        "helm" => {
            start_webhook(sandbox);
            sandbox.read(CONFIGURATION).into()
        }
        _ => Vec::new(),
    }
}

/// Starts the webhook if a command calls it and nothing listens at its address.
pub(crate) fn provide_webhook(words: &[String], sandbox: &mut Sandbox) {
    if words.iter().any(|word| word.contains(ADDRESS)) && !sandbox.listens(ADDRESS) {
        start_webhook(sandbox);
    }
}

/// Writes an input of a command. Returns whether there is a fixture with this name.
pub(crate) fn provide_file(name: &str, words: &[String], sandbox: &mut Sandbox) -> bool {
    match name {
        _ if MANIFESTS.contains(&name) => {
            start_webhook(sandbox);
            // Later commands of the page can add `--service` to a manifest that `admit lint` checked.
            let has_service = words.iter().any(|word| word == "--service" || word == "lint");
            let file = if name.ends_with('/') { format!("{name}webhook.yaml") } else { name.to_owned() };
            sandbox.write(&file, &manifest(sandbox, has_service).to_string());
        }
        "ca.crt" => {
            start_webhook(sandbox);
            let bundle = manifest(sandbox, true)["webhooks"][0]["clientConfig"]["caBundle"].take();
            let bundle = base64::engine::general_purpose::STANDARD
                .decode(bundle.as_str().unwrap_or_default())
                .expect("the bundle is Base64");
            sandbox.write(name, &String::from_utf8_lossy(&bundle));
        }
        "pod.yaml" => sandbox.write(name, &POD.replace("NAME", "web")),
        "service-accounts.yaml" => sandbox.write(name, SERVICE_ACCOUNTS),
        "objects/" => {
            for number in 1..=16 {
                sandbox
                    .write(&format!("objects/{number}.yaml"), &POD.replace("NAME", &format!("web-{number}")));
            }
        }
        _ => return false,
    }
    true
}

/// Returns the configuration of the webhook, which is called through its Service or at its URL.
fn manifest(sandbox: &Sandbox, has_service: bool) -> Value {
    let mut manifest: Value = serde_saphyr::from_str(&sandbox.read(CONFIGURATION)).expect("YAML");
    let config = &mut manifest["webhooks"][0]["clientConfig"];
    if !has_service {
        *config = json!({"caBundle": config["caBundle"], "url": format!("https://{ADDRESS}/inject")});
    }
    manifest
}

fn start_webhook(sandbox: &mut Sandbox) {
    if sandbox.has(CONFIGURATION) && sandbox.listens(ADDRESS) {
        return;
    }
    sandbox.write(".fixtures/fakes.yaml", WEBHOOK);
    let arguments = ["fakes", "-f", ".fixtures/fakes.yaml", "--write-configurations", CONFIGURATION];
    sandbox.start_fixture(&arguments.map(str::to_owned), ADDRESS);
}
