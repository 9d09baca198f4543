//! Starts the servers of the conformance suite: a real kube-apiserver, or admit in process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admit_command::exit_code::Failure;
use admit_command::target::{Launched, Target, TargetKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::CertificateAuthority;
use fake_webhooks::{Authority, Behavior, Fake, FakeWebhook, Observer};
use http::Method;
use serde_json::{Value, json};

use crate::audit_events::AuditEvents;
use crate::case::{Kind, Plugins};
use crate::launch::Launch;
use crate::metrics;
use crate::names::{MARKER, Names};
use crate::server_error::ServerError;
use crate::transport::{Answer, Message, SendError, answer_head, in_time, send};

/// A server that runs cases.
#[derive(Debug)]
pub struct Server {
    launched: Launched,
    /// The launch settings, and the resources to keep while the server runs.
    launch: Launch,
    /// The audit events of a server that has its own audit policy.
    audit_events: Option<AuditEvents>,
    /// The CA that signs the certificates of all fakes.
    pub(crate) authority: Arc<CertificateAuthority>,
    marker: Option<Marker>,
    has_leftovers: AtomicBool,
}

/// Starts a server of this kind, with the given launch settings.
async fn start(
    kind: TargetKind,
    plugins: &Plugins,
    authority: &Arc<CertificateAuthority>,
) -> Result<(Launched, Launch, Option<AuditEvents>), ServerError> {
    let launch = Launch::prepare(kind, plugins, authority).await?;
    let launched = Launched::start(&launch.arguments, |_| ()).await;
    let launched = launched.map_err(|failure| {
        let masked = launch.masked(&failure.to_string());
        ServerError::ClusterFixture(Failure::environment(masked))
    })?;
    let audit_events = launch.audit_log.as_deref().map(AuditEvents::follow).transpose()?;
    Ok((launched, launch, audit_events))
}

/// A webhook whose calls show which configurations the server already uses.
#[derive(Debug)]
struct Marker {
    fake: FakeWebhook,
    called: Arc<Mutex<HashSet<String>>>,
}

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";
const TIMEOUT: Duration = Duration::from_secs(30);

impl Server {
    /// Starts etcd and kube-apiserver from `KUBEBUILDER_ASSETS` with the default plugins. Both stop on drop.
    ///
    /// # Errors
    /// Returns an error if they do not start.
    pub async fn apiserver() -> Result<Self, ServerError> {
        Self::apiserver_with(&Plugins::default()).await
    }

    /// Starts etcd and kube-apiserver with the settings in `plugins`.
    ///
    /// # Errors
    /// Returns an error if they do not start.
    pub async fn apiserver_with(plugins: &Plugins) -> Result<Self, ServerError> {
        let authority = Arc::new(CertificateAuthority::new("admit judge CA")?);
        let (launched, launch, audit_events) = start(TargetKind::Envtest, plugins, &authority).await?;
        let called = Arc::new(Mutex::new(HashSet::new()));
        let seen = Arc::clone(&called);
        let observer = Observer::new(move |entry| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.path.clone());
        });
        let fake = Fake { authority: Authority::Shared(Arc::clone(&authority)), observer, ..Fake::default() };
        let marker = Marker { fake: FakeWebhook::start(fake).await?, called };
        Ok(Self {
            launched,
            launch,
            audit_events,
            authority,
            marker: Some(marker),
            has_leftovers: AtomicBool::new(false),
        })
    }

    /// Starts an in-process server without objects.
    ///
    /// # Errors
    /// Returns an error if it does not start.
    pub async fn in_process(
        authority: Arc<CertificateAuthority>,
        plugins: &Plugins,
    ) -> Result<Self, ServerError> {
        let (launched, launch, audit_events) = start(TargetKind::InProcess, plugins, &authority).await?;
        Ok(Self {
            launched,
            launch,
            audit_events,
            authority,
            marker: None,
            has_leftovers: AtomicBool::new(false),
        })
    }

    /// Returns the target to which requests are sent.
    pub(crate) fn target(&self) -> &Target {
        &self.launched.target
    }

    /// Returns the administrator's client.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.launched.target.client
    }

    /// Returns the webhook `name` that runs as long as the server.
    pub(crate) fn standing(&self, name: &str) -> Option<Arc<FakeWebhook>> {
        self.launch.standing.get(name).cloned()
    }

    /// Resets the webhooks that run as long as the server, so that they allow everything again.
    pub(crate) fn reset_webhooks(&self) {
        self.launch.standing.values().for_each(|fake| fake.set_behavior(Behavior::default()));
    }

    /// Replaces the path of the server's files in the results with a placeholder.
    pub(crate) fn without_folder(&self, seen: Vec<Value>) -> Vec<Value> {
        let text = self.launch.masked(&json!(seen).to_string());
        serde_json::from_str(&text).unwrap_or(seen)
    }

    /// Returns the audit events; `None` if the server does not have its own audit policy.
    pub(crate) fn audit_events(&self) -> Option<&AuditEvents> {
        self.audit_events.as_ref()
    }

    /// Returns whether other cases may use the server concurrently, so that its counters include their calls.
    pub(crate) fn is_shared(&self) -> bool {
        self.marker.is_some()
    }

    /// Returns the version of the server, such as `v1.37.1`.
    ///
    /// # Errors
    /// Returns an error if the server does not answer.
    pub async fn version(&self) -> Result<String, ServerError> {
        Ok(self.client().apiserver_version().await?.git_version)
    }

    /// Sends `message`, and repeats it while the server answers that it is shutting down.
    ///
    /// For a moment after a definition is created, the server gives this answer to requests for its custom resources,
    /// without processing them.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `ServeHTTP`.
    ///
    /// # Errors
    /// Returns an error if there is no answer.
    pub(crate) async fn ask(&self, message: Message) -> Result<Answer, SendError> {
        self.ask_by(self.client(), message).await
    }

    /// Sends `message` with another client, as [`Self::ask`] does.
    ///
    /// # Errors
    /// Returns an error if there is no answer.
    pub(crate) async fn ask_by(&self, client: &kube::Client, message: Message) -> Result<Answer, SendError> {
        let started = tokio::time::Instant::now();
        loop {
            let answer = send(client, message.clone()).await?;
            let is_closing = answer.status == 503 && answer.body["message"] == "apiserver is shutting down";
            if !is_closing || started.elapsed() > TIMEOUT {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// Returns an error if the server rejects the object, or warns about it.
    pub(crate) async fn make(&self, collection: &str, object: Value) -> Result<Value, ServerError> {
        let what = format!("making {} {}", object["kind"], object["metadata"]["name"]);
        let answer = self.ask(Message::new(Method::POST, collection, Some(object))).await?;
        // A case may use deprecated versions, and a webhook from a file may warn about any object.
        let is_warned = self.launch.standing.is_empty()
            && answer.warnings.iter().any(|warning| !warning.contains(": deprecated in v"));
        if answer.is_success() && !is_warned {
            return Ok(answer.body);
        }
        let answer = answer.recorded().to_string();
        Err(ServerError::Refused { what, answer })
    }

    /// Writes a configuration directly to the storage, with the fields that a server sets.
    ///
    /// # Errors
    /// Returns an error if the storage rejects the configuration.
    pub(crate) async fn store(&self, kind: Kind, mut object: Value) -> Result<(), ServerError> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        object["metadata"]["uid"] = json!(uuid::Uuid::new_v4().to_string());
        object["metadata"]["creationTimestamp"] = json!(now);
        object["metadata"]["generation"] = json!(1);
        let (_, resource) = configuration_kind(kind);
        self.target().store(resource, object).await.map_err(ServerError::ClusterFixture)
    }

    /// Waits until the server serves the custom resources at `path` and can watch them.
    ///
    /// A definition is served some time after its creation. The first request fills the cache of its objects, and a
    /// watch cannot begin before that.
    ///
    /// Source: apiserver pkg/storage/cacher/cacher.go, `Watch`.
    ///
    /// # Errors
    /// Returns an error if the path does not appear in time.
    pub(crate) async fn wait_for(&self, path: &str) -> Result<(), ServerError> {
        let started = tokio::time::Instant::now();
        for uri in [path.to_owned(), format!("{path}?watch=true")] {
            loop {
                let message = Message::new(Method::GET, &uri, None);
                // The body of a watch does not end.
                let head = async {
                    let (Ok((_, answer)) | Err(answer)) = answer_head(self.client(), message).await?;
                    Ok(answer)
                };
                let answer = in_time(uri.clone(), head).await?;
                if answer.is_success() {
                    break;
                }
                if started.elapsed() > TIMEOUT {
                    let what = format!("waiting for {uri}");
                    return Err(ServerError::Refused { what, answer: answer.recorded().to_string() });
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// Waits until the server uses the latest version of every configuration.
    ///
    /// Watch events arrive in order, so the server uses all configurations that are older than the marker webhook as
    /// soon as it calls that webhook. Each wait of a run must have its own `number`.
    ///
    /// # Errors
    /// Returns an error if the marker is not called.
    pub(crate) async fn settle(
        &self,
        names: &Names,
        kinds: &[Kind],
        number: usize,
    ) -> Result<Vec<String>, ServerError> {
        let Some(marker) = &self.marker else { return Ok(Vec::new()) };
        let mut made = Vec::new();
        for kind in kinds {
            let (path, object) = marker.configuration(names, *kind, number);
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            made.push(format!("{path}/{name}"));
            self.make(&path, object).await?;
        }
        let started = tokio::time::Instant::now();
        let mut pause = Duration::from_millis(5);
        loop {
            self.poke(names).await?;
            if kinds.iter().all(|kind| marker.was_called(&Marker::path(names, *kind, number))) {
                return Ok(made);
            }
            if started.elapsed() > TIMEOUT {
                let what = "waiting until the server uses the configurations".to_owned();
                return Err(ServerError::Refused { what, answer: "it does not".to_owned() });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Waits until the server uses all roles and bindings that exist so far.
    ///
    /// The server reads them through four watches. A watch that has delivered a later object has also delivered all
    /// earlier ones.
    ///
    /// # Errors
    /// Returns an error if the later objects do not take effect.
    pub(crate) async fn settle_roles(&self, names: &Names) -> Result<Vec<String>, ServerError> {
        if self.marker.is_none() {
            return Ok(Vec::new());
        }
        let (root, namespace) = ("/apis/rbac.authorization.k8s.io/v1", names.namespace());
        let name = format!("{MARKER}-{}", uuid::Uuid::new_v4().simple());
        let mut made = Vec::new();
        for (prefix, place) in [("Cluster", String::new()), ("", format!("/namespaces/{namespace}"))] {
            let rules =
                json!([{"verbs": ["get"], "apiGroups": [name], "resources": [prefix.len().to_string()]}]);
            let user = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name});
            let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": format!("{prefix}Role"), "name": name});
            for (kind, mut object) in [
                (format!("{prefix}Role"), json!({"rules": rules})),
                (format!("{prefix}RoleBinding"), json!({"roleRef": role, "subjects": [user]})),
            ] {
                let collection = format!("{root}{place}/{}s", kind.to_lowercase());
                object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
                object["kind"] = json!(kind);
                object["metadata"] = json!({"name": name});
                self.make(&collection, object).await?;
                // Objects in a namespace are kept with it: webhooks could be called for their deletion.
                if place.is_empty() {
                    made.push(format!("{collection}/{name}"));
                }
            }
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": name, "resourceAttributes": {
                    "verb": "get", "group": name, "resource": prefix.len().to_string(), "namespace": namespace,
                }},
            });
            let started = tokio::time::Instant::now();
            while self.review(review.clone()).await?["status"]["allowed"] != true {
                if started.elapsed() > TIMEOUT {
                    let what = "waiting until the server decides by the roles".to_owned();
                    return Err(ServerError::Refused { what, answer: "it does not".to_owned() });
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Ok(made)
    }

    async fn review(&self, review: Value) -> Result<Value, ServerError> {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        Ok(self.ask(Message::new(Method::POST, path, Some(review))).await?.body)
    }

    async fn poke(&self, names: &Names) -> Result<(), ServerError> {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": format!("marker-{}", names.id()), "labels": {MARKER_LABEL: names.id()},
        }});
        let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
        send(self.client(), Message::new(Method::POST, path, Some(object))).await?;
        Ok(())
    }

    /// Returns the admission counters of the server, in the Prometheus text format.
    ///
    /// # Errors
    /// Returns an error if the server does not answer.
    pub(crate) async fn metrics(&self) -> Result<String, ServerError> {
        let answer = send(self.client(), Message::new(Method::GET, "/metrics", None)).await?;
        Ok(metrics::counters(answer.body.as_str().unwrap_or_default()))
    }

    /// Deletes the objects of a case. Missing objects are ignored.
    pub(crate) async fn remove(&self, paths: &[String]) {
        for path in paths.iter().rev() {
            let answer = send(self.client(), Message::new(Method::DELETE, path.as_str(), None)).await;
            let is_gone = answer.is_ok_and(|answer| answer.is_success() || answer.status == 404);
            if !is_gone && path.contains("webhookconfigurations/") {
                self.has_leftovers.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns whether configurations of earlier cases remain. They change the positions of later webhooks.
    ///
    /// A webhook from a file may prevent their deletion.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.has_leftovers.load(Ordering::Relaxed)
    }
}

const MARKER_LABEL: &str = "admit.example.com/marker";

impl Marker {
    fn path(names: &Names, kind: Kind, number: usize) -> String {
        format!("/{}/{kind:?}/{number}", names.id())
    }

    fn was_called(&self, path: &str) -> bool {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// Returns the path and the object of a configuration that contains the marker webhook.
    ///
    /// The configuration is last in dispatch order, so that it does not affect the positions of other webhooks.
    fn configuration(&self, names: &Names, kind: Kind, number: usize) -> (String, Value) {
        let (kind_name, resource) = configuration_kind(kind);
        let url = format!("https://{}{}", self.fake.address(), Self::path(names, kind, number));
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind_name,
            "metadata": {"name": format!("zz-{MARKER}-{}-{number}", names.id())},
            "webhooks": [{
                "name": format!("{MARKER}.{}.example.com", names.id()),
                "clientConfig": {"url": url, "caBundle": STANDARD.encode(self.fake.ca_bundle())},
                "rules": [{
                    "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                }],
                "objectSelector": {"matchLabels": {MARKER_LABEL: names.id()}},
                "failurePolicy": "Ignore", "timeoutSeconds": 5,
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        });
        (format!("{ROOT}/{resource}"), object)
    }
}

/// Returns the API kind and the resource of a configuration.
pub(crate) fn configuration_kind(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Mutating => ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        Kind::Validating => ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    }
}

/// Returns the kind of a configuration resource such as `admissionregistration.k8s.io/v1/…`; otherwise `None`.
pub(crate) fn kind_of_configurations(resource: &str) -> Option<Kind> {
    let resource = resource.strip_prefix("admissionregistration.k8s.io/v1/")?;
    [Kind::Mutating, Kind::Validating].into_iter().find(|kind| configuration_kind(*kind).1 == resource)
}

/// Returns the path of the collection of configurations of this kind.
pub(crate) fn configurations(kind: Kind) -> String {
    format!("{ROOT}/{}", configuration_kind(kind).1)
}
