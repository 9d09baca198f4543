//! Checks that webhooks deployed to a cluster match only what the user allows.
//!
//! A fake fails on purpose and, with `failurePolicy: Fail`, rejects all requests that it matches. It must not match its own
//! pod, system components, or requests that the user did not intend.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use harness::admission_run::AdmissionRun;
use harness::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use harness::cluster_state::{ClusterState, ConversionError, EquivalentResource};
use harness::config::{FailurePolicy, Rule, Webhook};
use harness::json::set;
use harness::matching;
use harness::ownership::TimePrecision;
use harness::selector::Selector;
use serde_json::{Value, json};

use super::configurations::{NAMESPACE_NAME, api_kind};
use super::names::FakesNamespace;
use fake_webhooks::{FakeEntry, Plan};

/// The namespace of system components.
const KUBE_SYSTEM: &str = "kube-system";
/// An example of a namespace without labels.
const ANY_NAMESPACE: &str = "a-namespace-without-labels";

/// The cluster-scoped resources that every cluster needs. A `namespaceSelector` does not apply to them.
const CLUSTER_SCOPED: [(&str, &str); 9] = [
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "storageclasses"),
];

/// The namespaces and resources that webhooks may match.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Allowances {
    /// Allow webhooks to match the namespace of the fakes
    #[arg(long)]
    allow_own_namespace: bool,
    /// Allow webhooks to match kube-system
    #[arg(long)]
    allow_kube_system: bool,
    /// Allow webhooks with failurePolicy Fail to match every namespace and essential cluster-scoped objects
    #[arg(long)]
    allow_everything: bool,
}

impl Allowances {
    /// Returns the namespaces that the webhooks must not match.
    pub(crate) fn hidden(self, own: &FakesNamespace) -> Vec<&str> {
        [(own.as_str(), self.allow_own_namespace), (KUBE_SYSTEM, self.allow_kube_system)]
            .into_iter()
            .filter_map(|(namespace, allowed)| (!allowed).then_some(namespace))
            .collect()
    }
}

/// A reason to reject a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SafetyViolation {
    webhook: String,
    danger: Danger,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Danger {
    OwnNamespace(String),
    KubeSystem,
    EveryNamespace,
    ClusterScoped(&'static str),
}

impl fmt::Display for SafetyViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "webhook `{}`: ", self.webhook)?;
        match &self.danger {
            Danger::OwnNamespace(namespace) => write!(
                f,
                "it matches the namespace `{namespace}`, in which the fakes run: change the namespaceSelector or use \
                 --allow-own-namespace"
            ),
            Danger::KubeSystem => f.write_str(
                "it matches the namespace `kube-system`, which the cluster needs: change the namespaceSelector or use \
                 --allow-kube-system",
            ),
            Danger::EveryNamespace => f.write_str(
                "with failurePolicy Fail it matches requests in every namespace: add a namespaceSelector or \
                 `failurePolicy: Ignore`, or use --allow-everything",
            ),
            Danger::ClusterScoped(resource) => write!(
                f,
                "with failurePolicy Fail it matches {resource}, to which a namespaceSelector does not apply: add \
                 `scope: Namespaced` to the rules, an objectSelector, or `failurePolicy: Ignore`, or use \
                 --allow-everything"
            ),
        }
    }
}

/// Returns all reasons to reject the deployment of the webhooks in `plan` to the namespace `own`.
pub(crate) fn safety_violations(
    plan: &Plan,
    own: &FakesNamespace,
    allowances: Allowances,
) -> Vec<SafetyViolation> {
    plan.fakes()
        .flat_map(|fake| {
            let dangers = parse_webhook(&fake.entry)
                .map_or_else(Vec::new, |webhook| dangers(&webhook, own, allowances));
            dangers.into_iter().map(|danger| SafetyViolation { webhook: fake.entry.name.clone(), danger })
        })
        .collect()
}

/// Parses the entry as a webhook without match conditions; returns `None` if the webhook is invalid.
fn parse_webhook(entry: &FakeEntry) -> Option<Webhook> {
    let mut webhook = json!(entry.fields);
    set(&mut webhook, &["name"], &*entry.name);
    set(&mut webhook, &["clientConfig", "url"], "https://fakes.invalid/");
    if let Value::Object(fields) = &mut webhook {
        fields.remove("matchConditions");
    }
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": api_kind(entry.kind),
        "metadata": {"name": "fakes"},
        "webhooks": [webhook],
    });
    harness::config::webhooks(&configuration).ok()?.pop()
}

