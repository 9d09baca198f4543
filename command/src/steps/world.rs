//! Defines the state of a scenario.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::json::set;
use harness::verify::similar_name::most_similar;
use http::Method;
use serde_json::{Value, json};

use super::api::{self, Answer, RequestOptions};
use super::configuration::{self, Installation};
use super::endpoint::RunningFake;
use super::failure::{Outcome, StepFailure};
use super::metrics::Metrics;
use super::names::{Names, SCENARIO_LABEL};
use super::rejection::StepLines;
use super::resource::{self, Resource};
use super::webhook::Webhook;
use crate::narrator::{Narrator, NoteKind};
use crate::policy_outcome::PolicyResult;
use crate::target::{Leftovers, RUN_LABEL, RecordedCall, RecordedSkip, Target, TargetKind};

/// The state that the steps of a scenario share.
#[derive(Debug, cucumber::World)]
#[world(init = Self::unstarted)]
pub(crate) struct World {
    /// The target. It is set before the first step.
    target: Option<Arc<Target>>,
    narrator: Option<Narrator>,
    /// The folder of the feature file. Paths in the file are relative to it.
    folder: PathBuf,
    /// The unique names of the scenario.
    pub(super) names: Names,
    /// The webhooks in the order in which they were defined.
    pub(super) webhooks: Vec<Webhook>,
    /// The conversion webhooks of custom resources.
    pub(super) converters: Vec<RunningFake>,
    /// The installed webhook configurations.
    pub(super) installation: Installation,
    /// The user and dry-run setting of requests.
    pub(super) options: RequestOptions,
    /// The response to the last request of a When step.
    pub(super) last: Option<Answer>,
    /// The calls to loaded webhooks during the last request; `None` if the target does not record calls.
    pub(super) own_calls: Option<Vec<RecordedCall>>,
    /// The recorded calls to all other webhooks, such as fakes, during the last request.
    pub(super) fake_calls: Vec<RecordedCall>,
    /// The webhooks of the scenario that the server skipped during the last request.
    pub(super) skips: Vec<RecordedSkip>,
    /// What the policies of the scenario did about the last request; empty if the target does not record it.
    pub(super) policy_results: Vec<PolicyResult>,
    /// The policies that failed and rejected a request as a step expects, with their messages.
    pub(super) suspect_failures: Vec<(String, String)>,
    /// The policies and bindings of the scenario, as written in the feature file.
    pub(super) policies: Vec<Value>,
    /// The steps of the scenario.
    pub(super) step_lines: StepLines,
    /// The path of the last request of a When step.
    pub(super) last_path: String,
    /// Whether the metrics are read, because a step of the scenario uses them.
    pub(super) reads_metrics: bool,
    /// The increase in metrics during the last request.
    pub(super) metric_increase: Metrics,
    namespaces: Vec<String>,
    resources: Vec<Resource>,
    /// The `CustomResourceDefinition`s that steps of the scenario define.
    pub(super) definitions: Vec<Value>,
    removable: Vec<String>,
    /// The existing namespaces to which the scenario label was added.
    labeled: Vec<String>,
    /// The warnings about unknown fields of stored objects. They are printed with the next request.
    pub(super) ignored_fields: Vec<String>,
    /// Whether the webhooks are called for Namespace objects that steps write.
    pub(super) matches_namespaces: bool,
}

impl World {
    fn unstarted() -> Self {
        Self {
            target: None,
            narrator: None,
            folder: PathBuf::new(),
            names: Names::random(),
            webhooks: Vec::new(),
            converters: Vec::new(),
            installation: Installation::default(),
            options: RequestOptions::default(),
            last: None,
            own_calls: None,
            fake_calls: Vec::new(),
            skips: Vec::new(),
            policy_results: Vec::new(),
            suspect_failures: Vec::new(),
            policies: Vec::new(),
            step_lines: StepLines::default(),
            last_path: String::new(),
            reads_metrics: false,
            metric_increase: Metrics::default(),
            namespaces: Vec::new(),
            resources: Vec::new(),
            definitions: Vec::new(),
            removable: Vec::new(),
            labeled: Vec::new(),
            ignored_fields: Vec::new(),
            matches_namespaces: false,
        }
    }

    /// Sets the target. Called once before the first step of every scenario.
    pub(crate) fn start(&mut self, target: Arc<Target>, narrator: Narrator) {
        self.target = Some(target);
        self.narrator = Some(narrator);
    }

