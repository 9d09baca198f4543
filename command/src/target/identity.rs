//! Clients of a target for other users than its own.

use axum::extract::Request;
use axum::middleware;
use harness::server::{ApiServer, Authentication, Authenticators};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use serde_json::json;

use super::Target;
use crate::Failure;

/// How a target tells users apart.
pub(super) enum Identities {
    /// By bearer tokens, in process.
    InProcess(ApiServer),
    /// By bearer tokens; the client's configuration but for them.
    Tokens(Box<kube::Config>),
    /// The kubeconfig says who its user is.
    Fixed,
}

impl Target {
    /// A client by this bearer token, whose user is `user`.
    ///
    /// # Errors
    /// A cluster knows no other user than that of its kubeconfig.
    pub fn client_of(&self, user: &str, token: &str) -> Result<kube::Client, Failure> {
        match &self.identities {
            Identities::InProcess(server) => {
                let header = HeaderValue::try_from(format!("Bearer {token}"));
                let header =
                    header.map_err(|error| Failure::environment(format!("token of {user}: {error}")))?;
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
                    Failure::environment(format!("no client for {user}: {error}"))
                };
                let mut config = kube::Config::clone(config);
                config.auth_info =
                    serde_json::from_value(json!({"token": token})).map_err(|error| failed(&error))?;
                kube::Client::try_from(config).map_err(|error| failed(&error))
            }
            Identities::Fixed => {
                Err(Failure::environment("--target cluster has no other user than that of the kubeconfig"))
            }
        }
    }
}
