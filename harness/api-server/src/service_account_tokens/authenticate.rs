//! Whom a token of a service account authenticates.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::json;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;

use super::TokenIssuer;
use super::claims::{self, KUBERNETES, LEEWAY, Reference};
use super::jwt::{self, Unverified};
use crate::authentication::Authenticated;
use crate::storage::ObjectReader;

/// Why a token authenticates nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not valid, in the words of kube-apiserver.
    Invalid(String),
    /// admit does not know how kube-apiserver would answer.
    Unsupported(Unsupported),
}

impl From<&str> for Refusal {
    fn from(why: &str) -> Self {
        Self::Invalid(why.to_owned())
    }
}

/// The issuer of tokens that kube-controller-manager writes into Secrets.
///
/// Source: kubernetes pkg/serviceaccount/legacy.go, `LegacyIssuer`.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// Says that something the token is bound to has gone.
const INVALIDATED: &str = "service account token has been invalidated";

/// The service account of a token that is meant for one of `audiences`; none if the token is of another kind.
///
/// # Errors
/// The token is not valid, or no longer.
///
/// Source: kubernetes pkg/serviceaccount/jwt.go, `AuthenticateToken`.
/// Rule: TOK-07, TOK-08, TOK-09, TOK-10.
pub(crate) fn authenticate(
    token: &str,
    audiences: &[String],
    issuer: &TokenIssuer,
    objects: &dyn ObjectReader,
    now: Timestamp,
) -> Result<Option<Authenticated>, Refusal> {
    let settings = &issuer.settings;
    let Some(claimed) = jwt::issuer(token) else { return Ok(None) };
    let is_legacy = claimed == LEGACY_ISSUER;
    if !is_legacy && !settings.issuers.contains(&claimed) {
        return Ok(None);
    }
    let Some(unverified) = Unverified::parse(token) else { return Ok(None) };
    let id = unverified.key_id.clone();
    let keys: Vec<_> = issuer.keys().filter(|key| id.is_empty() || key.id == id).collect();
    if keys.is_empty() {
        return Err("invalid signature, no keys found".into());
    }
    let Some(public) = unverified.verified(keys) else {
        return Err("go-jose/go-jose: error in cryptographic primitive".into());
    };
    if is_legacy {
        let what = "tokens of service accounts that stand in Secrets".to_owned();
        return Err(Refusal::Unsupported(Unsupported { what }));
    }
    let of_token = match public.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(several) => serde_json::from_value(several.clone()).unwrap_or_default(),
        None => settings.api_audiences.clone(),
    };
    let shared: Vec<String> = audiences.iter().filter(|it| of_token.contains(it)).cloned().collect();
    if shared.is_empty() {
        return Err(Refusal::Invalid(format!(
            "token audiences {} is invalid for the target audiences {}",
            list(&of_token),
            list(audiences)
        )));
    }
    claims::check_time(&public, now)?;
    let user = user(&public, objects, now)?;
    Ok(Some(Authenticated { user, audiences: shared, annotations: annotations(&public, now) }))
}

/// As `%q` of Go's fmt writes them.
fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" "))
}

/// The use of a token that was meant to be replaced by now.
///
/// Rule: TOK-05.
fn annotations(public: &Value, now: Timestamp) -> BTreeMap<String, String> {
    let warn_after = json::at(public, &[KUBERNETES, "warnafter"]).as_i64().filter(|second| *second != 0);
    let late = warn_after.map(|second| now.as_second() - second).filter(|seconds| *seconds > 0);
    let told = late.map(|seconds| {
        let subject = json::text(public, &["sub"]);
        let text = format!("subject: {subject}, seconds after warning threshold: {seconds}");
        ("authentication.k8s.io/stale-token".to_owned(), text)
    });
    told.into_iter().collect()
}