    /// Sets the folder of the feature file. Paths in steps are relative to it.
    pub(crate) fn read_files_from(&mut self, folder: &Path) {
        folder.clone_into(&mut self.folder);
    }

    /// Removes the scenario's objects from the target. Called once after the last step, even if the scenario failed.
    ///
    /// Objects are removed in reverse order, then the namespaces. The fakes are stopped last, because the server can
    /// call webhooks for the removed objects.
    pub(crate) async fn finish(&mut self) {
        match self.target.as_ref().map(|target| target.leftovers) {
            Some(Leftovers::Removed) => {}
            Some(Leftovers::Kept) | None => return,
        }
        let removable = std::mem::take(&mut self.removable).into_iter().rev();
        let (configurations, objects): (Vec<String>, Vec<String>) =
            removable.partition(|path| path.starts_with(configuration::ROOT));
        self.remove(configurations).await;
        if !objects.is_empty() {
            self.wait_until_unused().await;
        }
        for name in std::mem::take(&mut self.labeled) {
            // The next scenario can use the namespace.
            drop(self.label_namespace(&name, &Value::Null).await);
        }
        let namespaces = std::mem::take(&mut self.namespaces).into_iter().flat_map(|name| {
            let namespace = format!("/api/v1/namespaces/{name}");
            // Without this, the namespace waits for the grace period of each pod.
            [format!("{namespace}/pods?gracePeriodSeconds=0"), namespace]
        });
        self.remove(objects.into_iter().chain(namespaces)).await;
        let fakes = self.webhooks.drain(..).filter_map(|webhook| webhook.running.map(|(running, _)| running));
        for fake in fakes.chain(self.converters.drain(..)).chain(self.installation.marker.take()) {
            // A fake that cannot be reached is removed with its pod.
            drop(fake.stop().await);
        }
    }

    async fn remove(&self, paths: impl IntoIterator<Item = String>) {
        for path in paths {
            // Errors are ignored: the scenario may have removed the object, or the server has stopped.
            if let Ok(client) = self.client() {
                drop(api::send(client, Method::DELETE, &path, None).await);
                drop(self.finalize_if_namespace(&path).await);
            }
        }
    }

    /// Returns the target of the run.
    pub(super) fn target(&self) -> Outcome<&Target> {
        self.target.as_deref().ok_or_else(|| StepFailure::new("the scenario has no target"))
    }

    /// Returns a reference-counted pointer to the target that does not borrow the scenario.
    pub(super) fn shared_target(&self) -> Outcome<Arc<Target>> {
        self.target.clone().ok_or_else(|| StepFailure::new("the scenario has no target"))
    }

    /// Returns the Kubernetes client of the target.
    pub(super) fn client(&self) -> Outcome<&kube::Client> {
        Ok(&self.target()?.client)
    }

    /// Adds a line to the notes that are printed below the step.
    pub(super) fn tell(&self, step: &gherkin::Step, line: impl Into<String>) {
        self.note(step, NoteKind::Event, line);
    }

    /// Adds a note of the given kind below the step.
    pub(super) fn note(&self, step: &gherkin::Step, kind: NoteKind, line: impl Into<String>) {
        if let Some(narrator) = &self.narrator {
            narrator.tell(step.position.line, kind, line);
        }
    }

    /// Returns whether the webhooks of the scenario are called in the namespace `name`.
    pub(super) fn has_namespace(&self, name: &str) -> bool {
        let known = |names: &[String]| names.iter().any(|known| known == name);
        known(&self.namespaces) || known(&self.labeled) || self.names.namespace() == name
    }

    /// Returns the namespace of the scenario's steps whose name is most similar to `name`, if any is similar.
    pub(super) fn similar_namespace(&self, name: &str) -> Option<&str> {
        most_similar(name, self.namespaces.iter().chain(&self.labeled).map(String::as_str))
    }

    /// Returns the response to the last request of a When step.
    pub(super) fn answer(&self) -> Outcome<&Answer> {
        self.last
            .as_ref()
            .ok_or_else(|| StepFailure::new("no request was sent: add a When step before this step"))
    }

    /// Returns the path of a file that a step specifies.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Schedules the removal of the object at `path` at the end of the scenario.
    pub(super) fn remove_at_the_end(&mut self, path: String) {
        if !self.removable.contains(&path) {
            self.removable.push(path);
        }
    }

