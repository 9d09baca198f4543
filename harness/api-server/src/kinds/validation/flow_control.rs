//! Validates objects of API Priority and Fairness: flow schemas and priority levels.

use std::collections::HashSet;

use kubernetes_types::equality::semantically_equal;
use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::FieldError;
use serde_json::{Value, json};

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, flag, get, int, list, set, text, texts};
use crate::kinds::common::formats;
use crate::kinds::common::internal::Form;

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Validates a `FlowSchema`.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateFlowSchema`.
/// Rule: VLO-43.
pub(crate) fn schema(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    const FLOW_SCHEMA_MAX_MATCHING_PRECEDENCE: i64 = 10_000;
    let name = text(get(object, "metadata"), "name");
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let precedence = int(spec, "matchingPrecedence").unwrap_or(0);
    let precedence_path = path.child("matchingPrecedence");
    if precedence <= 0 {
        errors.invalid(&precedence_path, precedence, "must be a positive value");
    }
    if precedence > FLOW_SCHEMA_MAX_MATCHING_PRECEDENCE {
        errors.invalid(
            &precedence_path,
            precedence,
            format!("must not be greater than {FLOW_SCHEMA_MAX_MATCHING_PRECEDENCE}"),
        );
    }
    if precedence == 1 && name != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&precedence_path, precedence, why);
    }
    if let Some(method) = set(spec, "distinguisherMethod")
        && !["ByNamespace", "ByUser"].contains(&text(method, "type"))
    {
        let field = path.child("distinguisherMethod").child("type").to_string();
        let supported = "\"ByNamespace\", \"ByUser\"";
        let shown = errors.shown(Form::Pointer, "flowcontrol.FlowDistinguisherMethod", method);
        errors.push(FieldError::not_supported(field, shown, supported));
    }
    let level_path = path.child("priorityLevelConfiguration");
    let level = text(get(spec, "priorityLevelConfiguration"), "name");
    if level.is_empty() {
        errors.required(&level_path.child("name"), "must reference a priority level");
    } else {
        formats::dns_subdomain(errors, &level_path.child("name"), level);
    }
    let rules_path = path.child("rules");
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        self::rules(errors, &rules_path.index(index), rule);
    }
    if let Some(fixed) = fixed_schema(name)
        && !semantically_equal_specs(object, &fixed)
    {
        let why = format!("spec of '{name}' must equal the fixed value");
        errors.invalid_structure(&path, "flowcontrol.FlowSchemaSpec", spec, why);
    }
    validate_conditions(errors, object);
}

fn rules(errors: &mut Errors, path: &Path<'_>, rules: &Value) {
    let subjects_path = path.child("subjects");
    if list(rules, "subjects").is_empty() {
        errors.required(&subjects_path, "subjects must contain at least one value");
    }
    for (index, found) in list(rules, "subjects").iter().enumerate() {
        subject(errors, &subjects_path.index(index), found);
    }
    if ["resourceRules", "nonResourceRules"].iter().all(|field| list(rules, field).is_empty()) {
        errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    let of_resources = path.child("resourceRules");
    for (index, rule) in list(rules, "resourceRules").iter().enumerate() {
        resource_rule(errors, &of_resources.index(index), rule);
    }
    let of_others = path.child("nonResourceRules");
    for (index, rule) in list(rules, "nonResourceRules").iter().enumerate() {
        other_rule(errors, &of_others.index(index), rule);
    }
}

/// Validates the subject of a flow schema.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateFlowSchemaSubject`.
fn subject(errors: &mut Errors, path: &Path<'_>, subject: &Value) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    let Some((_, own)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        errors.unsupported(&path.child("kind"), kind, &["Group", "ServiceAccount", "User"]);
        return;
    };
    let own_path = path.child(own);
    match set(subject, own) {
        None => errors.required(&own_path, &format!("{own} is required when subject kind is '{kind}'")),
        Some(found) => {
            let (name_path, name) = (own_path.child("name"), text(found, "name"));
            if name.is_empty() {
                errors.required(&name_path, "");
            } else if kind == "ServiceAccount" && name != "*" {
                formats::dns_subdomain(errors, &name_path, name);
            }
            if kind == "ServiceAccount" {
                let (path, namespace) = (own_path.child("namespace"), text(found, "namespace"));
                if namespace.is_empty() {
                    errors.required(&path, "must specify namespace for service account");
                } else {
                    formats::dns_label(errors, &path, namespace);
                }
            }
        }
    }
    for (name, other) in KINDS.iter().filter(|(name, _)| *name != kind) {
        if set(subject, other).is_some() {
            let why = format!("{other} is forbidden when subject kind is not '{name}'");
            errors.forbidden(&path.child(other), why);
        }
    }
}

