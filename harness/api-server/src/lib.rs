//! The Kubernetes REST API around the dispatcher, in memory.
//!
//! No admission rule lives here: the server decodes, stores and answers, and asks the
//! [dispatcher](kubernetes_admission::dispatcher) in between.

mod accept;
mod admission;
mod answer;
mod apply;
mod approval_policy;
mod audit_log;
mod audit_policy;
mod auditing;
mod authentication;
mod authorization;
mod binding;
mod body;
mod cluster_fixture;
mod connect;
mod controllers;
mod conversion;
mod create;
mod custom_resources;
mod custom_validation;
mod defaulting;
mod definition_controllers;
mod definition_conversion;
mod definition_deletion;
mod definition_status;
mod definition_update;
mod definitions;
mod delete;
mod deletion;
mod departure;
mod discovery;
mod documents;
mod events;
mod eviction;
mod field_manager;
mod first_objects;
mod health;
mod history;
mod in_process;
mod incoming;
mod index;
mod label_syntax;
mod limits;
mod list_options;
mod manifests;
mod merge_patch;
mod metadata;
mod object_names;
mod observation;
mod off_thread;
mod openapi;
mod options;
mod outcome;
mod own_requests;
mod patches;
mod plugins;
mod pod_resources;
mod preconditions;
mod protobuf;
mod query;
mod read;
mod request;
mod request_info;
mod resource_versions;
mod route;
mod scale;
mod selectable_fields;
mod selectors;
mod service_account_tokens;
mod service_allocation;
mod service_reading;
mod spans;
mod state;
mod status_conditions;
mod storage;
mod strategy;
mod tables;
mod time_limit;
mod undecodable;
mod unsafe_deletion;
mod update;
mod validation;
mod watch;
mod watch_options;
mod watch_paths;
mod watch_piece;
mod websocket;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use admission_webhook_client::{HttpsCaller, WebhookCredentials};
use axum::Router;
use jiff::Timestamp;
use kubernetes_admission::authorizer::{Authorizer, RBAC_GROUP};
use kubernetes_admission::converter::Converter;
use kubernetes_admission::event::Record;
use kubernetes_admission::manifests::StaticManifests;
use kubernetes_admission::metrics::Metrics;
use kubernetes_admission::trace_context::SpanContexts;
use kubernetes_types::budget::Budget;
use kubernetes_types::status::Status;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use self::admission::Admission;
pub use self::audit_policy::AuditPolicy;
use self::authentication::TokenAuthenticator;
pub use self::authentication::{Authentication, Authenticator, Authenticators, ClientCertificate, Tokens};
pub use self::authorization::AuthorizationMode;
use self::authorization::aggregation;
use self::authorization::impersonation::Impersonation;
pub use self::authorization::impersonation::impersonated_user;
pub use self::cluster_fixture::{ClusterFixture, Given};
pub use self::controllers::Controllers;
use self::definition_controllers::DefinitionControllers;
use self::discovery::Resource;
use self::events::Events;
pub use self::first_objects::Advertised;
pub use self::in_process::{RequestTrace, ResourceName, ServedResource, ServedSubresource};
pub use self::limits::Limits;
use self::limits::UnderWay;
pub use self::observation::ObservedRequest;
use self::openapi::OpenApi;
use self::own_requests::Own;
pub use self::plugins::{
    AdmissionPlugins, DefaultTolerationSeconds, PluginConfiguration, PodNodeSelectorConfiguration,
    PodSecurityConfiguration, PodSecurityDefaults, PodSecurityExemptions, SelectionError,
    StorageObjectInUseProtection, TaintNodesByCondition,
};
pub use self::route::is_connection;
use self::service_account_tokens::TokenIssuer;
pub use self::service_account_tokens::{KeyError, ServiceAccountTokens, SigningKey, VerifyingKey};
use self::service_allocation::ServiceAllocator;
use self::state::{Services, State};
use self::storage::{Key, ObjectReader as _, Storage};
pub use self::strategy::forget_selector;

/// Which service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceName {
    /// The service's namespace.
    pub namespace: String,
    /// The service's name.
    pub name: String,
}

/// Gets `audit.k8s.io/v1` Events, as [`Options::audit_policy`] says.
pub type AuditSink = Arc<dyn Fn(&Value) + Send + Sync>;

/// Gets the Audit-ID of each request, when it was received, and what happened in admission.
pub type RecordSink = Arc<dyn Fn(&str, Timestamp, &Record) + Send + Sync>;

/// Gets each request that could change something, before its response is sent. It may take its time: no other request waits
/// for it.
pub type RequestObserver = Arc<dyn Fn(ObservedRequest) + Send + Sync>;

