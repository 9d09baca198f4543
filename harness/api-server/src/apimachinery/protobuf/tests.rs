//! Tests with bodies from kubectl, and with the complete objects with which upstream tests its encodings.
//!
//! `recorded.jsonl` contains the bodies that kubectl 1.37.1 sent to a kube-apiserver, then three objects that kubectl
//! sends as JSON. `complete.jsonl` is an excerpt from `testdata/HEAD` in `k8s.io/api`. In both files, the JSON is the
//! body as decoded by upstream.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// A protobuf body and the JSON into which Go decodes it.
#[derive(Deserialize)]
struct Case {
    name: String,
    body: String,
    object: Value,
}

fn decode(body: &[u8]) -> Result<Value, String> {
    let envelope = Envelope::open(body).map_err(|error| error.to_string())?;
    envelope.decode(&envelope.kind).map_err(|error| error.to_string())
}

/// Removes all null members of a value and its descendants.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Calls `check` with each case and its decoded body, and returns the number of cases.
fn check_all(cases: &str, check: fn(&Case, &[u8])) -> usize {
    let mut count = 0;
    for line in cases.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let body = STANDARD.decode(&case.body).unwrap();
        check(&case, &body);
        count += 1;
    }
    count
}

fn check_decoding(case: &Case, body: &[u8]) {
    let mut expect = case.object.clone();
    without_nulls(&mut expect);
    let mut found = decode(body);
    if let Ok(object) = &mut found {
        without_nulls(object);
    }
    assert_eq!(found, Ok(expect), "{}", case.name);
}

#[test]
fn client_bodies_are_decoded_like_go() {
    assert_eq!(check_all(include_str!("recorded.jsonl"), check_decoding), 21);
}

#[test]
fn every_field_is_decoded_like_go() {
    assert_eq!(check_all(include_str!("complete.jsonl"), check_decoding), 13);
}

fn check_encoding(case: &Case, body: &[u8]) {
    let found = encode(&case.object).unwrap();
    assert_eq!(found.escape_ascii().to_string(), body.escape_ascii().to_string(), "{}", case.name);
}

#[test]
fn client_objects_are_encoded_like_go() {
    assert_eq!(check_all(include_str!("recorded.jsonl"), check_encoding), 21);
}

#[test]
fn every_field_is_encoded_like_go() {
    assert_eq!(check_all(include_str!("complete.jsonl"), check_encoding), 13);
}

#[test]
fn every_served_kind_has_a_message() {
    let without: Vec<String> = crate::kinds::discovery::Resources::built_in()
        .all()
        .iter()
        .flat_map(|resource| {
            let subresources = resource.subresources.iter().map(|subresource| &subresource.kind);
            std::iter::once(&resource.kind).chain(subresources)
        })
        .filter(|kind| MESSAGES.of_kind(kind).is_none())
        .map(|kind| format!("{} {}", kind.api_version(), kind.kind))
        .collect();
    assert_eq!(without, Vec::<String>::new());
}

#[test]
fn empty_string_as_a_default_is_kept() {
    let schema = json!({"type": "string", "default": "", "enum": ["", null, {"<": 1.5}]});
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {},
        "spec": {
            "group": "", "names": {"plural": "", "kind": ""}, "scope": "",
            "versions": [{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": schema}}],
        },
        "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null},
    });
    let found = decode(&encode(&object).unwrap()).unwrap();
    assert_eq!(found.pointer("/spec/versions/0/schema/openAPIV3Schema"), Some(&schema));
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    field.extend_from_slice(bytes);
    field
}

/// Returns a body whose object has `apiVersion` and `kind`.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [PREFIX.to_vec(), field(1, &type_meta), field(2, raw)].concat()
}

#[track_caller]
fn check(body: &[u8], expect: Result<Value, &str>) {
    assert_eq!(decode(body), expect.map_err(ToOwned::to_owned));
}

#[track_caller]
fn check_config_map(raw: &[u8], expect: Result<Value, &str>) {
    let whole = expect.map(|mut object| {
        object["apiVersion"] = "v1".into();
        object["kind"] = "ConfigMap".into();
        object
    });
    check(&body("v1", "ConfigMap", raw), whole);
}

#[test]
fn body_without_an_envelope_is_rejected() {
    let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    check(b"", Err("empty data"));
    check(b"garbage", Err(prefix));
    check(b"k8s", Err(prefix));
    check(b"k8s\0", Err("empty body"));
    check(b"k8s\0\xff", Err("unexpected EOF"));
}

