//! Evaluates match conditions for examples of the matched kinds, without calling webhooks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::conditions::{Condition, Outcome};
use kubernetes_admission::config::Webhook;
use kubernetes_admission::matching;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::set;
use kubernetes_types::schema::Type;
use kubernetes_types::selector::Selector;
use serde_json::{Value, json};

use super::expression_types::MatchedTypes;
use super::match_outcome::user;
use crate::check::{Severity, Violation};
use crate::corpus;
use crate::shape;
use crate::similar_name::{most_similar, suggestion};
use crate::stored::update;
use crate::subject::{Subject, consequence};

/// The metadata fields that the API server sets. The examples do not have these fields.
const SET_BY_SERVER: [&str; 6] =
    ["selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"];

/// The key of a label and an annotation in the examples. No condition reads this key.
const OTHER_KEY: &str = "example.com/other";

/// Reports conditions that fail because an object does not have an optional field, or because a name is misspelled.
///
/// All conditions of the webhook are evaluated together, as in the API server, so that one condition can guard another.
pub(super) fn unguarded(subject: &Subject, cluster_fixture: &ClusterFixture) -> Vec<Violation> {
    let webhook = &subject.webhook;
    if webhook.match_conditions.is_empty() || webhook.rules.is_empty() {
        return Vec::new();
    }
    let mut violations = undefined(webhook, cluster_fixture);
    // The namespace of the examples does not have labels, and conditions cannot read the namespace.
    let in_every_namespace = Webhook { namespace_selector: Selector::default(), ..(**webhook).clone() };
    let labels = required_labels(&webhook.object_selector);
    let examples = corpus::examples(cluster_fixture);
    for request in examples.flat_map(|object| requests(&object, &labels, cluster_fixture)) {
        let mut run = cluster_fixture.evaluation(request);
        let Some(evaluation) = matching::decide(&in_every_namespace, &mut run).conditions else { continue };
        let request = run.attributes();
        if !matches!(evaluation.outcome, Outcome::Errors(_)) {
            continue;
        }
        for (index, condition) in webhook.match_conditions.iter().enumerate() {
            let evaluated = evaluation.conditions.get(index).map(|evaluated| &evaluated.value);
            let Some(Err(error)) = evaluated else { continue };
            let error = error.to_string();
            let Some(key) = missing_key(&error) else { continue };
            let field = format!("matchConditions[{index}]");
            if violations.iter().any(|known| known.field == field) {
                continue;
            }
            let follows = format!("{} without a call", consequence(webhook.failure_policy));
            if let Some(found) = reads_null(request, &condition.text, key, &follows) {
                // V55 reports conditions that fail for every CREATE, whatever the object is.
                violations.extend(condition.mentions("object").then(|| found.at(field)));
                continue;
            }
            violations.extend(violation(webhook, condition, request, key).map(|found| found.at(field)));
        }
    }
    violations
}

/// Reports fields that no object of the matched kinds has.
pub(super) fn undefined(webhook: &Webhook, cluster_fixture: &ClusterFixture) -> Vec<Violation> {
    let Some(types) = MatchedTypes::new(&webhook.rules, cluster_fixture) else { return Vec::new() };
    let follows = consequence(webhook.failure_policy);
    let conditions = webhook.match_conditions.iter().enumerate();
    let of_condition = |(index, condition): (usize, &Condition)| {
        let found = types.violations(&condition.text, follows).into_iter();
        found.map(move |violation| violation.at(format!("matchConditions[{index}]")))
    };
    conditions.flat_map(of_condition).collect()
}

/// Describes the field `key` that the condition `text` of `webhook` reads, if no object that the rules match has it.
pub(crate) fn unknown_field(
    webhook: &Webhook,
    text: &str,
    key: &str,
    cluster_fixture: &ClusterFixture,
) -> Option<String> {
    let types = MatchedTypes::new(&webhook.rules, cluster_fixture)?;
    types.undefined(text).iter().find(|undefined| undefined.is_named(key)).map(ToString::to_string)
}

