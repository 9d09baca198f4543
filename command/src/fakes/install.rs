//! The fakes' pod and Service in a cluster, without any webhook configuration.

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

/// The secrets of the fakes that are deployed in `namespace`, or new ones.
///
/// # Errors
/// The cluster does not answer, or refuses.
pub(crate) async fn secrets(api: &Api, namespace: &FakesNamespace) -> Result<Secrets, Failure> {
    let secret = api.get(&Kind::SECRET.path(namespace.as_str(), NAME)).await?;
    secret.as_ref().and_then(kept_secrets).map_or_else(new_secrets, Ok)
}

/// A new authority and a new token.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn new_secrets() -> Result<Secrets, Failure> {
    let authority = CertificateAuthority::new("admit fakes CA").map_err(Failure::environment)?;
    let token = Token::random().ok_or_else(|| Failure::environment("the system has no random numbers"))?;
    Ok(Secrets {
        ca_certificate: authority.certificate_pem().to_owned(),
        ca_key: authority.key_pem(),
        token: token.as_str().to_owned(),
    })
}

/// What a Secret holds; none if it cannot be used.
fn kept_secrets(secret: &Value) -> Option<Secrets> {
    let [ca_certificate, ca_key, token] = [CA_CERTIFICATE, CA_KEY, TOKEN].map(|key| secret_text(secret, key));
    let secrets = Secrets { ca_certificate: ca_certificate?, ca_key: ca_key?, token: token? };
    secrets.token.parse::<Token>().ok()?;
    CertificateAuthority::from_pem(&secrets.ca_certificate, &secrets.ca_key).ok().map(|_| secrets)
}

/// Objects that somebody else made stay as they are.
///
/// # Errors
/// One of `objects` is there and does not belong to this deployment: `advice` says what to do.
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
            return Err(Failure::usage(format!("{what} is there and belongs to somebody else: {advice}")));
        }
    }
    Ok(())
}

/// Applies everything but webhook configurations, and waits until the pod answers behind its Service.
///
/// # Errors
/// It does not come up: the failure says what the cluster tells of it.
pub(crate) async fn install(
    api: &Api,
    progress: &Progress,
    manifests: &Manifests<'_>,
) -> Result<Admin, Failure> {
    make_namespace(api, progress, manifests).await?;
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
                Err(message) => Look::Missing(format!("the Service to answer: {message}")),
            })
        })
        .await?;
    progress.tell("the pod is ready");
    Ok(admin)
}

/// Makes the namespace, unless somebody else did: theirs is used as it is, and is not deleted later.
async fn make_namespace(api: &Api, progress: &Progress, manifests: &Manifests<'_>) -> Result<(), Failure> {
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
        progress.tell(&format!("{} is there and stays as it is", described(&manifest)));
        return Ok(());
    }
    api.apply(&manifest).await?;
    progress.tell(&format!("applied {}", described(&manifest)));
    Ok(())
}

/// Kind and name of an object.
pub(crate) fn described(object: &Value) -> String {
    format!("{} {}", text(object, &["kind"]), text(object, &["metadata", "name"]))
}
