//! Authenticates service account tokens.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::json;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;

use super::TokenIssuer;
use super::authenticator::Authenticated;
use super::claims::{Claims, LEEWAY, Reference};
use super::jwt::{self, UnverifiedToken};
use crate::storage::ObjectReader;

/// The reason why a token is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenRejection {
    /// The token is invalid. The value is kube-apiserver's message.
    Invalid(String),
    /// admit does not support tokens of this kind.
    Unsupported(Unsupported),
}

impl From<&str> for TokenRejection {
    fn from(why: &str) -> Self {
        Self::Invalid(why.to_owned())
    }
}

/// The issuer of tokens that kube-controller-manager writes into Secrets.
///
/// Source: kubernetes pkg/serviceaccount/legacy.go, `LegacyIssuer`.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// The error for a token that is bound to an object that no longer exists.
const INVALIDATED: &str = "service account token has been invalidated";

/// Authenticates a token for one of the `audiences`; returns `None` if it is not a service account token.
///
/// # Errors
/// Returns the reason why the token is rejected.
///
/// Source: kubernetes pkg/serviceaccount/jwt.go, `AuthenticateToken`.
/// Rule: TOK-07, TOK-08, TOK-09, TOK-10.
pub(crate) fn authenticate(
    token: &str,
    audiences: &[String],
    issuer: &TokenIssuer,
    objects: &dyn ObjectReader,
    now: Timestamp,
) -> Result<Option<Authenticated>, TokenRejection> {
    let settings = &issuer.settings;
    let Some(claimed) = jwt::issuer(token) else { return Ok(None) };
    let is_legacy = claimed == LEGACY_ISSUER;
    if !is_legacy && !settings.issuers.contains(&claimed) {
        return Ok(None);
    }
    let Some(unverified) = UnverifiedToken::parse(token) else { return Ok(None) };
    let id = unverified.key_id.clone();
    let keys: Vec<_> = issuer.keys().filter(|key| id.is_empty() || key.id == id).collect();
    if keys.is_empty() {
        return Err("invalid signature, no keys found".into());
    }
    let public = unverified.verified(keys).map_err(TokenRejection::Invalid)?;
    if is_legacy {
        let what = "service account tokens from Secrets".to_owned();
        return Err(TokenRejection::Unsupported(Unsupported { what }));
    }
    let claims = Claims::decode(&public).map_err(TokenRejection::Invalid)?;
    let is_for_the_api = claims.audiences.is_empty();
    let of_token = if is_for_the_api { &settings.api_audiences } else { &claims.audiences };
    let shared: Vec<String> = audiences.iter().filter(|it| of_token.contains(it)).cloned().collect();
    if shared.is_empty() {
        return Err(TokenRejection::Invalid(format!(
            "token audiences {} is invalid for the target audiences {}",
            list(of_token),
            list(audiences)
        )));
    }
    claims.check_time(now)?;
    let annotations = annotations(&claims, is_for_the_api, now);
    let user = user(claims, objects, now)?;
    Ok(Some(Authenticated { user, audiences: shared, annotations }))
}

/// Formats strings as Go's verb `%q` does.
fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" "))
}

/// Returns the audit annotations for a token without audiences and for a stale token.
///
/// Source: kubernetes pkg/serviceaccount/jwt.go, `AuthenticateToken`; pkg/serviceaccount/claims.go, `Validate`.
/// Rule: TOK-05.
fn annotations(claims: &Claims, has_no_audience: bool, now: Timestamp) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    let subject = &claims.subject;
    if has_no_audience {
        annotations.insert("authentication.k8s.io/legacy-token".to_owned(), subject.clone());
    }
    let warn_after = claims.warn_after.filter(|second| *second != 0);
    let late = warn_after.map(|second| now.as_second().saturating_sub(second)).filter(|seconds| *seconds > 0);
    if let Some(seconds) = late {
        let text = format!("subject: {subject}, seconds after warning threshold: {seconds}");
        annotations.insert("authentication.k8s.io/stale-token".to_owned(), text);
    }
    annotations
}