/// Describes the field `key` that the expression `text` reads from `metadata`, if no object has it.
///
/// The description names the similar field of `metadata`, if any.
pub fn unknown_metadata_field(text: &str, key: &str) -> Option<String> {
    let fields = Type::for_metadata().names();
    if !reads(text, "metadata", key) || fields.contains(&key) {
        return None;
    }
    let suggestion = suggestion(most_similar(key, fields));
    Some(format!("metadata does not have a field {key}{suggestion}"))
}

/// Returns the key that an expression read and that the value does not have, if that is the error of the expression.
pub(crate) fn missing_key(error: &str) -> Option<&str> {
    error.rsplit_once("no such key: ").map(|(_, key)| key)
}

/// Returns the finding about an expression that reads the field `key` of oldObject, which is null when an object is created.
///
/// `follows` is what happens to the request. Returns `None` if the error is about another value.
pub(super) fn reads_null(request: &Attributes, text: &str, key: &str, follows: &str) -> Option<Violation> {
    let object_has_key = request.object.as_ref().is_some_and(|object| object.get(key).is_some());
    if request.old_object.is_some()
        || !reads(text, "oldObject", key)
        || (reads(text, "object", key) && !object_has_key)
    {
        return None;
    }
    let message = format!(
        "on CREATE, oldObject is null: the expression fails with `no such key: {key}`, and {follows}"
    );
    let violation = Violation::new("reads oldObject on CREATE", message);
    Some(violation.with_help("Check `oldObject != null` first, or match only UPDATE."))
}

/// Returns the labels that all examples need to match `selector`, an objectSelector.
pub(super) fn required_labels(selector: &Selector) -> BTreeMap<String, String> {
    Selector::common_labels(&[selector]).unwrap_or_default()
}

/// Returns whether the expression `text` reads the field `key` of `parent`.
pub(super) fn reads(text: &str, parent: &str, key: &str) -> bool {
    let places = [format!("{parent}.{key}"), format!("{parent}['{key}']"), format!("{parent}[\"{key}\"]")];
    places.iter().any(|place| text.contains(place.as_str()))
}

/// Returns the key that the expression `text` reads first from a map such as `labels`.
fn read_entry<'a>(text: &'a str, map: &str) -> Option<&'a str> {
    text.match_indices(map).find_map(|(start, _)| {
        let rest = text.get(start + map.len()..)?;
        if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(|next: char| !is_name(next)).unwrap_or(name.len());
            let is_function = name.get(end..).is_some_and(|rest| rest.starts_with('('));
            return name.get(..end).filter(|name| !name.is_empty() && !is_function);
        }
        let quoted = rest.strip_prefix("['").map(|rest| (rest, '\''));
        let (rest, quote) = quoted.or_else(|| Some((rest.strip_prefix("[\"")?, '"')))?;
        rest.split_once(quote).map(|(key, _)| key)
    })
}

/// Returns the path from which the expression `text` reads `key` without a guard, such as `object.spec`.
fn read_path<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let suffixes = [format!(".{key}"), format!("['{key}']"), format!("[\"{key}\"]")];
    suffixes.iter().find_map(|suffix| {
        text.match_indices(suffix.as_str()).find_map(|(end, _)| {
            let rest = text.get(end + suffix.len()..)?;
            let before = text.get(..end)?;
            let start = before.rfind(|next| !is_name(next) && next != '.').map_or(0, |at| at + 1);
            let path = before.get(start..)?;
            let is_whole = suffix.ends_with(']') || !rest.starts_with(is_name);
            let is_guard = before.get(..start)?.ends_with("has(");
            (is_whole && !is_guard && path.starts_with(char::is_alphabetic)).then_some(path)
        })
    })
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// A field that an expression reads and that an object or user does not have.
pub(super) enum MissingField {
    /// `metadata` does not have a field with this name; contains a description.
    Unknown(String),
    /// The field is optional.
    Optional {
        /// The objects or users that do not have the field.
        without: String,
        /// The advice on how to read the field.
        help: Cow<'static, str>,
    },
}

