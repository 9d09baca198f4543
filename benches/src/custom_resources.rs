//! Measures the handling of custom resource definitions, and the validation of objects by these definitions.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use kubernetes_admission::attributes::UserInfo;
use kubernetes_api_server::{ApiServer, Options};
use kubernetes_types::structural::{Compiled, Purpose};
use serde_json::{Map, Value, json};

use crate::meter::Meter;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The approximate size of the definition, in bytes of JSON.
const DEFINITION: usize = 500_000;
/// The approximate size of the object, in bytes of JSON.
const OBJECT: usize = 10_000;

/// Returns the schema of one list item: defaults, a pattern, limits, a map, and a list without duplicates.
fn item() -> Value {
    json!({"type": "object", "required": ["name", "image"], "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63},
        "image": {"type": "string", "minLength": 1, "maxLength": 500},
        "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535, "default": 8080},
        "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}},
        "since": {"type": "string", "format": "date-time"},
        "env": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "value": {"type": "string", "default": ""},
            }},
        },
    }})
}

fn schema(spec: &Map<String, Value>) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}})
}

fn list_schema() -> Value {
    let list = json!({
        "type": "array", "items": item(), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    });
    schema(&Map::from_iter([("items".to_owned(), list)]))
}

fn object() -> Value {
    let item = |index: usize| {
        json!({
            "name": format!("item-{index}"), "image": format!("registry.example.com/team/program:1.{index}"),
            "labels": {"app": "program", "tier": "backend"}, "since": "2026-01-01T00:00:00Z",
            "env": [{"name": "MODE", "value": "fast"}, {"name": "LEVEL"}],
        })
    };
    let count = OBJECT / item(10).to_string().len() + 1;
    let items: Vec<Value> = (0..count).map(item).collect();
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": "default"},
        "spec": {"items": items},
    })
}

/// Returns the definition with this index.
fn definition(index: usize) -> Value {
    let described = |number: usize| {
        let mut item = item();
        if let Some(members) = item.as_object_mut() {
            members.insert(
                "description".to_owned(),
                format!("Part {number} says what is done and when. ").repeat(6).into(),
            );
        }
        (format!("part{number}"), item)
    };
    let count = DEFINITION / described(100).1.to_string().len() + 1;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.n{index}.example.com")},
        "spec": {
            "group": format!("n{index}.example.com"), "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": schema(&(0..count).map(described).collect()),
            }}],
        },
    })
}

pub(crate) fn run(meter: &mut Meter) {
    if !meter.wants("custom resources/") {
        return;
    }
    let mut created = 0;
    let prepare = || {
        created += 1;
        // Uses a new server for each iteration, so that existing definitions do not affect the result.
        (ApiServer::new(Options::default()), Bytes::from(definition(created).to_string()))
    };
    meter.measure("custom resources/definition of 500 KB", prepare, async |(server, body)| {
        let request = Request::builder()
            .method(Method::POST)
            .uri(DEFINITIONS)
            .header("content-type", "application/json")
            .body(body.clone())
            .unwrap();
        let user = UserInfo { username: "admin".to_owned(), ..UserInfo::default() };
        let (response, _) = server.exchange(request, user).await;
        assert_eq!(response.status(), StatusCode::CREATED);
    });

    let schema = Compiled::new(&list_schema()).unwrap();
    let object = object();
    meter.measure(
        "custom resources/object of 10 KB",
        || object.clone(),
        async |object| {
            schema.decode(object, false).unwrap();
            schema.set_defaults(object).unwrap();
            let errors = schema.schema_errors(object, None, Purpose::Object).unwrap();
            let judgment = schema.validate_further(errors, object, None, Purpose::Object).unwrap();
            assert!(judgment.errors.is_empty());
        },
    );
}
