//! Generates the built-in corpus, a fixed set of objects with many shapes.

mod custom;
mod kinds;
mod others;
mod pods;

use std::collections::BTreeMap;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::{self, set};
use kubernetes_types::selector::Selector;
use serde_json::{Map, Value, json};

pub(crate) use self::custom::{Made, NearMiss, Version, versions};
use super::environment::Environment;
use super::stored::requests_about;
use super::subject::Subject;

/// A generator for the objects of one kind.
struct Maker {
    count: usize,
    /// The indexes of the objects that together have every feature and every shape of metadata.
    representatives: Vec<usize>,
    /// Generates the object with the given index.
    make: Box<dyn Fn(usize) -> Value + Send>,
}

/// Which objects of the built-in corpus are sent to webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a caller chooses one of them")]
pub enum Extent {
    /// A few objects of each kind that together have every feature, starting with the first object of every kind.
    Representative,
    /// All objects, kind by kind.
    Whole,
}

/// The namespace of the built-in corpus.
pub const NAMESPACE: &str = "admit-verify";

/// The labels that the selectors of some webhooks match, and the namespace for objects with the labels.
struct Selection {
    namespace: String,
    namespace_labels: BTreeMap<String, String>,
    object_labels: BTreeMap<String, String>,
}

/// Returns the labels for all webhooks, with as few namespaces as the webhooks' selectors allow.
///
/// Selectors may exclude each other: for example, one webhook requires a namespace label, and another webhook requires
/// that the label is absent.
fn selections(subjects: &[Subject]) -> Vec<Selection> {
    let mut groups: Vec<Vec<&Subject>> = vec![Vec::new()];
    for subject in subjects {
        let fits = |group: &[&Subject]| {
            let all: Vec<&Subject> = group.iter().copied().chain([subject]).collect();
            labels(&all).is_some()
        };
        if let Some(group) = groups.iter_mut().find(|group| fits(group.as_slice())) {
            group.push(subject);
        } else if fits(&[]) {
            groups.push(vec![subject]);
        }
    }
    let selections = (1..).zip(groups).map(|(number, group)| {
        let (namespace_labels, object_labels) = labels(&group).unwrap_or_default();
        let namespace = if number == 1 { NAMESPACE.to_owned() } else { format!("{NAMESPACE}-{number}") };
        Selection { namespace, namespace_labels, object_labels }
    });
    selections.collect()
}

/// Returns the labels of a namespace and of an object that the selectors of all `subjects` match, if such labels exist.
fn labels(subjects: &[&Subject]) -> Option<(BTreeMap<String, String>, BTreeMap<String, String>)> {
    let namespaces: Vec<&Selector> =
        subjects.iter().map(|subject| &subject.webhook.namespace_selector).collect();
    let objects: Vec<&Selector> = subjects.iter().map(|subject| &subject.webhook.object_selector).collect();
    Some((Selector::common_labels(&namespaces)?, Selector::common_labels(&objects)?))
}

/// Returns the namespaces of the built-in corpus, with the labels that the webhooks' namespace selectors require.
///
/// There is more than one namespace only if the selectors exclude each other.
pub fn namespaces(subjects: &[Subject]) -> Vec<Value> {
    let namespace = |selection: Selection| {
        let metadata = json!({"name": selection.namespace, "labels": selection.namespace_labels});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    };
    selections(subjects).into_iter().map(namespace).collect()
}