    /// Schedules the removal of the object at `path`, unless it is in the scenario's own namespace.
    ///
    /// Another scenario can use a namespace with the same name, and a server without a namespace controller can keep
    /// the objects in a deleted namespace.
    pub(super) fn remove_unless_own(&mut self, path: String) {
        if !path.contains(&format!("/namespaces/{}/", self.names.namespace())) {
            self.remove_at_the_end(path);
        }
    }

    /// Schedules the removal of a namespace at the end of the scenario.
    pub(super) fn remove_namespace_at_the_end(&mut self, name: &str) {
        self.namespaces.push(name.to_owned());
    }

    /// Schedules the removal of the scenario label from a namespace at the end of the scenario.
    pub(super) fn remove_label_at_the_end(&mut self, name: &str) {
        self.labeled.push(name.to_owned());
    }

    /// Returns the namespace of the scenario. The first call creates it.
    pub(super) async fn namespace(&mut self) -> Outcome<String> {
        let (name, id) = (self.names.namespace(), self.names.id().to_owned());
        if !self.namespaces.contains(&name) {
            self.create_namespace(&name, &id).await?;
            self.wait_for_controllers(&name).await?;
        }
        Ok(name)
    }

    /// Returns the name of the marker namespace. This is also the value of its scenario label.
    ///
    /// All scenarios of a run use this namespace, with different labels, to check whether a configuration is in use.
    pub(super) fn marker_namespace(&self) -> Outcome<String> {
        Ok(format!("admit-run-{}-marker", self.target()?.run))
    }

    /// Creates the marker namespace unless it exists. The namespace is kept until the end of the run.
    pub(super) async fn create_marker_namespace(&self) -> Outcome {
        let name = self.marker_namespace()?;
        let made = self.post_namespace(&name, &name).await?.successful_or_exists();
        made.map(drop).map_err(|failure| failure.during(format!("creating the namespace {name}")))
    }

    /// Creates a namespace with the given value of the scenario label, and schedules its removal.
    async fn create_namespace(&mut self, name: &str, label: &str) -> Outcome {
        self.post_namespace(name, label)
            .await?
            .successful()
            .map_err(|failure| failure.during(format!("creating the namespace {name}")))?;
        self.namespaces.push(name.to_owned());
        Ok(())
    }

    pub(super) async fn post_namespace(&self, name: &str, label: &str) -> Outcome<Answer> {
        let mut labels = json!({SCENARIO_LABEL: label, RUN_LABEL: self.target()?.run});
        // The default Pod Security level of the cluster must not affect scenarios.
        for mode in ["enforce", "audit", "warn"] {
            set(&mut labels, &[&format!("pod-security.kubernetes.io/{mode}")], "privileged");
        }
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
        });
        api::send(self.client()?, Method::POST, "/api/v1/namespaces", Some(&namespace)).await
    }

    /// Waits until the controllers of a cluster have created the default objects in a new namespace.
    ///
    /// Pods require the default service account, and webhooks would be called for the ConfigMap. If the controllers are
    /// too slow, the next request fails with the server's error.
    pub(super) async fn wait_for_controllers(&self, namespace: &str) -> Outcome {
        match self.target()?.kind {
            TargetKind::InProcess | TargetKind::Envtest => return Ok(()),
            TargetKind::Cluster => {}
        }
        for made in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{namespace}/{made}");
            for _ in 0..100 {
                if api::send(self.client()?, Method::GET, &path, None).await?.is_success() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    /// Returns the resource that the `apiVersion` and the `kind` of `object` identify.
    pub(super) async fn resource_of(&mut self, object: &Value) -> Outcome<Resource> {
        let field = |name: &str| object.get(name).and_then(Value::as_str);
        let (Some(api_version), Some(kind)) = (field("apiVersion"), field("kind")) else {
            return Err(StepFailure::new("missing apiVersion or kind in the object"));
        };
        let known = self.resources.iter().find(|it| it.api_version == api_version && it.kind == kind);
        if let Some(resource) = known {
            return Ok(resource.clone());
        }
        let resource = resource::for_kind(self.client()?, api_version, kind).await?;
        self.resources.push(resource.clone());
        Ok(resource)
    }

    /// Returns the resource that `word` names; the most recently used resource takes precedence.
    pub(super) async fn resource_named(&mut self, word: &str) -> Outcome<Resource> {
        let known = self.resources.iter().rev().find(|resource| resource.is_called(word));
        if let Some(resource) = known {
            return Ok(resource.clone());
        }
        let resource = resource::named(self.client()?, word).await?;
        self.resources.push(resource.clone());
        Ok(resource)
    }
}
