//! Parses the webhooks of a configuration and sets the API's defaults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubernetes_types::go_base64;
use kubernetes_types::selector::Selector;
use kubernetes_types::status::Unsupported;
use serde_json::Value;

use super::field::{Field, InvalidField};
use super::{
    ClientConfig, ConfigError, DEFAULT_PORT, DEFAULT_TIMEOUT_SECONDS, FailurePolicy, MatchPolicy, Phase,
    ReinvocationPolicy, Rule, Scope, ServiceReference, SideEffects, Source, Webhook, WebhookId,
    WebhookTarget, v1beta1,
};
pub(crate) use crate::attributes::GroupVersionKind;
use crate::conditions::{CompileError, Condition};

/// The values of `sideEffects`. The first two are the values that the v1 API accepts.
const SIDE_EFFECTS: [(&str, SideEffects); 4] = [
    ("None", SideEffects::None),
    ("NoneOnDryRun", SideEffects::NoneOnDryRun),
    ("Some", SideEffects::Some),
    ("Unknown", SideEffects::Unknown),
];

/// The kind of a configuration: mutating or validating.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    Mutating,
    Validating,
}

/// Parses the webhooks of a configuration of `admissionregistration.k8s.io/v1`, in the author's order.
///
/// Omitted fields get the API's defaults. A value that the API would not store is an error. A v1beta1 configuration
/// gets the defaults of v1beta1 and is read as [`stored_webhooks`] does.
///
/// Source: kubernetes pkg/apis/admissionregistration/v1/defaults.go; the ordinals of equal names: apiserver
/// `pkg/admission/configuration/mutating_webhook_manager.go`.
///
/// # Errors
/// Returns [`ConfigError`] for the first field that cannot be read.
pub fn webhooks(configuration: &Value) -> Result<Vec<Webhook>, ConfigError> {
    match v1beta1::upgraded(configuration) {
        Some(upgraded) => read(&upgraded, Origin::Storage),
        None => read(configuration, Origin::Author),
    }
}

/// Parses the webhooks of a stored configuration, as [`webhooks`] does.
///
/// Values that the API accepted before v1 are valid here: any `sideEffects`, and selectors with invalid label values.
///
/// # Errors
/// Returns [`ConfigError`] for the first field that cannot be read.
pub fn stored_webhooks(configuration: &Value) -> Result<Vec<Webhook>, ConfigError> {
    read(configuration, Origin::Storage)
}

/// Parses the webhooks of a valid configuration in a file of `staticManifestsDir`, as [`webhooks`] does.
///
/// Source: apiserver pkg/admission/plugin/webhook/manifest/loader/loader.go, `BuildMutatingAccessors` and
/// `BuildValidatingAccessors`.
///
/// # Errors
/// Returns [`ConfigError`] for the first field that cannot be read.
pub fn manifest_webhooks(configuration: &Value) -> Result<Vec<Webhook>, ConfigError> {
    read(configuration, Origin::Manifest)
}

fn read(configuration: &Value, origin: Origin) -> Result<Vec<Webhook>, ConfigError> {
    let root = Field::root(configuration);
    let name = root.child("metadata").child("name").text().ok().flatten().unwrap_or_default();
    let in_configuration = |wrong: InvalidField| ConfigError::Field {
        configuration: name.to_owned(),
        field: wrong.field,
        what: wrong.what,
    };
    let admission = admission(&root).map_err(in_configuration)?;
    root.child("metadata").child("name").non_empty_text().map_err(in_configuration)?;
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut webhooks = Vec::new();
    for field in root.child("webhooks").items().map_err(in_configuration)? {
        let field = field.object().map_err(in_configuration)?;
        let webhook_name = field.child("name").non_empty_text().map_err(in_configuration)?;
        let match_conditions = conditions(&field).map_err(in_configuration)?;
        let unsupported = match_conditions.iter().find_map(|condition| match &condition.expression {
            Err(CompileError::Unsupported(what)) => Some((&condition.name, what)),
            Err(CompileError::Invalid(_) | CompileError::Internal(_)) | Ok(_) => None,
        });
        if let Some((condition, what)) = unsupported {
            let what = format!("the match condition \"{condition}\" of webhook \"{webhook_name}\": {what}");
            return Err(Unsupported { what }.into());
        }
        let earlier = seen.entry(webhook_name).or_default();
        let id =
            WebhookId { configuration: name.to_owned(), name: webhook_name.to_owned(), ordinal: *earlier };
        *earlier += 1;
        let webhook = webhook(&field, Arc::new(id), admission, origin).map_err(in_configuration)?;
        webhooks.push(Webhook { match_conditions, ..webhook });
    }
    Ok(webhooks)
}

