//! Creates the admission configuration and kubeconfig that an API server uses to authenticate to fakes.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::CertificateAuthority;
use serde_json::{Value, json};

use crate::Credentials;

/// The admission plugins that call webhooks.
const PLUGINS: [&str; 2] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];

/// Returns an `AdmissionConfiguration` whose plugins use the kubeconfig at the absolute path `file`.
///
/// Source:
/// <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers>
pub(crate) fn admission_configuration(file: &Path) -> Value {
    let plugin = |name: &str| {
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": file,
        });
        json!({"name": name, "configuration": configuration})
    };
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": PLUGINS.map(plugin),
    })
}

/// Returns a kubeconfig with one user for each host and port; `authority` signs the client certificates.
///
/// # Errors
/// Returns an error if a certificate cannot be created.
pub(crate) fn kubeconfig(
    users: &BTreeMap<String, Credentials>,
    authority: &CertificateAuthority,
) -> Result<Value, certs::Error> {
    let user = |(name, credentials): (&String, &Credentials)| {
        let user = match credentials {
            Credentials::Token(token) => json!({"token": token}),
            Credentials::Basic { username, password } => json!({"username": username, "password": password}),
            Credentials::Certificate(name) => {
                let leaf = authority.issue_for_client(name)?;
                json!({
                    "client-certificate-data": STANDARD.encode(&leaf.certificate_pem),
                    "client-key-data": STANDARD.encode(&leaf.key_pem),
                })
            }
        };
        Ok(json!({"name": name, "user": user}))
    };
    let users = users.iter().map(user).collect::<Result<Vec<_>, certs::Error>>()?;
    Ok(json!({"apiVersion": "v1", "kind": "Config", "users": users}))
}