#[test]
fn unknown_kind_is_rejected() {
    let message =
        "no kind \"Nonsense\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    check(&body("v1", "Nonsense", b""), Err(message));
}

#[test]
fn delete_options_exist_in_every_version() {
    for version in ["v1", "apps/v1", "meta.k8s.io/v1"] {
        let expect = json!({"apiVersion": version, "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
        check(&body(version, "DeleteOptions", &field(4, b"Orphan")), Ok(expect));
    }
}

#[test]
fn unusual_encodings_are_decoded_like_upstream() {
    let name = field(1, b"x");
    // An unknown field, and a field that occurs twice.
    check_config_map(&[field(1, &name), field(13, b"abc")].concat(), Ok(json!({"metadata": {"name": "x"}})));
    check_config_map(
        &[field(1, &name), field(1, &field(3, b"default"))].concat(),
        Ok(json!({"metadata": {"name": "x", "namespace": "default"}})),
    );
    check_config_map(&field(1, &[name, field(1, b"y")].concat()), Ok(json!({"metadata": {"name": "y"}})));
    // A map entry without a value, and one without a key.
    check_config_map(&field(2, &field(1, b"k")), Ok(json!({"metadata": {}, "data": {"k": ""}})));
    check_config_map(&field(3, b""), Ok(json!({"metadata": {}, "binaryData": {"": ""}})));
    check_config_map(
        &field(2, &[field(1, b"k"), field(2, b"\xff")].concat()),
        Ok(json!({"metadata": {}, "data": {"k": "\u{fffd}"}})),
    );
    // Present, and false.
    check_config_map(b"\x20\x00", Ok(json!({"metadata": {}, "immutable": false})));
}

#[test]
fn wrong_wire_types_are_rejected() {
    check_config_map(b"\x0a\x50a", Err("unexpected EOF"));
    check_config_map(b"\x08\x01", Err("proto: wrong wireType = 0 for field metadata"));
    check_config_map(b"\x20\x80", Err("unexpected EOF"));
    let hard = field(1, &[field(1, b"cpu"), field(2, &field(1, b"one"))].concat());
    let expect =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    check(&body("v1", "ResourceQuota", &field(2, &hard)), Err(expect));
    let seconds = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    check_config_map(&field(1, &field(8, seconds)), Err("invalid time: must be in the years 1 to 9999"));
}

#[test]
fn object_with_too_many_messages_is_rejected() {
    // Empty containers: two bytes each.
    let containers = b"\x12\x00".repeat(json::MAX_MESSAGES);
    let message = MESSAGES.of_kind(&GroupVersionKind::new("", "v1", "Pod")).unwrap();
    let mut spec = b"\x12\xc0\x9a\x0c".to_vec();
    spec.extend_from_slice(&containers);
    let found = Decoder::default().decode(message, &spec);
    assert!(matches!(found, Err(DecodeError::TooLarge)), "{found:?}");

    // Nested schemas: each is the `not` of the previous one.
    let mut schema = Vec::new();
    for _ in 0..json::MAX_DEPTH {
        let mut length = Vec::new();
        let mut rest = schema.len();
        while rest >= 0x80 {
            length.push(u8::try_from(rest & 0x7f | 0x80).unwrap());
            rest >>= 7;
        }
        length.push(u8::try_from(rest).unwrap());
        // Field 28 has a tag of two bytes.
        schema = [&[0xe2, 0x01], length.as_slice(), schema.as_slice()].concat();
    }
    let id = MESSAGES.ids().find(|id| MESSAGES.get(*id).name == "JSONSchemaProps").unwrap();
    let found = Decoder::default().decode(id, &schema);
    assert!(matches!(found, Err(DecodeError::TooLarge)), "{found:?}");
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..1000_usize) {
        let _ = decode(&bytes);
        let _ = decode(&[PREFIX, &bytes].concat());
        let ids: Vec<_> = MESSAGES.ids().collect();
        let _ = Decoder::default().decode(ids[kind % ids.len()], &bytes);
    }

    #[test]
    fn mutated_bodies_do_not_panic(case in 0..21_usize, place in 0..2000_usize, byte in any::<u8>()) {
        let line = include_str!("recorded.jsonl").lines().nth(case).unwrap();
        let mut bytes = STANDARD.decode(serde_json::from_str::<Case>(line).unwrap().body).unwrap();
        let place = place % bytes.len();
        bytes[place] = byte;
        let _ = decode(&bytes);
        let _ = decode(&bytes[..place]);
    }
}
