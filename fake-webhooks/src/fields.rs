//! The fields of a webhook configuration that a fakes file passes to the API server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The fields of a webhook configuration entry that are passed to the API server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fields {
    /// `rules`
    pub rules: Vec<Rule>,
    /// `namespaceSelector`
    pub namespace_selector: Selector,
    /// `objectSelector`
    pub object_selector: Selector,
    /// `matchConditions`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// `failurePolicy`
    pub failure_policy: FailurePolicy,
    /// `matchPolicy`
    pub match_policy: MatchPolicy,
    /// `sideEffects`
    pub side_effects: SideEffects,
    /// `timeoutSeconds`
    pub timeout_seconds: u8,
    /// `admissionReviewVersions`
    pub admission_review_versions: Vec<String>,
    /// `reinvocationPolicy`, which only mutating webhooks have
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinvocation_policy: Option<ReinvocationPolicy>,
}

/// An entry of `rules`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// `apiGroups`, by default the core group
    #[serde(default = "core_group")]
    pub api_groups: Vec<String>,
    /// `apiVersions`, by default all
    #[serde(default = "star")]
    pub api_versions: Vec<String>,
    /// `operations`, by default `CREATE` and `UPDATE`
    #[serde(default = "create_and_update")]
    pub operations: Vec<Operation>,
    /// `resources`
    pub resources: Vec<String>,
    /// `scope`
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

/// `scope`
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
    /// `matchLabels`
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// `matchExpressions`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// An entry of `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// `key`
    pub key: String,
    /// `operator`
    pub operator: Operator,
    /// `values`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// `operator`
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
    /// `name`
    pub name: String,
    /// `expression`
    pub expression: String,
}

/// `failurePolicy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum FailurePolicy {
    #[default]
    Fail,
    Ignore,
}

/// `matchPolicy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum MatchPolicy {
    Exact,
    #[default]
    Equivalent,
}

/// `sideEffects`; v1 accepts only `None` and `NoneOnDryRun`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names are those of the API")]
pub enum SideEffects {
    #[default]
    None,
    NoneOnDryRun,
    Some,
    Unknown,
}

/// `reinvocationPolicy`
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
