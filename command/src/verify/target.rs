//! Resolves the addresses of webhooks, and asks before calling webhooks on other machines.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::net::IpAddr;
use std::path::Path;

use base64::Engine as _;
use harness::client::{Redirects, ServiceResolver};
use harness::config::{ServiceReference, WebhookTarget};
use harness::json::set;
use harness::server::ServiceName;
use harness::verify::Subject;
use output::OneLine;
use serde_json::Value;
use url::Url;

use crate::{Failure, screen, service_map};

/// Parses the value of `--endpoint`.
pub(super) fn endpoint(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok();
    url.filter(|url| url.scheme() == "https" && url.host_str().is_some()).ok_or_else(|| {
        "expected a URL such as https://127.0.0.1:8443 or https://127.0.0.1:8443/mutate".to_owned()
    })
}

/// The addresses of Services that `--service` and `--endpoint` specify.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    /// The addresses of Services, by name.
    pub(crate) known: BTreeMap<ServiceName, (String, u16)>,
    /// The address of all other Services.
    pub(crate) endpoint: Option<(String, u16)>,
}

impl ServiceResolver for Services {
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String> {
        let name = ServiceName { namespace: service.namespace.clone(), name: service.name.clone() };
        self.known.get(&name).or(self.endpoint.as_ref()).cloned().ok_or_else(|| {
            format!(
                "no address for the Service: pass --service {}/{}=HOST:PORT",
                service.namespace, service.name
            )
        })
    }
}

/// Replaces the CA bundles of the configuration's webhooks with `ca_file`, and their URLs with `endpoint`.
pub(crate) fn redirect(
    configuration: &mut Value,
    ca_file: Option<&Path>,
    endpoint: Option<&Url>,
) -> Result<(), Failure> {
    let bundle = match ca_file {
        Some(path) => {
            let pem = output::read(path)
                .map_err(|error| Failure::usage(format!("--ca-file {}: {error}", path.display())))?;
            Some(base64::engine::general_purpose::STANDARD.encode(pem))
        }
        None => None,
    };
    let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten();
    for client_config in webhooks.filter_map(|webhook| webhook.get_mut("clientConfig")) {
        if let Some(bundle) = &bundle {
            set(client_config, &["caBundle"], &**bundle);
        }
        if let Some(endpoint) = endpoint
            && let Some(url) = client_config.get("url").and_then(Value::as_str)
        {
            let mut there = endpoint.clone();
            if endpoint.path() == "/"
                && let Ok(own) = Url::parse(url)
            {
                there.set_path(own.path());
            }
            set(client_config, &["url"], there.to_string());
        }
    }
    Ok(())
}

/// Asks for consent before calling webhooks that are not on this machine.
///
/// Consent includes following redirects as kube-apiserver does. Without consent, redirects to other hosts are not
/// followed, because a webhook on this machine may redirect to any host.
///
/// # Errors
/// Returns an error if there is no terminal to ask on, or if the user declines.
pub(crate) fn consent(subjects: &[Subject], services: &Services, yes: bool) -> Result<Redirects, Failure> {
    if yes {
        return Ok(Redirects::All);
    }
    let remote: BTreeSet<String> = subjects
        .iter()
        .filter_map(|subject| {
            let (host, port) = place(subject, services)?;
            (!is_loopback(&host)).then(|| format!("  {} at {host}:{port}", OneLine(subject.name())))
        })
        .collect();
    if remote.is_empty() {
        return Ok(Redirects::SameOrigin);
    }
    let list = remote.into_iter().collect::<Vec<_>>().join("\n");
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage(format!(
            "these webhooks are not on this machine:\n{list}\npass --yes to call them hundreds of times, \
             also with invalid requests"
        )));
    }
    screen::prompt(&format!(
        "these webhooks are not on this machine:\n{list}\nadmit calls them hundreds of times, also with invalid \
         requests. Continue? [y/N] "
    ));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(Redirects::All);
    }
    Err(Failure::usage("nothing was called"))
}

