//! Tests the types of expressions.

use kubernetes_admission::config::Scope;
use serde_json::json;

use super::*;

/// Returns the undefined fields of an expression, for rules that match `resources` of the groups.
fn undefined(groups: &[&str], resources: &[&str], text: &str) -> Vec<String> {
    let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let rule = Rule {
        api_groups: owned(groups),
        resources: owned(resources),
        api_versions: owned(&["v1"]),
        operations: owned(&["*"]),
        scope: Scope::All,
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer"},
                    "parts": {"type": "array", "items": {
                        "type": "object", "properties": {"name": {"type": "string"}},
                    }},
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "by": {"type": "object", "additionalProperties": {"type": "string"}},
                }}},
            }}}],
        },
    });
    let cluster_fixture = ClusterFixture::new([&definition]);
    let Some(mut types) = MatchedTypes::new([&rule], &cluster_fixture) else {
        return vec!["?".to_owned()];
    };
    types.declare_variable("containers", "object.spec.template.spec.containers");
    let shown = |found: UndefinedField| {
        let similar = found.similar.map(|similar| format!(", {similar}?")).unwrap_or_default();
        format!("{}.{}{similar}", found.object, found.field)
    };
    types.undefined(text).into_iter().map(shown).collect()
}

#[test]
fn misspelled_field_of_a_built_in_kind_is_undefined() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(undefined(&["apps"], &["deployments"], text), expected, "{text}");
    };
    let replicas = ["DeploymentSpec.replica, replicas?"];
    check("object.spec.replica <= 5", &replicas);
    check("!has(object.spec.replica) || object.spec.replica <= 5", &replicas);
    check("object.spec.?replica.orValue(1) <= 5", &replicas);
    check("oldObject != null && oldObject.spec.replica > 1", &replicas);
    let image = ["Container.imge, image?"];
    check("object.spec.template.spec.containers.all(c, c.imge != 'a')", &image);
    check("variables.containers.exists(c, c.imge == 'a')", &image);
    check("object.metadata.label.a == 'b'", &["ObjectMeta.label, labels?"]);
    check("object.zzz", &["Deployment.zzz"]);
}

#[test]
fn correct_and_unknown_types_are_not_reported() {
    let check = |text: &str| {
        assert!(undefined(&["apps"], &["deployments"], text).is_empty(), "{text}");
    };
    check("object.spec.replicas <= 5 && object.metadata.labels.any == 'a'");
    check("object.metadata.annotations[?'a/b'].orValue('') == object.apiVersion + object.kind");
    check("object.spec.template.spec.containers.all(c, c.resources.limits.cpu.any == 1)");
    check("object.spec.strategy.rollingUpdate.maxSurge == '25%'");
    check("dyn(object).spec.replica == 1");
    check("object.spec == {'replica': 1} || object.spec == oldObject.spec");
    check("params.any.field == 1 && request.namespace != ''");
    let pods = "has(object.spec.template) ? object.spec.template.spec.containers : object.spec.containers";
    let both = undefined(&["", "apps"], &["pods", "deployments"], &format!("({pods}).all(c, c.image != '')"));
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn field_of_several_kinds_is_undefined_only_if_no_kind_has_it() {
    let resources = ["deployments", "statefulsets"];
    let found = undefined(&["apps"], &resources, "object.spec.serviceName == '' || object.spec.replica == 1");
    assert_eq!(found, ["DeploymentSpec.replica, replicas?"]);
}

#[test]
fn objects_of_unknown_kinds_have_apiversion_kind_and_metadata() {
    for (groups, resources) in [
        (&["*"][..], &["deployments"][..]),
        (&["*"], &["*"]),
        (&["example.com"], &["*"]),
        (&["apps"], &["deployments/scale"]),
        (&["apps", "other.example.com"], &["deployments"]),
        (&["apps"], &["deployments", "others"]),
    ] {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(undefined(groups, resources, text), expected, "{groups:?} {resources:?} {text}");
        };
        let metadata = ["a matched object.metdata, metadata?"];
        check("object.metdata.name == 'a'", &metadata);
        check("has(oldObject.metdata)", &metadata);
        check("object.metadata.nmae == 'a'", &["ObjectMeta.nmae, name?"]);
        check("object.spec.replica == 1 && object.other.field == 1 && object.kind == 'A'", &[]);
    }
}