fn dangers(webhook: &Webhook, own: &FakesNamespace, allowances: Allowances) -> Vec<Danger> {
    let namespaces = Namespaces::around(own);
    // An object selector for one of these namespaces is intentional.
    let any_object = Webhook { object_selector: Selector::default(), ..webhook.clone() };
    let meant = |name: &str| {
        matches_in(&any_object, name, &namespaces) && !matches_in(&any_object, ANY_NAMESPACE, &namespaces)
    };
    let mut dangers = Vec::new();
    if !allowances.allow_own_namespace && meant(own.as_str()) {
        dangers.push(Danger::OwnNamespace(own.as_str().to_owned()));
    }
    if !allowances.allow_kube_system && own.as_str() != KUBE_SYSTEM && meant(KUBE_SYSTEM) {
        dangers.push(Danger::KubeSystem);
    }
    if webhook.failure_policy == FailurePolicy::Fail && !allowances.allow_everything {
        if matches_in(webhook, ANY_NAMESPACE, &namespaces) {
            dangers.push(Danger::EveryNamespace);
        }
        let caught = CLUSTER_SCOPED.iter().find(|(group, resource)| {
            webhook.rules.iter().any(|rule| {
                let version = rule.api_versions.first().map_or("v1", |version| concrete(version, "v1"));
                let resource = GroupVersionResource::new(*group, version, *resource);
                matches_request(webhook, rule, "", &resource, "", &namespaces)
            })
        });
        dangers.extend(caught.map(|(_, resource)| Danger::ClusterScoped(resource)));
    }
    dangers
}

/// Returns whether the webhook matches a request in `namespace`.
fn matches_in(webhook: &Webhook, namespace: &str, namespaces: &Namespaces) -> bool {
    webhook.rules.iter().any(|rule| {
        rule.api_groups.iter().any(|group| {
            rule.resources.iter().any(|entry| {
                let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
                let group = concrete(group, "");
                let resource = concrete(resource, "pods");
                if CLUSTER_SCOPED.contains(&(group, resource)) {
                    return false;
                }
                let version = rule.api_versions.first().map_or("v1", |version| concrete(version, "v1"));
                let resource = GroupVersionResource::new(group, version, resource);
                matches_request(webhook, rule, namespace, &resource, concrete(subresource, ""), namespaces)
            })
        })
    })
}

/// Returns an entry of a rule, or the example `any` if the entry is a wildcard.
fn concrete<'a>(entry: &'a str, any: &'a str) -> &'a str {
    if entry == "*" { any } else { entry }
}

fn matches_request(
    webhook: &Webhook,
    rule: &Rule,
    namespace: &str,
    resource: &GroupVersionResource,
    subresource: &str,
    namespaces: &Namespaces,
) -> bool {
    let all = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
    all.into_iter()
        .filter(|operation| rule.operations.iter().any(|entry| entry == "*" || entry == operation.as_str()))
        .any(|operation| {
            let is_namespace = resource.group.is_empty() && resource.resource == "namespaces";
            let object = if is_namespace { namespaces.namespace(namespace) } else { None };
            let object =
                object.map_or_else(|| json!({"metadata": {"name": "one"}}), |object| (*object).clone());
            let attributes = Attributes {
                operation,
                resource: resource.clone(),
                subresource: subresource.to_owned(),
                kind: GroupVersionKind::new(&resource.group, &resource.version, "Sample"),
                namespace: namespace.to_owned(),
                name: "one".to_owned(),
                object: Some(object.clone()),
                old_object: Some(object),
                options: None,
                dry_run: false,
                user: UserInfo::default(),
            };
            matching::is_called(
                webhook,
                &mut AdmissionRun::new(attributes, TimePrecision::Seconds, namespaces),
            )
        })
}

/// A cluster state that contains only namespaces.
struct Namespaces(BTreeMap<String, Arc<Value>>);

impl Namespaces {
    fn around(own: &FakesNamespace) -> Self {
        let plain = |name: &str| json!({"metadata": {"name": name, "labels": {NAMESPACE_NAME: name}}});
        let mut all: BTreeMap<String, Value> = [KUBE_SYSTEM, ANY_NAMESPACE, own.as_str()]
            .into_iter()
            .map(|name| (name.to_owned(), plain(name)))
            .collect();
        if let (Some(own_namespace), Value::Object(labels)) = (all.get_mut(own.as_str()), own.labels()) {
            for (key, value) in labels {
                set(own_namespace, &["metadata", "labels", &key], value);
            }
        }
        Self(all.into_iter().map(|(name, namespace)| (name, Arc::new(namespace))).collect())
    }
}

