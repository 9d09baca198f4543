//! Explains how to fix a call that failed because the server did not reach the webhook or does not trust it.

use harness::server::ServiceName;

use crate::delivery::Delivery;
use crate::explain_error::{self, WebhookPlace};
use crate::tls_advice::{self, TlsPeer};

/// A webhook to which the server could not send a review.
pub(crate) struct UnreachedWebhook<'a> {
    /// The name of the webhook in its configuration.
    pub(crate) webhook: &'a str,
    /// The Service in the `clientConfig`.
    pub(crate) service: Option<&'a ServiceName>,
    /// The URL in the `clientConfig`; empty for a Service.
    pub(crate) url: &'a str,
    /// The host and the port that `--service` sets for the Service.
    pub(crate) address: Option<&'a (String, u16)>,
}

impl UnreachedWebhook<'_> {
    /// Explains how to fix the call, based on kube-apiserver's error.
    ///
    /// Returns `None` if the error is not about the connection.
    pub(crate) fn advice(&self, error: &str) -> Option<String> {
        let Self { webhook, service, url, address } = self;
        let delivery = Delivery::of_failure(error);
        if delivery == Delivery::Untrusted {
            let place = match (address, service) {
                (Some((host, port)), _) => format!("{host}:{port}"),
                (None, Some(ServiceName { namespace, name })) => format!("{name}.{namespace}.svc"),
                (None, None) => (*url).to_owned(),
            };
            let service = service.map(|it| format!("{}/{}", it.namespace, it.name));
            return tls_advice::advice(
                error,
                &TlsPeer { webhook, place: &place, service: service.as_deref() },
            );
        }
        let service = (*service)?;
        let ServiceName { namespace, name } = service;
        match address {
            None if error.contains(&format!("service \"{name}\" not found")) => Some(set_address(service)),
            Some((host, port)) if error.contains("connection refused") || delivery == Delivery::Unreached => {
                Some(format!(
                    "--service {namespace}/{name} is {host}:{port}: check that the webhook listens there"
                ))
            }
            None | Some(_) => None,
        }
    }

    /// Explains an error of a webhook on this machine as `admit explain-error` does; `None` for other webhooks.
    pub(crate) fn advice_on_loopback(&self, error: &str) -> Option<String> {
        if self.place() != WebhookPlace::Loopback {
            return None;
        }
        let message = format!("failed calling webhook \"{}\": {error}", self.webhook);
        let help = explain_error::advice(&message, WebhookPlace::Loopback)?.help();
        Some(help).filter(|help| !help.is_empty())
    }

    /// Returns where the webhook runs.
    pub(crate) fn place(&self) -> WebhookPlace {
        match self.address {
            Some((host, _)) => WebhookPlace::of_host(host),
            None => WebhookPlace::of_url(self.url),
        }
    }
}

/// Suggests to set the address of a Service.
pub(crate) fn set_address(ServiceName { namespace, name }: &ServiceName) -> String {
    format!("set the address of the webhook with --service {namespace}/{name}=HOST:PORT")
}
