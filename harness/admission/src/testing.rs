//! Creates webhooks, calls, and requests for the unit tests of this crate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubernetes_types::selector::Selector;
use serde_json::{Value, json};

use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use crate::cluster_state::{ClusterState, ConversionError, EquivalentResource};
use crate::config::{
    ClientConfig, FailurePolicy, MatchPolicy, ReinvocationPolicy, Rule, Scope, SideEffects, Source, Webhook,
    WebhookId, WebhookTarget,
};
use crate::event::{CallResult, Called, Phase, Round};

/// Returns a webhook that matches everything, in the configuration `c`.
pub(crate) fn webhook(name: &str) -> Webhook {
    let all = || vec!["*".to_owned()];
    Webhook {
        id: Arc::new(WebhookId { configuration: "c".to_owned(), name: name.to_owned(), ordinal: 0 }),
        source: Source::Api,
        phase: Phase::Mutating,
        reinvocation_policy: ReinvocationPolicy::Never,
        client_config: ClientConfig::new(WebhookTarget::Url(format!("https://{name}/")), Vec::new()),
        rules: vec![Rule {
            operations: all(),
            api_groups: all(),
            api_versions: all(),
            resources: vec!["*/*".to_owned()],
            scope: Scope::All,
        }],
        failure_policy: FailurePolicy::Fail,
        match_policy: MatchPolicy::Equivalent,
        namespace_selector: Selector::default(),
        object_selector: Selector::default(),
        side_effects: SideEffects::None,
        timeout: Duration::from_secs(10),
        admission_review_versions: vec!["v1".to_owned()],
        match_conditions: Vec::new(),
    }
}

/// Returns a call in the first round of the mutating phase.
pub(crate) fn called(name: &str, result: CallResult) -> Called {
    Called {
        webhook: webhook(name).id,
        phase: Phase::Mutating,
        round: Round::First,
        index: 0,
        failure_policy: FailurePolicy::Fail,
        uid: "u".to_owned(),
        review: Bytes::new(),
        reply: None,
        http_status: None,
        started: Duration::ZERO,
        took: Duration::from_millis(20),
        warnings: Vec::new(),
        audit_annotations: BTreeMap::new(),
        result,
    }
}

/// Returns a request to create a ConfigMap in the namespace `ns`.
pub(crate) fn create_config_map() -> Attributes {
    Attributes {
        operation: Operation::Create,
        resource: GroupVersionResource::new("", "v1", "configmaps"),
        subresource: String::new(),
        kind: GroupVersionKind::new("", "v1", "ConfigMap"),
        namespace: "ns".to_owned(),
        name: "n".to_owned(),
        object: Some(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "n", "namespace": "ns"},
            "data": {"k": "v"},
        })),
        old_object: None,
        options: Some(json!({"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"})),
        dry_run: false,
        user: UserInfo::default(),
    }
}

/// A cluster state without equivalent resources.
///
/// The built-in kinds are `ConfigMap`, `Secret`, and `Pod`; the only default is `data.defaulted`.
pub(crate) struct NoCluster;

impl ClusterState for NoCluster {
    fn namespace(&self, _name: &str) -> Option<Arc<Value>> {
        Some(Arc::new(json!({"metadata": {}})))
    }

    fn equivalent_resources(&self, _: &GroupVersionResource, _: &str) -> Arc<[EquivalentResource]> {
        Arc::default()
    }

    fn convert(&self, _: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        Err(ConversionError::Refused(format!("cannot convert to {kind}")))
    }

    fn set_defaults(&self, object: &mut Value) {
        if object.pointer("/data/defaulted").is_none()
            && let Some(Value::Object(data)) = object.get_mut("data")
        {
            data.insert("defaulted".to_owned(), json!("yes"));
        }
    }

    fn is_built_in(&self, kind: &GroupVersionKind) -> bool {
        kind.api_version() == "v1" && matches!(kind.kind.as_str(), "ConfigMap" | "Secret" | "Pod")
    }
}