/// Returns objects of the kinds that the rules of `subjects` match.
///
/// The kinds are most built-in kinds and the kinds of `definitions`, whose custom resources are valid. Objects with
/// labels have the labels that the webhooks' object selectors require. If the selectors exclude each other, the objects
/// are repeated in each additional namespace.
pub fn built_in(
    subjects: &[Subject],
    definitions: &[Value],
    environment: &Environment,
    extent: Extent,
) -> impl Iterator<Item = Value> + use<> {
    let wanted = |object: &Value| is_matched(object, subjects, environment);
    let selections = selections(subjects);
    // The creation of an object in a namespace sets its namespace. This includes Evictions, which are not stored.
    let is_namespaced = |object: Value| {
        let created = environment.create(object).ok().and_then(|creation| creation.object);
        created.is_some_and(|object| !json::text(&object, &["metadata", "namespace"]).is_empty())
    };
    let wanted: Vec<(Maker, bool)> = makers(definitions)
        .into_iter()
        .filter(|maker| wanted(&(maker.make)(0)))
        .map(|maker| {
            let namespaced = is_namespaced((maker.make)(0));
            (maker, namespaced)
        })
        .collect();
    let mut numbers: Vec<(usize, usize, usize)> = Vec::new();
    for (kind, (maker, _)) in wanted.iter().enumerate() {
        match extent {
            Extent::Representative => {
                let representatives = maker.representatives.iter().enumerate();
                numbers.extend(representatives.map(|(round, index)| (round, kind, *index)));
            }
            Extent::Whole => numbers.extend((0..maker.count).map(|index| (0, kind, index))),
        }
    }
    // Stable: all objects of one kind stay in order.
    numbers.sort_by_key(|(round, _, _)| *round);
    let positions: Vec<(usize, usize, usize)> = (0..selections.len())
        .flat_map(|selection| numbers.iter().map(move |(_, kind, index)| (selection, *kind, *index)))
        .collect();
    positions.into_iter().filter_map(move |(selection, kind, index)| {
        let (maker, namespaced) = wanted.get(kind)?;
        let selection = selections.get(selection)?;
        let mut object = labeled((maker.make)(index), &selection.object_labels);
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut)?;
        if !namespaced {
            metadata.remove("namespace");
        } else if let Some(namespace) = metadata.get_mut("namespace") {
            *namespace = selection.namespace.clone().into();
        }
        Some(object)
    })
}

/// Returns an object of `kind` with a name and without labels, or `None` if the corpus does not contain the kind.
pub fn example(kind: &GroupVersionKind, cluster_fixture: &ClusterFixture) -> Option<Value> {
    let built_in = makers(&[]).into_iter().map(|maker| (maker.make)(0));
    let custom = || {
        let schema = cluster_fixture.schema_of(kind)?;
        Some(custom::Version::new(kind.api_version(), kind.kind.clone(), schema).object(0))
    };
    let mut examples = built_in.filter(|object| GroupVersionKind::from_object(object) == *kind);
    examples.next().or_else(custom)
}

/// Returns a small object of each built-in kind in the corpus.
pub(crate) fn examples(cluster_fixture: &ClusterFixture) -> impl Iterator<Item = Value> {
    let is_served =
        |object: &Value| cluster_fixture.resource_of(&GroupVersionKind::from_object(object)).is_some();
    makers(&[]).into_iter().map(|maker| (maker.make)(0)).filter(is_served)
}

/// Returns the generators of all kinds.
fn makers(definitions: &[Value]) -> Vec<Maker> {
    let pods = pods::representatives().collect();
    let mut makers = vec![Maker::new(pods::COUNT, pods, pods::pod)];
    for kind in others::KINDS {
        let representatives = others::REPRESENTATIVES.to_vec();
        makers.push(Maker::new(others::COUNT, representatives, move |index| others::object(kind, index)));
    }
    for kind in kinds::all() {
        let representatives = kinds::REPRESENTATIVES.to_vec();
        makers.push(Maker::new(kinds::COUNT, representatives, move |index| kind.object(index)));
    }
    for version in definitions.iter().flat_map(custom::versions) {
        let made = version.made().valid;
        let representatives = (0..made.len().min(custom::REPRESENTATIVES)).collect();
        if !made.is_empty() {
            makers.push(Maker::new(made.len(), representatives, move |index| {
                made.get(index).cloned().unwrap_or_default()
            }));
        }
    }
    makers
}

impl Maker {
    fn new(
        count: usize,
        representatives: Vec<usize>,
        make: impl Fn(usize) -> Value + Send + 'static,
    ) -> Self {
        Self { count, representatives, make: Box::new(make) }
    }
}

/// Returns whether the rules of a webhook match a request about `object`, regardless of its selectors.
fn is_matched(object: &Value, subjects: &[Subject], environment: &Environment) -> bool {
    let Ok(creation) = environment.create(object.clone()) else { return false };
    let cluster_fixture = &environment.cluster_fixture;
    requests_about(&creation, cluster_fixture)
        .any(|request| subjects.iter().any(|subject| subject.asks_for(&request, cluster_fixture)))
}