impl MissingField {
    /// Returns the field `key` that the expression `text` reads, or `None` if the API server always sets the field.
    pub(super) fn new(text: &str, key: &str) -> Option<Self> {
        let reads = |parent: &str| reads(text, parent, key);
        if reads("metadata") && SET_BY_SERVER.contains(&key) {
            return None;
        }
        if let Some(unknown) = unknown_metadata_field(text, key) {
            return Some(Self::Unknown(unknown));
        }
        if reads("userInfo") || reads("userInfo.extra") {
            let help = "Guard the field, as in `has(request.userInfo.uid) && ...`.";
            return Some(Self::Optional { without: format!("users without {key}"), help: help.into() });
        }
        let what = if read_path(text, key).is_some_and(|path| path.starts_with("namespaceObject")) {
            "namespaces"
        } else {
            "objects"
        };
        let without = if reads("labels") {
            format!("{what} without the label {key}")
        } else if reads("annotations") {
            format!("{what} without the annotation {key}")
        } else {
            format!("{what} without {key}")
        };
        let maps = || ["labels", "annotations"].into_iter();
        let entry = maps().find(|map| reads(map)).and_then(|map| Some((read_path(text, key)?, key, map)));
        // If the map itself is missing, the key in it is the next one.
        let entry = entry.map(|(path, key, _)| (path, key)).or_else(|| {
            let map = maps().find(|map| *map == key)?;
            let entry = read_entry(text, map)?;
            Some((read_path(text, entry)?, entry))
        });
        let map = entry.and_then(|(path, entry)| Some((path.rsplit_once('.')?, entry)));
        let help = match (map, read_path(text, key)) {
            (Some(((parent, map), entry)), _) => format!(
                "Guard the key, as in `has({parent}.{map}) && '{entry}' in {parent}.{map} && ...`, or use optional syntax, as \
                 in `{parent}.?{map}[?'{entry}'].orValue('')`."
            ),
            (None, Some(parent)) => format!(
                "Guard the field, as in `has({parent}.{key}) && ...`, or use optional syntax, as in `{parent}.?{key}`."
            ),
            (None, None) => "Guard the field with `has()`, or use optional syntax, as in `.?`.".to_owned(),
        };
        Some(Self::Optional { without, help: help.into() })
    }
}

/// The advice for a condition that reads `namespaceObject`.
pub(super) const SELECT_NAMESPACES: &str = "Select namespaces with the namespaceSelector of the webhook. kube-apiserver does not set namespaceObject for webhooks.";

/// Returns whether the expression `text` reads the field `key` of `namespaceObject`, which is null for webhooks.
///
/// Source: apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go, `Match`.
pub(super) fn reads_namespace_object(text: &str, key: &str) -> bool {
    reads(text, "namespaceObject", key)
}

/// The advice for a field that no object has.
pub(super) const CORRECT_NAME: &str = "Correct the name of the field.";

/// Returns the finding for a condition that fails for `request` because an object does not have `key`.
fn violation(webhook: &Webhook, condition: &Condition, request: &Attributes, key: &str) -> Option<Violation> {
    let name = &condition.name;
    let follows = consequence(webhook.failure_policy);
    if reads_namespace_object(&condition.text, key) {
        let message = format!(
            "condition {name} reads namespaceObject, which is always null in match conditions of webhooks: on {} of {}, \
             it fails with `no such key: {key}`, and {follows} without a call",
            request.operation,
            request.resource.group_resource()
        );
        return Some(
            Violation::new(format!("{name} reads namespaceObject"), message).with_help(SELECT_NAMESPACES),
        );
    }
    let (without, help) = match MissingField::new(&condition.text, key)? {
        MissingField::Unknown(unknown) => {
            let message = format!(
                "{unknown}: condition {name} fails with `no such key: {key}`, and {follows} without a call"
            );
            let violation = Violation::new(format!("{name} reads an unknown field"), message);
            return Some(violation.with_help(CORRECT_NAME));
        }
        MissingField::Optional { without, help } => (without, help),
    };
    let message = format!(
        "condition {name} fails for {without}: on {} of {}, it returns `no such key: {key}`, and {follows} without a \
         call",
        request.operation,
        request.resource.group_resource()
    );
    let violation = Violation::new(format!("{name} has no value without an optional field"), message);
    Some(violation.with_severity(Severity::Warning).with_help(help))
}

