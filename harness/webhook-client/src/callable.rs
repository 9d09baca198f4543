//! Limits which webhooks are called, so that no connection to a cluster is opened.

use std::collections::BTreeSet;

#[cfg(doc)]
use kubernetes_admission::caller::CallError;
use kubernetes_admission::config::WebhookTarget;

use super::HttpsCaller;

/// The addresses of the webhooks that are called. The responses of other webhooks are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers list the addresses")]
pub struct CallableWebhooks {
    /// The values of `clientConfig.url`.
    pub urls: BTreeSet<String>,
    /// The namespaces and names of Services.
    pub services: BTreeSet<(String, String)>,
}

impl CallableWebhooks {
    pub(crate) fn contains(&self, target: &WebhookTarget) -> bool {
        match target {
            WebhookTarget::Url(url) => self.urls.contains(url),
            WebhookTarget::Service(service) => {
                self.services.contains(&(service.namespace.clone(), service.name.clone()))
            }
        }
    }
}

impl HttpsCaller {
    /// Limits which webhooks are called; `None` for all. Calls to others fail immediately with [`CallError::NotCalled`].
    #[must_use]
    pub fn with_callable(self, callable: Option<CallableWebhooks>) -> Self {
        Self { callable, ..self }
    }
}