/// The origin of a configuration. It determines how strictly the configuration is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A client sends the configuration to the API, and the API validates it.
    Author,
    /// The API has stored the configuration.
    Storage,
    /// A file on the API server's host contains the configuration.
    Manifest,
}

impl Origin {
    fn source(self) -> Source {
        match self {
            Self::Author | Self::Storage => Source::Api,
            Self::Manifest => Source::Manifest,
        }
    }
}

fn admission(root: &Field<'_>) -> Result<Admission, InvalidField> {
    let kind = GroupVersionKind::from_object(root.value());
    if kind.api_version() != super::API_VERSION {
        let what = format!("must be {}, found \"{}\"", super::API_VERSION, kind.api_version());
        return Err(root.child("apiVersion").wrong(what));
    }
    root.child("kind")
        .word(&[(super::MUTATING, Admission::Mutating), (super::VALIDATING, Admission::Validating)])?
        .ok_or_else(|| root.child("kind").wrong("is required"))
}

fn webhook(
    field: &Field<'_>,
    id: Arc<WebhookId>,
    admission: Admission,
    origin: Origin,
) -> Result<Webhook, InvalidField> {
    let reinvocation_policy = match admission {
        Admission::Mutating => field
            .child("reinvocationPolicy")
            .word(&[("Never", ReinvocationPolicy::Never), ("IfNeeded", ReinvocationPolicy::IfNeeded)])?,
        // Validating webhooks do not have this field: the API server drops it.
        Admission::Validating => None,
    };
    let failure_policy = field
        .child("failurePolicy")
        .word(&[("Fail", FailurePolicy::Fail), ("Ignore", FailurePolicy::Ignore)])?;
    let match_policy = field
        .child("matchPolicy")
        .word(&[("Exact", MatchPolicy::Exact), ("Equivalent", MatchPolicy::Equivalent)])?;
    let side_effects = field.child("sideEffects");
    let supported = match origin {
        Origin::Author | Origin::Manifest => &SIDE_EFFECTS[..2],
        Origin::Storage => &SIDE_EFFECTS[..],
    };
    let side_effects = match (side_effects.word(supported)?, origin) {
        (Some(side_effects), _) => side_effects,
        (None, Origin::Storage) => SideEffects::Unset,
        (None, Origin::Author | Origin::Manifest) => {
            return Err(side_effects.wrong("is required: None or NoneOnDryRun"));
        }
    };
    let rules = field.child("rules").items()?.into_iter().map(rule).collect::<Result<_, _>>()?;
    let versions = field.child("admissionReviewVersions").non_empty_items()?;
    Ok(Webhook {
        id,
        source: origin.source(),
        phase: match admission {
            Admission::Mutating => Phase::Mutating,
            Admission::Validating => Phase::Validating,
        },
        reinvocation_policy: reinvocation_policy.unwrap_or_default(),
        client_config: client_config(&field.child("clientConfig").object()?)?,
        rules,
        failure_policy: failure_policy.unwrap_or_default(),
        match_policy: match_policy.unwrap_or_default(),
        namespace_selector: selector(&field.child("namespaceSelector"), origin)?,
        object_selector: selector(&field.child("objectSelector"), origin)?,
        side_effects,
        timeout: timeout(&field.child("timeoutSeconds"))?,
        admission_review_versions: texts(&versions)?,
        match_conditions: Vec::new(),
    })
}

/// Parses and compiles the conditions of a webhook with the rules for stored conditions.
///
/// An invalid condition fails at each evaluation.
fn conditions(webhook: &Field<'_>) -> Result<Vec<Condition>, InvalidField> {
    let conditions = webhook.child("matchConditions").items()?.into_iter().map(|condition| {
        let condition = condition.object()?;
        Ok(Condition::new(
            condition.child("name").non_empty_text()?,
            condition.child("expression").non_empty_text()?,
        ))
    });
    conditions.collect()
}

fn rule(field: Field<'_>) -> Result<Rule, InvalidField> {
    let field = field.object()?;
    let operations = field.child("operations").non_empty_items()?;
    for operation in &operations {
        operation.word(&[("CREATE", ()), ("UPDATE", ()), ("DELETE", ()), ("CONNECT", ()), ("*", ())])?;
    }
    let scope = field.child("scope").word(&[
        ("*", Scope::All),
        ("Cluster", Scope::Cluster),
        ("Namespaced", Scope::Namespaced),
    ])?;
    Ok(Rule {
        operations: texts(&operations)?,
        api_groups: texts(&field.child("apiGroups").non_empty_items()?)?,
        api_versions: texts(&field.child("apiVersions").non_empty_items()?)?,
        resources: texts(&field.child("resources").non_empty_items()?)?,
        scope: scope.unwrap_or_default(),
    })
}

