//! Calls webhooks over HTTPS.

use std::fmt;
use std::sync::Arc;

use crate::caller::{Call, CallError, Caller, Reply};
use crate::config::ServiceReference;

/// Finds where a service listens.
pub trait ServiceResolver: Send + Sync {
    /// Host (a name or an IP) and port to connect to.
    ///
    /// # Errors
    /// The text of kube-apiserver's resolver, such as `service "x" not found`.
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String>;
}

/// The [`Caller`] that calls webhooks over HTTPS, as kube-apiserver does. Keeps connections alive.
pub struct HttpsCaller {
    services: Arc<dyn ServiceResolver>,
}

impl HttpsCaller {
    /// A caller that finds services by `services`.
    pub fn new(services: Arc<dyn ServiceResolver>) -> Self {
        Self { services }
    }
}

impl Caller for HttpsCaller {
    async fn call(&self, _call: Call<'_>) -> Result<Reply, CallError> {
        Err(CallError::Client("not written yet".to_owned()))
    }
}

impl fmt::Debug for HttpsCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = &self.services;
        f.debug_struct("HttpsCaller").finish_non_exhaustive()
    }
}
