//! Parses, verifies, and signs JSON Web Tokens in the compact serialization of JSON Web Signatures.
//!
//! Source: go-jose jws.go, `parseSignedCompact`; jwt/jwt.go.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::jose_json;
use super::keys::{SigningKey, VerifyingKey};

/// Decodes base64 as Go's `RawURLEncoding` does, which ignores the unused bits of the last character.
const RAW_URL_ENCODING: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The error of go-jose for a token whose signature is invalid, or that has an unsupported critical header.
const CRYPTO_FAILURE: &str = "go-jose/go-jose: error in cryptographic primitive";

/// A token whose signature has not been verified.
#[derive(Debug)]
pub(crate) struct UnverifiedToken<'a> {
    /// The signed text: the encoded header and claims.
    message: &'a str,
    signature: Vec<u8>,
    algorithm: String,
    /// The header member `kid`; empty if absent.
    pub(crate) key_id: String,
    /// Whether the header requires processing that admit does not support.
    is_critical: bool,
    payload: Vec<u8>,
}

/// Returns the issuer in an unverified token; `None` if the token is not a JSON Web Token.
pub(crate) fn issuer(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let claims: Value = decoded(claims)?;
    claims.get("iss")?.as_str().map(str::to_owned)
}

fn decoded(part: &str) -> Option<Value> {
    serde_json::from_slice(&RAW_URL_ENCODING.decode(part).ok()?).ok()
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token without verifying its signature. Returns `None` if the token is malformed.
    ///
    /// Source: go-jose shared.go, `rawHeader.sanitized`.
    pub(crate) fn parse(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, payload) = message.split_once('.')?;
        let header = jose_json::decode(&RAW_URL_ENCODING.decode(header).ok()?).ok()?;
        if !header.is_object() && !header.is_null() {
            return None;
        }
        let given = |member: &str| header.get(member).filter(|value| !value.is_null());
        let text = |member: &str| match given(member) {
            None => Some(String::new()),
            Some(value) => value.as_str().map(str::to_owned),
        };
        text("nonce")?;
        // admit does not verify embedded keys and certificates. The server never issues tokens with them.
        let has_certificates =
            given("x5c").is_some_and(|chain| chain.as_array().is_none_or(|chain| !chain.is_empty()));
        if given("jwk").is_some() || has_certificates {
            return None;
        }
        Some(Self {
            message,
            signature: RAW_URL_ENCODING.decode(signature).ok()?,
            algorithm: text("alg")?,
            key_id: text("kid")?,
            is_critical: is_critical(&header),
            payload: RAW_URL_ENCODING.decode(payload).ok()?,
        })
    }

    /// Returns the claims if one of the keys verifies the signature.
    ///
    /// # Errors
    /// Returns the message of go-jose if no key verifies the signature, or if the claims cannot be decoded.
    ///
    /// Source: go-jose signing.go, `DetachedVerify`.
    pub(crate) fn verified<'k>(
        self,
        keys: impl IntoIterator<Item = &'k VerifyingKey>,
    ) -> Result<Value, String> {
        let is_signed = !self.is_critical
            && keys
                .into_iter()
                .any(|key| key.verifies(&self.algorithm, self.message.as_bytes(), &self.signature));
        if is_signed { jose_json::decode(&self.payload) } else { Err(CRYPTO_FAILURE.to_owned()) }
    }
}

/// Returns whether the header has critical members other than `b64`, or a payload that is not base64.
///
/// Source: go-jose shared.go, `supportedCritical` and `getB64`; RFC 7797.
fn is_critical(header: &Value) -> bool {
    let is_supported = |name: &Value| name == "b64";
    let has_unsupported = match header.get("crit") {
        None | Some(Value::Null) => false,
        Some(Value::Array(names)) => !names.iter().all(is_supported),
        Some(_) => true,
    };
    has_unsupported
        || header.get("b64").is_some_and(|is_encoded| *is_encoded != true && !is_encoded.is_null())
}

/// Returns a signed token with these claims; `None` if the system cannot generate random numbers.
pub(crate) fn signed(claims: &Value, key: &SigningKey) -> Option<String> {
    let header = json!({"alg": key.public().algorithm.as_str(), "kid": key.public().id});
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encode(&header), encode(claims));
    let signature = key.sign(message.as_bytes())?;
    Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_token_verifies() {
        let key = SigningKey::generate().unwrap();
        let other = SigningKey::generate().unwrap();
        let claims = json!({"iss": "me", "sub": "you"});
        let token = signed(&claims, &key).unwrap();
        assert_eq!(issuer(&token).as_deref(), Some("me"));
        let read = || UnverifiedToken::parse(&token).unwrap();
        assert_eq!(read().key_id, key.public().id);
        assert_eq!(read().verified([other.public(), key.public()]), Ok(claims));
        assert_eq!(read().verified([other.public()]), Err(CRYPTO_FAILURE.to_owned()));
    }

    /// Returns whether the token with this header and these claims parses, and the result of its verification.
    fn verified(header: &str, claims: &str) -> Option<Result<Value, String>> {
        let key = SigningKey::generate().unwrap();
        let header = header.replace("ALG", key.public().algorithm.as_str());
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = key.sign(message.as_bytes()).unwrap();
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
        Some(UnverifiedToken::parse(&token)?.verified([key.public()]))
    }

    #[test]
    fn signed_token_with_a_duplicate_claim_is_rejected() {
        let found = verified(r#"{"alg": "ALG"}"#, r#"{"exp": 1, "exp": 99999999999}"#);
        assert_eq!(found, Some(Err("json: duplicate key 'exp' in object".to_owned())));
        assert_eq!(verified(r#"{"alg": "ALG", "alg": "ALG"}"#, "{}"), None);
    }

    #[test]
    fn headers_that_the_server_does_not_support_are_rejected() {
        let failed = || Some(Err(CRYPTO_FAILURE.to_owned()));
        let valid = || Some(Ok(json!({})));
        for (member, expected) in [
            (r#""crit": ["exp"], "exp": 1"#, failed()),
            (r#""crit": "b64""#, failed()),
            (r#""crit": ["b64"], "b64": false"#, failed()),
            (r#""b64": false"#, failed()),
            (r#""b64": 1"#, failed()),
            (r#""crit": [], "b64": true"#, valid()),
            (r#""crit": null, "b64": null, "jwk": null, "x5c": []"#, valid()),
            (r#""typ": "JWT", "jku": 5, "nonce": """#, valid()),
            (r#""jwk": {}"#, None),
            (r#""x5c": ["x"]"#, None),
            (r#""nonce": 5"#, None),
            (r#""kid": 5"#, None),
        ] {
            assert_eq!(verified(&format!(r#"{{"alg": "ALG", {member}}}"#), "{}"), expected, "{member}");
        }
    }

    #[test]
    fn unused_bits_of_base64_are_ignored() {
        // The last character of a signature has unused bits.
        assert_eq!(RAW_URL_ENCODING.decode("AB").unwrap(), RAW_URL_ENCODING.decode("AA").unwrap());
    }

    #[test]
    fn invalid_token_is_none() {
        for text in ["", "a.b", "a.b.c", "e30.e30.e30.e30", "{}.e30.e30", "bnVsbA.MQ"] {
            assert_eq!(issuer(text), None, "{text}");
        }
        assert!(UnverifiedToken::parse("e30.e30.!").is_none());
        assert!(UnverifiedToken::parse("e30.e30.").is_some_and(|token| token.verified([]).is_err()));
    }
}
