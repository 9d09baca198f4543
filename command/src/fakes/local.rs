//! Serves fakes on this machine, for a command with an API server in process.

use std::path::Path;
use std::sync::Arc;

use fake_webhooks::{FakesFile, Fleet, FleetError, Log};
use harness::attributes::GroupVersionResource;
use harness::client::{Credentials, WebhookCredentials};
use harness::json::set;
use harness::server::ApiServer;
use serde_json::Value;

use super::source::SourceFile;
use crate::Failure;

/// Starts the fakes in files. `log` receives a line for each call.
///
/// # Errors
/// Returns a usage failure if a file cannot be read or is invalid, or if the files conflict; an environment failure if a
/// fake cannot listen.
pub(crate) async fn start(files: &[impl AsRef<Path>], log: &Log) -> Result<Fleet, Failure> {
    let mut parsed: Vec<FakesFile> = Vec::new();
    for file in files {
        parsed.extend(SourceFile::read(file.as_ref())?.into_iter().map(|file| file.parsed));
    }
    Fleet::start(&parsed, log).await.map_err(|error| {
        let message = format!("--fakes: {error}");
        if matches!(error, FleetError::Plan(_)) {
            Failure::usage(message)
        } else {
            Failure::environment(message)
        }
    })
}

/// Returns the credentials that fakes with the behavior `demand` require, or `None` if no fake has this behavior.
///
/// # Errors
/// Returns an environment failure if a client certificate cannot be created.
pub(crate) async fn credentials(fleet: &Fleet) -> Result<Option<WebhookCredentials>, Failure> {
    let Some(kubeconfig) = fleet.kubeconfig().await.map_err(Failure::environment)? else { return Ok(None) };
    let credentials =
        Credentials::parse(&kubeconfig.to_string(), Path::new("/")).map_err(Failure::environment)?;
    Ok(Some(WebhookCredentials { mutating: credentials.clone(), validating: credentials }))
}

/// Creates the webhook configurations of fakes in a server, and returns them as stored.
///
/// The namespace `default` gets the label that fakes select by default.
///
/// # Errors
/// Returns a usage failure if the server rejects a configuration.
pub(crate) fn configure(fleet: &Fleet, server: &ApiServer) -> Result<Vec<Arc<Value>>, Failure> {
    opt_in(server, "default")?;
    let put = |configuration: &Value| {
        server
            .put(configuration.clone())
            .map_err(|status| Failure::usage(format!("--fakes: {}", status.message)))
    };
    fleet.configurations().iter().map(put).collect()
}

/// Adds the label `admit-fakes=enabled` to a namespace, so that fakes receive its requests.
///
/// # Errors
/// Returns a usage failure if the server rejects the change.
pub(crate) fn opt_in(server: &ApiServer, namespace: &str) -> Result<(), Failure> {
    let namespaces = GroupVersionResource::new("", "v1", "namespaces");
    let Some(stored) = server.stored(&namespaces, "", namespace) else { return Ok(()) };
    let mut labeled = (*stored).clone();
    set(&mut labeled, &["metadata", "labels", "admit-fakes"], "enabled");
    server.put(labeled).map(drop).map_err(|status| Failure::usage(status.message))
}
