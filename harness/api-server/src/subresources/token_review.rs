//! Validates and answers `TokenReview` requests.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use kubernetes_types::json;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Value, json};

use crate::kinds::service_account_tokens::TokenRejection;
use crate::kinds::service_account_tokens::authenticator::TokenAuthenticator;
use crate::kinds::service_account_tokens::authenticator::{bearer, with_groups};

/// The error for a token that no authenticator recognizes.
///
/// Source: apiserver pkg/authentication/request/bearertoken/bearertoken.go, `invalidToken`.
const INVALID: &str = "invalid bearer token";

/// Rejects a review without a token. The server calls this function before admission.
///
/// # Errors
/// Returns 400 if the token is missing.
///
/// Source: kubernetes pkg/registry/authentication/tokenreview/storage.go, `Create`.
/// Rule: TOK-12.
pub(crate) fn check(review: &Value) -> Result<(), Box<Status>> {
    if json::text(review, &["spec", "token"]).is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(Box::new(Status::bad_request(message)));
    }
    Ok(())
}

/// Authenticates the token of a review and returns the review with the result in its status.
///
/// # Errors
/// Returns 501 for service account tokens from Secrets and for malformed tokens.
///
/// Source: as [`check`].
/// Rule: TOK-11, TOK-12.
pub(crate) fn answer(mut review: Value, tokens: &TokenAuthenticator) -> Result<Value, Box<Status>> {
    let unsupported = |what: &Unsupported| Box::new(Status::unsupported(what));
    let header = format!("Bearer {}", json::text(&review, &["spec", "token"]));
    let headers: HeaderMap = header.parse().ok().map(|value| (AUTHORIZATION, value)).into_iter().collect();
    let Some(token) = bearer(&headers) else {
        return Err(unsupported(&Unsupported { what: "reviews of malformed bearer tokens".to_owned() }));
    };
    let wanted =
        json::at(&review, &["spec", "audiences"]).as_array().filter(|audiences| !audiences.is_empty());
    let wanted: Option<Vec<String>> =
        wanted.map(|texts| texts.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    let audiences = wanted.as_deref().unwrap_or_else(|| tokens.issuer.api_audiences());
    let status = match tokens.authenticate(token, audiences) {
        Ok(Some(found)) => json!({
            "authenticated": true,
            "user": with_groups(found.user),
            "audiences": found.audiences,
        }),
        Ok(None) => json!({"user": {}, "error": INVALID}),
        // Joins the errors of two authenticators.
        Err(TokenRejection::Invalid(why)) => json!({"user": {}, "error": format!("[{INVALID}, {why}]")}),
        Err(TokenRejection::Unsupported(what)) => return Err(unsupported(&what)),
    };
    json::set(&mut review, &["status"], status);
    Ok(review)
}
