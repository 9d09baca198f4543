//! Tests that checks handle objects with values of unexpected types.

use kubernetes_admission::attributes::{
    Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo,
};
use kubernetes_api_server::ClusterFixture;
use serde_json::{Value, json};

use super::{large_object, requests, v12_concurrency, v21_mirror_pods, v31_subresources, v32_generate_name};
use crate::{corpus, plugins, stored};

const KINDS: [(&str, &str, &str); 9] = [
    ("", "v1", "Pod"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "Namespace"),
    ("apps", "v1", "Deployment"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("certificates.k8s.io", "v1", "CertificateSigningRequest"),
    // A custom resource named Pod does not have the fields of a Pod.
    ("example.com", "v1", "Pod"),
];

const SUBRESOURCES: [&str; 5] = ["status", "finalize", "approval", "ephemeralcontainers", "resize"];

fn objects(cluster_fixture: &ClusterFixture) -> impl Iterator<Item = Value> {
    KINDS.into_iter().map(move |(group, version, kind)| {
        let kind = GroupVersionKind::new(group, version, kind);
        corpus::example(&kind, cluster_fixture).unwrap_or_else(|| {
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": "x"},
                "spec": {"containers": [{"name": "a"}], "template": {"spec": {"containers": []}}},
                "status": {"conditions": [{"type": "Ready"}]}, "data": {"a": "b"}})
        })
    })
}

/// Adds the JSON pointer of every value in `value` to `places`.
fn places(value: &Value, prefix: &str, places: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, value) in below {
        let place = format!("{prefix}/{}", crate::shape::escaped(&name));
        places.push(place.clone());
        self::places(value, &place, places);
    }
}

fn creation(object: &Value, cluster_fixture: &ClusterFixture) -> Attributes {
    let kind = GroupVersionKind::from_object(object);
    let resource = cluster_fixture.resource_of(&kind).map(|resource| resource.name);
    Attributes {
        operation: Operation::Create,
        resource: resource.unwrap_or_else(|| GroupVersionResource::new("example.com", "v1", "pods")),
        subresource: String::new(),
        kind,
        namespace: "default".to_owned(),
        name: String::new(),
        object: Some(object.clone()),
        old_object: None,
        options: None,
        dry_run: false,
        user: UserInfo::default(),
    }
}

/// Runs all code that processes a request's object before it is sent to a webhook. Checks only for panics.
fn make_everything(object: &Value, cluster_fixture: &ClusterFixture) {
    if let Ok(request) = cluster_fixture.create(object.clone(), "default", UserInfo::default()) {
        let mut request = request;
        let _ = plugins::complete(&mut request);
        stored::prepare(&mut request, cluster_fixture);
    }
    let mut request = creation(object, cluster_fixture);
    let _ = plugins::complete(&mut request);
    stored::prepare(&mut request, cluster_fixture);
    let request = creation(object, cluster_fixture);
    let as_stored = stored::as_stored(object, &UserInfo::default(), cluster_fixture);
    let update = stored::update(&request, as_stored.clone(), object.clone());
    let _ = stored::as_updated(&update, object, cluster_fixture);
    let mut status = Attributes { subresource: "approval".to_owned(), ..update };
    stored::prepare(&mut status, cluster_fixture);
    let _ = stored::delete(&request, stored::as_deleting(as_stored.clone(), cluster_fixture));
    let _ = requests::restored(as_stored.clone());
    for subresource in SUBRESOURCES {
        let _ = v31_subresources::change(&mut as_stored.clone(), subresource);
    }
    let _ = v12_concurrency::distinct(&request, 1);
    let _ = v21_mirror_pods::mirrored(&request, object);
    let _ = v32_generate_name::unnamed(&request);
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "additionalProperties": {"type": "string"}}}});
    let _ = large_object::filled(object, Some(&schema), 1024);
    let _ = large_object::filled(object, None, 1024);
}

#[test]
fn objects_of_any_shape_are_made_into_requests() {
    let cluster_fixture = ClusterFixture::new([]);
    let mut count = 0;
    for object in objects(&cluster_fixture) {
        let mut places = Vec::new();
        self::places(&object, "", &mut places);
        places.retain(|place| !["/apiVersion", "/kind"].contains(&place.as_str()));
        for place in places {
            for wrong in [json!(null), json!(1), json!("x"), json!(["x"]), json!([[]]), json!({"x": "y"})] {
                let mut object = object.clone();
                *object.pointer_mut(&place).unwrap() = wrong;
                make_everything(&object, &cluster_fixture);
                count += 1;
            }
        }
    }
    assert!(count > 500, "{count} objects");
}
