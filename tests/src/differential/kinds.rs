//! Defines the kinds of objects in random situations.
//!
//! All generated changes leave the objects valid, because admit does not perform all validation of the server. Only the
//! API server itself changes the objects; other components do not.

use serde_json::{Map, Value, json};

use super::situation::{GROUP, Generator};

/// All kinds, with their weights.
pub(crate) const ALL: [(usize, &str); 10] = [
    (38, "configmaps"),
    (30, "widgets"),
    (8, "secrets"),
    (8, "pods"),
    (7, "deployments"),
    (5, "horizontalpodautoscalers"),
    (3, "leases"),
    (3, "poddisruptionbudgets"),
    (2, "serviceaccounts"),
    (6, "gadgets"),
];

/// Returns the served versions of a kind.
pub(crate) fn versions(kind: &str) -> &'static [&'static str] {
    match kind {
        "widgets" | "horizontalpodautoscalers" => &["v1", "v2"],
        _ => &["v1"],
    }
}

/// Returns the resource of a kind and version in the format of requests.
pub(crate) fn resource(kind: &str, version: &str) -> String {
    match group(kind) {
        "" => kind.to_owned(),
        group => format!("{group}/{version}/{kind}"),
    }
}

/// Returns the API group of a kind.
pub(crate) fn group(kind: &str) -> &'static str {
    match kind {
        "widgets" | "gadgets" => GROUP,
        "deployments" => "apps",
        "horizontalpodautoscalers" => "autoscaling",
        "leases" => "coordination.k8s.io",
        "poddisruptionbudgets" => "policy",
        _ => "",
    }
}

/// Returns whether the kind is a custom resource.
pub(crate) fn is_custom(kind: &str) -> bool {
    group(kind) == GROUP
}

/// Returns an object of a kind and version, without a name.
pub(crate) fn object(generator: &mut Generator<'_>, kind: &str, version: &str) -> Value {
    let mut object = json!({"metadata": metadata(generator)});
    let value = generator.value();
    let (name, rest) = match kind {
        "widgets" => {
            let mut rest = json!({"spec": {"size": generator.random.below(3), "k": value}});
            if generator.random.chance(25) {
                rest["status"] = json!({"seen": value});
            }
            ("Widget", rest)
        }
        "gadgets" => ("Gadget", json!({"spec": {"k": value}})),
        // The fields of a Pod that webhooks and requests do not change are constant, because they are immutable.
        "pods" => (
            "Pod",
            json!({"spec": {"containers": [
                {"name": "c0", "image": "example.com/c:1"}, {"name": "c1", "image": "example.com/c:1"},
            ]}}),
        ),
        "deployments" => (
            "Deployment",
            json!({"spec": {
                "replicas": generator.random.below(3), "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": template(generator)},
            }}),
        ),
        "horizontalpodautoscalers" => ("HorizontalPodAutoscaler", autoscaler(generator, version)),
        "leases" => ("Lease", json!({"spec": {"holderIdentity": generator.random.one_of(&["a", "b"])}})),
        "poddisruptionbudgets" => (
            "PodDisruptionBudget",
            json!({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}}),
        ),
        "serviceaccounts" => ("ServiceAccount", json!({"automountServiceAccountToken": false})),
        "secrets" if generator.random.chance(70) => ("Secret", json!({"data": {"k": "dmFsdWU="}})),
        "secrets" => ("Secret", json!({})),
        _ if generator.random.chance(75) => ("ConfigMap", json!({"data": {"k": value}})),
        _ => ("ConfigMap", json!({})),
    };
    if let (Some(members), Value::Object(rest)) = (object.as_object_mut(), rest) {
        members.extend(rest);
    }
    object["kind"] = json!(name);
    object["apiVersion"] = match group(kind) {
        "" => json!("v1"),
        group => json!(format!("{group}/{version}")),
    };
    object
}

fn metadata(generator: &mut Generator<'_>) -> Value {
    let labels = generator.labels(75);
    let mut metadata = Map::new();
    if !labels.is_empty() || generator.random.chance(10) {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    if generator.random.chance(25) {
        metadata.insert("annotations".to_owned(), json!({generator.key(): generator.value()}));
    }
    if generator.random.chance(4) {
        metadata.insert("finalizers".to_owned(), json!(["example.com/keep"]));
    }
    if generator.random.chance(4) {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
        metadata.insert("ownerReferences".to_owned(), json!([owner, owner]));
    }
    Value::Object(metadata)
}

fn template(generator: &mut Generator<'_>) -> Value {
    let count = generator.random.weighted(&[(70, 1), (30, 2)]);
    let containers: Vec<Value> = (0..count)
        .map(|number| {
            let mut container = json!({"name": format!("c{number}"), "image": "example.com/c:1"});
            if generator.random.chance(20) {
                container["env"] = json!([{"name": "A", "value": generator.value()}]);
            }
            if generator.random.chance(20) {
                let cpu = generator.random.one_of(&["100m", "1"]);
                container["resources"] = json!({"requests": {"cpu": cpu}, "limits": {"cpu": "1"}});
            }
            container
        })
        .collect();
    json!({"containers": containers})
}

fn autoscaler(generator: &mut Generator<'_>, version: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
    let mut spec = json!({"maxReplicas": generator.random.between(2, 4), "scaleTargetRef": target});
    if generator.random.chance(50) {
        match version {
            "v1" => spec["targetCPUUtilizationPercentage"] = json!(50),
            _ => {
                spec["metrics"] = json!([{"type": "Resource", "resource": {
                    "name": generator.random.one_of(&["cpu", "memory"]),
                    "target": {"type": "Utilization", "averageUtilization": 50},
                }}]);
            }
        }
    }
    json!({"spec": spec})
}

/// Returns a merge patch for a non-metadata field that every object of the kind may have.
pub(crate) fn change(generator: &mut Generator<'_>, kind: &str) -> Value {
    match kind {
        "widgets" | "gadgets" => {
            let value = generator.value();
            let size = generator.random.below(3);
            generator.random.one_of(&[
                json!({"spec": {"k": value}}),
                json!({"spec": {"size": size}, "status": {"seen": value}}),
            ])
        }
        "deployments" => {
            let count = generator.random.below(4);
            generator.random.one_of(&[
                json!({"spec": {"replicas": count}}),
                json!({"spec": {"paused": true}}),
                json!({"spec": {"template": {"metadata": {"labels": {"b": "c"}}}}}),
                json!({"spec": {"template": {"metadata": {"labels": {"b": null}}}}}),
                json!({"status": {"observedGeneration": 1}}),
            ])
        }
        "horizontalpodautoscalers" => json!({"spec": {"maxReplicas": generator.random.between(2, 5)}}),
        "leases" => json!({"spec": {"holderIdentity": generator.random.one_of(&["a", "b", "c"])}}),
        "secrets" => generator.random.one_of(&[json!({"data": {"k": "dmFsdWU="}}), json!({"data": null})]),
        "configmaps" => {
            let value = generator.value();
            generator.random.one_of(&[json!({"data": {"k": value}}), json!({"data": {"k": null}})])
        }
        _ => json!({"metadata": {"annotations": {"k": generator.value()}}}),
    }
}
