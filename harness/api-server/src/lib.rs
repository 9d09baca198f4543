//! An in-memory API server that implements the Kubernetes REST API.
//!
//! The server decodes requests, calls the admission [dispatcher](kubernetes_admission::dispatcher), stores objects, and
//! responds. This crate does not contain webhook admission rules.

mod apimachinery;
mod endpoints;
mod kinds;
mod plugins;
mod registry;
mod server;
mod storage;
mod subresources;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use admission_webhook_client::{HttpsCaller, WebhookCredentials};
use axum::Router;
use jiff::Timestamp;
use kubernetes_admission::authorizer::Authorizer;
use kubernetes_admission::converter::Converter;
use kubernetes_admission::event::Record;
use kubernetes_admission::manifests::StaticManifests;
use kubernetes_admission::metrics::Metrics;
use kubernetes_admission::trace_context::SpanContexts;
use kubernetes_types::budget::Budget;
use serde_json::Value;
use tokio_util::task::TaskTracker;

pub use self::plugins::{
    AdmissionPlugins, DefaultTolerationSeconds, PluginConfiguration, PodNodeSelectorConfiguration,
    PodSecurityConfiguration, PodSecurityDefaults, PodSecurityExemptions, SelectionError,
    StorageObjectInUseProtection, TaintNodesByCondition,
};
use self::storage::Storage;
use crate::apimachinery::limits::InFlightRequests;
pub use crate::apimachinery::limits::Limits;
pub use crate::endpoints::audit_policy::AuditPolicy;
pub use crate::endpoints::authentication::{
    Authentication, Authenticator, Authenticators, ClientCertificate,
};
use crate::endpoints::authorization::impersonation::Impersonation;
pub use crate::endpoints::authorization::impersonation::impersonated_user;
use crate::endpoints::events::Events;
pub use crate::endpoints::observation::ObservedRequest;
use crate::endpoints::openapi::OpenApi;
pub use crate::endpoints::outcome::RequestTrace;
pub use crate::endpoints::route::is_connection;
use crate::endpoints::{authentication, request};
pub use crate::kinds::rbac::AuthorizationMode;
use crate::kinds::service_account_tokens::TokenIssuer;
use crate::kinds::service_account_tokens::authenticator::TokenAuthenticator;
pub use crate::kinds::service_account_tokens::authenticator::Tokens;
pub use crate::kinds::service_account_tokens::{KeyError, ServiceAccountTokens, SigningKey, VerifyingKey};
use crate::kinds::service_allocation::ServiceAllocator;
pub use crate::kinds::service_allocation::{NodePortRange, ServiceRange, ServiceRanges};
pub use crate::kinds::strategy::forget_selector;
use crate::registry::Registry;
use crate::registry::admission::Admission;
pub use crate::registry::state::ServiceName;
use crate::registry::state::{Services, State};
pub use crate::server::cluster_fixture::{ClusterFixture, WebhookManifests};
pub use crate::server::controllers::Controllers;
use crate::server::definition_controllers::DefinitionControllers;
pub use crate::server::in_process::{ResourceName, ServedResource, ServedSubresource};
pub use crate::server::initial_objects::Advertised;
use crate::server::loopback_requests::LoopbackCaller;
use crate::server::{controllers, initial_objects};

/// Receives `audit.k8s.io/v1` Events, as configured by [`Options::audit_policy`].
pub type AuditSink = Arc<dyn Fn(&Value) + Send + Sync>;

/// Receives the Audit-ID of each request, the time when it was received, and the admission record.
pub type RecordSink = Arc<dyn Fn(&str, Timestamp, &Record) + Send + Sync>;

/// Receives each request that can change an object. The server calls the function before it sends the response.
///
/// The function may block without delaying other requests.
pub type RequestObserver = Arc<dyn Fn(ObservedRequest) + Send + Sync>;

/// The options of an [`ApiServer`].
#[derive(Clone, Default)]
pub struct Options {
    /// The host (a name or an IP) and port of Services by name. They take precedence over stored Services.
    ///
    /// The port replaces the port in the webhook configuration.
    pub services: BTreeMap<ServiceName, (String, u16)>,
    /// The credentials with which the server authenticates to webhooks.
    pub credentials: WebhookCredentials,
    /// The webhooks from manifest files, and the plugins that have a manifest directory.
    pub manifests: StaticManifests,
    /// The enabled in-tree admission plugins.
    pub plugins: AdmissionPlugins,
    /// The configuration of the in-tree plugins.
    pub plugin_configuration: PluginConfiguration,
    /// The host name, which distinguishes servers in metrics.
    pub hostname: String,
    /// Receives the audit events; `None` if the server does not log requests.
    pub audit: Option<AuditSink>,
    /// The audit policy: which requests are logged, at which stages and levels.
    ///
    /// Without a policy, the server logs each request at the level `Request` and the stage `ResponseComplete`. A
    /// long-running request also has an event at the stage `ResponseStarted`. A request that is cut off before
    /// admission has only an event at the stage `RequestReceived`. If the client disconnects during admission, the
    /// event is the same as if the client had received the response.
    pub audit_policy: Option<AuditPolicy>,
    /// Receives the admission records before the response is sent. The records contain details that the audit log does
    /// not have, such as the reviews.
    pub record: Option<RecordSink>,
    /// Exports `tracing` spans and returns the trace context of each webhook call; `None` if spans are not exported.
    pub spans: Option<Arc<dyn SpanContexts>>,
    /// The users of static bearer tokens: `--token-auth-file`.
    pub tokens: Tokens,
    /// The keys and settings for creating and verifying service account tokens.
    pub service_account_tokens: ServiceAccountTokens,
    /// Receives the requests that can change objects, with their records.
    pub observer: Option<RequestObserver>,
    /// The options of the controllers that run in [`ApiServer::run_controllers`]; `None` to run no controllers.
    ///
    /// Without controllers, the server deletes the content of a deleted namespace immediately and without admission.
    pub controllers: Option<Controllers>,
    /// The mode in which the server authorizes requests: `--authorization-mode`.
    pub authorization_mode: AuthorizationMode,
    /// The limits on requests, memory, and watches.
    pub limits: Limits,
    /// The addresses and certificates in the initial objects.
    pub advertised: Advertised,
    /// The ranges from which Services get addresses and ports.
    pub service_ranges: ServiceRanges,
    /// The values of flags in `/flagz`, in addition to the default values of kube-apiserver.
    pub flags: BTreeMap<String, String>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("services", &self.services).finish_non_exhaustive()
    }
}

