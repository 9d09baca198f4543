//! Installs the pod and Service of the fakes, without webhook configurations.

use certs::CertificateAuthority;
use fake_webhooks::Token;
use harness::json::{at, text};
use serde_json::Value;

use super::admin::{Admin, secret_text};
use super::api::{Api, Kind};
use super::manifests::{CA_CERTIFICATE, CA_KEY, Manifests, Secrets, TOKEN};
use super::names::{FakesNamespace, NAME};
use super::progress::{Look, Progress};
use super::rollout::Rollout;
use crate::Failure;

/// Returns the secrets of the fakes that are deployed in `namespace`, or new secrets.
///
/// # Errors
/// Returns an error if the cluster does not respond or rejects the request.
pub(crate) async fn secrets(api: &Api, namespace: &FakesNamespace) -> Result<Secrets, Failure> {
    let secret = api.get(&Kind::SECRET.path(namespace.as_str(), NAME)).await?;
    secret.as_ref().and_then(kept_secrets).map_or_else(new_secrets, Ok)
}

/// Creates a CA and a token.
///
/// # Errors
/// Returns an error if the system does not provide random numbers.
pub(crate) fn new_secrets() -> Result<Secrets, Failure> {
    let authority = CertificateAuthority::new("admit fakes CA").map_err(Failure::environment)?;
    let token =
        Token::random().ok_or_else(|| Failure::environment("the system does not provide random numbers"))?;
    Ok(Secrets {
        ca_certificate: authority.certificate_pem().to_owned(),
        ca_key: authority.key_pem(),
        token: token.as_str().to_owned(),
    })
}

/// Reads the secrets in a Secret; returns `None` if they are unusable.
fn kept_secrets(secret: &Value) -> Option<Secrets> {
    let [ca_certificate, ca_key, token] = [CA_CERTIFICATE, CA_KEY, TOKEN].map(|key| secret_text(secret, key));
    let secrets = Secrets { ca_certificate: ca_certificate?, ca_key: ca_key?, token: token? };
    secrets.token.parse::<Token>().ok()?;
    CertificateAuthority::from_pem(&secrets.ca_certificate, &secrets.ca_key).ok().map(|_| secrets)
}

/// Checks that existing objects belong to this deployment.
///
/// # Errors
/// Returns an error if one of `objects` exists and does not belong to this deployment. The error ends with `advice`.
pub(crate) async fn check_owners(
    api: &Api,
    namespace: &FakesNamespace,
    objects: &[Value],
    advice: &str,
) -> Result<(), Failure> {
    for object in objects {
        let found = api.get(&Kind::path_of(object)).await?;
        if found.is_some_and(|found| !namespace.owns(&found)) {
            let what = described(object);
            return Err(Failure::usage(format!(
                "{what} already exists and is not managed by admit: {advice}"
            )));
        }
    }
    Ok(())
}

/// Applies all objects except webhook configurations, and waits until the pod responds through its Service.
///
/// # Errors
/// Returns an error if the pod does not become ready. The error includes its state.
pub(crate) async fn install(
    api: &Api,
    progress: &Progress,
    manifests: &Manifests<'_>,
) -> Result<Admin, Failure> {
    create_namespace(api, progress, manifests).await?;
    let mut deployment = Value::Null;
    for object in manifests.workload() {
        let applied = api.apply(&object).await?;
        progress.tell(&format!("applied {}", described(&object)));
        if text(&object, &["kind"]) == Kind::DEPLOYMENT.name {
            deployment = applied;
        }
    }
    Rollout::new(api, manifests.namespace, deployment).wait(progress).await?;
    let admin = Admin::new(api, manifests.namespace, &manifests.secrets.token);
    progress
        .until(async || {
            Ok(match admin.is_healthy().await? {
                Ok(()) => Look::Done(()),
                Err(message) => Look::Missing(format!("the Service to respond: {message}")),
            })
        })
        .await?;
    progress.tell("the pod is ready");
    Ok(admin)
}

/// Creates the namespace if it does not exist. An existing namespace is neither changed nor deleted later.
async fn create_namespace(api: &Api, progress: &Progress, manifests: &Manifests<'_>) -> Result<(), Failure> {
    let manifest = manifests.namespace();
    let path = Kind::path_of(&manifest);
    let found = progress
        .until(async || match api.get(&path).await? {
            Some(found) if !at(&found, &["metadata", "deletionTimestamp"]).is_null() => {
                Ok(Look::Missing("the namespace, which is being deleted".to_owned()))
            }
            found => Ok(Look::Done(found)),
        })
        .await?;
    if found.is_some_and(|found| !manifests.namespace.owns(&found)) {
        progress.tell(&format!("{} already exists and is not changed", described(&manifest)));
        return Ok(());
    }
    api.apply(&manifest).await?;
    progress.tell(&format!("applied {}", described(&manifest)));
    Ok(())
}

/// Returns the kind and the name of an object, such as `Namespace admit-fakes`.
pub(crate) fn described(object: &Value) -> String {
    format!("{} {}", text(object, &["kind"]), text(object, &["metadata", "name"]))
}
