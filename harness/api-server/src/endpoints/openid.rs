//! The `OpenID` documents that clients use to verify service account tokens.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use kubernetes_types::status::Status;
use serde::Serialize;

use super::accept::check_produced;
use super::route::method_not_allowed;
use crate::kinds::service_account_tokens::TokenIssuer;
use crate::kinds::service_account_tokens::keys::Jwk;

/// An `OpenID` document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenId {
    /// `/.well-known/openid-configuration`.
    Configuration,
    /// `/openid/v1/jwks`.
    Keys,
}

/// The discovery document.
///
/// Source: kubernetes pkg/serviceaccount/openidmetadata.go, `openIDMetadata`.
#[derive(Debug, Serialize)]
struct Configuration<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'a str; 1],
    subject_types_supported: [&'a str; 1],
    id_token_signing_alg_values_supported: BTreeSet<&'a str>,
}

#[derive(Debug, Serialize)]
struct Keys<'a> {
    keys: Vec<&'a Jwk>,
}

/// Returns the response with a document, or 404 if the issuer is not a URL that can serve the document.
///
/// # Errors
/// Returns 405 for methods other than GET, or 406 for a client that does not accept the document.
///
/// Source: kubernetes pkg/routes/openidmetadata.go; go-restful jsr311.go, `detectRoute`.
/// Rule: TOK-06.
pub(crate) fn answer(
    issuer: &TokenIssuer,
    document: OpenId,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response<Bytes>, Box<Status>> {
    let Some(response) = issuer.document(document) else {
        let mut response = Response::new(Bytes::from_static(b"404 page not found\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        return Ok(response);
    };
    if method != Method::GET {
        return Err(method_not_allowed());
    }
    check_produced(headers, &[document.content_type()])?;
    Ok(response)
}

impl OpenId {
    fn content_type(self) -> &'static str {
        match self {
            Self::Configuration => "application/json",
            Self::Keys => "application/jwk-set+json",
        }
    }
}

impl TokenIssuer {
    /// Returns a document; `None` if the issuer is not a URL that can serve it.
    ///
    /// Source: kubernetes pkg/serviceaccount/openidmetadata.go,
    /// `NewOpenIDMetadataProvider`.
    fn document(&self, document: OpenId) -> Option<Response<Bytes>> {
        let issuer = self.settings.issuers.first()?;
        let url = url::Url::parse(issuer).ok()?;
        if url.scheme() != "https" || has_text(url.query()) || has_text(url.fragment()) {
            return None;
        }
        let text = match document {
            OpenId::Configuration => {
                let configuration = Configuration {
                    issuer,
                    jwks_uri: &self.settings.jwks_uri,
                    response_types_supported: ["id_token"],
                    subject_types_supported: ["public"],
                    id_token_signing_alg_values_supported: self
                        .keys()
                        .map(|key| key.algorithm.as_str())
                        .collect(),
                };
                serde_json::to_vec(&configuration)
            }
            OpenId::Keys => {
                let keys = Keys {
                    keys: self.keys().map(crate::kinds::service_account_tokens::VerifyingKey::jwk).collect(),
                };
                serde_json::to_vec(&keys)
            }
        };
        let mut response = Response::new(text.ok()?.into());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(document.content_type()));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        Some(response)
    }
}

fn has_text(part: Option<&str>) -> bool {
    part.is_some_and(|text| !text.is_empty())
}
