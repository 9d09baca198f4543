//! Installs the webhook configurations of a scenario before its first request.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_webhooks::{Behavior, Deny, Transport};
use harness::server::ServiceName;
use http::Method;
use serde_json::{Value, json};

use super::api::{self, Effect, PatchFormat, RequestOptions};
use super::endpoint::{FakeSpec, RunningFake};
use super::failure::{Outcome, StepFailure};
use super::names::SCENARIO_LABEL;
use super::parameter::Admission;
use super::webhook::{Webhook, merge};
use super::world::World;
use crate::target::RUN_LABEL;

/// The webhook configurations of a scenario and whether they are installed.
#[derive(Debug, Default)]
pub(crate) struct Installation {
    state: State,
    /// The number of installations so far. It makes the marker labels of each installation unique.
    generation: usize,
    /// The marker webhook, which denies every request.
    pub(super) marker: Option<RunningFake>,
    written: Vec<String>,
    /// The marker labels of the installed configurations.
    markers: Vec<String>,
    /// The loaded webhooks that fakes have replaced since the last request. They are printed with the next request.
    pub(super) replaced: Vec<String>,
    /// A line about the order of mutating webhooks, which is printed with the next request.
    pub(super) order: Option<String>,
    /// The configurations that the scenario loads from a file or a doc string.
    pub(super) own: Vec<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Current,
    Stale,
}

/// A webhook configuration to write.
struct Configuration {
    kind: &'static str,
    resource: &'static str,
    name: String,
    webhooks: Vec<Value>,
    /// The value of [`MARKER_LABEL`] that the configuration's marker webhook matches.
    marker: String,
}

pub(super) const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";

/// The label whose value selects one marker webhook.
const MARKER_LABEL: &str = "admit.example.com/marker";
/// The name of every marker webhook.
const MARKER: &str = "marker.admit.example.com";

/// The maximum time to wait until the server uses a configuration.
const CONFIGURATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The time after which a configuration that the server does not use yet is written again.
///
/// The server may have missed the change.
///
/// Source: apiserver `pkg/admission/configuration/mutating_webhook_manager.go` (the cache of compiled configurations)
const TOUCH_AFTER: Duration = Duration::from_secs(3);

impl Installation {
    /// Marks the installed configurations as outdated, so that the next request installs them again.
    pub(super) fn expire(&mut self) {
        self.state = State::Stale;
    }

    /// Returns the names of the webhooks in loaded configurations, each with the name of its configuration.
    pub(super) fn own_webhooks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.own.iter().flat_map(|own| {
            let configuration = own.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            webhook_names(own).map(move |webhook| (configuration, webhook))
        })
    }

    /// Returns the names of the webhooks in loaded mutating configurations, each with the name of its configuration.
    pub(super) fn own_mutating_webhooks(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.own_mutating_configurations();
        own.flat_map(|(configuration, own)| webhook_names(own).map(move |webhook| (configuration, webhook)))
    }

    /// Returns the loaded mutating webhook configurations, each with its name.
    pub(super) fn own_mutating_configurations(&self) -> impl Iterator<Item = (&str, &Value)> {
        let is_mutating =
            |own: &&Value| own.get("kind").and_then(Value::as_str) == Some("MutatingWebhookConfiguration");
        let own = self.own.iter().filter(is_mutating);
        own.filter_map(|own| Some((own.pointer("/metadata/name")?.as_str()?, own)))
    }

    /// Returns whether a loaded configuration has a mutating webhook with the given name.
    pub(super) fn has_own_mutating_webhook(&self, name: &str) -> bool {
        self.own_mutating_webhooks().any(|(_, known)| known == name)
    }

    /// Returns whether a loaded configuration has a webhook with the given name.
    pub(super) fn has_own_webhook(&self, name: &str) -> bool {
        self.own_webhooks().any(|(_, known)| known == name)
    }
}

fn webhook_names(configuration: &Value) -> impl Iterator<Item = &str> {
    let entries = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| entry.get("name")?.as_str())
}

impl World {
    /// Installs the configurations if they are outdated, and waits until the server uses them.
    pub(super) async fn install(&mut self) -> Outcome {
        match self.installation.state {
            State::Current => return Ok(()),
            State::Stale => {}
        }
        self.namespace().await?;
        self.create_marker_namespace().await?;
        self.start_fakes().await?;
        self.route_services().await?;
        self.installation.generation += 1;
        let configurations = self.configurations()?;
        for configuration in &configurations {
            self.write(configuration).await?;
        }
        self.installation.markers = configurations.iter().map(|it| it.marker.clone()).collect();
        self.wait_until_used(&configurations).await?;
        self.installation.state = State::Current;
        self.installation.order = self.mutating_order();
        Ok(())
    }

