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

pub use self::apimachinery::limits::Limits;
pub use self::endpoints::audit_policy::AuditPolicy;
pub use self::endpoints::authentication::{Authentication, Authenticator, Authenticators, ClientCertificate};
pub use self::endpoints::authorization::impersonation::impersonated_user;
pub use self::endpoints::context::ApiServer;
pub use self::endpoints::notices::{Notice, NoticeSink};
pub use self::endpoints::observation::ObservedRequest;
pub use self::endpoints::options::Advertised;
pub use self::endpoints::options::Controllers;
pub use self::endpoints::options::{AuditSink, Options, RecordSink, RequestObserver};
pub use self::endpoints::outcome::RequestTrace;
pub use self::endpoints::route::is_connection;
pub use self::kinds::rbac::AuthorizationMode;
pub use self::kinds::service_account_tokens::authenticator::Tokens;
pub use self::kinds::service_account_tokens::{KeyError, ServiceAccountTokens, SigningKey, VerifyingKey};
pub use self::plugins::{
    AdmissionPlugins, DefaultTolerationSeconds, PluginConfiguration, PodNodeSelectorConfiguration,
    PodSecurityConfiguration, PodSecurityDefaults, PodSecurityExemptions, PolicyOrder, SelectionError,
    StorageObjectInUseProtection, TaintNodesByCondition,
};
pub use self::registry::services::ServiceName;
pub use self::registry::unknown_fields::UnknownField;
pub use self::server::cluster_fixture::{ClusterFixture, WebhookManifests};
pub use self::server::in_process::{ResourceName, ServedResource, ServedSubresource};
pub use self::server::matching::WebhookMatches;
pub use crate::kinds::batch::job::selector::forget_selector;
pub use crate::kinds::core::service::allocation::range::{NodePortRange, ServiceRange, ServiceRanges};
