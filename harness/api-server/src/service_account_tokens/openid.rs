//! What others verify tokens of service accounts by.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use serde::Serialize;

use super::TokenIssuer;
use super::keys::Jwk;

/// Which document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenId {
    /// `/.well-known/openid-configuration`.
    Configuration,
    /// `/openid/v1/jwks`.
    Keys,
}

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

impl TokenIssuer {
    /// A document; none where the issuer is no URL at which it could be found.
    ///
    /// Source: kubernetes pkg/routes/openidmetadata.go; pkg/serviceaccount/openidmetadata.go,
    /// `NewOpenIDMetadataProvider`.
    /// Rule: TOK-06.
    pub(crate) fn document(&self, document: OpenId) -> Option<Response<Bytes>> {
        let issuer = self.settings.issuers.first()?;
        let url = url::Url::parse(issuer).ok()?;
        if url.scheme() != "https" || has_text(url.query()) || has_text(url.fragment()) {
            return None;
        }
        let (content_type, text) = match document {
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
                ("application/json", serde_json::to_vec(&configuration))
            }
            OpenId::Keys => {
                let keys = Keys { keys: self.keys().map(super::VerifyingKey::jwk).collect() };
                ("application/jwk-set+json", serde_json::to_vec(&keys))
            }
        };
        let mut response = Response::new(text.ok()?.into());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        Some(response)
    }
}

fn has_text(part: Option<&str>) -> bool {
    part.is_some_and(|text| !text.is_empty())
}
