//! Creates clients for other users of a target.

use axum::extract::Request;
use axum::middleware;
use harness::server::{ApiServer, Authentication, Authenticators};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use serde_json::json;

use super::Target;
use crate::Failure;

/// The method by which a target authenticates the users of requests.
pub(super) enum Identities {
    /// With bearer tokens that the in-process API server accepts.
    InProcess(ApiServer),
    /// With bearer tokens; contains the client configuration without the token.
    Tokens(Box<kube::Config>),
    /// With the credentials in the kubeconfig. Other users are not supported.
    Fixed,
}

impl Target {
    /// Creates a client with the bearer token of `user`.
    ///
    /// # Errors
    /// Returns an error if the target is a cluster: it supports only the user in the kubeconfig.
    pub fn client_of(&self, user: &str, token: &str) -> Result<kube::Client, Failure> {
        match &self.identities {
            Identities::InProcess(server) => {
                let header = HeaderValue::try_from(format!("Bearer {token}"));
                let header = header
                    .map_err(|error| Failure::environment(format!("invalid token of {user}: {error}")))?;
                let bear = move |mut request: Request| {
                    request.headers_mut().insert(AUTHORIZATION, header.clone());
                    std::future::ready(request)
                };
                let authentication = Authentication::Authenticators(Authenticators::default());
                let router = server.router(authentication).layer(middleware::map_request(bear));
                Ok(kube::Client::new(router, "default"))
            }
            Identities::Tokens(config) => {
                let failed = |error: &dyn std::error::Error| {
                    Failure::environment(format!("cannot create a client for {user}: {error}"))
                };
                let mut config = kube::Config::clone(config);
                config.auth_info =
                    serde_json::from_value(json!({"token": token})).map_err(|error| failed(&error))?;
                kube::Client::try_from(config).map_err(|error| failed(&error))
            }
            Identities::Fixed => {
                Err(Failure::environment("other users are not supported with --target cluster"))
            }
        }
    }
}