/// What an [`ApiServer`] is told beside its requests.
#[derive(Clone, Default)]
pub struct Options {
    /// Where services listen, by name: host (a name or an IP) and port, whatever port the webhook asks for. Looked at
    /// before the stored Services.
    pub services: BTreeMap<ServiceName, (String, u16)>,
    /// How the server authenticates to webhooks.
    pub credentials: WebhookCredentials,
    /// The webhooks from files, and which plugins have a folder of them.
    pub manifests: StaticManifests,
    /// Which in-tree admission plugins run.
    pub plugins: AdmissionPlugins,
    /// How they are configured.
    pub plugin_configuration: PluginConfiguration,
    /// The name of the machine, by which metrics tell one server from another.
    pub hostname: String,
    /// Gets the audit events.
    pub audit: Option<AuditSink>,
    /// Of which requests there are events, at which stages and levels. Without a policy there is one event of the level
    /// `Request` for each request: of the stage `ResponseComplete`, and of `ResponseStarted` for those that last; of
    /// `RequestReceived` if the request is cut off before admission. A client that goes away during admission leaves the same as
    /// one that has the answer.
    pub audit_policy: Option<AuditPolicy>,
    /// Gets the records, before the response is sent: what the audit log does not tell, such as the reviews.
    pub record: Option<RecordSink>,
    /// Says to which trace a call belongs, where the spans of `tracing` are exported.
    pub spans: Option<Arc<dyn SpanContexts>>,
    /// The users of bearer tokens that do not change: `--token-auth-file`.
    pub tokens: Tokens,
    /// How tokens of service accounts are made and verified.
    pub service_account_tokens: ServiceAccountTokens,
    /// Gets the requests that could change something, with their records.
    pub observer: Option<RequestObserver>,
    /// What kube-controller-manager would do about namespaces and owners, once [`ApiServer::run_controllers`] runs; without
    /// it, namespaces are emptied when they are deleted, and without admission.
    pub controllers: Option<Controllers>,
    /// Who may do what.
    pub authorization_mode: AuthorizationMode,
    /// What it may take of the machine.
    pub limits: Limits,
    /// What it says of itself in its first objects.
    pub advertised: Advertised,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("services", &self.services).finish_non_exhaustive()
    }
}

/// An API server with its objects in memory. Clones are the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    state: Arc<State>,
    admission: Admission,
    impersonation: Impersonation,
    tokens: Arc<TokenAuthenticator>,
    services: ServiceAllocator,
    audit_policy: AuditPolicy,
    options: Options,
    under_way: UnderWay,
    events: Arc<Events>,
    openapi: OpenApi,
    watches: Budget,
    /// The `uid` of the user as whom the server makes requests of its own.
    own_uid: String,
    definition_controllers: DefinitionControllers,
    /// Requests that go on, for who keeps records of them, where their clients go away.
    outlived: TaskTracker,
}

impl ApiServer {
    /// A server with the objects that a cluster has from the start.
    pub fn new(options: Options) -> Self {
        let storage = Arc::new(Storage::with_roles(&options.limits));
        first_objects::store(&storage, &options.advertised);
        let services = Services { known: options.services.clone(), storage: Arc::clone(&storage) };
        let under_way = UnderWay::new(&options.limits);
        let metrics = Metrics::default();
        // Reviews and replies take their bytes from those of all requests.
        let caller = HttpsCaller::new(Arc::new(services))
            .with_credentials(options.credentials.clone())
            .with_memory(under_way.bytes.clone());
        let caller = Arc::new(caller);
        let converter = Arc::new(Converter::new(Arc::clone(&caller), metrics.conversions()));
        let state = Arc::new(State::new(storage, options.authorization_mode, Arc::clone(&converter)));
        let manifests = options.manifests.clone();
        let plugins = (options.plugins.clone(), &options.plugin_configuration);
        let admission = Admission::new(&state, converter, manifests, plugins, metrics);
        let (impersonation, services) =
            (Impersonation::default(), ServiceAllocator::new(Arc::clone(&state.storage)));
        let events = Arc::new(Events::new(options.limits.event_bytes));
        let watches = Budget::new(options.limits.watches);
        let audit_policy = options.audit_policy.clone().unwrap_or_default();
        let issuer = TokenIssuer::new(options.service_account_tokens.clone());
        let objects = Arc::clone(&state.storage) as Arc<dyn storage::ObjectReader>;
        let tokens = Arc::new(TokenAuthenticator::new(options.tokens.clone(), issuer, objects));
        let server = Server {
            state,
            admission,
            impersonation,
            tokens,
            services,
            audit_policy,
            options,
            under_way,
            events,
            openapi: OpenApi::default(),
            watches,
            own_uid: uuid::Uuid::new_v4().to_string(),
            definition_controllers: DefinitionControllers::default(),
            outlived: TaskTracker::new(),
        };
        let server = Self { server: Arc::new(server) };
        caller.belongs_to(Box::new(Own(Arc::downgrade(&server.server))));
        server.observe_manifests();
        server
    }

    /// The server's routes, for `axum::serve` or, as a service, for a `kube::Client`.
    pub fn router(&self, authentication: Authentication) -> Router {
        let authenticate = axum::middleware::from_fn_with_state(
            self.authenticator(authentication),
            authentication::authenticate,
        );
        Router::new().fallback(request::answer).with_state(Arc::clone(&self.server)).layer(authenticate)
    }