pub(super) fn client_config(field: &Field<'_>) -> Result<ClientConfig, InvalidField> {
    let url = field.child("url");
    let service = field.child("service");
    let target = match (url.is_absent(), service.is_absent()) {
        (false, true) => WebhookTarget::Url(url.non_empty_text()?.to_owned()),
        (true, false) => WebhookTarget::Service(service_reference(&service.object()?)?),
        (true, true) | (false, false) => return Err(field.wrong("exactly one of url or service is required")),
    };
    Ok(ClientConfig::new(target, ca_bundle(&field.child("caBundle"))?))
}

fn service_reference(field: &Field<'_>) -> Result<ServiceReference, InvalidField> {
    let port = field.child("port");
    let number = port.integer()?.unwrap_or(i64::from(DEFAULT_PORT));
    let port = u16::try_from(number).ok().filter(|port| *port != 0);
    Ok(ServiceReference {
        namespace: field.child("namespace").non_empty_text()?.to_owned(),
        name: field.child("name").non_empty_text()?.to_owned(),
        path: field.child("path").text()?.unwrap_or_default().to_owned(),
        port: port.ok_or_else(|| {
            field.child("port").wrong(format!("must be between 1 and 65535, inclusive, found {number}"))
        })?,
    })
}

fn ca_bundle(field: &Field<'_>) -> Result<Vec<u8>, InvalidField> {
    go_base64::bytes(field.value()).map_err(|what| field.wrong(what))
}

fn selector(field: &Field<'_>, origin: Origin) -> Result<Selector, InvalidField> {
    if field.is_absent() {
        return Ok(Selector::default());
    }
    let parsed = match origin {
        Origin::Author | Origin::Manifest => Selector::parse(field.value()),
        Origin::Storage => Selector::parse_stored(field.value()),
    };
    parsed.map_err(|error| {
        let mut wrong = field.wrong(error.what);
        if !error.field.is_empty() {
            wrong.field = format!("{}.{}", wrong.field, error.field);
        }
        wrong
    })
}

fn timeout(field: &Field<'_>) -> Result<Duration, InvalidField> {
    let seconds = field.integer()?.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    u64::try_from(seconds)
        .ok()
        .filter(|seconds| (1..=30).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| field.wrong(format!("must be between 1 and 30 seconds, found {seconds}")))
}

