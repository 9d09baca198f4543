//! Law: any `caBundle`, certificate, or kubeconfig is accepted or rejected with a message.
//!
//! The input is a line with the type, and then the data. `bundle`: a `caBundle`. `leaf`: a certificate that the server
//! presents, as DER. `kubeconfig`: a kubeconfig, as YAML.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::client::{Credentials, HttpsCaller, NoServices};
use harness::config::{ClientConfig, WebhookTarget};
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::runtime;
use super::webhook::Webhook;

/// The maximum duration of a check. A check does not wait for other processes.
const MAX_DURATION: Duration = Duration::from_secs(5);

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let (what, rest) = input.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    match what {
        b"bundle" => runtime::block_on(inspect(Some(rest.to_vec()), None)),
        b"leaf" => runtime::block_on(inspect(None, Some(rest.to_vec()))),
        b"kubeconfig" => super::with_text(rest, |text| runtime::block_on(check_kubeconfig(text))),
        _ => {}
    }
}

/// Performs a TLS handshake with a server. `None` selects the server's own `caBundle` or certificate.
async fn inspect(ca_bundle: Option<Vec<u8>>, leaf: Option<Vec<u8>>) {
    let webhook = Webhook::of_this_thread().await;
    let is_own = ca_bundle.is_none() && leaf.is_none();
    webhook.show(leaf);
    let config = ClientConfig::new(
        WebhookTarget::Url(webhook.url.clone()),
        ca_bundle.unwrap_or_else(|| webhook.ca_bundle.clone().into_bytes()),
    );
    let seen = HttpsCaller::new(Arc::new(NoServices)).inspect(&config, MAX_DURATION).await;
    webhook.show(None);
    match seen {
        Ok(inspection) => {
            let complaint = inspection.complaint.unwrap_or_default();
            // Only the webhook's own authority signs its certificate.
            let is_trusted = complaint.is_empty();
            let has_own = config
                .ca_bundle
                .windows(webhook.ca_bundle.len().max(1))
                .any(|part| part == webhook.ca_bundle.as_bytes());
            assert!(is_own || has_own || !is_trusted || config.ca_bundle.is_empty(), "trusted");
        }
        Err(error) => {
            assert!(!error.is_empty() && !error.contains("deadline exceeded"), "{error}");
        }
    }
}

/// Checks a kubeconfig. Credential plugins do not run, because no client is created.
async fn check_kubeconfig(text: &str) {
    if let Err(error) = Credentials::parse(text, Path::new("/")) {
        assert!(!error.is_empty());
    }
    let Ok(kubeconfig) = Kubeconfig::from_yaml(text) else { return };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    if let Err(error) = config {
        assert!(!error.to_string().is_empty());
    }
}