    /// Finds out who makes a request, as the router does that has this `authentication`.
    pub fn authenticator(&self, authentication: Authentication) -> Authenticator {
        Authenticator::new(authentication, Arc::clone(&self.server.tokens))
    }

    /// Says who may do what by the server's mode and the roles that are stored.
    pub fn authorizer(&self) -> Arc<dyn Authorizer> {
        Arc::clone(&self.server.state.authorizer)
    }

    /// Runs the [`Options::controllers`] until [`Self::end_watches`]; returns at once if there are none.
    pub fn run_controllers(&self) -> impl Future<Output = ()> + Send + 'static {
        let server = Arc::clone(&self.server);
        async move {
            if let Some(options) = server.options.controllers.clone() {
                controllers::run(server, options).await;
            }
        }
    }

    /// Ends all watches, those to come too: whoever stops to serve need not wait for them.
    pub fn end_watches(&self) {
        self.server.state.storage.close();
    }

    /// Waits until the audit log and the records have been told of the requests whose clients went away; for when no connection
    /// is left.
    pub async fn tell_of_the_abandoned(&self) {
        self.server.outlived.close();
        self.server.outlived.wait().await;
    }
}

impl Server {
    /// Takes over what was written, where the server itself depends on it.
    fn has_changed(self: &Arc<Self>, resource: &Resource) -> Result<(), Box<Status>> {
        match (resource.gvr.group.as_str(), resource.gvr.resource.as_str()) {
            (admission::GROUP, admission::MUTATING | admission::VALIDATING) => {
                self.admission.reload_webhooks()
            }
            (custom_resources::GROUP, custom_resources::RESOURCE) => {
                if !definition_controllers::are_to_write(self) {
                    definition_status::reconcile(&self.state.storage);
                }
                self.state.reload_resources();
                Ok(())
            }
            (RBAC_GROUP, "clusterroles") => {
                aggregation::reconcile(&self.state.storage);
                Ok(())
            }
            _ => {
                let resources = self.state.resources();
                if resources.get(&resource.gvr).is_some_and(|resource| is_terminating(resource)) {
                    self.finish_definitions();
                }
                Ok(())
            }
        }
    }

    /// Removes the objects of definitions that are being deleted, and those definitions of which none is left.
    fn finish_definitions(self: &Arc<Self>) {
        if !definition_controllers::are_to_write(self) {
            definition_deletion::finish(&self.state.storage);
            definition_status::reconcile(&self.state.storage);
        }
        self.state.reload_resources();
    }

    /// Removes the objects of a namespace that is being deleted, and the namespace itself once none is left.
    fn empty_namespace(self: &Arc<Self>, name: &str) -> Result<(), Box<Status>> {
        if self.options.controllers.is_some() {
            return Ok(());
        }
        let storage = &self.state.storage;
        let Some(namespace) = storage.get("", "namespaces", "", name) else { return Ok(()) };
        let is_empty = storage.empty_namespace(name);
        if self.state.resources().all().iter().any(|resource| is_terminating(resource)) {
            self.finish_definitions();
        }
        if is_empty && !metadata::has_finalizers(&namespace) {
            let key = namespace_key(name);
            if storage.remove(&key, &namespace).is_err() {
                let why = "the object has been modified; please apply your changes to the latest version and try again";
                return Err(Box::new(Status::conflict("", "namespaces", name, why)));
            }
        }
        Ok(())
    }

    /// Whether controllers take away the finalizers in the `spec` of namespaces; else it is done at once.
    fn has_controllers(&self) -> bool {
        self.options.controllers.is_some()
    }

    /// Removes the namespace of an object that is gone, if it was waiting for that.
    fn finish_namespace(&self, gone: &Key) {
        if self.options.controllers.is_some() {
            return;
        }
        let storage = &self.state.storage;
        let namespace = storage.get("", "namespaces", "", &gone.namespace);
        if let Some(namespace) = namespace
            && metadata::is_deleting(&namespace)
            && storage.empty_namespace(&gone.namespace)
            && !metadata::has_finalizers(&namespace)
        {
            // Somebody who is faster does the same.
            let _ = storage.remove(&namespace_key(&gone.namespace), &namespace);
        }
    }
}

/// Whether this is a namespace with finalizers in its `spec`, which keep it.
///
/// Source: kubernetes pkg/registry/core/namespace/storage/storage.go, `ShouldDeleteNamespaceDuringUpdate`.
fn waits_for_controllers(object: &Value, resource: &Resource) -> bool {
    let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
    resource.gvr.group_resource() == "namespaces"
        && finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether the definition of a custom resource is being deleted.
fn is_terminating(resource: &Resource) -> bool {
    resource.custom.as_ref().is_some_and(|custom| {
        matches!(custom.stage, custom_resources::Stage::Terminating | custom_resources::Stage::Emptied)
    })
}

fn namespace_key(name: &str) -> Key {
    Key {
        group: String::new(),
        resource: "namespaces".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}
