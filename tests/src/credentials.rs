//! Decodes service account tokens for recordings.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// Returns the header and the claims of a JSON Web Token, with times relative to the time of issue.
///
/// Returns `None` if `text` is not a token. The result does not contain the signature, because it differs in each run.
pub(crate) fn readable(text: &str) -> Option<Value> {
    let parts: Vec<&str> = text.split('.').collect();
    let [header, claims, _signature] = parts.as_slice() else { return None };
    let decoded = |part: &str| -> Option<Map<String, Value>> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
    };
    let (header, mut claims) = (decoded(header)?, decoded(claims)?);
    let issued = claims.get("iat")?.as_i64()?;
    relative(&mut claims, issued);
    Some(json!({"header": header, "claims": claims}))
}

/// The claims that contain times.
const TIMES: [&str; 4] = ["exp", "iat", "nbf", "warnafter"];

fn relative(claims: &mut Map<String, Value>, issued: i64) {
    for (claim, value) in claims {
        match value {
            Value::Object(members) => relative(members, issued),
            Value::Number(second) if TIMES.contains(&claim.as_str()) => {
                let after = second.as_i64().unwrap_or_default() - issued;
                *value = Value::from(format!("<issued> + {after} s"));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_readable_but_for_its_signature() {
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({"iat": 1000, "exp": 4600, "kubernetes.io": {"warnafter": 1007}, "sub": "x"});
        let token = format!("{}.{}.c2lnbmVk", encode(json!({"alg": "ES256"})), encode(claims));
        let claims = json!({
            "iat": "<issued> + 0 s", "exp": "<issued> + 3600 s", "kubernetes.io": {"warnafter": "<issued> + 7 s"}, "sub": "x",
        });
        assert_eq!(readable(&token), Some(json!({"header": {"alg": "ES256"}, "claims": claims})));
        assert_eq!(readable("a.b.c"), None);
    }
}
