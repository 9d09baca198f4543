//! Parses webhook configurations into [`Webhook`]s.

mod caller_cache;
mod conversion;
mod decoding;
mod defaults;
mod field;
mod reading;
mod v1beta1;
mod validation;
mod warnings;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::caller_cache::CallerCache;
pub use self::conversion::ConversionWebhook;
pub use self::decoding::check_types;
pub use self::defaults::set_defaults;
pub use self::reading::{manifest_webhooks, stored_webhooks, webhooks};
pub use self::v1beta1::{DefaultDifference, is_v1beta1, upgraded, v1_differences, v1_errors};
pub use self::validation::{client_config_errors, rule_errors};
pub use self::validation::{validate, validate_manifest, validate_update};
pub use self::warnings::EXCLUDED;
pub use self::warnings::{update_warnings, warnings};
use serde_json::Value;

use kubernetes_types::selector::Selector;

use crate::conditions::Condition;

pub(crate) const API_VERSION: &str = "admissionregistration.k8s.io/v1";
pub(crate) const MUTATING: &str = "MutatingWebhookConfiguration";
pub(crate) const VALIDATING: &str = "ValidatingWebhookConfiguration";
const DEFAULT_TIMEOUT_SECONDS: i64 = 10;
const DEFAULT_PORT: u16 = 443;
/// The suffix of configuration names that is reserved for configurations in files.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// One entry of a configuration's `webhooks`: parsed, with all defaults set.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// The webhook's identity.
    pub id: Arc<WebhookId>,
    /// The origin of the webhook's configuration.
    pub source: Source,
    /// The admission phase that calls the webhook, determined by the kind of its configuration.
    pub phase: Phase,
    /// `reinvocationPolicy`; `Never` for a validating webhook.
    pub reinvocation_policy: ReinvocationPolicy,
    /// `clientConfig`: the webhook's address and CA bundle.
    pub client_config: ClientConfig,
    /// `rules`; a webhook without rules is never called.
    pub rules: Vec<Rule>,
    /// `failurePolicy`: the effect of a failed call.
    pub failure_policy: FailurePolicy,
    /// `matchPolicy`: whether rules also match equivalent resources.
    pub match_policy: MatchPolicy,
    /// `namespaceSelector`: selects requests by the labels of the namespace.
    pub namespace_selector: Selector,
    /// `objectSelector`: selects requests by the labels of the new or the old object.
    pub object_selector: Selector,
    /// `sideEffects`: whether the webhook can be called on a dry run.
    pub side_effects: SideEffects,
    /// `timeoutSeconds`: 1 to 30 seconds.
    pub timeout: Duration,
    /// `admissionReviewVersions`, in the author's order of preference.
    pub admission_review_versions: Vec<String>,
    /// `matchConditions`: the webhook is called only if all are true.
    pub match_conditions: Vec<Condition>,
}

/// The origin of a configuration.
///
/// Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, `apiSource` and `staticSource`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API server has these two")]
pub enum Source {
    /// A client created the configuration through the API.
    #[default]
    Api,
    /// A file in the plugin's `staticManifestsDir` contains the configuration.
    Manifest,
}

/// A pass through the mutating chain. The validating phase has only the first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "admission has these two")]
pub enum Round {
    /// The first pass: `round_0` in audit annotations.
    First,
    /// Reinvocation: `round_1` in audit annotations.
    Second,
}

impl Round {
    /// Returns the number in audit annotations: 0 or 1.
    pub fn number(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }
}

/// One of the two phases of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "admission has these two")]
pub enum Phase {
    /// In-tree plugins and webhooks that may change the object run in sequence.
    Mutating,
    /// In-tree plugins and webhooks that may only reject the object.
    Validating,
}

impl Phase {
    /// Returns the name of the admission plugin that calls the webhooks of this phase.
    pub const fn webhook_plugin(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingAdmissionWebhook",
            Self::Validating => "ValidatingAdmissionWebhook",
        }
    }
}

/// The identity of a webhook: unique in a cluster, and the key for reinvocation.
///
/// Source: apiserver `pkg/admission/configuration/mutating_webhook_manager.go`.
/// Rule: LOAD-05.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookId {
    /// `metadata.name` of the configuration.
    pub configuration: String,
    /// `name` of the webhook.
    pub name: String,
    /// The number of earlier webhooks with the same name in the configuration.
    pub ordinal: usize,
}

/// Formats the identity as `configuration/name/ordinal`.
impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.configuration, self.name, self.ordinal)
    }
}

/// Whether a mutating webhook may be called a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum ReinvocationPolicy {
    /// The webhook is called at most once per request.
    #[default]
    Never,
    /// The webhook is called again if the object changed after its call.
    IfNeeded,
}

