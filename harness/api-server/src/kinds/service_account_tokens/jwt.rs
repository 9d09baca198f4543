//! Parses, verifies, and signs JSON Web Tokens in the compact serialization of JSON Web Signatures.
//!
//! Source: go-jose jws.go, `parseSignedCompact`; jwt/jwt.go.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::keys::{SigningKey, VerifyingKey};

/// A token whose signature has not been verified.
#[derive(Debug)]
pub(crate) struct UnverifiedToken<'a> {
    /// The signed text: the encoded header and claims.
    message: &'a str,
    signature: Vec<u8>,
    algorithm: String,
    /// The header member `kid`; empty if absent.
    pub(crate) key_id: String,
    claims: Value,
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
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token without verifying its signature. Returns `None` if the token is malformed.
    pub(crate) fn parse(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let header = decoded(header).filter(|header| header.is_object() || header.is_null())?;
        let text = |member: &str| match header.get(member) {
            None | Some(Value::Null) => Some(String::new()),
            Some(value) => value.as_str().map(str::to_owned),
        };
        Some(Self {
            message,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            algorithm: text("alg")?,
            key_id: text("kid")?,
            claims: decoded(claims)?,
        })
    }

    /// Returns the claims if one of the keys verifies the signature.
    pub(crate) fn verified<'k>(self, keys: impl IntoIterator<Item = &'k VerifyingKey>) -> Option<Value> {
        let is_signed = keys
            .into_iter()
            .any(|key| key.verifies(&self.algorithm, self.message.as_bytes(), &self.signature));
        is_signed.then_some(self.claims)
    }
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
        assert_eq!(read().verified([other.public(), key.public()]), Some(claims));
        assert_eq!(read().verified([other.public()]), None);
    }

    #[test]
    fn invalid_token_is_none() {
        for text in ["", "a.b", "a.b.c", "e30.e30.e30.e30", "{}.e30.e30", "bnVsbA.MQ"] {
            assert_eq!(issuer(text), None, "{text}");
        }
        assert!(UnverifiedToken::parse("e30.e30.!").is_none());
        assert!(UnverifiedToken::parse("e30.e30.").is_some_and(|token| token.verified([]).is_none()));
    }
}
