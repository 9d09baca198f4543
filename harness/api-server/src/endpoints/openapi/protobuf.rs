//! Encodes the v2 document as protobuf.
//!
//! kubectl requests this encoding for client-side validation, for example of a `List`.
//!
//! Source: gnostic-models `openapiv2/OpenAPIv2.proto` and `OpenAPIv2.go`; kube-openapi `pkg/handler/handler.go`,
//! `ToProtoBinary`.

use super::ordered::Node;
use super::yaml::yaml;

use self::Kind::{Any, Anys, By, Double, Flag, Integer, One, Text, Texts};

/// The protobuf encoding of a member.
enum Kind {
    Text,
    Flag,
    Integer,
    Double,
    Texts,
    Any,
    Anys,
    One(&'static Message),
    By(fn(&mut Vec<u8>, u32, &Node)),
}

/// The members of a message with their field numbers, and the number of the field for `x-` extensions.
struct Message {
    fields: &'static [(&'static str, u32, Kind)],
    extensions: u32,
}

static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Text),
        ("info", 2, One(&INFO)),
        ("host", 3, Text),
        ("basePath", 4, Text),
        ("schemes", 5, Texts),
        ("consumes", 6, Texts),
        ("produces", 7, Texts),
        ("paths", 8, By(paths)),
        ("definitions", 9, By(schemas)),
        ("parameters", 10, By(parameter_definitions)),
        ("security", 12, By(requirements)),
        ("securityDefinitions", 13, By(security_definitions)),
    ],
    extensions: 16,
};

static INFO: Message = Message {
    fields: &[
        ("title", 1, Text),
        ("version", 2, Text),
        ("description", 3, Text),
        ("termsOfService", 4, Text),
    ],
    extensions: 7,
};

static API_KEY: Message = Message {
    fields: &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)],
    extensions: 5,
};

static DOCUMENTS: Message = Message { fields: &[("description", 1, Text), ("url", 2, Text)], extensions: 3 };

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("get", 2, One(&OPERATION)),
        ("put", 3, One(&OPERATION)),
        ("post", 4, One(&OPERATION)),
        ("delete", 5, One(&OPERATION)),
        ("options", 6, One(&OPERATION)),
        ("head", 7, One(&OPERATION)),
        ("patch", 8, One(&OPERATION)),
        ("parameters", 9, By(parameters)),
    ],
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Texts),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("externalDocs", 4, One(&DOCUMENTS)),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, By(parameters)),
        ("responses", 9, By(responses)),
        ("schemes", 10, Texts),
        ("deprecated", 11, Flag),
    ],
    extensions: 13,
};

static RESPONSE: Message =
    Message { fields: &[("description", 1, Text), ("schema", 2, By(schema_item))], extensions: 5 };

static BODY: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, One(&SCHEMA)),
    ],
    extensions: 6,
};

/// The message for path and header parameters, with the members that Kubernetes uses.
static PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("format", 6, Text),
        ("default", 9, Any),
        ("pattern", 16, Text),
        ("uniqueItems", 19, Flag),
        ("enum", 20, Anys),
    ],
    extensions: 22,
};

/// The message for query parameters, with the members that Kubernetes uses.
static QUERY_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("allowEmptyValue", 5, Flag),
        ("type", 6, Text),
        ("format", 7, Text),
        ("default", 10, Any),
        ("pattern", 17, Text),
        ("uniqueItems", 20, Flag),
        ("enum", 21, Anys),
    ],
    extensions: 23,
};

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Double),
        ("maximum", 7, Double),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Double),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Texts),
        ("enum", 20, Anys),
        ("additionalProperties", 21, By(additional_properties)),
        ("type", 22, By(types)),
        ("items", 23, By(items)),
        ("allOf", 24, By(all_of)),
        ("properties", 25, By(schemas)),
        ("discriminator", 26, Text),
        ("readOnly", 27, Flag),
        ("externalDocs", 29, One(&DOCUMENTS)),
        ("example", 30, Any),
    ],
    extensions: 31,
};

/// Encodes a v2 JSON document as protobuf.
///
/// Rule: OAPI-07.
///
/// # Errors
/// Returns an error if the document is not valid JSON or is too deeply nested.
pub(super) fn encoded(document: &[u8]) -> serde_json::Result<Vec<u8>> {
    let document: Node = serde_json::from_slice(document)?;
    let mut out = Vec::new();
    message(&mut out, &DOCUMENT, &document);
    Ok(out)
}

fn message(out: &mut Vec<u8>, of: &Message, node: &Node) {
    for (name, number, kind) in of.fields {
        if let Some(value) = node.get(name) {
            field(out, *number, kind, value);
        }
    }
    for (name, value) in node.members().iter().filter(|(name, _)| name.starts_with("x-")) {
        nested(out, of.extensions, |out| {
            text(out, 1, name);
            nested(out, 2, |out| text(out, 2, &yaml(value)));
        });
    }
}

