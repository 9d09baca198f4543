//! Defines the webhook configuration fields that a fakes file passes to the API server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The fields of a webhook configuration entry that are passed to the API server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookFields {
    /// The `rules` that select the requests for the webhook.
    pub rules: Vec<Rule>,
    /// The `namespaceSelector`, which matches the namespaces of objects.
    pub namespace_selector: Selector,
    /// The `objectSelector`, which matches the labels of objects.
    pub object_selector: Selector,
    /// The `matchConditions`: CEL expressions that must all be true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// The `failurePolicy`, which applies if a call fails.
    pub failure_policy: FailurePolicy,
    /// The `matchPolicy`: whether rules also match requests in other versions of a resource.
    pub match_policy: MatchPolicy,
    /// The `sideEffects` that the webhook declares.
    pub side_effects: SideEffects,
    /// The `timeoutSeconds`: the timeout of a call, in seconds.
    pub timeout_seconds: u8,
    /// The `admissionReviewVersions`: the review versions that the webhook supports.
    pub admission_review_versions: Vec<String>,
    /// The `reinvocationPolicy`; `None` for validating webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinvocation_policy: Option<ReinvocationPolicy>,
}

/// `type`: whether a webhook is mutating or validating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookType {
    /// `mutating`: the webhook belongs to a `MutatingWebhookConfiguration`.
    Mutating,
    /// `validating`: the webhook belongs to a `ValidatingWebhookConfiguration`.
    Validating,
}

/// An entry of `rules`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The `apiGroups`; the default is the core group.
    #[serde(default = "core_group")]
    pub api_groups: Vec<String>,
    /// The `apiVersions`; the default is all versions.
    #[serde(default = "star")]
    pub api_versions: Vec<String>,
    /// The `operations`; the default is `CREATE` and `UPDATE`.
    #[serde(default = "create_and_update")]
    pub operations: Vec<Operation>,
    /// The `resources`, including subresources such as `pods/status`.
    pub resources: Vec<String>,
    /// The `scope` of the resources.
    #[serde(default)]
    pub scope: Scope,
}

/// An entry of `operations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum Operation {
    #[serde(rename = "CREATE")]
    Create,
    #[serde(rename = "UPDATE")]
    Update,
    #[serde(rename = "DELETE")]
    Delete,
    #[serde(rename = "CONNECT")]
    Connect,
    #[serde(rename = "*")]
    All,
}

/// The `scope` of a rule: all, cluster-scoped, or namespaced resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum Scope {
    #[default]
    #[serde(rename = "*")]
    All,
    Cluster,
    Namespaced,
}

/// A label selector, as in the Kubernetes API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selector {
    /// The `matchLabels`: the required values of labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// The `matchExpressions`: additional requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// An entry of `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The `key` of the label.
    pub key: String,
    /// The `operator` that compares the label with the values.
    pub operator: Operator,
    /// The `values` for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// The `operator` of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// An entry of `matchConditions`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MatchCondition {
    /// The `name` of the condition.
    pub name: String,
    /// The CEL `expression`.
    pub expression: String,
}

/// The `failurePolicy` of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum FailurePolicy {
    #[default]
    Fail,
    Ignore,
}

/// The `matchPolicy` of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum MatchPolicy {
    Exact,
    #[default]
    Equivalent,
}

/// The `sideEffects` of a webhook; v1 accepts only `None` and `NoneOnDryRun`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum SideEffects {
    #[default]
    None,
    NoneOnDryRun,
    Some,
    Unknown,
}

/// The `reinvocationPolicy` of a mutating webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum ReinvocationPolicy {
    #[default]
    Never,
    IfNeeded,
}

fn core_group() -> Vec<String> {
    vec![String::new()]
}

fn star() -> Vec<String> {
    vec!["*".to_owned()]
}

fn create_and_update() -> Vec<Operation> {
    vec![Operation::Create, Operation::Update]
}