/// Returns the kinds that the rules of `subjects` may match but that the corpus does not contain.
///
/// A kind is formatted as `apiVersion kind`.
pub fn missing(subjects: &[Subject], definitions: &[Value], environment: &Environment) -> Vec<String> {
    let known: Vec<GroupVersionKind> = makers(definitions)
        .into_iter()
        .map(|maker| GroupVersionKind::from_object(&(maker.make)(0)))
        .collect();
    let resources = environment.cluster_fixture.resources();
    let missing =
        resources.into_iter().filter(|resource| !known.contains(&resource.kind)).filter(|resource| {
            let kind = &resource.kind;
            let object =
                json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": "x"}});
            is_matched(&object, subjects, environment)
        });
    missing.map(|resource| format!("{} {}", resource.kind.api_version(), resource.kind.kind)).collect()
}

fn labeled(mut object: Value, labels: &BTreeMap<String, String>) -> Value {
    if let Some(Value::Object(own)) = object.pointer_mut("/metadata/labels").filter(|own| !is_empty(own)) {
        own.extend(labels.iter().map(|(name, value)| (name.clone(), value.clone().into())));
    }
    object
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

/// Returns metadata in one of 18 shapes.
///
/// Labels and annotations are absent, empty, or present, and the object has a name or `generateName`.
fn metadata(variant: usize, index: usize) -> Value {
    let labels = match variant % 3 {
        0 => None,
        1 => Some(json!({})),
        _ => Some(json!({"app": "app", "app.kubernetes.io/part-of": "corpus"})),
    };
    let annotations = match variant / 3 % 3 {
        0 => None,
        1 => Some(json!({})),
        _ => Some(json!({"example.com/note": "kept"})),
    };
    let name = if index.is_multiple_of(2) {
        ("name", format!("object-{index}"))
    } else {
        ("generateName", format!("object-{index}-"))
    };
    let members = [("namespace", Some(NAMESPACE.into())), ("labels", labels), ("annotations", annotations)];
    let members = members.into_iter().chain([(name.0, Some(name.1.into()))]);
    members.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Sets `apiVersion`, `kind`, and metadata. `index` selects the shape of the metadata.
fn complete(object: &mut Value, api_version: &str, kind: &str, index: usize) {
    set(object, &["apiVersion"], api_version);
    set(object, &["kind"], kind);
    set(object, &["metadata"], metadata(index, index));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use admission_webhook_client::NoServices;
    use kubernetes_admission::attributes::UserInfo;

    use super::*;

    fn objects(groups: &[&str], resources: &[&str], selector: &Value) -> Vec<Value> {
        built(groups, resources, selector, Extent::Whole)
    }

    fn configuration(operations: &[&str], groups: &[&str], resources: &[&str], selector: &Value) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "c"}, "webhooks": [{
                "name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "objectSelector": selector,
                "rules": [{"operations": operations, "apiGroups": groups, "apiVersions": ["*"], "resources": resources}],
            }],
        })
    }

    fn built(groups: &[&str], resources: &[&str], selector: &Value, extent: Extent) -> Vec<Value> {
        let configuration = configuration(&["CREATE"], groups, resources, selector);
        let subjects = Subject::from_configurations(&[configuration]).unwrap();
        let cluster_fixture = ClusterFixture::new(&namespaces(&subjects));
        let environment = Environment::new(Arc::new(NoServices), cluster_fixture, UserInfo::default());
        built_in(&subjects, &[], &environment, extent).collect()
    }

    #[test]
    fn corpus_has_only_kinds_that_a_rule_matches() {
        let kinds = |objects: &[Value]| -> BTreeSet<String> {
            objects.iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
        };
        let pods = objects(&[""], &["pods"], &json!({}));
        assert_eq!(kinds(&pods), BTreeSet::from(["Pod".to_owned()]));
        assert!(pods.len() >= 200, "{}", pods.len());
        assert_eq!(kinds(&objects(&["*"], &["*"], &json!({}))).len(), 43);
    }

    #[test]
    fn webhook_for_updates_or_deletions_gets_objects() {
        let environment = |fixture| Environment::new(Arc::new(NoServices), fixture, UserInfo::default());
        for (operation, expected) in [("UPDATE", true), ("DELETE", true), ("CONNECT", false)] {
            let subjects =
                Subject::from_configurations(&[configuration(&[operation], &[""], &["pods"], &json!({}))]);
            let subjects = subjects.unwrap();
            let environment = environment(ClusterFixture::new(&namespaces(&subjects)));
            let mut objects = built_in(&subjects, &[], &environment, Extent::Representative);
            assert_eq!(objects.next().is_some(), expected, "{operation}");
        }
    }

    #[test]
    fn evictions_have_the_namespace_that_the_selector_requires() {
        let mut configuration = configuration(&["CREATE"], &[""], &["pods/eviction"], &json!({}));
        configuration["webhooks"][0]["namespaceSelector"] = json!({"matchLabels": {"inject": "yes"}});
        let subjects = Subject::from_configurations(&[configuration]).unwrap();
        let cluster_fixture = ClusterFixture::new(&namespaces(&subjects));
        let environment = Environment::new(Arc::new(NoServices), cluster_fixture, UserInfo::default());
        let objects: Vec<Value> = built_in(&subjects, &[], &environment, Extent::Representative).collect();
        assert!(!objects.is_empty());
        for object in objects {
            assert_eq!(
                (&object["kind"], &object["metadata"]["namespace"]),
                (&json!("Eviction"), &json!(NAMESPACE))
            );
        }
    }

    #[test]
    fn all_pods_have_different_shapes() {
        let pods = objects(&[""], &["pods"], &json!({}));
        let shapes: BTreeSet<String> = pods
            .iter()
            .map(|pod| {
                let mut pod = pod.clone();
                for name in ["name", "generateName"] {
                    if let Some(value) = pod["metadata"].get_mut(name) {
                        *value = "x".into();
                    }
                }
                pod.to_string()
            })
            .collect();
        assert!(shapes.len() > pods.len() * 9 / 10, "{} of {}", shapes.len(), pods.len());
    }

    /// Returns the JSON pointers of all members of `objects`, except the members of free-form maps.
    fn members(objects: &[Value]) -> BTreeSet<String> {
        fn collect(value: &Value, at: &str, members: &mut BTreeSet<String>) {
            match value {
                Value::Object(object) => {
                    members.insert(format!("{at}{}", if object.is_empty() { " empty" } else { "" }));
                    let is_free_form = at.ends_with("/data");
                    for (name, member) in object.iter().filter(|_| !is_free_form) {
                        collect(member, &format!("{at}/{name}"), members);
                    }
                }
                Value::Array(items) => {
                    for item in items {
                        collect(item, at, members);
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    members.insert(at.to_owned());
                }
            }
        }
        let mut all = BTreeSet::new();
        for object in objects {
            collect(object, object["kind"].as_str().unwrap(), &mut all);
        }
        all
    }

    #[test]
    fn the_representative_objects_have_every_member_that_any_object_has() {
        for (groups, resources) in [
            (&[""][..], &["pods"][..]),
            (&["*"], &["services", "secrets", "configmaps"]),
            (&["batch", "networking.k8s.io"], &["*"]),
        ] {
            let of = |extent| built(groups, resources, &json!({}), extent);
            let (some, all) = (of(Extent::Representative), of(Extent::Whole));
            assert!(some.len() * 2 < all.len(), "{} of {}", some.len(), all.len());
            let missing: Vec<String> = members(&all).difference(&members(&some)).cloned().collect();
            // Templates contain only a sample of the Pods. The Pods themselves are compared separately.
            let missing: Vec<&String> = missing.iter().filter(|it| !it.contains("/template/")).collect();
            assert_eq!(missing, Vec::<&String>::new());
            assert!(some.iter().all(|object| all.contains(object)));
        }
    }

    #[test]
    fn the_representative_objects_have_the_values_that_policies_often_reject() {
        let deployments = built(&["apps"], &["deployments"], &json!({}), Extent::Representative);
        let values = |objects: &[Value], pointer: &str| -> BTreeSet<String> {
            objects.iter().map(|object| object.pointer(pointer).unwrap_or(&Value::Null).to_string()).collect()
        };
        let replicas = ["0", "1", "2", "50", "null"].map(str::to_owned);
        assert_eq!(values(&deployments, "/spec/replicas"), BTreeSet::from(replicas));
        let pods = built(&[""], &["pods"], &json!({}), Extent::Representative);
        for (objects, spec) in [(&deployments, "/spec/template/spec"), (&pods, "/spec")] {
            let container = format!("{spec}/containers/0");
            let images = values(objects, &format!("{container}/image"));
            for part in [":latest", "@sha256:", "\"app\"", ":1", ":5000/"] {
                assert!(images.iter().any(|image| image.contains(part)), "{part}: {images:?}");
            }
            let privileged = values(objects, &format!("{container}/securityContext/privileged"));
            assert_eq!(privileged, BTreeSet::from(["null".to_owned(), "true".to_owned()]), "{spec}");
            let host_network = values(objects, &format!("{spec}/hostNetwork"));
            assert_eq!(host_network, BTreeSet::from(["null".to_owned(), "true".to_owned()]), "{spec}");
            let limits = values(objects, &format!("{container}/resources/limits"));
            assert!(limits.contains("null"), "{limits:?}");
        }
    }

    #[test]
    fn the_representative_objects_begin_with_one_of_each_kind() {
        let objects = built(&["*"], &["*"], &json!({}), Extent::Representative);
        let kinds = |objects: &[Value]| objects.iter().map(GroupVersionKind::from_object).collect::<Vec<_>>();
        let mut all = kinds(&objects);
        all.sort_by_key(|kind| (kind.api_version(), kind.kind.clone()));
        all.dedup();
        let first = kinds(&objects[..all.len()]);
        assert!(all.iter().all(|kind| first.contains(kind)), "{first:?}");
    }

    #[test]
    fn webhooks_whose_selectors_exclude_one_another_have_objects_each() {
        let webhook = |name: &str, namespaces: Value, objects: Value| {
            json!({"name": format!("{name}.example.com"), "clientConfig": {"url": "https://127.0.0.1:1/"},
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "namespaceSelector": {"matchExpressions": namespaces}, "objectSelector": {"matchExpressions": objects},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]})
        };
        let has = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
        let lacks = |key: &str| json!({"key": key, "operator": "DoesNotExist"});
        let not = |key: &str, value: &str| json!({"key": key, "operator": "NotIn", "values": [value]});
        let (injection, rev, inject) = ("istio-injection", "istio.io/rev", "sidecar.istio.io/inject");
        // The four webhooks of Istio.
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "istio"}, "webhooks": [
                webhook("rev.namespace", json!([has(rev, &["default"]), lacks(injection)]), json!([not(inject, "false")])),
                webhook("rev.object", json!([lacks(rev), lacks(injection)]), json!([not(inject, "false"), has(rev, &["default"])])),
                webhook("namespace", json!([has(injection, &["enabled"])]), json!([not(inject, "false")])),
                webhook("object", json!([lacks(injection), lacks(rev)]), json!([has(inject, &["true"]), lacks(rev)])),
            ],
        });
        let subjects = Subject::from_configurations(&[configuration]).unwrap();
        let namespaces = namespaces(&subjects);
        assert_eq!(namespaces.len(), 4, "{namespaces:#?}");
        let cluster_fixture = ClusterFixture::new(&namespaces);
        let environment = Environment::new(Arc::new(NoServices), cluster_fixture, UserInfo::default());
        let objects: Vec<Value> = built_in(&subjects, &[], &environment, Extent::Representative).collect();
        for subject in &subjects {
            let is_called = |object: &Value| {
                let request = environment.create(object.clone()).unwrap();
                let mut run = environment.cluster_fixture.run(request);
                kubernetes_admission::matching::is_called(&subject.webhook, &mut run)
            };
            let called = objects.iter().filter(|object| is_called(object)).count();
            assert!(called >= 5, "{}: {called}", subject.name());
        }
    }

    #[test]
    fn objects_have_the_labels_that_a_selector_requires() {
        let selected = objects(&[""], &["pods"], &json!({"matchLabels": {"inject": "yes"}}));
        let with = selected.iter().filter(|pod| pod["metadata"]["labels"]["inject"] == "yes").count();
        assert!(with >= 60 && with < selected.len(), "{with}");
    }
}
