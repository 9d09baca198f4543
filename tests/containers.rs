//! Tests the container images: the fakes, called over TLS at a published port, and the command.
//!
//! Run with `cargo test --features containers --test containers`, after `just image`. Skipped with a message if the
//! Docker daemon does not respond or an image does not exist.

#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on must stop, and it says how large an image is"
)]

#[path = "helpers/machine.rs"]
mod machine;

use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testcontainers::core::{ContainerPort, Mount, WaitFor};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};

const FAKES_IMAGE: &str = "admit-fakes";
const COMMAND_IMAGE: &str = "admit";
const TAG: &str = env!("CARGO_PKG_VERSION");
const MAX_BYTES_OF_FAKES: u64 = 15_000_000;

const FAKES: &str = "\
version: 1
webhooks:
- {name: labels, type: mutating, behavior: always-mutate}
- {name: no, type: validating, behavior: {deny: {message: not today}}}
- {name: stale, type: validating, behavior: allow, certificate: expired}
";

/// Returns the size of an image; prints the reason and returns `None` if the image cannot be tested.
fn image_bytes(name: &str) -> Option<u64> {
    let image = format!("{name}:{TAG}");
    let inspect = ["image", "inspect", "--format", "{{.Config.User}} {{.Size}}", &image];
    if !machine::has_docker() {
        return None;
    }
    let output = Command::new("docker").args(inspect).output().unwrap();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        machine::skipped(&format!("{} (`just image` builds it)", error.trim()));
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let (user, bytes) = text.trim().split_once(' ').unwrap();
    assert_eq!(user, "65532:65532", "nobody who has rights");
    println!("the image {image} has {bytes} bytes");
    Some(bytes.parse().unwrap())
}

/// Starts a container with the permissions that `admit fakes deploy` sets.
async fn start(fakes: &std::path::Path) -> ContainerAsync<GenericImage> {
    GenericImage::new(FAKES_IMAGE, TAG)
        .with_exposed_port(ContainerPort::Tcp(8443))
        .with_exposed_port(ContainerPort::Tcp(8444))
        .with_wait_for(WaitFor::message_on_stderr("listening on 0.0.0.0:8444"))
        .with_mount(Mount::bind_mount(fakes.display().to_string(), "/fakes.yaml"))
        .with_cmd([
            "-f",
            "/fakes.yaml",
            "-ojson",
            "--listen=0.0.0.0:8443",
            "--host=localhost",
            "--allow-remote",
        ])
        .with_readonly_rootfs(true)
        .with_cap_drop("ALL")
        .start()
        .await
        .unwrap()
}

/// Returns the webhooks in the configurations that the container prints.
///
/// Reads the output until it is a complete JSON document: the container prints it in parts, once the listeners are
/// ready.
async fn webhooks(container: &ContainerAsync<GenericImage>) -> Vec<Value> {
    let printed = async {
        loop {
            let text = container.stdout_to_vec().await.unwrap();
            if let Ok(list) = serde_json::from_slice::<Value>(&text) {
                return list;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let list = tokio::time::timeout(Duration::from_secs(60), printed).await.unwrap();
    let webhooks =
        list["items"].as_array().unwrap().iter().flat_map(|object| object["webhooks"].as_array().unwrap());
    webhooks.cloned().collect()
}

/// Returns the response of a webhook at the port that Docker published for it.
async fn call(container: &ContainerAsync<GenericImage>, webhook: &Value) -> reqwest::Result<Value> {
    let config = &webhook["clientConfig"];
    let bundle = STANDARD.decode(config["caBundle"].as_str().unwrap()).unwrap();
    let authority = reqwest::Certificate::from_pem(&bundle).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([authority]).no_proxy().build().unwrap();
    let url = url::Url::parse(config["url"].as_str().unwrap()).unwrap();
    let port = ContainerPort::Tcp(url.port().unwrap());
    let published = container.get_host_port_ipv4(port).await.unwrap();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "7", "operation": "CREATE", "kind": {"kind": "ConfigMap"}, "object": {"metadata": {}}},
    });
    let address = format!("https://localhost:{published}{}", url.path());
    let body = client.post(address).body(review.to_string()).send().await?.bytes().await?;
    Ok(serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn the_image_serves_the_fakes_of_a_file() {
    let Some(bytes) = image_bytes(FAKES_IMAGE) else { return };
    assert!(bytes < MAX_BYTES_OF_FAKES, "the image has {bytes} bytes");
    // An error only means that another test has installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fakes.yaml");
    std::fs::write(&file, FAKES).unwrap();
    let container = start(&file).await;
    let webhooks = webhooks(&container).await;
    let [labels, no, stale] = webhooks.as_slice() else { panic!("{webhooks:?}") };
    assert_eq!(call(&container, labels).await.unwrap()["response"]["patchType"], "JSONPatch");
    let denied = call(&container, no).await.unwrap();
    assert_eq!(denied["response"]["status"]["message"], "not today");
    assert!(call(&container, stale).await.unwrap_err().is_connect());
    container.stop().await.unwrap();
}

#[test]
fn the_image_of_the_command_needs_no_rights_and_finds_hosts_by_name() {
    let Some(_) = image_bytes(COMMAND_IMAGE) else { return };
    let folder = tempfile::tempdir().unwrap();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "c"}, "webhooks": [{
            "name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "injector", "name": "webhook"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        }],
    });
    let file = folder.path().join("c.yaml");
    std::fs::write(&file, configuration.to_string()).unwrap();
    let output = Command::new("docker")
        .args(["run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL"])
        .args(["--security-opt=no-new-privileges", "--add-host=webhook.injector.svc:127.0.0.1"])
        .arg(format!("--volume={}:/c.yaml:ro", file.display()))
        .arg(format!("{COMMAND_IMAGE}:{TAG}"))
        .args(["verify", "--configuration=/c.yaml", "--check=V45", "--yes"])
        .arg("--service=injector/webhook=webhook.injector.svc:1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // The connection fails, but the host was found: a static binary has its own resolver.
    assert_eq!(output.status.code(), Some(6), "{text}");
    assert!(text.contains("Connection refused"), "{text}");
}