/// How a failed webhook call affects the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum FailurePolicy {
    /// The request is rejected.
    #[default]
    Fail,
    /// The request continues as if the webhook did not exist.
    Ignore,
}

/// Whether a rule also matches a request for an equivalent resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum MatchPolicy {
    /// Rules match only the request's own resource.
    Exact,
    /// Rules also match equivalent resources; the object is converted.
    #[default]
    Equivalent,
}

/// The side effects of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these four, or none")]
pub enum SideEffects {
    /// The webhook has no side effects.
    None,
    /// The webhook has no side effects on a dry run.
    NoneOnDryRun,
    /// The webhook has side effects; it is never called on a dry run.
    ///
    /// API version v1 does not allow this value.
    Some,
    /// The side effects are unknown; the webhook is never called on a dry run.
    ///
    /// API version v1 does not allow this value.
    Unknown,
    /// The configuration does not specify side effects; a call on a dry run fails.
    ///
    /// This is possible only if the storage was edited by hand.
    Unset,
}

impl SideEffects {
    /// Returns whether the webhook may be called on a dry run.
    pub fn allow_dry_run(self) -> bool {
        matches!(self, Self::None | Self::NoneOnDryRun)
    }
}

/// The address of a webhook and the CA bundle that verifies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// The address of the webhook, from `url` or `service`.
    pub target: WebhookTarget,
    /// `caBundle`: PEM, decoded from base64. If empty, the system's root certificates are used.
    pub ca_bundle: Vec<u8>,
    /// A cache for values that the caller derives from this configuration.
    pub cache: CallerCache,
}

impl ClientConfig {
    /// Creates a configuration for the webhook at `target`, verified by `ca_bundle`.
    pub fn new(target: WebhookTarget, ca_bundle: Vec<u8>) -> Self {
        Self { target, ca_bundle, cache: CallerCache::default() }
    }
}

/// The address of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum WebhookTarget {
    /// The webhook's URL, from `clientConfig.url`.
    Url(String),
    /// The Service that serves the webhook, from `clientConfig.service`.
    Service(ServiceReference),
}

impl WebhookTarget {
    /// Returns the host that serves the webhook.
    ///
    /// This is the URL's host, with its port if specified, or the service's [`authority`](ServiceReference::authority).
    pub fn authority(&self) -> String {
        match self {
            Self::Url(url) => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned()
            }
            Self::Service(service) => service.authority(),
        }
    }
}

/// The Service that serves the webhook, from `clientConfig.service`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceReference {
    /// The service's namespace.
    pub namespace: String,
    /// The service's name.
    pub name: String,
    /// The path of the webhook; may be empty.
    pub path: String,
    /// The service's port; defaults to 443.
    pub port: u16,
}

impl ServiceReference {
    /// Returns the host that the API server calls: `NAME.NAMESPACE.svc`. It is also the TLS server name.
    pub fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    /// Returns the host and the port: `NAME.NAMESPACE.svc:443`. The port is always present.
    ///
    /// Source: apiserver pkg/util/webhook/client.go.
    /// Rule: HTTP-02.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host(), self.port)
    }
}

/// One entry of a webhook's `rules`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// `operations`: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`, or `*`.
    pub operations: Vec<String>,
    /// `apiGroups`; the empty string is the core group.
    pub api_groups: Vec<String>,
    /// `apiVersions`, such as `v1`, or `*`.
    pub api_versions: Vec<String>,
    /// `resources`: `pods`, `pods/status`, `pods/*`, `*/status`, `*`, `*/*`.
    pub resources: Vec<String>,
    /// `scope`: whether the rule matches cluster-scoped objects, namespaced objects, or both.
    pub scope: Scope,
}

/// The scope of the objects that a rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these three")]
pub enum Scope {
    /// `*`: all objects.
    #[default]
    All,
    /// Cluster-scoped objects, including Namespaces.
    Cluster,
    /// Namespaced objects.
    Namespaced,
}

/// The reason why a configuration cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum ConfigError {
    /// A field is missing or invalid.
    #[error("{}{field}: {what}", prefix(configuration))]
    Field {
        /// `metadata.name` of the configuration; empty if the configuration does not have a name.
        configuration: String,
        /// The field's path, such as `webhooks[0].rules[1].operations`.
        field: String,
        /// The error, with the expected value.
        what: String,
    },
    /// The configuration uses a feature that admit does not support.
    #[error(transparent)]
    Unsupported(#[from] kubernetes_types::status::Unsupported),
}

/// Returns the prefix of a field error: the name of the configuration, if it has one.
fn prefix(configuration: &str) -> String {
    if configuration.is_empty() { String::new() } else { format!("{configuration}: ") }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