fn field(out: &mut Vec<u8>, number: u32, kind: &Kind, value: &Node) {
    match (kind, value) {
        (Text, value) => text(out, number, value.text()),
        (Flag, Node::Flag(true)) => {
            tag(out, number, 0);
            out.push(1);
        }
        (Integer, Node::Number(value)) if value.as_u64() != Some(0) => {
            tag(out, number, 0);
            varint(
                out,
                value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned)).unwrap_or_default(),
            );
        }
        (Double, Node::Number(value)) if value.as_f64() != Some(0.0) => {
            tag(out, number, 1);
            out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
        }
        (Texts, value) => texts(out, number, value),
        (Any, value) => nested(out, number, |out| text(out, 2, &yaml(value))),
        (Anys, value) => {
            for item in value.items() {
                nested(out, number, |out| text(out, 2, &yaml(item)));
            }
        }
        (One(of), value) => nested(out, number, |out| message(out, of, value)),
        (By(write), value) => write(out, number, value),
        (Flag | Integer | Double, _) => {}
    }
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        out.push(number.to_le_bytes()[0] | 128);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn tag(out: &mut Vec<u8>, number: u32, wire: u64) {
    varint(out, u64::from(number) << 3 | wire);
}

fn nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    tag(out, number, 2);
    varint(out, inner.len() as u64);
    out.append(&mut inner);
}

fn text(out: &mut Vec<u8>, number: u32, text: &str) {
    if !text.is_empty() {
        nested(out, number, |out| out.extend(text.as_bytes()));
    }
}

/// Encodes a list of strings, including empty strings.
fn texts(out: &mut Vec<u8>, number: u32, list: &Node) {
    for item in list.items() {
        nested(out, number, |out| out.extend(item.text().as_bytes()));
    }
}

/// Encodes each member as a message with its name and value in the field `number`.
fn named(out: &mut Vec<u8>, number: u32, members: &Node, write: fn(&mut Vec<u8>, &Node)) {
    for (name, value) in members.members() {
        nested(out, number, |out| {
            text(out, 1, name);
            nested(out, 2, |out| write(out, value));
        });
    }
}

fn schema(out: &mut Vec<u8>, node: &Node) {
    message(out, &SCHEMA, node);
}

fn schemas(out: &mut Vec<u8>, number: u32, node: &Node) {
    nested(out, number, |out| named(out, 1, node, schema));
}

fn schema_item(out: &mut Vec<u8>, number: u32, node: &Node) {
    nested(out, number, |out| nested(out, 1, |out| schema(out, node)));
}

fn all_of(out: &mut Vec<u8>, number: u32, node: &Node) {
    for item in node.items() {
        nested(out, number, |out| schema(out, item));
    }
}

fn items(out: &mut Vec<u8>, number: u32, node: &Node) {
    nested(out, number, |out| all_of(out, 1, node));
}

fn types(out: &mut Vec<u8>, number: u32, node: &Node) {
    nested(out, number, |out| texts(out, 1, node));
}

fn additional_properties(out: &mut Vec<u8>, number: u32, node: &Node) {
    nested(out, number, |out| {
        if let Node::Flag(flag) = node {
            tag(out, 2, 0);
            out.push(u8::from(*flag));
        } else {
            nested(out, 1, |out| schema(out, node));
        }
    });
}

fn paths(out: &mut Vec<u8>, number: u32, node: &Node) {
    nested(out, number, |out| named(out, 2, node, |out, path| message(out, &PATH_ITEM, path)));
}

fn reference(out: &mut Vec<u8>, node: &Node) {
    text(out, 1, node.get("$ref").map(Node::text).unwrap_or_default());
    text(out, 2, node.get("description").map(Node::text).unwrap_or_default());
}

fn parameter(out: &mut Vec<u8>, node: &Node) {
    match node.get("in").map(Node::text) {
        Some("body") => nested(out, 1, |out| message(out, &BODY, node)),
        Some("query") => nested(out, 2, |out| nested(out, 3, |out| message(out, &QUERY_PARAMETER, node))),
        Some("path") => nested(out, 2, |out| nested(out, 4, |out| message(out, &PARAMETER, node))),
        _ => nested(out, 2, |out| nested(out, 1, |out| message(out, &PARAMETER, node))),
    }
}

fn parameters(out: &mut Vec<u8>, number: u32, list: &Node) {
    for item in list.items() {
        nested(out, number, |out| match item.get("$ref") {
            Some(_) => nested(out, 2, |out| reference(out, item)),
            None => nested(out, 1, |out| parameter(out, item)),
        });
    }
}

fn parameter_definitions(out: &mut Vec<u8>, number: u32, node: &Node) {
    nested(out, number, |out| named(out, 1, node, parameter));
}

fn responses(out: &mut Vec<u8>, number: u32, node: &Node) {
    let response = |out: &mut Vec<u8>, node: &Node| match node.get("$ref") {
        Some(_) => nested(out, 2, |out| reference(out, node)),
        None => nested(out, 1, |out| message(out, &RESPONSE, node)),
    };
    nested(out, number, |out| named(out, 1, node, response));
}

fn requirements(out: &mut Vec<u8>, number: u32, list: &Node) {
    for item in list.items() {
        nested(out, number, |out| named(out, 1, item, |out, scopes| texts(out, 1, scopes)));
    }
}

fn security_definitions(out: &mut Vec<u8>, number: u32, node: &Node) {
    let by_key = |out: &mut Vec<u8>, node: &Node| nested(out, 2, |out| message(out, &API_KEY, node));
    nested(out, number, |out| named(out, 1, node, by_key));
}