/// Returns requests that create and update the object without labels and annotations, and with one of each.
///
/// Both objects also have the labels `required`. The two creations come first, followed by an unchanged update of each
/// object.
pub(super) fn requests(
    object: &Value,
    required: &BTreeMap<String, String>,
    cluster_fixture: &ClusterFixture,
) -> Vec<Attributes> {
    let mut bare = object.clone();
    for pointer in ["/metadata/labels", "/metadata/annotations"] {
        shape::remove(&mut bare, pointer);
    }
    let mut labeled = bare.clone();
    if let Some(metadata) = labeled.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["labels", "annotations"] {
            metadata.insert(field.to_owned(), json!({OTHER_KEY: "a"}));
        }
    }
    for (key, value) in required {
        for object in [&mut bare, &mut labeled] {
            set(object, &["metadata", "labels", key], value.as_str());
        }
    }
    let create = |object| cluster_fixture.create(object, "default", user("jane", &[])).ok();
    let creations: Vec<Attributes> = [bare, labeled].into_iter().filter_map(create).collect();
    let unchanged = |create: &Attributes| {
        let stored = create.object.clone().unwrap_or_default();
        update(create, stored.clone(), stored)
    };
    let updates: Vec<Attributes> = creations.iter().map(unchanged).collect();
    creations.into_iter().chain(updates).collect()
}

