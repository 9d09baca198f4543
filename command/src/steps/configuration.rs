//! The scenario's webhook configurations: written before the first request, and in use when it is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_webhooks::{Behavior, Deny, Transport};
use harness::server::ServiceName;
use http::Method;
use serde_json::{Value, json};

use super::api::{self, Effect, Manner, PatchFormat};
use super::endpoint::{Running, Wanted};
use super::failure::{Outcome, StepFailure};
use super::names::SCENARIO_LABEL;
use super::parameter::Admission;
use super::webhook::merge;
use super::world::World;
use crate::target::RUN_LABEL;

/// What the server has been told.
#[derive(Debug, Default)]
pub(crate) struct Installation {
    state: State,
    /// Counts what the server was told, so that what the marker refuses says which of it the server uses.
    generation: usize,
    /// The webhook by which that is seen: it refuses everything.
    pub(super) marker: Option<Running>,
    written: Vec<String>,
    /// What the marker webhooks of the configurations refuse now.
    markers: Vec<String>,
    /// Configurations of the author's own.
    pub(super) own: Vec<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Current,
    Stale,
}

/// A configuration as it is written.
struct Configuration {
    kind: &'static str,
    resource: &'static str,
    name: String,
    webhooks: Vec<Value>,
    /// The value of [`MARKER_LABEL`] on what its marker webhook refuses.
    marker: String,
}

pub(super) const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";

/// The label of what nobody but one marker webhook is called for.
const MARKER_LABEL: &str = "admit.example.com/marker";
/// The name of every marker webhook.
const MARKER: &str = "marker.admit.example.com";

/// How long the server may take to use a configuration.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server can miss a configuration until it is written again; after so long it is.
///
/// Source: apiserver `pkg/admission/configuration/mutating_webhook_manager.go` (the cache of compiled configurations)
const TOUCH_AFTER: Duration = Duration::from_secs(3);

impl Installation {
    /// What the server was told is no longer what the scenario says.
    pub(super) fn expire(&mut self) {
        self.state = State::Stale;
    }

    /// The webhooks of the author's own: the names of their configurations, and their own.
    pub(super) fn own_webhooks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.own.iter().flat_map(|own| {
            let configuration = own.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let entries = own.get("webhooks").and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(move |entry| Some((configuration, entry.get("name")?.as_str()?)))
        })
    }

    /// Whether one of the author's own mutating webhooks is called so.
    pub(super) fn has_own_mutating_webhook(&self, name: &str) -> bool {
        let is_mutating =
            |own: &&Value| own.get("kind").and_then(Value::as_str) == Some("MutatingWebhookConfiguration");
        let entries = self.own.iter().filter(is_mutating).filter_map(|own| own.get("webhooks")?.as_array());
        entries.flatten().any(|entry| entry.get("name").and_then(Value::as_str) == Some(name))
    }

    /// Whether one of the author's own webhooks is called so.
    pub(super) fn has_own_webhook(&self, name: &str) -> bool {
        self.own_webhooks().any(|(_, known)| known == name)
    }
}

impl World {
    /// Writes the configurations unless they are written as they are, and waits until the server uses them.
    pub(super) async fn install(&mut self) -> Outcome {
        match self.installation.state {
            State::Current => return Ok(()),
            State::Stale => {}
        }
        self.namespace().await?;
        self.make_marker_namespace().await?;
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
        Ok(())
    }

    async fn start_fakes(&mut self) -> Outcome {
        let target = self.shared_target()?;
        if self.installation.marker.is_none() {
            let message = Some("the configuration is in use".to_owned());
            let behavior = Behavior::Deny(Deny { message, ..Deny::default() });
            let wanted = Wanted {
                admission: Admission::Validating,
                transport: Transport::default(),
                behavior,
                names: Vec::new(),
            };
            let marker = Running::start(&target, &self.names.fake("marker"), &wanted).await?;
            self.installation.marker = Some(marker);
        }
        for (index, webhook) in self.webhooks.iter_mut().enumerate() {
            let wanted = webhook.wanted()?;
            match &mut webhook.running {
                // What a connection meets is decided before anybody listens.
                Some((running, told)) if told.transport == wanted.transport && told.names == wanted.names => {
                    if *told != wanted {
                        running.change(&wanted).await?;
                        *told = wanted;
                    }
                }
                Some(_) | None => {
                    let running = Running::start(&target, &self.names.fake(index), &wanted).await?;
                    webhook.runs_as(running, wanted);
                }
            }
        }
        Ok(())
    }

