//! The options of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use admission_webhook_client::{CallableWebhooks, WebhookCredentials};
use jiff::Timestamp;
use kubernetes_admission::event::Record;
use kubernetes_admission::manifests::StaticManifests;
use kubernetes_admission::trace_context::SpanContexts;
use serde_json::Value;

use super::audit_policy::AuditPolicy;
use super::notices::NoticeSink;
use super::observation::ObservedRequest;
use crate::apimachinery::limits::Limits;
use crate::kinds::core::service::allocation::range::ServiceRanges;
use crate::kinds::rbac::AuthorizationMode;
use crate::kinds::service_account_tokens::ServiceAccountTokens;
use crate::kinds::service_account_tokens::authenticator::Tokens;
use crate::plugins::{AdmissionPlugins, PluginConfiguration};
use crate::registry::services::ServiceName;

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
    /// The hosts (names or IP addresses) and ports of Services, by Service name. They override stored Services.
    ///
    /// The port replaces the port in the webhook configuration.
    pub services: BTreeMap<ServiceName, (String, u16)>,
    /// The admission and conversion webhooks that the server calls; `None` for all.
    ///
    /// The response of any other admission webhook is unknown: the request continues as if the webhook allowed it
    /// without changes, and the record contains [`CallResult::Unknown`](kubernetes_admission::event::CallResult).
    pub callable_webhooks: Option<CallableWebhooks>,
    /// The credentials with which the server authenticates to webhooks.
    pub credentials: WebhookCredentials,
    /// The webhooks from manifest files, and the admission plugins that have a manifest directory.
    pub manifests: StaticManifests,
    /// The enabled in-tree admission plugins.
    pub plugins: AdmissionPlugins,
    /// The configuration of the in-tree plugins.
    pub plugin_configuration: PluginConfiguration,
    /// The host name. It distinguishes servers in metrics.
    pub hostname: String,
    /// Receives the audit events; `None` if the server does not log requests.
    pub audit: Option<AuditSink>,
    /// The audit policy: which requests are logged, at which stages and levels.
    ///
    /// Without a policy, the server logs each request at the level `Request` and the stage `ResponseComplete`. A
    /// long-running request also has an event at the stage `ResponseStarted`. A request without a response has only an
    /// event at the stage `RequestReceived` if it ends before admission. If the client disconnects during admission,
    /// the event is the same as if the client had received the response.
    pub audit_policy: Option<AuditPolicy>,
    /// Receives the admission records before the response is sent.
    ///
    /// The records contain details that the audit log does not have, such as the `AdmissionReview`s.
    pub record: Option<RecordSink>,
    /// Receives notices about webhook calls that failed open and about deleted namespaces that the server keeps.
    pub notices: Option<NoticeSink>,
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
    /// The values of flags in `/flagz`. Other flags have kube-apiserver's default values.
    pub flags: BTreeMap<String, String>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("services", &self.services).finish_non_exhaustive()
    }
}

/// The options of the controllers.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has a default")]
pub struct Controllers {
    /// The certificate authorities of the server in PEM. Each `kube-root-ca.crt` contains them as `ca.crt`.
    pub root_certificates: String,
}

/// The addresses and certificates that the initial objects contain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct Advertised {
    /// `--advertise-address`: the endpoint address of the Service `kubernetes`.
    ///
    /// If `None`, the Service does not have an endpoint.
    pub address: Option<IpAddr>,
    /// The address of the server in its Lease, even if the Service `kubernetes` does not have an endpoint.
    pub external: Option<IpAddr>,
    /// `--secure-port`: the port on which the server listens.
    pub port: u16,
    /// `--client-ca-file`: the certificate authorities for client certificates, in PEM; empty if there are none.
    pub client_authorities: String,
}

impl Default for Advertised {
    fn default() -> Self {
        Self { address: None, external: None, port: 6443, client_authorities: String::new() }
    }
}