fn texts(fields: &[Field<'_>]) -> Result<Vec<String>, InvalidField> {
    let text = |field: &Field<'_>| {
        let text = field.text()?.ok_or_else(|| field.wrong("must be a string, found null"))?;
        Ok(text.to_owned())
    };
    fields.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configuration(kind: &str, webhooks: &Value) -> Value {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "c"}, "webhooks": webhooks})
    }

    /// Returns a webhook with the fields that the API requires, and `more`.
    fn entry(more: &Value) -> Value {
        let mut entry = json!({
            "name": "w.example.com",
            "clientConfig": {"url": "https://127.0.0.1/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry
    }

    fn read(more: &Value) -> Result<Webhook, ConfigError> {
        let mut webhooks = webhooks(&configuration("MutatingWebhookConfiguration", &json!([entry(more)])))?;
        Ok(webhooks.remove(0))
    }

    #[track_caller]
    fn check_wrong(more: &Value, error: &str) {
        assert_eq!(read(more).unwrap_err().to_string(), format!("c: {error}"), "{more}");
    }

    #[test]
    fn omitted_fields_have_the_api_defaults() {
        let webhook = read(&json!({"rules": [{
            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
        }]}))
        .unwrap();
        assert_eq!(webhook.failure_policy, FailurePolicy::Fail);
        assert_eq!(webhook.match_policy, MatchPolicy::Equivalent);
        assert_eq!(webhook.reinvocation_policy, ReinvocationPolicy::Never);
        assert_eq!(webhook.timeout, Duration::from_secs(10));
        assert_eq!(webhook.rules[0].scope, Scope::All);
        assert!(webhook.namespace_selector.is_empty());
        assert!(webhook.object_selector.is_empty());
    }

    #[test]
    fn a_service_port_defaults_to_443() {
        let service = |service: Value| {
            let webhook = read(&json!({"clientConfig": {"service": service}})).unwrap();
            match webhook.client_config.target {
                WebhookTarget::Service(service) => service,
                WebhookTarget::Url(url) => panic!("{url}"),
            }
        };
        assert_eq!(service(json!({"namespace": "n", "name": "s"})).port, 443);
        let all = service(json!({"namespace": "n", "name": "s", "path": "/p", "port": 8443}));
        assert_eq!((all.path.as_str(), all.port), ("/p", 8443));
    }

    #[test]
    fn a_ca_bundle_may_contain_line_breaks() {
        let webhook = read(&json!({"clientConfig": {"url": "https://h/", "caBundle": "UEV\nN"}})).unwrap();
        assert_eq!(webhook.client_config.ca_bundle, b"PEM");
    }

    #[test]
    fn an_invalid_field_is_named() {
        check_wrong(&json!({"name": null}), "webhooks[0].name: is required");
        check_wrong(
            &json!({"sideEffects": null}),
            "webhooks[0].sideEffects: is required: None or NoneOnDryRun",
        );
        check_wrong(
            &json!({"sideEffects": "Some"}),
            "webhooks[0].sideEffects: must be one of None, NoneOnDryRun, found \"Some\"",
        );
        check_wrong(
            &json!({"admissionReviewVersions": []}),
            "webhooks[0].admissionReviewVersions: must have at least one element",
        );
        check_wrong(&json!({"clientConfig": null}), "webhooks[0].clientConfig: is required");
        check_wrong(
            &json!({"clientConfig": {}}),
            "webhooks[0].clientConfig: exactly one of url or service is required",
        );
        check_wrong(
            &json!({"clientConfig": {"service": {"namespace": "n", "name": "s", "port": 0}}}),
            "webhooks[0].clientConfig.service.port: must be between 1 and 65535, inclusive, found 0",
        );
        check_wrong(
            &json!({"timeoutSeconds": 31}),
            "webhooks[0].timeoutSeconds: must be between 1 and 30 seconds, found 31",
        );
        check_wrong(
            &json!({"timeoutSeconds": "5"}),
            "webhooks[0].timeoutSeconds: must be an integer, found a string",
        );
        check_wrong(
            &json!({"rules": [{"operations": ["CREATE", "PATCH"]}]}),
            "webhooks[0].rules[0].operations[1]: must be one of CREATE, UPDATE, DELETE, CONNECT, *, found \"PATCH\"",
        );
        check_wrong(
            &json!({"rules": [{"operations": ["*"]}]}),
            "webhooks[0].rules[0].apiGroups: must have at least one element",
        );
        check_wrong(
            &json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
            "webhooks[0].objectSelector.matchExpressions[0].operator: \"Like\" is not one of In, NotIn, Exists, \
             DoesNotExist",
        );
        check_wrong(&json!({"namespaceSelector": 1}), "webhooks[0].namespaceSelector: must be an object");
    }

    #[test]
    fn a_stored_condition_may_be_invalid_but_needs_a_name_and_an_expression() {
        let condition = |expression: &str| json!({"name": "a", "expression": expression});
        let found = read(&json!({"matchConditions": [condition("true"), condition("nonsense")]})).unwrap();
        let compiled: Vec<bool> =
            found.match_conditions.iter().map(|condition| condition.expression.is_ok()).collect();
        assert_eq!(compiled, [true, false]);
        check_wrong(
            &json!({"matchConditions": [{"name": "a"}]}),
            "webhooks[0].matchConditions[0].expression: is required",
        );
        check_wrong(
            &json!({"matchConditions": "true"}),
            "webhooks[0].matchConditions: must be a list, found a string",
        );
    }

    #[test]
    fn a_validating_webhook_ignores_its_reinvocation_policy() {
        let entries = json!([entry(&json!({"reinvocationPolicy": "IfNeeded"}))]);
        let read = webhooks(&configuration("ValidatingWebhookConfiguration", &entries)).unwrap();
        assert_eq!(read[0].reinvocation_policy, ReinvocationPolicy::Never);
        let read = webhooks(&configuration("MutatingWebhookConfiguration", &entries)).unwrap();
        assert_eq!(read[0].reinvocation_policy, ReinvocationPolicy::IfNeeded);
    }

    #[test]
    fn other_versions_and_kinds_are_rejected() {
        let mut other = configuration("MutatingWebhookConfiguration", &json!([]));
        other["apiVersion"] = json!("admissionregistration.k8s.io/v1alpha1");
        assert_eq!(
            webhooks(&other).unwrap_err().to_string(),
            "c: apiVersion: must be admissionregistration.k8s.io/v1, found \"admissionregistration.k8s.io/v1alpha1\""
        );
        assert_eq!(
            webhooks(&configuration("ValidatingAdmissionPolicy", &json!([]))).unwrap_err().to_string(),
            "c: kind: must be one of MutatingWebhookConfiguration, ValidatingWebhookConfiguration, found \
             \"ValidatingAdmissionPolicy\""
        );
    }

    #[test]
    fn webhooks_come_in_the_authors_order_and_equal_names_are_counted() {
        let entries = ["z.x.y", "a.x.y", "z.x.y"].map(|name| entry(&json!({"name": name})));
        let read = webhooks(&configuration("MutatingWebhookConfiguration", &json!(entries))).unwrap();
        let ids: Vec<String> = read.iter().map(|webhook| webhook.id.to_string()).collect();
        assert_eq!(ids, ["c/z.x.y/0", "c/a.x.y/0", "c/z.x.y/1"]);
    }
}
