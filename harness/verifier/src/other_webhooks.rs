//! Contains a library of changes that other webhooks make to an object.
//!
//! Each change is a webhook in the chain, so that the dispatcher handles its reinvocation and defaults. These webhooks
//! are never called over a network: [`super::call_recorder`] recognizes the host of their URLs and gets the response
//! from this module.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kubernetes_admission::caller::Reply;
use kubernetes_admission::config::{
    ClientConfig, FailurePolicy, MatchPolicy, ReinvocationPolicy, Rule, Scope, SideEffects, Source, Webhook,
    WebhookId, WebhookTarget,
};
use kubernetes_admission::event::Phase;
use kubernetes_types::json::{at, set};
use kubernetes_types::selector::Selector;
use serde_json::{Value, json};

use super::comparison::Difference;
use super::shape::{self, pod_spec};

/// The prefix of the URLs of the library's webhooks. The host name never resolves (RFC 2606).
const HOST: &str = "https://other.admit.invalid/";
/// The name that the library's webhooks give to containers, volumes, and unnamed objects.
const MARK: &str = "admit-foreign";
const LABEL: &str = "admit.dev/foreign";

/// A change that another webhook makes.
#[derive(Clone, Copy, Debug)]
pub struct OtherWebhook {
    /// A kebab-case name, such as `add-container`.
    pub name: &'static str,
    /// A description of the change, such as `adds a container`.
    pub does: &'static str,
    /// Returns the addition, or `None` if the object cannot contain it or already contains it.
    addition: fn(&Value) -> Option<Addition>,
}

/// A map entry or list item that another webhook adds to an object.
struct Addition {
    /// The JSON pointer of the map or list to which the value is added.
    parent: String,
    /// The name of the map entry; `None` for a list.
    member: Option<&'static str>,
    value: Value,
}

impl Addition {
    /// Returns the map entry, or the list item with the same name, in `object`.
    fn found_in<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let parent = object.pointer(&self.parent)?;
        match self.member {
            Some(member) => parent.get(member),
            None => parent.as_array()?.iter().find(|item| item["name"] == MARK),
        }
    }
}

/// The library: each webhook makes one change.
pub const LIBRARY: [OtherWebhook; 6] = [
    OtherWebhook { name: "add-label", does: "adds a label", addition: add_label },
    OtherWebhook { name: "add-annotation", does: "adds an annotation", addition: add_annotation },
    OtherWebhook { name: "set-name", does: "gives the object its name", addition: set_name },
    OtherWebhook { name: "add-container", does: "adds a container", addition: add_container },
    OtherWebhook { name: "add-init-container", does: "adds an init container", addition: add_init_container },
    OtherWebhook { name: "add-volume", does: "adds a volume", addition: add_volume },
];

impl OtherWebhook {
    /// Returns whether the change applies to `object`.
    pub fn applies_to(&self, object: &Value) -> bool {
        (self.addition)(object).is_some()
    }

    /// Returns the webhook that makes the change. The webhook matches every request and makes the change at most once.
    pub fn webhook(&self) -> Arc<Webhook> {
        let all = || vec!["*".to_owned()];
        Arc::new(Webhook {
            id: Arc::new(WebhookId {
                configuration: "foreign".to_owned(),
                name: self.name.to_owned(),
                ordinal: 0,
            }),
            source: Source::Api,
            phase: Phase::Mutating,
            reinvocation_policy: ReinvocationPolicy::Never,
            client_config: ClientConfig::new(WebhookTarget::Url(format!("{HOST}{}", self.name)), Vec::new()),
            rules: vec![Rule {
                operations: all(),
                api_groups: all(),
                api_versions: all(),
                resources: vec!["*/*".to_owned()],
                scope: Scope::All,
            }],
            failure_policy: FailurePolicy::Fail,
            match_policy: MatchPolicy::Exact,
            namespace_selector: Selector::default(),
            object_selector: Selector::default(),
            side_effects: SideEffects::None,
            timeout: Duration::from_secs(30),
            admission_review_versions: vec!["v1".to_owned()],
            match_conditions: Vec::new(),
        })
    }

    /// Returns whether `after` still contains the addition to `before`, unchanged.
    pub fn survives(&self, before: &Value, after: &Value) -> bool {
        let Some(Addition { parent, member, value }) = (self.addition)(before) else { return true };
        let Some(parent) = after.pointer(&parent) else { return false };
        match (parent, member) {
            (Value::Object(members), Some(member)) => {
                members.get(member).is_some_and(|found| includes(found, &value))
            }
            (Value::Array(items), None) => items.iter().any(|found| includes(found, &value)),
            _ => false,
        }
    }

    /// Returns how the addition to `before` changed in `after`, or `None` without an addition.
    pub fn lost(&self, before: &Value, after: &Value) -> Option<Difference> {
        let addition = (self.addition)(before)?;
        let found = addition.found_in(after).cloned();
        let field = shape::field(&addition.parent);
        let path = match addition.member {
            Some(member) => format!("{field}.{member}"),
            None => format!("{field}[{MARK}]"),
        };
        Some(Difference { path, expected: Some(addition.value), found })
    }

    /// Returns the JSON pointer of the list if `after` has an item with the name of the addition.
    pub fn list_of(&self, before: &Value, after: &Value) -> Option<String> {
        let addition = (self.addition)(before).filter(|addition| addition.member.is_none())?;
        addition.found_in(after)?;
        Some(addition.parent)
    }