#[test]
fn objects_of_all_kinds_of_built_in_groups_have_the_fields_of_these_kinds() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(undefined(&["", "apps"], &["*"], text), expected, "{text}");
    };
    check("object.metdata.name == 'a'", &["a matched object.metdata, metadata?"]);
    check("object.sepc.replicas == 1", &["a matched object.sepc, spec?"]);
    check("object.webhooks.size() == 1", &["a matched object.webhooks"]);
    check("object.data.a == 'b' || object.spec.replica == 1 || object.type == 'Opaque'", &[]);
}

#[test]
fn misspelled_field_of_a_custom_resource_is_undefined() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(undefined(&["example.com"], &["widgets"], text), expected, "{text}");
    };
    check("object.spec.sise > 1", &["Widget.spec.sise, size?"]);
    check("object.spec.parts.all(p, p.nam != '')", &["Widget.spec.parts.nam, name?"]);
    check("object.metadata.nam != ''", &["ObjectMeta.nam, name?"]);
    check("object.spec.any.field == 1 && object.spec.by.field == '' && object.spec.size > 1", &[]);
}

/// Returns the compile errors about operands, for expressions about Deployments.
fn wrong_operands(text: &str) -> Vec<String> {
    let rule = Rule {
        api_groups: vec!["apps".to_owned()],
        resources: vec!["deployments".to_owned()],
        api_versions: vec!["v1".to_owned()],
        operations: vec!["*".to_owned()],
        scope: Scope::All,
    };
    let mut types = MatchedTypes::new([&rule], &ClusterFixture::new([])).expect("there is a rule");
    types.declare_variable("replicas", "object.spec.replicas");
    super::wrong_operands(&types.issues(text)).map(|issue| issue.message.clone()).collect()
}

#[test]
fn operands_without_an_overload_are_reported() {
    for (text, expected) in [
        ("object.spec.replicas <= '3'", "'_<=_' applied to '(int, string)'"),
        ("variables.replicas > 'a'", "'_>_' applied to '(int, string)'"),
        ("has(oldObject.spec) && oldObject.metadata.name > 3", "'_>_' applied to '(string, int)'"),
        ("object.spec.replicas.startsWith('a')", "'startsWith' applied to 'int.(string)'"),
        ("size(object.spec.replicas) > 1", "'size' applied to '(int)'"),
        ("object.metadata.name + 1 == ''", "'_+_' applied to '(string, int)'"),
        ("object.metadata.labels.a > 1", "'_>_' applied to '(string, int)'"),
    ] {
        assert_eq!(wrong_operands(text), [format!("found no matching overload for {expected}")], "{text}");
    }
}

#[test]
fn operands_whose_types_can_fit_are_not_reported() {
    for text in [
        "object.spec.replicas > 3.5 && object.spec.replicas >= 3u",
        "object.spec.replicas == '3' || object.metadata.name != 3",
        "object.spec.?replicas.orValue('a') == 'a'",
        "(has(object.spec.replicas) ? object.spec.replicas : 'none') != ''",
        "[object.spec.replicas, 'a'].size() == 2",
        "object.spec.strategy.rollingUpdate.maxSurge > 1",
        "object.spec.strategy.rollingUpdate.maxSurge.endsWith('%')",
        "object.spec.template.spec.containers.all(c, quantity(c.resources.limits.cpu).isLessThan(quantity('1')))",
        "object.metadata.creationTimestamp > timestamp('2026-01-01T00:00:00Z')",
        "object.metadata.creationTimestamp.startsWith('2026')",
        "params.limit > 'a' && object.spec.replicas > params.limit",
        "string(object.spec.replicas).startsWith('1') && int(object.metadata.name) > 1",
        "'a' in object.spec.replicas",
        "object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([]) + \
         object.spec.template.spec.?ephemeralContainers.orValue([]) != []",
        "object.spec.template.spec.containers.map(c, c.name) + [1] != []",
        "size(object.spec.template.spec.securityContext) >= 0 && object.metadata.size() > 0",
        "object.spec.template.spec.volumes.all(v, v.emptyDir.size() == 0)",
        "object.spec.selector > 3",
    ] {
        assert!(wrong_operands(text).is_empty(), "{text}: {:?}", wrong_operands(text));
    }
}
