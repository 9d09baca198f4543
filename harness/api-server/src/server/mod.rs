//! The server: its initial objects, loopback requests, and controllers.

pub(crate) mod cluster_fixture;
pub(crate) mod controllers;
pub(crate) mod definition_controllers;
pub(crate) mod in_process;
pub(crate) mod initial_objects;
pub(crate) mod loopback_requests;
pub(crate) mod manifests;
pub(crate) mod matching;

use std::sync::{Arc, OnceLock};

use admission_webhook_client::HttpsCaller;
use axum::Router;
use jiff::Timestamp;
use kubernetes_admission::authorizer::Authorizer;
use kubernetes_admission::converter::Converter;
use kubernetes_admission::metrics::Metrics;
use kubernetes_types::budget::Budget;
use tokio_util::task::TaskTracker;

use self::loopback_requests::LoopbackCaller;
use crate::apimachinery::limits::InFlightRequests;
use crate::endpoints::authentication::{Authentication, Authenticator};
use crate::endpoints::authorization::impersonation::Impersonation;
use crate::endpoints::context::{ApiServer, Server};
use crate::endpoints::events::Events;
use crate::endpoints::openapi::OpenApi;
use crate::endpoints::options::Options;
use crate::endpoints::{authentication, request};
use crate::kinds::core::service::allocation::ServiceAllocator;
use crate::kinds::rbac::bootstrap;
use crate::kinds::service_account_tokens::TokenIssuer;
use crate::kinds::service_account_tokens::authenticator::TokenAuthenticator;
use crate::registry::Registry;
use crate::registry::admission::Admission;
use crate::registry::services::Services;
use crate::registry::state::State;
use crate::storage::{ObjectReader, Storage};

impl ApiServer {
    /// Creates a server with the initial objects of a cluster.
    pub fn new(options: Options) -> Self {
        let storage = Arc::new(Storage::new(bootstrap::INITIAL_OBJECTS, &options.limits));
        initial_objects::store(&storage, &options);
        let services = Services { known: options.services.clone(), storage: Arc::clone(&storage) };
        let in_flight = InFlightRequests::new(&options.limits);
        let metrics = Metrics::default();
        // Reviews and responses count against the memory budget of all requests.
        let caller = HttpsCaller::new(Arc::new(services))
            .with_credentials(options.credentials.clone())
            .with_callable(options.callable_webhooks.clone())
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
        let objects = Arc::clone(&state.storage) as Arc<dyn ObjectReader>;
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
            background_tasks: TaskTracker::new(),
        };
        let server = Self { server: Arc::new(server) };
        let loopback = LoopbackCaller::new(&server.server);
        let registry = &server.server.registry;
        let _ = registry.own_server.set(Box::new(loopback.clone()));
        let _ = registry.admission.quota_writer.set(Box::new(loopback.clone()));
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

    /// Returns the authenticator for a router with this `authentication`.
    pub fn authenticator(&self, authentication: Authentication) -> Authenticator {
        Authenticator::new(authentication, Arc::clone(&self.server.registry.tokens))
    }

    /// Returns the authorizer. It uses the server's authorization mode and stored roles.
    pub fn authorizer(&self) -> Arc<dyn Authorizer> {
        Arc::clone(&self.server.registry.state.authorizer)
    }

    /// Runs the [`Options::controllers`] until [`Self::end_watches`] is called.
    ///
    /// Returns immediately if [`Options::controllers`] is not set.
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
