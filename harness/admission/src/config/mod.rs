//! Webhook configurations, read into [`Webhook`]s.

mod conversion;
mod decoding;
mod defaults;
mod field;
mod kept;
mod reading;
mod v1beta1;
mod validation;
mod warnings;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::conversion::ConversionWebhook;
pub use self::decoding::check_types;
pub use self::defaults::set_defaults;
pub use self::kept::Kept;
pub use self::reading::{manifest_webhooks, stored_webhooks, webhooks};
pub use self::v1beta1::{Differing, is_v1beta1, upgraded, v1_differences, v1_errors};
pub use self::validation::client_config_errors;
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
/// The end of the names of configurations in files, which the API reserves for them.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// One entry of `webhooks` of a configuration: parsed, every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// Which one it is.
    pub id: Arc<WebhookId>,
    /// Where its configuration is.
    pub source: Source,
    /// Which half of admission calls it, by the kind of its configuration.
    pub phase: Phase,
    /// `reinvocationPolicy`; `Never` for a validating webhook.
    pub reinvocation_policy: ReinvocationPolicy,
    /// `clientConfig`.
    pub client_config: ClientConfig,
    /// `rules`; without any the webhook is never called.
    pub rules: Vec<Rule>,
    /// `failurePolicy`.
    pub failure_policy: FailurePolicy,
    /// `matchPolicy`.
    pub match_policy: MatchPolicy,
    /// `namespaceSelector`.
    pub namespace_selector: Selector,
    /// `objectSelector`.
    pub object_selector: Selector,
    /// `sideEffects`.
    pub side_effects: SideEffects,
    /// `timeoutSeconds`: 1 to 30 s.
    pub timeout: Duration,
    /// `admissionReviewVersions`, in the author's order of preference.
    pub admission_review_versions: Vec<String>,
    /// `matchConditions`: all of them must be true for a call.
    pub match_conditions: Vec<Condition>,
}

/// Where the API server has a configuration from.
///
/// Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, `apiSource` and `staticSource`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API server has these two")]
pub enum Source {
    /// A client created it by the API.
    #[default]
    Api,
    /// A file in the `staticManifestsDir` of the plugin's configuration.
    Manifest,
}

/// The first or the second of admission's two halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "admission has these two")]
pub enum Phase {
    /// In-tree plugins and webhooks that may change the object, one after another.
    Mutating,
    /// Those that may only refuse it.
    Validating,
}

/// Which webhook: unique in a cluster, and how reinvocation remembers it.
///
/// Source: apiserver `pkg/admission/configuration/mutating_webhook_manager.go`.
/// Rule: LOAD-05.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookId {
    /// `metadata.name` of the configuration.
    pub configuration: String,
    /// `name` of the webhook.
    pub name: String,
    /// How many earlier webhooks of the configuration have that name.
    pub ordinal: usize,
}

/// `configuration/name/ordinal`.
impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.configuration, self.name, self.ordinal)
    }
}

/// Whether a mutating webhook may be called a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum ReinvocationPolicy {
    /// At most once in a request.
    #[default]
    Never,
    /// Again, when something later changed the object.
    IfNeeded,
}

/// What a call that fails does to the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum FailurePolicy {
    /// The request fails.
    #[default]
    Fail,
    /// The request goes on as if the webhook were not there.
    Ignore,
}

/// Whether a rule also catches a request for an equivalent resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum MatchPolicy {
    /// The request's own resource only.
    Exact,
    /// Equivalent resources too; the object is converted.
    #[default]
    Equivalent,
}

/// What a call does beside answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these four, or none")]
pub enum SideEffects {
    /// Nothing.
    None,
    /// Nothing on a dry run.
    NoneOnDryRun,
    /// Something; never called on a dry run. Only in configurations older than v1.
    Some,
    /// Nobody knows; never called on a dry run. Only in configurations older than v1.
    Unknown,
    /// The configuration does not say; a call on a dry run fails. Only in a storage that was written by hand.
    Unset,
}

impl SideEffects {
    /// Whether the webhook may be called on a dry run.
    pub fn allow_dry_run(self) -> bool {
        matches!(self, Self::None | Self::NoneOnDryRun)
    }
}

/// Where a webhook is and whom to trust there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// `url` or `service`.
    pub target: WebhookTarget,
    /// `caBundle`, decoded from base64: PEM. Empty: the system's roots.
    pub ca_bundle: Vec<u8>,
    /// What its caller keeps from one call to the next.
    pub kept: Kept,
}

impl ClientConfig {
    /// The webhook at `target`, trusted by `ca_bundle`.
    pub fn new(target: WebhookTarget, ca_bundle: Vec<u8>) -> Self {
        Self { target, ca_bundle, kept: Kept::default() }
    }
}

/// The address in a `clientConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum WebhookTarget {
    /// `clientConfig.url`.
    Url(String),
    /// `clientConfig.service`.
    Service(ServiceReference),
}

impl WebhookTarget {
    /// What serves the webhook: the host of its URL, with the port if it is written there, or the service's
    /// [`authority`](ServiceReference::authority).
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

/// `clientConfig.service`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceReference {
    /// The service's namespace.
    pub namespace: String,
    /// The service's name.
    pub name: String,
    /// The path of the webhook; may be empty.
    pub path: String,
    /// The service's port; 443 by default.
    pub port: u16,
}

impl ServiceReference {
    /// The host that the API server calls, and the name that it asks for in TLS: `NAME.NAMESPACE.svc`.
    pub fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    /// The host and the port, which is always there: `NAME.NAMESPACE.svc:443`.
    ///
    /// Source: apiserver pkg/util/webhook/client.go.
    /// Rule: HTTP-02.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host(), self.port)
    }
}

/// One of `rules`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// `operations`: `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `*`.
    pub operations: Vec<String>,
    /// `apiGroups`; the empty string is the core group.
    pub api_groups: Vec<String>,
    /// `apiVersions`.
    pub api_versions: Vec<String>,
    /// `resources`: `pods`, `pods/status`, `pods/*`, `*/status`, `*`, `*/*`.
    pub resources: Vec<String>,
    /// `scope`.
    pub scope: Scope,
}

/// Which objects a rule is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these three")]
pub enum Scope {
    /// `*`: all.
    #[default]
    All,
    /// Objects without a namespace, and Namespaces.
    Cluster,
    /// Objects in a namespace.
    Namespaced,
}

/// A configuration that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum ConfigError {
    /// A field is missing or wrong. Names the field's path in the configuration.
    #[error("{}{field}: {what}", prefix(configuration))]
    Field {
        /// `metadata.name` of the configuration; empty if it has none.
        configuration: String,
        /// The field's path, such as `webhooks[0].rules[1].operations`.
        field: String,
        /// What is wrong and what was expected.
        what: String,
    },
    /// admit does not imitate something that the configuration asks for.
    #[error(transparent)]
    Unsupported(#[from] kubernetes_types::status::Unsupported),
}

/// What stands before a field: the configuration that has it, if it has a name.
fn prefix(configuration: &str) -> String {
    if configuration.is_empty() { String::new() } else { format!("{configuration}: ") }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