    async fn start_fakes(&mut self) -> Outcome {
        let target = self.shared_target()?;
        if self.installation.marker.is_none() {
            let message = Some("the configuration is in use".to_owned());
            let behavior = Behavior::Deny(Deny { message, ..Deny::default() });
            let spec = FakeSpec {
                admission: Admission::Validating,
                transport: Transport::default(),
                behavior,
                names: Vec::new(),
            };
            let marker = RunningFake::start(&target, &self.names.fake("marker"), &spec).await?;
            self.installation.marker = Some(marker);
        }
        for (index, webhook) in self.webhooks.iter_mut().enumerate().filter(|(_, webhook)| webhook.has_fake())
        {
            let spec = webhook.fake_spec()?;
            match &mut webhook.running {
                // The transport cannot change while a fake is listening.
                Some((running, current))
                    if current.transport == spec.transport && current.names == spec.names =>
                {
                    if *current != spec {
                        running.change(&spec).await?;
                        *current = spec;
                    }
                }
                Some(_) | None => {
                    let running = RunningFake::start(&target, &self.names.fake(index), &spec).await?;
                    webhook.set_running(running, spec);
                }
            }
        }
        Ok(())
    }

    fn configurations(&self) -> Outcome<Vec<Configuration>> {
        let mut configurations = Vec::new();
        for admission in [Admission::Mutating, Admission::Validating] {
            let mut by_configuration: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for webhook in self.defined(admission) {
                let name = webhook.configuration(&self.names);
                by_configuration.entry(name).or_default().push(self.entry(webhook));
            }
            for (name, webhooks) in by_configuration {
                configurations.push(Self::configuration(admission, name, webhooks));
            }
        }
        for own in &self.installation.own {
            configurations.push(self.own_configuration(own)?);
        }
        for (index, configuration) in configurations.iter_mut().enumerate() {
            configuration.marker = format!("{}-{}-{index}", self.names.id(), self.installation.generation);
        }
        Ok(configurations)
    }

    fn configuration(admission: Admission, name: String, webhooks: Vec<Value>) -> Configuration {
        let (kind, resource) = match admission {
            Admission::Mutating => ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            Admission::Validating => ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        };
        let marker = String::new();
        Configuration { kind, resource, name, webhooks, marker }
    }

    /// Returns the entries of the scenario's webhooks for their configurations, in definition order.
    pub(super) fn entries(&self, admission: Admission) -> Vec<Value> {
        self.defined(admission).map(|webhook| self.entry(webhook)).collect()
    }

    /// Returns the fakes that steps define, in definition order.
    fn defined(&self, admission: Admission) -> impl Iterator<Item = &Webhook> {
        self.webhooks.iter().filter(move |webhook| webhook.loaded.is_none() && webhook.admission == admission)
    }

    fn entry(&self, webhook: &Webhook) -> Value {
        let mut entry = webhook.entry.clone();
        if let Some((running, _)) = &webhook.running {
            let mut client_config = webhook.client_config_for(running);
            json_patch::merge(&mut client_config, &Value::Object(webhook.client_config.clone()));
            merge(&mut entry, &json!({ "clientConfig": client_config }));
        }
        self.confine(&mut entry);
        entry
    }

    /// Returns a loaded configuration, renamed for this scenario and limited to the scenario's namespaces.
    fn own_configuration(&self, own: &Value) -> Outcome<Configuration> {
        let admission = match own.get("kind").and_then(Value::as_str) {
            Some("MutatingWebhookConfiguration") => Admission::Mutating,
            _ => Admission::Validating,
        };
        let name = own.pointer("/metadata/name").and_then(Value::as_str);
        let name =
            name.ok_or_else(|| StepFailure::new("missing metadata.name in a webhook configuration"))?;
        let mut webhooks = own.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default();
        for entry in &mut webhooks {
            self.target()?.locate(entry);
            self.apply_changes(entry);
            self.confine(entry);
        }
        Ok(Self::configuration(admission, self.names.loaded_configuration(name), webhooks))
    }

