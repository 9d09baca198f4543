//! What one scenario knows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::json::set;
use http::Method;
use serde_json::{Value, json};

use super::api::{self, Answer, Manner};
use super::configuration::{self, Installation};
use super::endpoint::Running;
use super::failure::{Outcome, StepFailure};
use super::metrics::Metrics;
use super::names::{Names, SCENARIO_LABEL};
use super::resource::{self, Resource};
use super::webhook::Webhook;
use crate::run::narration::Narrator;
use crate::target::{Leftovers, RUN_LABEL, RecordedCall, Target, TargetKind};

/// What one scenario knows.
#[derive(Debug, cucumber::World)]
#[world(init = Self::unstarted)]
pub(crate) struct World {
    /// Set by the runner's `before`, which is the only place where the chosen target is known.
    target: Option<Arc<Target>>,
    narrator: Option<Narrator>,
    /// Where a path in a feature file begins.
    folder: PathBuf,
    /// The names of what the scenario makes.
    pub(super) names: Names,
    /// Its webhooks, mutating and validating ones in the author's order.
    pub(super) webhooks: Vec<Webhook>,
    /// The conversion webhooks of its definitions.
    pub(super) converters: Vec<Running>,
    /// What of them the server has been told.
    pub(super) installation: Installation,
    /// How requests are sent from now on.
    pub(super) manner: Manner,
    /// What came of the last request of a When.
    pub(super) last: Option<Answer>,
    /// The calls of the author's own webhooks for that request; none if the server does not show them.
    pub(super) own_calls: Option<Vec<RecordedCall>>,
    /// Whether a step of the scenario is about metrics; they are read only then.
    pub(super) asks_for_metrics: bool,
    /// What the server's counters grew by during the last request.
    pub(super) counted: Metrics,
    namespaces: Vec<String>,
    resources: Vec<Resource>,
    /// Its definitions of custom resources.
    pub(super) definitions: Vec<Value>,
    removable: Vec<String>,
    /// Namespaces that are not its own and have its label.
    borrowed: Vec<String>,
    /// Whether its webhooks are called for the Namespaces that its steps write.
    pub(super) takes_namespaces: bool,
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
            manner: Manner::default(),
            last: None,
            own_calls: None,
            asks_for_metrics: false,
            counted: Metrics::default(),
            namespaces: Vec::new(),
            resources: Vec::new(),
            definitions: Vec::new(),
            removable: Vec::new(),
            borrowed: Vec::new(),
            takes_namespaces: false,
        }
    }

    /// Called once before the first step of every scenario.
    pub(crate) fn start(&mut self, target: Arc<Target>, narrator: Narrator) {
        self.target = Some(target);
        self.narrator = Some(narrator);
    }

    /// The folder of the feature file, if it is known: paths in steps begin there instead of in the current folder.
    pub(crate) fn read_files_from(&mut self, folder: &Path) {
        folder.clone_into(&mut self.folder);
    }

    /// Called once after the last step, also of a failed scenario: removes from the target what the scenario made.
    ///
    /// The last made is removed first, and the namespaces at the end, because nothing waits until they are empty.
    /// The fakes go last: until then a webhook may be called for what is removed.
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
        for name in std::mem::take(&mut self.borrowed) {
            // Nobody else has it: the next scenario may.
            drop(self.label_namespace(&name, &Value::Null).await);
        }
        let namespaces = std::mem::take(&mut self.namespaces).into_iter().flat_map(|name| {
            let namespace = format!("/api/v1/namespaces/{name}");
            // A node would give each pod its time, and the namespace would wait for it.
            [format!("{namespace}/pods?gracePeriodSeconds=0"), namespace]
        });
        self.remove(objects.into_iter().chain(namespaces)).await;
        let fakes = self.webhooks.drain(..).filter_map(|webhook| webhook.running.map(|(running, _)| running));
        for fake in fakes.chain(self.converters.drain(..)).chain(self.installation.marker.take()) {
            // One that cannot be reached goes with its pod.
            drop(fake.stop().await);
        }
    }

    async fn remove(&self, paths: impl IntoIterator<Item = String>) {
        for path in paths {
            // What cannot be removed has been removed by the scenario, or by the end of the server.
            if let Ok(client) = self.client() {
                drop(api::send(client, Method::DELETE, &path, None).await);
                drop(self.finalize_if_namespace(&path).await);
            }
        }
    }

    /// The server of this run.
    pub(super) fn target(&self) -> Outcome<&Target> {
        self.target.as_deref().ok_or_else(|| StepFailure::new("the scenario was started without a target"))
    }

    /// The server, for those who change the scenario meanwhile.
    pub(super) fn shared_target(&self) -> Outcome<Arc<Target>> {
        self.target.clone().ok_or_else(|| StepFailure::new("the scenario was started without a target"))
    }

    /// The client of that server.
    pub(super) fn client(&self) -> Outcome<&kube::Client> {
        Ok(&self.target()?.client)
    }

    /// Tells one line under the step.
    pub(super) fn tell(&self, step: &gherkin::Step, line: impl Into<String>) {
        if let Some(narrator) = &self.narrator {
            narrator.tell(step.position.line, line);
        }
    }

    /// The answer to the last request of a When.
    pub(super) fn answer(&self) -> Outcome<&Answer> {
        self.last.as_ref().ok_or_else(|| StepFailure::new("no request was made yet: a When step makes one"))
    }

    /// The path of a file that a feature names.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Has `path` removed when the scenario ends.
    pub(super) fn remove_at_the_end(&mut self, path: String) {
        if !self.removable.contains(&path) {
            self.removable.push(path);
        }
    }

    /// Has an object removed when the scenario ends, unless it goes with the scenario's namespace.
    pub(super) fn remove_unless_own(&mut self, path: String) {
        let goes_with = |name: &String| path.contains(&format!("/namespaces/{name}/"));
        if !self.namespaces.iter().any(goes_with) {
            self.remove_at_the_end(path);
        }
    }

    /// Has a namespace that the scenario made removed when it ends.
    pub(super) fn remove_namespace_at_the_end(&mut self, name: &str) {
        self.namespaces.push(name.to_owned());
    }

    /// Has the scenario label of a namespace removed when the scenario ends.
    pub(super) fn give_back_at_the_end(&mut self, name: &str) {
        self.borrowed.push(name.to_owned());
    }

    /// The namespace of the scenario, made when it is first needed.
    pub(super) async fn namespace(&mut self) -> Outcome<String> {
        let (name, id) = (self.names.namespace(), self.names.id().to_owned());
        if !self.namespaces.contains(&name) {
            self.make_namespace(&name, &id).await?;
            self.wait_for_controllers(&name).await?;
        }
        Ok(name)
    }

    /// The namespace in which the server is asked whether it uses a configuration already; also its scenario label.
    /// All scenarios of a run share it: each asks with labels of its own.
    pub(super) fn marker_namespace(&self) -> Outcome<String> {
        Ok(format!("admit-run-{}-marker", self.target()?.run))
    }

    /// Makes the marker namespace, unless another scenario has made it. It stays until the end of the run.
    pub(super) async fn make_marker_namespace(&self) -> Outcome {
        let name = self.marker_namespace()?;
        let made = self.post_namespace(&name, &name).await?.successful_or_there();
        made.map(drop).map_err(|failure| failure.during(format!("making the namespace {name}")))
    }

    /// Makes a namespace with the scenario label.
    async fn make_namespace(&mut self, name: &str, label: &str) -> Outcome {
        self.post_namespace(name, label)
            .await?
            .successful()
            .map_err(|failure| failure.during(format!("making the namespace {name}")))?;
        self.namespaces.push(name.to_owned());
        Ok(())
    }

    pub(super) async fn post_namespace(&self, name: &str, label: &str) -> Outcome<Answer> {
        let mut labels = json!({SCENARIO_LABEL: label, RUN_LABEL: self.target()?.run});
        // Whatever a cluster asks of pods elsewhere: it is not what scenarios are about.
        for mode in ["enforce", "audit", "warn"] {
            set(&mut labels, &[&format!("pod-security.kubernetes.io/{mode}")], "privileged");
        }
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
        });
        api::send(self.client()?, Method::POST, "/api/v1/namespaces", Some(&namespace)).await
    }

    /// In a cluster controllers fill a new namespace: with the service account without which no pod is admitted, and
    /// with a ConfigMap, for which a webhook would be called. If they do not come, the server itself says what is
    /// missing.
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

    /// The resource of an object, as its `apiVersion` and `kind` say.
    pub(super) async fn resource_of(&mut self, object: &Value) -> Outcome<Resource> {
        let field = |name: &str| object.get(name).and_then(Value::as_str);
        let (Some(api_version), Some(kind)) = (field("apiVersion"), field("kind")) else {
            return Err(StepFailure::new("an object needs `apiVersion` and `kind`"));
        };
        let known = self.resources.iter().find(|it| it.api_version == api_version && it.kind == kind);
        if let Some(resource) = known {
            return Ok(resource.clone());
        }
        let resource = resource::of_kind(self.client()?, api_version, kind).await?;
        self.resources.push(resource.clone());
        Ok(resource)
    }

    /// The resource that a person calls `word`; what the scenario spoke of last comes first.
    pub(super) async fn resource_called(&mut self, word: &str) -> Outcome<Resource> {
        let known = self.resources.iter().rev().find(|resource| resource.is_called(word));
        if let Some(resource) = known {
            return Ok(resource.clone());
        }
        let resource = resource::called(self.client()?, word).await?;
        self.resources.push(resource.clone());
        Ok(resource)
    }
}
