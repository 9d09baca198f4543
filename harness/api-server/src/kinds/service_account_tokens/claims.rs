//! Creates, decodes, and checks the claims of service account tokens.

use std::time::Duration;

use jiff::Timestamp;
use kubernetes_types::json;
use kubernetes_types::json_numbers::truncated;
use serde_json::{Value, json};

/// The claim that contains the Kubernetes-specific data.
pub(crate) const KUBERNETES: &str = "kubernetes.io";

/// The objects to which a token is bound, in addition to its service account.
#[derive(Debug, Default)]
pub(crate) struct BoundObjects {
    pub(crate) pod: Option<Reference>,
    pub(crate) secret: Option<Reference>,
    pub(crate) node: Option<Reference>,
}

/// A reference to an object by name and UID. The UID is absent if the object is a node that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Reference {
    pub(crate) fn from_object(object: &Value) -> Self {
        let text = |field| json::text(object, &["metadata", field]).to_owned();
        Self { name: text("name"), uid: text("uid") }
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

/// The period in which a token is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validity {
    pub(crate) from: Timestamp,
    pub(crate) seconds: i64,
    /// The age of a token in seconds after which the audit log records its use.
    pub(crate) warn_after: Option<i64>,
}

impl Validity {
    fn after(self, seconds: i64) -> i64 {
        self.from.as_second().saturating_add(seconds)
    }
}

/// Returns the claims of a token for the service account `account`; `id` is the ID of the token.
///
/// Source: kubernetes pkg/serviceaccount/claims.go, `Claims`; pkg/serviceaccount/jwt.go, `GenerateToken`.
/// Rule: TOK-02.
pub(crate) fn claims(
    account: &Value,
    bound: &BoundObjects,
    issuer: &str,
    audiences: &Value,
    validity: Validity,
    id: &str,
) -> Value {
    let namespace = json::text(account, &["metadata", "namespace"]);
    let mut kubernetes =
        json!({"namespace": namespace, "serviceaccount": Reference::from_object(account).as_claim()});
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

/// The allowed clock skew.
///
/// Source: go-jose jwt/validation.go, `DefaultLeeway`.
pub(crate) const LEEWAY: Duration = Duration::from_secs(60);
const LEEWAY_SECONDS: i64 = 60;

/// The claims of a signed token, decoded as strictly as kube-apiserver decodes them.
///
/// A claim of the wrong type is an error. It does not count as absent, because an absent claim does not set a limit.
///
/// Source: go-jose jwt/claims.go, `Claims`; kubernetes pkg/serviceaccount/claims.go, `privateClaims`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) subject: String,
    /// The audiences; empty for a token for the API server.
    pub(crate) audiences: Vec<String>,
    pub(crate) id: String,
    pub(crate) namespace: String,
    pub(crate) account: Reference,
    pub(crate) pod: Option<Reference>,
    pub(crate) secret: Option<Reference>,
    pub(crate) node: Option<Reference>,
    /// The Unix time after which the audit log records the use of the token.
    pub(crate) warn_after: Option<i64>,
    not_before: Option<i64>,
    expiry: Option<i64>,
    issued_at: Option<i64>,
}

impl Claims {
    /// Decodes the payload of a token.
    ///
    /// # Errors
    ///
    /// Returns the message of go-jose if a claim has the wrong type.
    pub(crate) fn decode(payload: &Value) -> Result<Self, String> {
        let kubernetes = object(payload, KUBERNETES)?.unwrap_or(&Value::Null);
        Ok(Self {
            subject: text(payload, "sub")?,
            audiences: audiences(payload)?,
            id: text(payload, "jti")?,
            namespace: text(kubernetes, "namespace")?,
            account: reference(kubernetes, "serviceaccount")?.unwrap_or_default(),
            pod: reference(kubernetes, "pod")?,
            secret: reference(kubernetes, "secret")?,
            node: reference(kubernetes, "node")?,
            warn_after: numeric_date(kubernetes, "warnafter")?,
            not_before: numeric_date(payload, "nbf")?,
            expiry: numeric_date(payload, "exp")?,
            issued_at: numeric_date(payload, "iat")?,
        })
    }

    /// Checks that the token is valid at `now`. Allows a clock skew of one minute.
    ///
    /// # Errors
    ///
    /// Returns kube-apiserver's message if the token is not valid at `now`.
    ///
    /// Source: go-jose jwt/validation.go, `ValidateWithLeeway`; kubernetes pkg/serviceaccount/claims.go, `Validate`.
    /// Rule: TOK-09.
    pub(crate) fn check_time(&self, now: Timestamp) -> Result<(), &'static str> {
        let shifted =
            |seconds: i64| (since_year_one(now.as_second()).saturating_add(seconds), now.subsec_nanosecond());
        let is_to_come = |second: i64| shifted(LEEWAY_SECONDS) < (since_year_one(second), 0);
        if self.not_before.is_some_and(is_to_come) {
            return Err("service account token is not valid yet");
        }
        if self.expiry.is_some_and(|second| shifted(-LEEWAY_SECONDS) > (since_year_one(second), 0)) {
            return Err("service account token has expired");
        }
        if self.issued_at.is_some_and(is_to_come) {
            return Err("service account token is issued in the future");
        }
        Ok(())
    }
}