/// Warns about each Service of `--service` that no webhook refers to.
pub(super) fn warn_about_unused(services: &Services, subjects: &[Subject]) {
    let mut named: BTreeSet<ServiceName> = BTreeSet::new();
    for subject in subjects {
        if let WebhookTarget::Service(service) = &subject.webhook.client_config.target {
            named.insert(ServiceName { namespace: service.namespace.clone(), name: service.name.clone() });
        }
    }
    for message in service_map::unused(services.known.keys(), &named, "the webhooks") {
        screen::status!("warning: {message}");
    }
}

/// Returns the URL at which each webhook is called, by `CONFIGURATION/WEBHOOK`.
pub(super) fn addresses(subjects: &[Subject], services: &Services) -> BTreeMap<String, String> {
    let known = subjects.iter().filter_map(|subject| {
        let url = match &subject.webhook.client_config.target {
            WebhookTarget::Service(service) => {
                let (host, port) = services.resolve(service).ok()?;
                format!("https://{host}:{port}/{}", service.path.trim_start_matches('/'))
            }
            WebhookTarget::Url(url) => url.clone(),
        };
        Some((subject.name(), url))
    });
    known.collect()
}

/// Returns the host and port of a webhook, or `None` if they are unknown.
pub(super) fn place(subject: &Subject, services: &Services) -> Option<(String, u16)> {
    match &subject.webhook.client_config.target {
        WebhookTarget::Service(service) => services.resolve(service).ok(),
        WebhookTarget::Url(url) => {
            let url = Url::parse(url).ok()?;
            Some((url.host_str()?.to_owned(), url.port_or_known_default().unwrap_or(443)))
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configuration(client_config: &Value) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "c"}, "webhooks": [{
                "name": "w", "clientConfig": client_config, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        })
    }

    fn services() -> Services {
        let name = ServiceName { namespace: "a".to_owned(), name: "b".to_owned() };
        Services { known: BTreeMap::from([(name, ("192.0.2.1".to_owned(), 1))]), endpoint: None }
    }

    #[test]
    fn remote_webhook_is_called_only_with_confirmation() {
        for (client_config, allowed) in [
            (json!({"url": "https://127.0.0.1:1/"}), true),
            (json!({"url": "https://[::1]:1/"}), true),
            (json!({"url": "https://localhost/"}), true),
            (json!({"url": "https://example.com/"}), false),
            (json!({"url": "https://localhost.example.com/"}), false),
            (json!({"service": {"namespace": "a", "name": "b"}}), false),
            // The address is unknown, so the webhook is not called.
            (json!({"service": {"namespace": "a", "name": "c"}}), true),
        ] {
            let subjects = Subject::from_configurations(&[configuration(&client_config)]).unwrap();
            let unasked = consent(&subjects, &services(), false).ok();
            assert_eq!(unasked, allowed.then_some(Redirects::SameOrigin), "{client_config}");
            assert_eq!(consent(&subjects, &services(), true).ok(), Some(Redirects::All));
        }
    }

    #[test]
    fn an_endpoint_keeps_the_path_unless_it_has_its_own() {
        for (endpoint, expected) in
            [("https://127.0.0.1:9443", "https://127.0.0.1:9443/mutate"), ("https://h/x", "https://h/x")]
        {
            let mut found = configuration(&json!({"url": "https://example.com/mutate"}));
            redirect(&mut found, None, Some(&Url::parse(endpoint).unwrap())).unwrap();
            assert_eq!(found["webhooks"][0]["clientConfig"]["url"], expected);
        }
    }

    #[test]
    fn endpoint_without_a_scheme_or_with_http_is_rejected() {
        assert!(endpoint("https://127.0.0.1:8443/mutate").is_ok());
        for wrong in ["127.0.0.1:8443", "localhost:8443", "http://127.0.0.1:8443", "/mutate"] {
            assert!(endpoint(wrong).unwrap_err().starts_with("expected a URL such as "), "{wrong}");
        }
    }
}