/// An API server with its objects in memory. Clones share the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    registry: Arc<Registry>,
    impersonation: Impersonation,
    audit_policy: AuditPolicy,
    options: Options,
    events: Arc<Events>,
    openapi: OpenApi,
    watches: Budget,
    /// The `uid` of the user of loopback requests.
    loopback_uid: String,
    /// The time at which the server was created.
    started: Timestamp,
    definition_controllers: DefinitionControllers,
    /// The tasks of recorded requests that continue after their clients disconnect.
    background_tasks: TaskTracker,
}

impl ApiServer {
    /// Creates a server with the initial objects of a cluster.
    pub fn new(options: Options) -> Self {
        let storage = Arc::new(Storage::new(crate::kinds::rbac::bootstrap::INITIAL_OBJECTS, &options.limits));
        initial_objects::store(&storage, &options);
        let services = Services { known: options.services.clone(), storage: Arc::clone(&storage) };
        let in_flight = InFlightRequests::new(&options.limits);
        let metrics = Metrics::default();
        // Reviews and responses count against the memory budget of all requests.
        let caller = HttpsCaller::new(Arc::new(services))
            .with_credentials(options.credentials.clone())
            .with_memory(in_flight.bytes.clone());
        let caller = Arc::new(caller);
        let converter = Arc::new(Converter::new(Arc::clone(&caller), metrics.conversions()));
        let state = Arc::new(State::new(storage, options.authorization_mode, Arc::clone(&converter)));
        let manifests = options.manifests.clone();
        let plugins = (options.plugins.clone(), &options.plugin_configuration);
        let admission = Admission::new(&state, converter, manifests, plugins, metrics);
        let (impersonation, services) = (
            Impersonation::default(),
            ServiceAllocator::new(Arc::clone(&state.storage), options.service_ranges.clone()),
        );
        let events = Arc::new(Events::new(options.limits.event_bytes));
        let watches = Budget::new(options.limits.watches);
        let audit_policy = options.audit_policy.clone().unwrap_or_default();
        let issuer = TokenIssuer::new(options.service_account_tokens.clone());
        let objects = Arc::clone(&state.storage) as Arc<dyn storage::ObjectReader>;
        let tokens = Arc::new(TokenAuthenticator::new(options.tokens.clone(), issuer, objects));
        let own_server = OnceLock::new();
        let registry = Arc::new(Registry { state, admission, services, tokens, in_flight, own_server });
        let server = Server {
            registry,
            impersonation,
            audit_policy,
            options,
            events,
            openapi: OpenApi::default(),
            watches,
            loopback_uid: uuid::Uuid::new_v4().to_string(),
            started: Timestamp::now(),
            definition_controllers: DefinitionControllers::default(),
            background_tasks: TaskTracker::new(),
        };
        let server = Self { server: Arc::new(server) };
        let loopback = LoopbackCaller(Arc::downgrade(&server.server));
        let _ = server.server.registry.own_server.set(Box::new(loopback.clone()));
        caller.belongs_to(Box::new(loopback));
        server.observe_manifests();
        server
    }

    /// Returns the server's router, for use with `axum::serve` or as the service of a `kube::Client`.
    pub fn router(&self, authentication: Authentication) -> Router {
        let authenticate = axum::middleware::from_fn_with_state(
            self.authenticator(authentication),
            authentication::authenticate,
        );
        Router::new().fallback(request::answer).with_state(Arc::clone(&self.server)).layer(authenticate)
    }

    /// Returns the authenticator of a router with this `authentication`.
    pub fn authenticator(&self, authentication: Authentication) -> Authenticator {
        Authenticator::new(authentication, Arc::clone(&self.server.registry.tokens))
    }

    /// Returns the authorizer, which uses the server's mode and its stored roles.
    pub fn authorizer(&self) -> Arc<dyn Authorizer> {
        Arc::clone(&self.server.registry.state.authorizer)
    }

    /// Runs the [`Options::controllers`] until [`Self::end_watches`] is called. Returns immediately without
    /// controllers.
    pub fn run_controllers(&self) -> impl Future<Output = ()> + Send + 'static {
        let server = Arc::clone(&self.server);
        async move {
            if let Some(options) = server.options.controllers.clone() {
                controllers::run(server, options).await;
            }
        }
    }

    /// Ends all current and future watches, so that a shutdown does not wait for them.
    pub fn end_watches(&self) {
        self.server.registry.state.storage.close();
    }

    /// Waits until abandoned requests are audited and recorded. Call this after all connections are closed.
    pub async fn flush_abandoned_requests(&self) {
        self.server.background_tasks.close();
        self.server.background_tasks.wait().await;
    }
}