/// The user, if the service account and what the token is bound to are still there.
///
/// Source: kubernetes pkg/serviceaccount/claims.go, `Validate`; apiserver pkg/authentication/serviceaccount/util.go,
/// `UserInfo`.
fn user(public: &Value, objects: &dyn ObjectReader, now: Timestamp) -> Result<UserInfo, Refusal> {
    let kubernetes = json::at(public, &[KUBERNETES]);
    let namespace = json::text(kubernetes, &["namespace"]);
    let account = Reference::read(kubernetes, "serviceaccount");
    let account = account.unwrap_or(Reference { name: String::new(), uid: String::new() });
    let stored = objects.get("", "serviceaccounts", namespace, &account.name);
    let stored = stored
        .ok_or_else(|| Refusal::Invalid(Status::not_found("", "serviceaccounts", &account.name).message))?;
    let found = Reference::of(&stored);
    if found.uid != account.uid {
        let (stored, claimed) = (&found.uid, &account.uid);
        return Err(Refusal::Invalid(format!(
            "service account UID ({stored}) does not match claim ({claimed})"
        )));
    }
    if was_deleted(&stored, now) {
        let name = &account.name;
        return Err(Refusal::Invalid(format!("service account {namespace}/{name} has been deleted")));
    }
    let bound = |kind: &str, resource: &str, namespace: &str, reference: &Reference| {
        let Some(stored) = objects.get("", resource, namespace, &reference.name) else {
            return Err(Refusal::from(INVALIDATED));
        };
        let uid = Reference::of(&stored).uid;
        if uid != reference.uid {
            let claimed = &reference.uid;
            return Err(Refusal::Invalid(format!(
                "{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})"
            )));
        }
        if was_deleted(&stored, now) { Err(Refusal::from(INVALIDATED)) } else { Ok(()) }
    };
    let secret = Reference::read(kubernetes, "secret");
    let pod = Reference::read(kubernetes, "pod");
    let node = Reference::read(kubernetes, "node");
    if let Some(secret) = &secret {
        bound("secret", "secrets", namespace, secret)?;
    }
    if let Some(pod) = &pod {
        bound("pod", "pods", namespace, pod)?;
    } else if let Some(node) = &node {
        bound("node", "nodes", "", node)?;
    }
    let mut extra = BTreeMap::new();
    let mut add = |member: &str, value: &str| {
        extra.insert(format!("authentication.kubernetes.io/{member}"), vec![value.to_owned()]);
    };
    if let Some(pod) = pod.filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty()) {
        add("pod-name", &pod.name);
        add("pod-uid", &pod.uid);
    }
    if let Some(id) = Some(json::text(public, &["jti"])).filter(|id| !id.is_empty()) {
        add("credential-id", &credential_id(id));
    }
    if let Some(node) = node.filter(|node| !node.name.is_empty()) {
        add("node-name", &node.name);
        if !node.uid.is_empty() {
            add("node-uid", &node.uid);
        }
    }
    Ok(UserInfo {
        username: format!("system:serviceaccount:{namespace}:{}", account.name),
        uid: account.uid,
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        extra,
    })
}

/// How a token is named where its use is recorded.
///
/// Source: apiserver pkg/authentication/token/jwt/jwt.go, `CredentialIDForJTI`.
pub(super) fn credential_id(id: &str) -> String {
    format!("JTI={id}")
}

/// Whether an object that has finalizers was to be gone a minute ago.
fn was_deleted(object: &Value, now: Timestamp) -> bool {
    let deleted = json::text(object, &["metadata", "deletionTimestamp"]).parse::<Timestamp>().ok();
    deleted.and_then(|time| time.checked_add(LEEWAY).ok()).is_some_and(|time| time < now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ServiceAccountTokens;
    use super::super::claims::{Bound, Validity};
    use super::*;
    use crate::limits::Limits;
    use crate::storage::{Key, Storage};

    const NOW: i64 = 1_800_000_000;

    fn issuer() -> TokenIssuer {
        TokenIssuer::new(ServiceAccountTokens::default())
    }

    fn account() -> Value {
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"namespace": "ns", "name": "robot", "uid": "1"},
        })
    }

    fn objects() -> Storage {
        let storage = Storage::with_roles(&Limits::default());
        let text = |text: &str| text.to_owned();
        let key = Key {
            group: String::new(),
            resource: text("serviceaccounts"),
            namespace: text("ns"),
            name: text("robot"),
        };
        storage.insert(&key, account()).unwrap();
        storage
    }

    fn token(issuer: &TokenIssuer, warn_after: Option<i64>) -> String {
        let from = Timestamp::from_second(NOW).unwrap();
        let validity = Validity { from, seconds: 3600, warn_after };
        let audiences = json!(issuer.api_audiences());
        let name = &issuer.settings.issuers[0];
        let claims = claims::claims(&account(), &Bound::default(), name, &audiences, validity, "id");
        jwt::signed(&claims, issuer.signing_key().unwrap()).unwrap()
    }

    #[track_caller]
    fn at(second: i64, issuer: &TokenIssuer, token: &str) -> Result<Option<Authenticated>, Refusal> {
        let now = Timestamp::from_second(NOW + second).unwrap();
        authenticate(token, issuer.api_audiences(), issuer, &objects(), now)
    }

    #[test]
    fn a_token_has_its_time() {
        let issuer = issuer();
        let token = token(&issuer, None);
        let valid = |second| at(second, &issuer, &token).map(|found| found.unwrap().user.username);
        let name = "system:serviceaccount:ns:robot".to_owned();
        assert_eq!(valid(0), Ok(name.clone()));
        assert_eq!(valid(3660), Ok(name));
        assert_eq!(valid(3661), Err("service account token has expired".into()));
        assert_eq!(valid(-61), Err("service account token is not valid yet".into()));
    }

    #[test]
    fn the_use_of_a_token_that_was_to_be_replaced_is_told() {
        let issuer = issuer();
        let token = token(&issuer, Some(600));
        let told = |second| at(second, &issuer, &token).unwrap().unwrap().annotations;
        assert_eq!(told(600), BTreeMap::new());
        let text = "subject: system:serviceaccount:ns:robot, seconds after warning threshold: 7";
        assert_eq!(told(607), [("authentication.k8s.io/stale-token".to_owned(), text.to_owned())].into());
    }
}
