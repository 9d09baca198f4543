//! Waits until a webhook has loaded its rules. Some webhooks listen before they have loaded their rules.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use json_patch::Patch;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::manifest::{Manifest, Ready};

/// The interval between requests to the webhook.
const PERIOD: Duration = Duration::from_millis(200);
/// The maximum time to wait until the webhook is ready.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends reviews of the object in `ready` to the webhook at `address` until the patch has the expected result.
///
/// `folder` contains `ca.crt`.
///
/// # Errors
/// Returns the last response of the webhook if it is not ready within a minute.
pub(crate) fn wait(
    manifest: &Manifest,
    ready: &Ready,
    address: SocketAddr,
    folder: &Path,
) -> Result<(), String> {
    // An error only means that another test has installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (namespace, name) = manifest.service.split_once('/').expect("a service is NAMESPACE/NAME");
    let host = format!("{name}.{namespace}.svc");
    let authority = fs::read(folder.join("ca.crt")).expect("the certificate is there");
    let authority = reqwest::Certificate::from_pem(&authority).expect("it is a certificate");
    let client = reqwest::Client::builder().tls_certs_only([authority]).no_proxy().resolve(&host, address);
    let client = client.timeout(Duration::from_secs(10)).build().expect("a client");
    let url = format!("https://{host}:{}{}", address.port(), ready.path);
    runtime.block_on(async {
        let end = Instant::now() + TIMEOUT;
        loop {
            let seen = changed(&client, &url, &ready.object).await;
            if seen.as_ref() == Ok(&ready.becomes) {
                return Ok(());
            }
            if Instant::now() >= end {
                let seconds = TIMEOUT.as_secs();
                let last = seen.map_or_else(|error| error, |object| object.to_string());
                return Err(format!(
                    "after {seconds} s {} is not\n{}\nbut\n{last}",
                    ready.path, ready.becomes
                ));
            }
            tokio::time::sleep(PERIOD).await;
        }
    })
}

/// Returns the result of applying the webhook's patch for the creation of `object`.
async fn changed(client: &reqwest::Client, url: &str, object: &Value) -> Result<Value, String> {
    let request =
        client.post(url).header("content-type", "application/json").body(review(object).to_string());
    let reply = request.send().await.map_err(|error| format!("{error:?}"))?;
    let status = reply.status();
    let text = reply.text().await.map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_str(&text).map_err(|error| format!("{status} {text}: {error}"))?;
    let mut object = object.clone();
    if let Some(patch) = answer.pointer("/response/patch") {
        json_patch::patch(&mut object, &decoded(patch)?).map_err(|error| error.to_string())?;
    }
    Ok(object)
}

/// Decodes a patch from a review: JSON in Base64.
fn decoded(patch: &Value) -> Result<Patch, String> {
    use base64::Engine as _;
    let text = patch.as_str().ok_or("the patch is no text")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Returns the `AdmissionReview` for the creation of a Pod.
fn review(object: &Value) -> Value {
    let pods = json!({"group": "", "version": "v1", "resource": "pods"});
    let pod = json!({"group": "", "version": "v1", "kind": "Pod"});
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": pod, "resource": pods, "requestKind": pod, "requestResource": pods,
            "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
            "operation": "CREATE",
            "userInfo": {"username": "admin", "groups": ["system:authenticated"]},
            "object": object, "oldObject": null, "dryRun": true,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    })
}
