//! Authenticates requests with bearer tokens.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use kubernetes_admission::attributes::UserInfo;
use sha2::{Digest as _, Sha256};

use crate::kinds::service_account_tokens;
use crate::kinds::service_account_tokens::{TokenIssuer, TokenRejection};
use crate::storage::ObjectReader;

/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of requests that are not authenticated.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user name of requests that are not authenticated.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The users of bearer tokens.
///
/// Stores SHA-256 hashes of the tokens, so that the lookup time does not reveal token prefixes.
#[derive(Clone, Default)]
pub struct Tokens(HashMap<[u8; 32], UserInfo>);

impl Tokens {
    /// Adds a token. Returns the previous user of the token, if any.
    pub fn insert(&mut self, token: &str, user: UserInfo) -> Option<UserInfo> {
        self.0.insert(Sha256::digest(token).into(), user)
    }

    fn get(&self, token: &str) -> Option<&UserInfo> {
        let sum: [u8; 32] = Sha256::digest(token).into();
        self.0.get(&sum)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("users", &self.0.len()).finish_non_exhaustive()
    }
}

/// The user of valid credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Authenticated {
    pub(crate) user: UserInfo,
    /// The requested audiences for which the credentials are valid.
    pub(crate) audiences: Vec<String>,
    /// The audit annotations about the credentials.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Authenticated {
    pub(crate) fn user(user: UserInfo) -> Self {
        Self { user, ..Self::default() }
    }
}

/// Authenticates requests to a server by bearer token.
pub(crate) struct TokenAuthenticator {
    tokens: Tokens,
    pub(crate) issuer: Arc<TokenIssuer>,
    objects: Arc<dyn ObjectReader>,
}

impl fmt::Debug for TokenAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenAuthenticator").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

impl TokenAuthenticator {
    pub(crate) fn new(tokens: Tokens, issuer: TokenIssuer, objects: Arc<dyn ObjectReader>) -> Self {
        Self { tokens, issuer: Arc::new(issuer), objects }
    }

    /// Returns the user of a token that is valid for one of the `audiences`; `None` if the token is unknown.
    ///
    /// # Errors
    /// Returns [`TokenRejection`] if the token is an invalid or unsupported service account token.
    ///
    /// Source: kubernetes pkg/kubeapiserver/authenticator/config.go, `New`; apiserver
    /// pkg/authentication/authenticator/audagnostic.go.
    /// Rule: TOK-11.
    pub(crate) fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<Authenticated>, TokenRejection> {
        if let Some(user) = self.tokens.get(token) {
            let own = self.issuer.api_audiences();
            let shared: Vec<String> = audiences.iter().filter(|it| own.contains(it)).cloned().collect();
            if !shared.is_empty() {
                let user = user.clone();
                return Ok(Some(Authenticated { user, audiences: shared, annotations: BTreeMap::new() }));
            }
        }
        let now = Timestamp::now();
        service_account_tokens::authenticate(token, audiences, &self.issuer, &*self.objects, now)
    }
}

#[cfg(test)]
impl TokenAuthenticator {
    /// Creates an authenticator for a server without objects.
    pub(crate) fn of_tokens(tokens: Tokens) -> Self {
        let storage = crate::storage::Storage::new(
            crate::kinds::rbac::bootstrap::INITIAL_OBJECTS,
            &crate::apimachinery::limits::Limits::default(),
        );
        Self::new(tokens, TokenIssuer::new(super::ServiceAccountTokens::default()), Arc::new(storage))
    }
}

/// Source: apiserver `pkg/authentication/group/authenticated_group_adder.go`.
pub(crate) fn with_groups(mut user: UserInfo) -> UserInfo {
    let is_there = user.groups.iter().any(|group| [AUTHENTICATED, UNAUTHENTICATED].contains(&group.as_str()));
    if user.username != ANONYMOUS && !is_there {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// Returns the token in the `Authorization` header.
///
/// Returns `None` if the header is missing, has a different scheme, or does not contain a token.
///
/// Source: apiserver pkg/authentication/request/bearertoken/bearertoken.go, `AuthenticateRequest`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut words = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().splitn(3, ' ');
    let (scheme, token) = (words.next()?, words.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