fn has_all(rule: &Value, field: &str) -> bool {
    texts(rule, field).any(|item| item == "*")
}

/// Reports a list that contains other items in addition to the wildcard `*`.
fn alone(errors: &mut Errors, path: &Path<'_>, rule: &Value, field: &str, others: &str) {
    if list(rule, field).len() > 1 && has_all(rule, field) {
        let why = format!("if '*' is present, must not specify other {others}");
        errors.invalid(&path.child(field), encode(get(rule, field)), why);
    }
}

fn verbs(errors: &mut Errors, path: &Path<'_>, rule: &Value) {
    let verbs_path = path.child("verbs");
    if list(rule, "verbs").is_empty() {
        errors.required(&verbs_path, "verbs must contain at least one value");
    } else if has_all(rule, "verbs") {
        alone(errors, path, rule, "verbs", "verbs");
    } else if !texts(rule, "verbs").all(|verb| VERBS.contains(&verb)) {
        let supported: Vec<String> = VERBS.iter().map(|verb| quote(verb)).collect();
        let (field, shown) = (verbs_path.to_string(), encode(get(rule, "verbs")));
        errors.push(FieldError::not_supported(field, shown, supported.join(", ")));
    }
}

/// Validates a resource rule of a flow schema.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateFlowSchemaResourcePolicyRule`.
fn resource_rule(errors: &mut Errors, path: &Path<'_>, rule: &Value) {
    verbs(errors, path, rule);
    for (field, one, others) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        if list(rule, field).is_empty() {
            let why = format!("resource rules must supply at least one {one}");
            errors.required(&path.child(field), &why);
        }
        alone(errors, path, rule, field, others);
    }
    let namespaces = path.child("namespaces");
    if list(rule, "namespaces").is_empty() && !flag(rule, "clusterScope") {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&namespaces, why);
    } else if has_all(rule, "namespaces") {
        alone(errors, path, rule, "namespaces", "namespaces");
    } else {
        for (index, namespace) in texts(rule, "namespaces").enumerate() {
            for wrong in kubernetes_types::names::dns1123_label(namespace) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {wrong}");
                errors.invalid_text(&namespaces.index(index), namespace, why);
            }
        }
    }
}

/// Validates a non-resource rule of a flow schema.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateFlowSchemaNonResourcePolicyRule`.
fn other_rule(errors: &mut Errors, path: &Path<'_>, rule: &Value) {
    verbs(errors, path, rule);
    let urls = path.child("nonResourceURLs");
    if list(rule, "nonResourceURLs").is_empty() {
        errors.required(&urls, "nonResourceURLs must contain at least one value");
    } else if has_all(rule, "nonResourceURLs") {
        alone(errors, path, rule, "nonResourceURLs", "non-resource URLs");
    } else {
        for (index, url) in texts(rule, "nonResourceURLs").enumerate() {
            if let Some(why) = wrong_url(url) {
                errors.invalid_text(&urls.index(index), url, why);
            }
        }
    }
}

/// Returns the reason why a non-resource URL is invalid; `None` if it is valid.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateNonResourceURLPath`.
fn wrong_url(url: &str) -> Option<&'static str> {
    let stars = url.bytes().filter(|byte| *byte == b'*').count();
    if url.is_empty() {
        Some("must not be empty")
    } else if url == "/" {
        None
    } else if !url.starts_with('/') {
        Some("must start with slash")
    } else if url.contains(' ') {
        Some("must not contain white-space")
    } else if url.contains("//") {
        Some("must not contain double slash")
    } else if stars > 1 || (stars == 1 && !url.ends_with("/*")) {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}