    fn configurations(&self) -> Outcome<Vec<Configuration>> {
        let mut configurations = Vec::new();
        for admission in [Admission::Mutating, Admission::Validating] {
            let webhooks = self.entries(admission)?;
            if !webhooks.is_empty() {
                configurations.push(Self::configuration(admission, self.names.configuration(), webhooks));
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

    pub(super) fn entries(&self, admission: Admission) -> Outcome<Vec<Value>> {
        let webhooks = self.webhooks.iter().filter(|webhook| webhook.admission == admission);
        webhooks
            .map(|webhook| {
                let mut entry = webhook.entry.clone();
                if let Some((running, _)) = &webhook.running {
                    let mut client_config = webhook.address(running);
                    json_patch::merge(&mut client_config, &Value::Object(webhook.client_config.clone()));
                    merge(&mut entry, &json!({ "clientConfig": client_config }));
                }
                self.confine(&mut entry);
                Ok(entry)
            })
            .collect()
    }

    /// The author's own configuration under a name of this scenario, for its namespace only.
    fn own_configuration(&self, own: &Value) -> Outcome<Configuration> {
        let admission = match own.get("kind").and_then(Value::as_str) {
            Some("MutatingWebhookConfiguration") => Admission::Mutating,
            _ => Admission::Validating,
        };
        let name = own.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.ok_or_else(|| StepFailure::new("a webhook configuration needs `metadata.name`"))?;
        let mut webhooks = own.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default();
        for entry in &mut webhooks {
            self.target()?.locate(entry);
            self.confine(entry);
        }
        Ok(Self::configuration(admission, format!("{name}-{}", self.names.id()), webhooks))
    }

    /// Puts the services of `--service` that the author's own configurations name where the server finds them. They stay
    /// until the end of the run, since scenarios may share them; one that the scenario has made leads there, too.
    async fn route_services(&mut self) -> Outcome {
        let mut services = BTreeMap::new();
        for own in &mut self.installation.own.clone() {
            for entry in own.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                services.extend(self.target()?.locate(entry));
            }
        }
        let client = self.client()?.clone();
        for (ServiceName { namespace, name }, host) in services {
            let during = || format!("leading the service {namespace}/{name} to {host}");
            let labels = json!({RUN_LABEL: self.target()?.run});
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
            api::send(&client, Method::POST, "/api/v1/namespaces", Some(&object))
                .await?
                .successful_or_there()
                .map_err(|failure| failure.during(during()))?;
            let spec = json!({"type": "ExternalName", "externalName": host});
            let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels}, "spec": spec});
            let collection = format!("/api/v1/namespaces/{namespace}/services");
            let answer = api::send(&client, Method::POST, &collection, Some(&object)).await?;
            if answer.code == http::StatusCode::CONFLICT {
                let (path, change) = (format!("{collection}/{name}"), json!({ "spec": spec }));
                let (manner, format) = (Manner::default(), Some(PatchFormat::Merge));
                let patched =
                    api::send_as(&client, &manner, Method::PATCH, &path, Some(&change), format).await?;
                patched.successful().map_err(|failure| failure.during(during()))?;
            } else {
                answer.successful().map_err(|failure| failure.during(during()))?;
            }
        }
        Ok(())
    }

    /// Scenarios run beside each other on one server: each is called for its own namespace.
    pub(super) fn confine(&self, entry: &mut Value) {
        let own = json!({"namespaceSelector": {"matchLabels": {SCENARIO_LABEL: self.names.id()}}});
        merge(entry, &own);
    }

    /// Writes the configuration with the marker at its end.
    async fn write(&mut self, configuration: &Configuration) -> Outcome {
        let mut webhooks = configuration.webhooks.clone();
        webhooks.push(self.marker_entry(&configuration.marker)?);
        let collection = format!("{ROOT}/{}", configuration.resource);
        let path = format!("{collection}/{}", configuration.name);
        let (client, manner) = (self.client()?.clone(), Manner::default());
        let answer = if self.installation.written.contains(&path) {
            let change = json!({ "webhooks": webhooks });
            api::send_as(&client, &manner, Method::PATCH, &path, Some(&change), Some(PatchFormat::Merge))
                .await?
        } else {
            let object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": configuration.kind,
                "metadata": {"name": configuration.name, "labels": {RUN_LABEL: self.target()?.run}},
                "webhooks": webhooks,
            });
            api::send(&client, Method::POST, &collection, Some(&object)).await?
        };
        answer.successful().map_err(|failure| failure.during("writing the webhook configuration"))?;
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

    /// Nothing tells that a server uses a configuration but what it does. The marker webhook of each refuses what has
    /// its label: dry runs in a namespace where nothing else happens.
    async fn wait_until_used(&self, configurations: &[Configuration]) -> Outcome {
        let started = tokio::time::Instant::now();
        let mut touched = started;
        let mut pause = Duration::from_millis(5);
        let mut unused = configurations.iter();
        let mut next = unused.next();
        while let Some(configuration) = next {
            if self.is_refused(&configuration.marker).await? {
                next = unused.next();
                continue;
            }
            if started.elapsed() > PATIENCE {
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

    /// Waits until the server no longer uses the configurations, which are removed: they may be called for what others write
    /// outside of the scenario's namespace.
    pub(super) async fn wait_until_unused(&self) {
        let started = tokio::time::Instant::now();
        for marker in &self.installation.markers {
            while started.elapsed() < PATIENCE && matches!(self.is_refused(marker).await, Ok(true)) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Whether the marker webhook of a configuration refuses what has its label.
    async fn is_refused(&self, marker: &str) -> Outcome<bool> {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.marker_namespace()?);
        let metadata = json!({"name": "marker", "labels": {MARKER_LABEL: marker}});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let manner = Manner { effect: Effect::DryRun, ..Manner::default() };
        let answer = api::send_as(self.client()?, &manner, Method::POST, &path, Some(&object), None).await?;
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
        let (client, manner) = (self.client()?, Manner::default());
        let sent =
            api::send_as(client, &manner, Method::PATCH, &path, Some(&change), Some(PatchFormat::Merge));
        sent.await?.successful().map(drop)
    }

    fn never_used(&self, configuration: &Configuration) -> StepFailure {
        let host = self.target().map(|target| target.fakes.host()).unwrap_or_default();
        StepFailure::new(format!(
            "the server did not call the webhooks of {} {} within {} s: can it reach {host}?",
            configuration.kind,
            configuration.name,
            PATIENCE.as_secs()
        ))
    }
}
