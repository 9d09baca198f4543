//! Implements `FlowSchema` objects.

use kubernetes_types::json;
use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::FieldError;
use serde_json::{Value, json};

use crate::kinds::common::cells::{Context, age_of, name, number, present_or, row, status_of};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{fill_zero, with};
use crate::kinds::common::fields::{Errors, Path, flag, get, int, list, set, text, texts};
use crate::kinds::common::formats;
use crate::kinds::common::internal::Form;
use crate::kinds::flowcontrol::shared;
use crate::kinds::flowcontrol::shared::{semantically_equal_specs, validate_conditions};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `FlowSchema` objects.
pub(crate) const KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "flowschemas",
    kind: "FlowSchema",
    status_keeps: StatusKeeps::AllMetadata,
    set_defaults: Some(set_defaults),
    validate,
    validate_subresources: &[("status", shared::conditions)],
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the defaults of a `FlowSchema`.
///
/// Source: kubernetes pkg/apis/flowcontrol/v1/defaults.go, `SetDefaults_FlowSchemaSpec`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| fill_zero(spec, "matchingPrecedence", 1000));
}

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Validates a `FlowSchema`.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateFlowSchema`.
/// Rule: VLO-43.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
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

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        json::text(object, &["spec", "priorityLevelConfiguration", "name"]),
        number(object, &["spec", "matchingPrecedence"]),
        present_or(object, &["spec", "distinguisherMethod", "type"], "<none>"),
        age_of(object, context),
        status_of(object, "Dangling").unwrap_or("?"),
    ]
}