/// Adds the description of the field to the reasons why a webhook was not called that are about a condition that reads a
/// field that no object has.
pub(crate) fn with_unknown_fields(
    mismatches: BTreeMap<String, u64>,
    webhook: &Webhook,
    cluster_fixture: &ClusterFixture,
) -> BTreeMap<String, u64> {
    let described = |reason: String| {
        let key = missing_key(&reason).and_then(|rest| rest.split('`').next());
        let unknown = key.and_then(|key| {
            let mut conditions = webhook.match_conditions.iter();
            conditions.find_map(|condition| unknown_field(webhook, &condition.text, key, cluster_fixture))
        });
        unknown.map_or(reason.clone(), |unknown| format!("{reason}: {unknown}"))
    };
    mismatches.into_iter().map(|(reason, count)| (described(reason), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kinds and messages of the findings about `conditions`, for a webhook that matches Deployments.
    #[track_caller]
    fn found(conditions: &[&str]) -> Vec<String> {
        let conditions: Vec<Value> = conditions
            .iter()
            .enumerate()
            .map(|(index, expression)| json!({"name": format!("c{index}"), "expression": expression}))
            .collect();
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [{
                "name": "w.example.com", "clientConfig": {"url": "https://localhost/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "matchConditions": conditions,
                "rules": [{
                    "operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                    "resources": ["deployments"],
                }],
            }],
        });
        let subjects = Subject::of_shared([std::sync::Arc::new(configuration)]).unwrap();
        let cluster_fixture = ClusterFixture::new([]);
        unguarded(&subjects[0], &cluster_fixture).into_iter().map(|found| found.message).collect()
    }

    #[track_caller]
    fn check(conditions: &[&str], expected: &[&str]) {
        let found = found(conditions);
        assert_eq!(found.len(), expected.len(), "{conditions:?}: {found:?}");
        for (message, part) in found.iter().zip(expected) {
            assert!(message.contains(part), "{conditions:?}: {message}");
        }
    }

    #[test]
    fn misspelled_and_unguarded_fields_are_reported() {
        check(
            &["object.metadata.namespce != 'kube-system' && object.metadata.labels.team == 'a'"],
            &["ObjectMeta does not have a field namespce (did you mean namespace?)"],
        );
        check(
            &["has(object.metadata.clusterName) && object.metadata.clusterName == 'a'"],
            &["no Deployment has it, so `has()` is always false and `.?` never has a value"],
        );
        check(
            &["object.spec.replica > 1"],
            &["reading it fails with `no such key: replica`, and the request is rejected"],
        );
        check(&["object.metadata.labels.team == 'a'"], &["fails for objects without labels"]);
        check(
            &["has(object.metadata.labels) && object.metadata.labels.team == 'a'"],
            &["objects without the label team"],
        );
        check(&["object.metadata.annotations['a/b'] == 'c'"], &["objects without annotations"]);
        check(&["'x' in object.metadata.finalizers"], &["objects without finalizers"]);
        let on_create = "on CREATE, oldObject is null: the expression fails with `no such key: metadata`, and the request is rejected without a call";
        check(&["oldObject.metadata.labels.a == 'b'"], &["objects without labels"]);
        check(&["object.metadata.name == oldObject.metadata.name"], &[on_create]);
        check(
            &["object.spec.paused == true || (oldObject != null && oldObject.spec.paused == true)"],
            &["objects without paused"],
        );
        check(
            &["object.spec.replicas > '3'"],
            &["'_>_' applied to '(int, string)': evaluating it fails with `no such overload`"],
        );
        check(&["request.userInfo.uid != 'a'"], &["users without uid"]);
        check(
            &["namespaceObject.metadata.name != 'a'"],
            &["c0 reads namespaceObject, which is always null in match conditions of webhooks: on CREATE of"],
        );
    }

    #[test]
    fn advice_names_the_path_without_a_guard() {
        let advice = |text: &str, key: &str| match MissingField::new(text, key) {
            Some(MissingField::Optional { help, .. }) => help.into_owned(),
            Some(MissingField::Unknown(_)) | None => String::new(),
        };
        for (text, key, expected) in [
            (
                "object.metadata.labels.team == 'a'",
                "labels",
                "`has(object.metadata.labels) && 'team' in object.metadata.labels && ",
            ),
            ("object.metadata.labels['a/b'] == 'a'", "a/b", "'a/b' in object.metadata.labels && "),
            (
                "object.metadata.labels.exists(k, k == 'team')",
                "labels",
                "the field, as in `has(object.metadata.labels) && ",
            ),
            (
                "object.metadata.annotations.size() > 0",
                "annotations",
                "the field, as in `has(object.metadata.annotations) && ",
            ),
            (
                "object.spec.template.metadata.labels.team == 'a'",
                "team",
                "`has(object.spec.template.metadata.labels) && 'team' in object.spec.template.metadata.labels && ",
            ),
            (
                "namespaceObject.metadata.labels.env == 'prod'",
                "env",
                "'env' in namespaceObject.metadata.labels && ",
            ),
            (
                "!has(object.spec.securityContext) || object.spec.containers.all(c, c.securityContext.privileged)",
                "securityContext",
                "`has(c.securityContext) && ",
            ),
            ("has(object.spec.paused) && oldObject.spec.replicas > 1", "paused", "the field with `has()`"),
            ("object.spec.naïve == 'ü'", "naïve", "`has(object.spec.naïve) && "),
        ] {
            let advice = advice(text, key);
            assert!(advice.contains(expected), "{text}: {advice}");
        }
    }

    #[test]
    fn guarded_conditions_have_no_finding() {
        for conditions in [
            &["object.metadata.namespace != 'kube-system' && object.metadata.name != 'a'"][..],
            &[
                "has(object.metadata.labels) && has(object.metadata.labels.team) && object.metadata.labels.team == 'a'",
            ],
            &[
                "has(object.metadata.labels) && 'team' in object.metadata.labels && object.metadata.labels['team'] == 'a'",
            ],
            &["!has(object.metadata.labels) || !('team' in object.metadata.labels)"],
            &["object.metadata.?labels.team.orValue('') == 'a'"],
            &["object.metadata.?labels[?'team'].orValue('') == 'a'"],
            &["has(object.metadata.labels) ? 'team' in object.metadata.labels : true"],
            // All conditions are evaluated, and a false one takes precedence over an error.
            &["has(object.metadata.labels)", "'team' in object.metadata.labels"],
            &["'team' in object.metadata.labels", "has(object.metadata.labels)"],
            &[
                "has(object.metadata.labels) && 'team' in object.metadata.labels",
                "object.metadata.labels['team'] == 'a'",
            ],
            &["object.spec.replicas > 1 && object.spec.template.spec.containers.all(c, c.image != '')"],
            &["request.name.startsWith('other-') && object.metadata.labels.team == 'a'"],
            &["oldObject != null && oldObject.spec.replicas == object.spec.replicas"],
            // Every authenticated request has a user name and groups.
            &["!('system:nodes' in request.userInfo.groups)"],
            &["request.userInfo.username != 'system:serviceaccount:kube-system:a'"],
        ] {
            check(conditions, &[]);
        }
    }
}