    /// Creates an `ExternalName` Service for each Service of `--service` that loaded configurations refer to.
    ///
    /// Scenarios can share these Services, so they are kept until the end of the run. An existing Service is patched.
    async fn route_services(&mut self) -> Outcome {
        let mut services = BTreeMap::new();
        for own in &mut self.installation.own.clone() {
            for entry in own.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                services.extend(self.target()?.locate(entry));
            }
        }
        let client = self.client()?.clone();
        for (ServiceName { namespace, name }, host) in services {
            let during = || format!("pointing the Service {namespace}/{name} to {host}");
            let labels = json!({RUN_LABEL: self.target()?.run});
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
            api::send(&client, Method::POST, "/api/v1/namespaces", Some(&object))
                .await?
                .successful_or_exists()
                .map_err(|failure| failure.during(during()))?;
            let spec = json!({"type": "ExternalName", "externalName": host});
            let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels}, "spec": spec});
            let collection = format!("/api/v1/namespaces/{namespace}/services");
            let answer = api::send(&client, Method::POST, &collection, Some(&object)).await?;
            if answer.code == http::StatusCode::CONFLICT {
                let (path, change) = (format!("{collection}/{name}"), json!({ "spec": spec }));
                let (options, format) = (RequestOptions::default(), Some(PatchFormat::Merge));
                let patched =
                    api::send_as(&client, &options, Method::PATCH, &path, Some(&change), format).await?;
                patched.successful().map_err(|failure| failure.during(during()))?;
            } else {
                answer.successful().map_err(|failure| failure.during(during()))?;
            }
        }
        Ok(())
    }

    /// Limits the webhook `entry` to the scenario's namespaces, because scenarios share a server.
    pub(super) fn confine(&self, entry: &mut Value) {
        let own = json!({"namespaceSelector": {"matchLabels": {SCENARIO_LABEL: self.names.id()}}});
        merge(entry, &own);
    }

    /// Writes the configuration with its marker webhook.
    async fn write(&mut self, configuration: &Configuration) -> Outcome {
        let mut webhooks = configuration.webhooks.clone();
        webhooks.push(self.marker_entry(&configuration.marker)?);
        let collection = format!("{ROOT}/{}", configuration.resource);
        let path = format!("{collection}/{}", configuration.name);
        let (client, options) = (self.client()?.clone(), RequestOptions::default());
        let answer = if self.installation.written.contains(&path) {
            let change = json!({ "webhooks": webhooks });
            api::send_as(&client, &options, Method::PATCH, &path, Some(&change), Some(PatchFormat::Merge))
                .await?
        } else {
            let object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": configuration.kind,
                "metadata": {"name": configuration.name, "labels": {RUN_LABEL: self.target()?.run}},
                "webhooks": webhooks,
            });
            api::send(&client, Method::POST, &collection, Some(&object)).await?
        };
        answer
            .successful()
            .map_err(|failure| self.rejected_webhook(&configuration.name, &webhooks, failure))?;
        self.installation.written.push(path.clone());
        self.remove_at_the_end(path);
        Ok(())
    }

    fn marker_entry(&self, label: &str) -> Outcome<Value> {
        let marker = self.installation.marker.as_ref();
        let marker = marker.ok_or_else(|| StepFailure::new("the marker webhook was not started"))?;
        Ok(json!({
            "name": MARKER,
            "clientConfig": marker.client_config(),
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {SCENARIO_LABEL: self.marker_namespace()?}},
            "objectSelector": {"matchLabels": {MARKER_LABEL: label}},
            "failurePolicy": "Ignore", "timeoutSeconds": 5,
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }))
    }

    /// Waits until the server uses `configurations`.
    ///
    /// The API does not report whether the server uses a configuration. The marker webhook of each configuration denies
    /// dry runs with its label in a namespace that is not used for anything else.
    async fn wait_until_used(&self, configurations: &[Configuration]) -> Outcome {
        let started = tokio::time::Instant::now();
        let mut touched = started;
        let mut pause = Duration::from_millis(5);
        let mut unused = configurations.iter();
        let mut next = unused.next();
        while let Some(configuration) = next {
            if self.is_denied(&configuration.marker).await? {
                next = unused.next();
                continue;
            }
            if started.elapsed() > CONFIGURATION_TIMEOUT {
                return Err(self.never_used(configuration));
            }
            if touched.elapsed() > TOUCH_AFTER {
                touched = tokio::time::Instant::now();
                self.touch(configuration).await?;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Waits until the server stops using deleted configurations, because they may match other requests.
    pub(super) async fn wait_until_unused(&self) {
        let started = tokio::time::Instant::now();
        for marker in &self.installation.markers {
            while started.elapsed() < CONFIGURATION_TIMEOUT
                && matches!(self.is_denied(marker).await, Ok(true))
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Returns whether the server calls the marker webhook, which denies everything, for the label value `marker`.
    async fn is_denied(&self, marker: &str) -> Outcome<bool> {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.marker_namespace()?);
        let metadata = json!({"name": "marker", "labels": {MARKER_LABEL: marker}});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let options = RequestOptions { effect: Effect::DryRun, ..RequestOptions::default() };
        let answer = api::send_as(self.client()?, &options, Method::POST, &path, Some(&object), None).await?;
        if answer.message().starts_with(&format!("admission webhook \"{MARKER}\" denied the request")) {
            return Ok(true);
        }
        let admitted = answer.successful().map_err(|failure| failure.during("the marker's dry run"));
        admitted.map(|_| false)
    }

    async fn touch(&self, configuration: &Configuration) -> Outcome {
        let path = format!("{ROOT}/{}/{}", configuration.resource, configuration.name);
        let annotations = json!({"admit.example.com/touched": uuid::Uuid::new_v4().to_string()});
        let change = json!({"metadata": {"annotations": annotations}});
        let (client, options) = (self.client()?, RequestOptions::default());
        let sent =
            api::send_as(client, &options, Method::PATCH, &path, Some(&change), Some(PatchFormat::Merge));
        sent.await?.successful().map(drop)
    }

    fn never_used(&self, configuration: &Configuration) -> StepFailure {
        let host = self.target().map(|target| target.fakes.host()).unwrap_or_default();
        StepFailure::new(format!(
            "the server did not call the webhooks of {} {} within {} s: can it reach {host}?",
            configuration.kind,
            configuration.name,
            CONFIGURATION_TIMEOUT.as_secs()
        ))
    }
}