/// Validates the conditions in the status of a flow schema or a priority level.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateFlowSchemaStatus` and
/// `ValidatePriorityLevelConfigurationStatus`.
/// Rule: VLO-43.
pub(crate) fn conditions(errors: &mut Errors, object: &Value, _: Change<'_>) {
    validate_conditions(errors, object);
}

fn validate_conditions(errors: &mut Errors, object: &Value) {
    let path = Path::new("status");
    let path = path.child("conditions");
    let mut seen = HashSet::new();
    for (index, condition) in list(get(object, "status"), "conditions").iter().enumerate() {
        let (path, name) = (path.index(index), text(condition, "type"));
        if !seen.insert(name) {
            errors.duplicate(&path.child("type"), name);
        }
        if name.is_empty() {
            errors.required(&path.child("type"), "");
        }
    }
}

/// Validates a `PriorityLevelConfiguration`.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidatePriorityLevelConfiguration`;
/// `pkg/apis/flowcontrol/v1/zz_generated.validations.go`.
/// Rule: VLO-43.
pub(crate) fn level(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    const PRESERVE_ZERO_CONCURRENCY_SHARES: &str =
        "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
    let metadata = get(object, "metadata");
    if get(metadata, "annotations").get(PRESERVE_ZERO_CONCURRENCY_SHARES).is_some() {
        let path = Path::new("metadata");
        errors.forbidden(
            &path.child("annotations"),
            format!("annotation '{PRESERVE_ZERO_CONCURRENCY_SHARES}' is forbidden"),
        );
    }
    let name = text(metadata, "name");
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let kind = text(spec, "type");
    if (name == "exempt") != (kind == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.invalid_text(&path.child("type"), kind, why);
    }
    match kind {
        "Exempt" => {
            if let Some(exempt) = set(spec, "exempt") {
                let path = path.child("exempt");
                not_negative(errors, &path, exempt);
                percentage(errors, &path, exempt);
            }
        }
        "Limited" => {
            if let Some(limited) = set(spec, "limited") {
                self::limited(errors, &path.child("limited"), limited);
            }
        }
        "" => {}
        _ => errors.unsupported(&path.child("type"), kind, &["Exempt", "Limited"]),
    }
    if let Some(fixed) = fixed_level(name) {
        let (is_fixed, which) = if name == "exempt" {
            (kind == "Exempt" && set(spec, "limited").is_none(), " except the 'spec.exempt' field")
        } else {
            (semantically_equal_specs(object, &fixed), "")
        };
        if !is_fixed {
            let why = format!("spec of '{name}'{which} must equal the fixed value");
            errors.invalid_structure(&path, "flowcontrol.PriorityLevelConfigurationSpec", spec, why);
        }
    }
    validate_conditions(errors, object);
    generated_for_level(errors, &path, spec);
}

fn not_negative(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let field = "nominalConcurrencyShares";
    if let Some(shares) = int(owner, field).filter(|shares| *shares < 0) {
        errors.invalid(&path.child(field), shares, "must be a non-negative integer");
    }
}

fn percentage(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    if let Some(percent) = int(owner, "lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        errors.invalid(&path.child("lendablePercent"), percent, formats::between(0, 100));
    }
}

/// Validates the configuration of a limited priority level.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateLimitedPriorityLevelConfiguration`.
fn limited(errors: &mut Errors, path: &Path<'_>, limited: &Value) {
    not_negative(errors, path, limited);
    let response_path = path.child("limitResponse");
    let response = get(limited, "limitResponse");
    match text(response, "type") {
        "Queue" => {
            if let Some(queuing) = set(response, "queuing") {
                self::queuing(errors, &response_path.child("queuing"), queuing);
            }
        }
        "" | "Reject" => {}
        kind => errors.unsupported(&response_path.child("type"), kind, &["Queue", "Reject"]),
    }
    percentage(errors, path, limited);
    let field = "borrowingLimitPercent";
    if let Some(percent) = int(limited, field).filter(|percent| *percent < 0) {
        errors.invalid(&path.child(field), percent, "if specified, must be a non-negative integer");
    }
}

