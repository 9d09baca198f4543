//! Creates and authenticates service account tokens.

pub(crate) mod authenticate;
pub(crate) mod authenticator;
pub(crate) mod claims;
mod jose_json;
pub(crate) mod jwt;
pub(crate) mod keys;

use std::sync::{Arc, OnceLock};

pub(crate) use self::authenticate::{TokenRejection, authenticate};
pub use self::keys::{KeyError, SigningKey, VerifyingKey};

/// The settings for creating and verifying service account tokens, as configured by kube-apiserver's flags.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct ServiceAccountTokens {
    /// `--service-account-issuer`: the first issuer issues new tokens; the server accepts tokens from all issuers.
    pub issuers: Vec<String>,
    /// `--api-audiences`; defaults to the issuers.
    pub api_audiences: Vec<String>,
    /// `--service-account-signing-key-file`. If `None`, the server generates a key, and also verifies tokens with it.
    pub signing_key: Option<Arc<SigningKey>>,
    /// `--service-account-key-file`: the keys that verify tokens.
    pub keys: Vec<VerifyingKey>,
    /// `--service-account-max-token-expiration` in seconds.
    pub max_expiration: Option<i64>,
    /// `--service-account-extend-token-expiration`: whether the server extends the lifetime of Pod tokens.
    pub extend_expiration: bool,
    /// `--service-account-jwks-uri`: the URL of the public keys.
    pub jwks_uri: String,
}

const ISSUER: &str = "https://kubernetes.default.svc";

impl Default for ServiceAccountTokens {
    fn default() -> Self {
        Self {
            issuers: vec![ISSUER.to_owned()],
            api_audiences: Vec::new(),
            signing_key: None,
            keys: Vec::new(),
            max_expiration: None,
            extend_expiration: true,
            jwks_uri: "https://127.0.0.1:6443/openid/v1/jwks".to_owned(),
        }
    }
}

/// Issues and verifies tokens.
#[derive(Debug)]
pub(crate) struct TokenIssuer {
    pub(crate) settings: ServiceAccountTokens,
    /// The generated signing key; `None` if the system cannot generate random numbers.
    made: OnceLock<Option<SigningKey>>,
}

impl TokenIssuer {
    pub(crate) fn new(mut settings: ServiceAccountTokens) -> Self {
        if settings.api_audiences.is_empty() {
            settings.api_audiences.clone_from(&settings.issuers);
        }
        Self { settings, made: OnceLock::new() }
    }

    /// Returns the audiences of tokens for this server.
    pub(crate) fn api_audiences(&self) -> &[String] {
        &self.settings.api_audiences
    }

    pub(crate) fn signing_key(&self) -> Option<&SigningKey> {
        self.settings.signing_key.as_deref().or_else(|| self.made())
    }

    fn made(&self) -> Option<&SigningKey> {
        if self.settings.signing_key.is_some() {
            return None;
        }
        self.made.get_or_init(SigningKey::generate).as_ref()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &VerifyingKey> {
        self.settings.keys.iter().chain(self.made().map(SigningKey::public))
    }
}