/// Converts a Unix time to seconds since year 1. Wraps around on overflow, as Go's `time.Unix` does.
fn since_year_one(second: i64) -> i64 {
    second.wrapping_add(62_135_596_800)
}

fn member<'a>(owner: &'a Value, name: &str) -> Option<&'a Value> {
    owner.get(name).filter(|value| !value.is_null())
}

fn wrong_type(value: &Value, expected: &str) -> String {
    let found = json::json_type(value);
    format!("json: cannot unmarshal {found} into Go value of type {expected}")
}

fn object<'a>(owner: &'a Value, name: &str) -> Result<Option<&'a Value>, String> {
    match member(owner, name) {
        Some(value) if !value.is_object() => Err(wrong_type(value, "serviceaccount.kubernetes")),
        found => Ok(found),
    }
}

fn text(owner: &Value, name: &str) -> Result<String, String> {
    match member(owner, name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong_type(other, "string")),
    }
}

fn reference(kubernetes: &Value, name: &str) -> Result<Option<Reference>, String> {
    let Some(found) = member(kubernetes, name) else { return Ok(None) };
    if !found.is_object() {
        return Err(wrong_type(found, "serviceaccount.ref"));
    }
    Ok(Some(Reference { name: text(found, "name")?, uid: text(found, "uid")? }))
}

/// Reads the claim `aud`: a string or a list of strings.
fn audiences(payload: &Value) -> Result<Vec<String>, String> {
    let expected =
        || "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience".to_owned();
    match payload.get("aud") {
        None => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(several)) => {
            several.iter().map(|each| each.as_str().map(str::to_owned).ok_or_else(expected)).collect()
        }
        Some(_) => Err(expected()),
    }
}

/// Reads a `NumericDate` (RFC 7519, section 2): a Unix time that may have a fraction or an exponent.
fn numeric_date(owner: &Value, name: &str) -> Result<Option<i64>, String> {
    match member(owner, name) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_f64().map(truncated)),
        Some(_) => Err("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;

    #[track_caller]
    fn check(payload: &Value, expected: Result<(), &str>) {
        let now = Timestamp::from_second(NOW).unwrap();
        let found = Claims::decode(payload).and_then(|claims| claims.check_time(now).map_err(str::to_owned));
        assert_eq!(found, expected.map_err(str::to_owned), "{payload}");
    }

    const EARLY: Result<(), &str> = Err("service account token is not valid yet");
    const EXPIRED: Result<(), &str> = Err("service account token has expired");
    const NO_NUMBER: Result<(), &str> =
        Err("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate");

    #[test]
    fn clock_skew_of_a_minute_is_accepted() {
        check(&json!({}), Ok(()));
        check(&json!({"nbf": 1_000_060, "iat": 1_000_060, "exp": 999_940}), Ok(()));
        check(&json!({"nbf": 1_000_061}), EARLY);
        check(&json!({"exp": 999_939}), EXPIRED);
        check(&json!({"iat": 1_000_061}), Err("service account token is issued in the future"));
        check(&json!({"exp": 999_939, "nbf": 1_000_061}), EARLY);
    }

    #[test]
    fn times_with_a_fraction_or_an_exponent_count() {
        check(&json!({"exp": 999_939.5}), EXPIRED);
        check(&json!({"exp": 999_940.5}), Ok(()));
        check(&json!({"exp": 1e5}), EXPIRED);
        check(&json!({"exp": 1e9}), Ok(()));
        check(&json!({"nbf": 1e9}), EARLY);
        check(&json!({"exp": -1}), EXPIRED);
        check(&json!({"exp": 1e30}), EXPIRED);
        check(&json!({"exp": i64::MAX}), EXPIRED);
    }

    #[test]
    fn times_that_are_not_numbers_are_rejected() {
        for time in [json!("999999999999"), json!("x"), json!(true), json!([2_000_000]), json!({})] {
            for claim in ["exp", "nbf", "iat"] {
                check(&json!({claim: time}), NO_NUMBER);
            }
            check(&json!({KUBERNETES: {"warnafter": time}}), NO_NUMBER);
        }
        check(&json!({"exp": null}), Ok(()));
    }

    #[test]
    fn claims_of_another_type_are_rejected() {
        for claims in [
            json!({"sub": 1}),
            json!({"jti": []}),
            json!({"aud": 1}),
            json!({"aud": null}),
            json!({"aud": ["a", 1]}),
            json!({KUBERNETES: "x"}),
            json!({KUBERNETES: {"namespace": 1}}),
            json!({KUBERNETES: {"serviceaccount": "x"}}),
            json!({KUBERNETES: {"pod": "x"}}),
            json!({KUBERNETES: {"node": {"uid": 1}}}),
        ] {
            assert!(Claims::decode(&claims).is_err(), "{claims}");
        }
    }
}