/// Returns the user of a token, or an error if the service account or a bound object no longer exists.
///
/// Source: kubernetes pkg/serviceaccount/claims.go, `Validate`; apiserver pkg/authentication/serviceaccount/util.go,
/// `UserInfo`.
fn user(claims: Claims, objects: &dyn ObjectReader, now: Timestamp) -> Result<UserInfo, TokenRejection> {
    let Claims { account, pod, secret, node, id, .. } = claims;
    let namespace = claims.namespace.as_str();
    if account.name.is_empty() {
        return Err("resource name may not be empty".into());
    }
    let stored = objects.get("", "serviceaccounts", namespace, &account.name);
    let stored = stored.ok_or_else(|| {
        TokenRejection::Invalid(Status::not_found("", "serviceaccounts", &account.name).message)
    })?;
    let found = Reference::from_object(&stored);
    if found.uid != account.uid {
        let (stored, claimed) = (&found.uid, &account.uid);
        return Err(TokenRejection::Invalid(format!(
            "service account UID ({stored}) does not match claim ({claimed})"
        )));
    }
    if was_deleted(&stored, now) {
        let name = &account.name;
        return Err(TokenRejection::Invalid(format!("service account {namespace}/{name} has been deleted")));
    }
    let bound = |kind: &str, resource: &str, namespace: &str, reference: &Reference| {
        let Some(stored) = objects.get("", resource, namespace, &reference.name) else {
            return Err(TokenRejection::from(INVALIDATED));
        };
        let uid = Reference::from_object(&stored).uid;
        if uid != reference.uid {
            let claimed = &reference.uid;
            return Err(TokenRejection::Invalid(format!(
                "{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})"
            )));
        }
        if was_deleted(&stored, now) { Err(TokenRejection::from(INVALIDATED)) } else { Ok(()) }
    };
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
    if !id.is_empty() {
        add("credential-id", &credential_id(&id));
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

/// Returns the credential ID of a token.
///
/// Source: apiserver pkg/authentication/token/jwt/jwt.go, `CredentialIDForJTI`.
pub(crate) fn credential_id(id: &str) -> String {
    format!("JTI={id}")
}

/// Returns whether the deletion timestamp of an object is more than a minute ago.
fn was_deleted(object: &Value, now: Timestamp) -> bool {
    let deleted = json::text(object, &["metadata", "deletionTimestamp"]).parse::<Timestamp>().ok();
    deleted.and_then(|time| time.checked_add(LEEWAY).ok()).is_some_and(|time| time < now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ServiceAccountTokens;
    use super::super::claims::{self, BoundObjects, Validity};
    use super::*;
    use crate::apimachinery::limits::Limits;
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
        let storage = Storage::new(crate::kinds::rbac::bootstrap::INITIAL_OBJECTS, &Limits::default());
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
        let claims = claims::claims(&account(), &BoundObjects::default(), name, &audiences, validity, "id");
        jwt::signed(&claims, issuer.signing_key().unwrap()).unwrap()
    }

    #[track_caller]
    fn at(second: i64, issuer: &TokenIssuer, token: &str) -> Result<Option<Authenticated>, TokenRejection> {
        let now = Timestamp::from_second(NOW + second).unwrap();
        authenticate(token, issuer.api_audiences(), issuer, &objects(), now)
    }

    #[test]
    fn expired_token_is_rejected() {
        let issuer = issuer();
        let token = token(&issuer, None);
        let valid = |second| at(second, &issuer, &token).map(|found| found.unwrap().user.username);
        let name = "system:serviceaccount:ns:robot".to_owned();
        assert_eq!(valid(0), Ok(name.clone()));
        assert_eq!(valid(3660), Ok(name));
        assert_eq!(valid(3661), Err("service account token has expired".into()));
        assert_eq!(valid(-61), Err("service account token is not valid yet".into()));
    }

    /// Creates a signed token that is valid except for the value of one claim.
    fn token_with(issuer: &TokenIssuer, claim: &str, value: Value) -> String {
        let from = Timestamp::from_second(NOW).unwrap();
        let validity = Validity { from, seconds: 3600, warn_after: None };
        let audiences = json!(issuer.api_audiences());
        let name = &issuer.settings.issuers[0];
        let mut claims =
            claims::claims(&account(), &BoundObjects::default(), name, &audiences, validity, "id");
        claims[claim] = value;
        jwt::signed(&claims, issuer.signing_key().unwrap()).unwrap()
    }

    #[test]
    fn token_with_an_expiry_that_is_not_a_number_is_rejected() {
        let issuer = issuer();
        for expiry in [json!("1"), json!(true), json!([1]), json!(1.5), json!(1e9)] {
            assert!(at(0, &issuer, &token_with(&issuer, "exp", expiry.clone())).is_err(), "{expiry}");
        }
        let later = json!(1_800_000_090.5);
        assert!(at(0, &issuer, &token_with(&issuer, "exp", later)).is_ok());
    }

    #[test]
    fn token_with_an_empty_list_of_audiences_is_for_the_api() {
        let issuer = issuer();
        let found = at(0, &issuer, &token_with(&issuer, "aud", json!([]))).unwrap().unwrap();
        assert_eq!(found.audiences, issuer.api_audiences());
        let subject = "system:serviceaccount:ns:robot".to_owned();
        assert_eq!(found.annotations, [("authentication.k8s.io/legacy-token".to_owned(), subject)].into());
    }

    #[test]
    fn use_of_a_stale_token_is_annotated() {
        let issuer = issuer();
        let token = token(&issuer, Some(600));
        let told = |second| at(second, &issuer, &token).unwrap().unwrap().annotations;
        assert_eq!(told(600), BTreeMap::new());
        let text = "subject: system:serviceaccount:ns:robot, seconds after warning threshold: 7";
        assert_eq!(told(607), [("authentication.k8s.io/stale-token".to_owned(), text.to_owned())].into());
    }
}
