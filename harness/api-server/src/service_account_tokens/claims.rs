//! What a token says of its service account.

use std::time::Duration;

use jiff::Timestamp;
use kubernetes_types::json;
use serde_json::{Value, json};

/// The claim with all that Kubernetes says.
pub(super) const KUBERNETES: &str = "kubernetes.io";

/// What a token is bound to, beside its service account.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) pod: Option<Reference>,
    pub(super) secret: Option<Reference>,
    pub(super) node: Option<Reference>,
}

/// An object by its name and uid; a node that is not there has no uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) name: String,
    pub(super) uid: String,
}

impl Reference {
    pub(super) fn of(object: &Value) -> Self {
        let text = |field| json::text(object, &["metadata", field]).to_owned();
        Self { name: text("name"), uid: text("uid") }
    }

    /// None if the claims have no such member.
    pub(super) fn read(kubernetes: &Value, member: &str) -> Option<Self> {
        let reference = kubernetes.get(member)?.as_object()?;
        let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { name: text("name"), uid: text("uid") })
    }

    fn as_claim(&self) -> Value {
        let mut claim = json!({});
        for (member, text) in [("name", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                json::set(&mut claim, &[member], text.as_str());
            }
        }
        claim
    }
}

/// How long a token is valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    pub(super) from: Timestamp,
    pub(super) seconds: i64,
    /// After how many seconds its use is noted in the audit log.
    pub(super) warn_after: Option<i64>,
}

impl Validity {
    fn after(self, seconds: i64) -> i64 {
        self.from.as_second().saturating_add(seconds)
    }
}

/// The claims of a token for `account`, a service account; `id` is that of the token.
///
/// Source: kubernetes pkg/serviceaccount/claims.go, `Claims`; pkg/serviceaccount/jwt.go, `GenerateToken`.
/// Rule: TOK-02.
pub(super) fn claims(
    account: &Value,
    bound: &Bound,
    issuer: &str,
    audiences: &Value,
    validity: Validity,
    id: &str,
) -> Value {
    let namespace = json::text(account, &["metadata", "namespace"]);
    let mut kubernetes = json!({"namespace": namespace, "serviceaccount": Reference::of(account).as_claim()});
    for (member, reference) in [("pod", &bound.pod), ("secret", &bound.secret), ("node", &bound.node)] {
        if let Some(reference) = reference {
            json::set(&mut kubernetes, &[member], reference.as_claim());
        }
    }
    if let Some(seconds) = validity.warn_after {
        json::set(&mut kubernetes, &["warnafter"], validity.after(seconds));
    }
    let name = json::text(account, &["metadata", "name"]);
    let now = validity.from.as_second();
    json!({
        "aud": audiences,
        "exp": validity.after(validity.seconds),
        "iat": now,
        "iss": issuer,
        "jti": id,
        KUBERNETES: kubernetes,
        "nbf": now,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    })
}

/// By how much clocks may differ.
///
/// Source: go-jose jwt/validation.go, `DefaultLeeway`.
pub(super) const LEEWAY: Duration = Duration::from_secs(60);

/// Checks when a token is valid.
///
/// # Errors
/// In the words of kube-apiserver.
///
/// Source: go-jose jwt/validation.go, `ValidateWithLeeway`; kubernetes pkg/serviceaccount/claims.go, `Validate`.
/// Rule: TOK-09.
pub(super) fn check_time(claims: &Value, now: Timestamp) -> Result<(), &'static str> {
    let time = |claim: &str| {
        claims.get(claim).and_then(Value::as_i64).and_then(|second| Timestamp::from_second(second).ok())
    };
    let is_to_come = |time: Timestamp| time.checked_sub(LEEWAY).is_ok_and(|time| now < time);
    if time("nbf").is_some_and(is_to_come) {
        return Err("service account token is not valid yet");
    }
    if time("exp").is_some_and(|time| time.checked_add(LEEWAY).is_ok_and(|time| now > time)) {
        return Err("service account token has expired");
    }
    if time("iat").is_some_and(is_to_come) {
        return Err("service account token is issued in the future");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_may_differ_by_a_minute() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        for (claims, expected) in [
            (json!({}), Ok(())),
            (json!({"nbf": 1_000_060, "iat": 1_000_060, "exp": 999_940}), Ok(())),
            (json!({"nbf": 1_000_061}), Err("service account token is not valid yet")),
            (json!({"exp": 999_939}), Err("service account token has expired")),
            (json!({"iat": 1_000_061}), Err("service account token is issued in the future")),
            (json!({"exp": 999_939, "nbf": 1_000_061}), Err("service account token is not valid yet")),
        ] {
            assert_eq!(check_time(&claims, now), expected, "{claims}");
        }
    }
}