/// Validates the queuing configuration of a priority level.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidatePriorityLevelQueuingConfiguration`;
/// apiserver pkg/util/shufflesharding/dealer.go, `RequiredEntropyBits`.
fn queuing(errors: &mut Errors, path: &Path<'_>, queuing: &Value) {
    const PRIORITY_LEVEL_CONFIGURATION_QUEUING_MAX_QUEUES: i64 = 10_000_000;
    const MAX_HASH_BITS: f64 = 60.0;
    let number = |field: &str| int(queuing, field).unwrap_or(0);
    let (limit, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    if limit <= 0 {
        errors.invalid(&path.child("queueLengthLimit"), limit, "must be positive");
    }
    if queues <= 0 {
        errors.invalid(&path.child("queues"), queues, "must be positive");
    } else if queues > PRIORITY_LEVEL_CONFIGURATION_QUEUING_MAX_QUEUES {
        errors.invalid(
            &path.child("queues"),
            queues,
            format!("must not be greater than {PRIORITY_LEVEL_CONFIGURATION_QUEUING_MAX_QUEUES}"),
        );
    }
    let path = path.child("handSize");
    let float = |number: i64| i32::try_from(number).map_or(f64::MAX, f64::from);
    if hand <= 0 {
        errors.invalid(&path, hand, "must be positive");
    } else if hand > queues {
        errors.invalid(&path, hand, format!("should not be greater than queues ({queues})"));
    } else if (float(queues).log2() * float(hand)).ceil() > MAX_HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        errors.invalid(&path, hand, why);
    }
}

/// Validates a priority level as upstream's generated validation does.
fn generated_for_level(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let kind = text(spec, "type");
    if kind != "Exempt" && set(spec, "exempt").is_some() {
        errors.forbidden_by_type(&path.child("exempt"));
    }
    let limited_path = path.child("limited");
    let limited = set(spec, "limited");
    match limited {
        None if kind == "Limited" => errors.required_by_type(&limited_path),
        Some(_) if kind != "Limited" => errors.forbidden_by_type(&limited_path),
        _ => {}
    }
    if kind.is_empty() {
        errors.required_by_type(&path.child("type"));
    }
    let Some(limited) = limited else { return };
    let (path, response) = (limited_path.child("limitResponse"), get(limited, "limitResponse"));
    let kind = text(response, "type");
    match set(response, "queuing") {
        None if kind == "Queue" => errors.required_by_type(&path.child("queuing")),
        Some(_) if kind != "Queue" => errors.forbidden_by_type(&path.child("queuing")),
        _ => {}
    }
    if kind.is_empty() {
        errors.required_by_type(&path.child("type"));
    }
}

fn semantically_equal_specs(object: &Value, fixed: &Value) -> bool {
    let kind = kubernetes_admission::attributes::GroupVersionKind::from_object(object);
    let spec = |object: &Value| json!({"spec": get(object, "spec")});
    semantically_equal(&spec(object), &spec(fixed), &kind)
}

/// Returns the immutable spec of a mandatory flow schema; `None` for other names.
///
/// Source: apiserver pkg/apis/flowcontrol/bootstrap/default.go, `MandatoryFlowSchemas`.
fn fixed_schema(name: &str) -> Option<Value> {
    let (precedence, method, groups) = match name {
        "exempt" => (1, Value::Null, vec!["system:masters"]),
        "catch-all" => {
            (10_000, json!({"type": "ByUser"}), vec!["system:unauthenticated", "system:authenticated"])
        }
        _ => return None,
    };
    let subject = |group: &str| json!({"kind": "Group", "group": {"name": group}});
    let subjects: Vec<Value> = groups.into_iter().map(subject).collect();
    Some(json!({"spec": {
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": precedence,
        "distinguisherMethod": method,
        "rules": [{
            "subjects": subjects,
            "resourceRules": [{
                "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"],
            }],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }],
    }}))
}

/// Returns the immutable spec of a mandatory priority level; `None` for other names.
///
/// Source: apiserver pkg/apis/flowcontrol/bootstrap/default.go, `MandatoryPriorityLevelConfigurations`.
fn fixed_level(name: &str) -> Option<Value> {
    match name {
        "exempt" => Some(json!({"spec": {"type": "Exempt"}})),
        "catch-all" => Some(json!({"spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
        }}})),
        _ => None,
    }
}