impl ClusterState for Namespaces {
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        self.0.get(name).cloned()
    }

    /// Returns no resources, because the tested requests use the versions in the rules.
    fn equivalent_resources(&self, _: &GroupVersionResource, _: &str) -> Arc<[EquivalentResource]> {
        Arc::default()
    }

    fn convert(&self, object: &Value, _: &GroupVersionKind) -> Result<Value, ConversionError> {
        Ok(object.clone())
    }

    fn set_defaults(&self, _: &mut Value) {}

    fn is_built_in(&self, _: &GroupVersionKind) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Allowances =
        Allowances { allow_own_namespace: false, allow_kube_system: false, allow_everything: false };

    /// Asserts the reasons to reject the deployment of a validating webhook with the given fields.
    #[track_caller]
    fn check_with(allowances: Allowances, fields: &str, expected: &[&str]) {
        let text =
            format!("version: 1\nwebhooks:\n- {{name: a, type: validating, behavior: deny, {fields}}}\n");
        let file = fake_webhooks::FakesFile::parse(&text, "fakes.yaml").unwrap();
        let refusals = safety_violations(&Plan::new(&[file]).unwrap(), &"fakes".parse().unwrap(), allowances);
        let texts: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), expected.len(), "{fields}: {texts:?}");
        for (text, part) in texts.iter().zip(expected) {
            assert!(text.starts_with("webhook `a.fakes.local`: ") && text.contains(part), "{fields}: {text}");
        }
    }

    #[track_caller]
    fn check(fields: &str, expected: &[&str]) {
        check_with(NONE, fields, expected);
    }

    const OWN: &str = "matches the namespace `fakes`";
    const SYSTEM: &str = "matches the namespace `kube-system`";
    const EVERY: &str = "every namespace";

    #[test]
    fn defaults_are_safe() {
        check("failurePolicy: Fail", &[]);
        check("failurePolicy: Fail, rules: [{apiGroups: ['*'], resources: ['*/*'], scope: Namespaced}]", &[]);
    }

    #[test]
    fn failure_policy_fail_requires_a_namespace_selector() {
        check("failurePolicy: Fail, namespaceSelector: {}", &[EVERY]);
        check("failurePolicy: Ignore, namespaceSelector: {}", &[]);
        let but = "namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}";
        check(&format!("failurePolicy: Fail, {but}"), &[EVERY]);
        let chosen = "namespaceSelector: {matchLabels: {team: red}}";
        check(&format!("failurePolicy: Fail, {chosen}"), &[]);
        let labeled = "namespaceSelector: {}, objectSelector: {matchLabels: {team: red}}";
        check(&format!("failurePolicy: Fail, {labeled}"), &[]);
        let conditions = "namespaceSelector: {}, matchConditions: [{name: no, expression: 'false'}]";
        check(&format!("failurePolicy: Fail, {conditions}"), &[EVERY]);
        let deletion = "namespaceSelector: {}, rules: [{operations: [DELETE], resources: [pods/eviction]}]";
        check(&format!("failurePolicy: Fail, {deletion}"), &[EVERY]);
    }

    #[test]
    fn namespace_selector_does_not_exclude_cluster_scoped_objects() {
        check("failurePolicy: Fail, rules: [{apiGroups: ['*'], resources: ['*']}]", &["nodes"]);
        check("failurePolicy: Ignore, rules: [{apiGroups: ['*'], resources: ['*']}]", &[]);
        check("failurePolicy: Fail, rules: [{resources: [nodes]}]", &["nodes"]);
        check("failurePolicy: Fail, rules: [{resources: [nodes], scope: Namespaced}]", &[]);
        let roles = "rules: [{apiGroups: [rbac.authorization.k8s.io], resources: ['*'], scope: Cluster}]";
        check(&format!("failurePolicy: Fail, {roles}"), &["clusterrolebindings"]);
        let own_kind = "rules: [{apiGroups: [example.com], resources: ['*']}]";
        check(&format!("failurePolicy: Fail, {own_kind}"), &[]);
        let namespaces = "rules: [{resources: [namespaces]}]";
        check(&format!("failurePolicy: Fail, {namespaces}"), &[]);
        check(&format!("failurePolicy: Fail, namespaceSelector: {{}}, {namespaces}"), &[EVERY]);
    }

    #[test]
    fn selecting_an_excluded_namespace_is_rejected() {
        let named = |name: &str| {
            format!("namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {name}}}}}")
        };
        for policy in ["Fail", "Ignore"] {
            check(&format!("failurePolicy: {policy}, {}", named("kube-system")), &[SYSTEM]);
            check(&format!("failurePolicy: {policy}, {}", named("fakes")), &[OWN]);
            check(&format!("failurePolicy: {policy}, {}", named("demo")), &[]);
        }
        let labeled = "objectSelector: {matchLabels: {k8s-app: kube-dns}}";
        check(&format!("{labeled}, {}", named("kube-system")), &[SYSTEM]);
        check("namespaceSelector: {matchLabels: {app.kubernetes.io/managed-by: admit}}", &[OWN]);
    }

    #[test]
    fn every_reason_can_be_overridden() {
        let own = Allowances { allow_own_namespace: true, ..NONE };
        let system = Allowances { allow_kube_system: true, ..NONE };
        let everything = Allowances { allow_everything: true, ..NONE };
        let both = "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, \
                    values: [kube-system, fakes]}]}";
        check(both, &[OWN, SYSTEM]);
        check_with(own, both, &[SYSTEM]);
        check_with(system, both, &[OWN]);
        let all = "failurePolicy: Fail, namespaceSelector: {}, rules: [{apiGroups: ['*'], resources: ['*']}]";
        check(all, &[EVERY, "nodes"]);
        check_with(everything, all, &[]);
        let namespace = "fakes".parse().unwrap();
        assert_eq!(NONE.hidden(&namespace), ["fakes", "kube-system"]);
        assert_eq!(own.hidden(&namespace), ["kube-system"]);
        assert_eq!(everything.hidden(&namespace), ["fakes", "kube-system"]);
    }
}