    fn operations(&self, object: &Value) -> Vec<Value> {
        let Some(Addition { parent, member, value }) = (self.addition)(object) else { return Vec::new() };
        let path = match member {
            Some(member) => format!("{parent}/{}", shape::escaped(member)),
            None => format!("{parent}/-"),
        };
        let empty = if member.is_some() { json!({}) } else { json!([]) };
        let mut operations = Vec::new();
        if object.pointer(&parent).is_none_or(Value::is_null) {
            operations.push(json!({"op": "add", "path": parent, "value": empty}));
        }
        operations.push(json!({"op": "add", "path": path, "value": value}));
        operations
    }
}

/// Returns whether `found` contains everything that `wanted` contains.
fn includes(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| found.get(name).is_some_and(|found| includes(found, wanted)))
        }
        (found, wanted) => found == wanted,
    }
}

/// Returns whether `webhook` is in [`LIBRARY`].
pub(super) fn is_one(webhook: &Webhook) -> bool {
    matches!(&webhook.client_config.target, WebhookTarget::Url(url) if url.starts_with(HOST))
}

/// Returns the response of the library's webhook at `url`, or `None` if the library has no such webhook.
pub(super) fn answer(url: &str, review: &[u8]) -> Option<Reply> {
    let name = url.strip_prefix(HOST)?;
    let other = LIBRARY.iter().find(|other| other.name == name)?;
    let review: Value = serde_json::from_slice(review).ok()?;
    let operations = other.operations(at(&review, &["request", "object"]));
    let mut response = json!({"uid": at(&review, &["request", "uid"]), "allowed": true});
    if !operations.is_empty() {
        set(&mut response, &["patchType"], "JSONPatch");
        set(&mut response, &["patch"], STANDARD.encode(Value::from(operations).to_string()));
    }
    let answer =
        json!({"apiVersion": review.get("apiVersion"), "kind": "AdmissionReview", "response": response});
    Some(Reply {
        status: 200,
        content_type: Some("application/json".to_owned()),
        body: Bytes::from(answer.to_string()),
    })
}

fn member(object: &Value, parent: &str, member: &'static str, value: impl Into<Value>) -> Option<Addition> {
    let there = object.pointer(parent).and_then(|parent| parent.get(member));
    there.is_none().then(|| Addition { parent: parent.to_owned(), member: Some(member), value: value.into() })
}

fn item(object: &Value, list: &str, value: Value) -> Option<Addition> {
    let parent = format!("{}/{list}", pod_spec(object)?);
    let items = object.pointer(&parent).and_then(Value::as_array);
    let there = items.into_iter().flatten().any(|item| item["name"] == MARK);
    (!there).then_some(Addition { parent, member: None, value })
}

fn add_label(object: &Value) -> Option<Addition> {
    member(object, "/metadata/labels", LABEL, "yes")
}

fn add_annotation(object: &Value) -> Option<Addition> {
    member(object, "/metadata/annotations", LABEL, "yes")
}

/// Returns the addition of a name if the object has `generateName` and no name.
fn set_name(object: &Value) -> Option<Addition> {
    object.pointer("/metadata/generateName")?;
    member(object, "/metadata", "name", MARK)
}

fn add_container(object: &Value) -> Option<Addition> {
    item(object, "containers", json!({"name": MARK, "image": "example.com/foreign:1"}))
}

fn add_init_container(object: &Value) -> Option<Addition> {
    item(object, "initContainers", json!({"name": MARK, "image": "example.com/foreign:1"}))
}

fn add_volume(object: &Value) -> Option<Addition> {
    item(object, "volumes", json!({"name": MARK, "emptyDir": {}}))
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::patch::Patch;

    use super::*;

    fn apply(other: &OtherWebhook, object: &Value) -> Value {
        let patch = Value::from(other.operations(object)).to_string();
        Patch::decode(patch.as_bytes()).unwrap().apply(object).unwrap()
    }

    fn objects() -> Vec<Value> {
        let pod_spec = json!({"containers": [{"name": "app", "image": "app"}]});
        vec![
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": pod_spec}),
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
                "spec": {"jobTemplate": {"spec": {"template": {"spec": pod_spec}}}}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}}}),
        ]
    }

    #[test]
    fn each_mutation_applies_once_and_is_recognized() {
        for other in LIBRARY {
            assert!(objects().iter().any(|object| other.applies_to(object)), "{}", other.name);
            for object in objects().iter().filter(|object| other.applies_to(object)) {
                let changed = apply(&other, object);
                assert_ne!(changed, *object, "{}", other.name);
                assert!(other.survives(object, &changed), "{}", other.name);
                assert!(!other.survives(object, object), "{}", other.name);
                assert!(!other.applies_to(&changed), "{}", other.name);
            }
        }
    }

    #[test]
    fn changes_inside_an_added_container_are_ignored() {
        let pod = &objects()[0];
        let container = LIBRARY.iter().find(|other| other.name == "add-container").unwrap();
        let mut changed = apply(container, pod);
        changed["spec"]["containers"][1]["env"] = json!([{"name": "A", "value": "b"}]);
        assert!(container.survives(pod, &changed));
        changed["spec"]["containers"][1]["image"] = json!("other");
        assert!(!container.survives(pod, &changed));
        assert_eq!(container.list_of(pod, &changed).as_deref(), Some("/spec/containers"));
        assert_eq!(container.list_of(pod, pod), None);
    }

    #[test]
    fn containers_are_not_added_to_a_config_map() {
        let names: Vec<&str> =
            LIBRARY.iter().filter(|other| other.applies_to(&objects()[2])).map(|f| f.name).collect();
        assert_eq!(names, ["add-label", "add-annotation"]);
    }
}
