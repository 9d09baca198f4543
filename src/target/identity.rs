//! Clients of a target for other users than its own.

use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication};
use serde_json::json;

use super::Target;
use crate::Failure;

/// How a target tells users apart.
pub(super) enum Identities {
    /// In process whoever holds the server decides.
    Chosen(ApiServer),
    /// By bearer tokens; the client's configuration but for them.
    Tokens(Box<kube::Config>),
    /// The kubeconfig says who its user is.
    Fixed,
}

impl Target {
    /// A client for `user`: by this bearer token, unless the server is in process.
    ///
    /// # Errors
    /// A cluster knows no other user than that of its kubeconfig.
    pub fn client_of(&self, user: UserInfo, token: &str) -> Result<kube::Client, Failure> {
        match &self.identities {
            Identities::Chosen(server) => {
                Ok(kube::Client::new(server.router(Authentication::Always(user)), "default"))
            }
            Identities::Tokens(config) => {
                let failed = |error: &dyn std::error::Error| {
                    Failure::environment(format!("no client for {}: {error}", user.username))
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
