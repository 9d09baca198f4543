//! Reads protobuf responses so that recordings show every field on the wire under its JSON name.
//!
//! Recordings also show fields with zero values, because a server sends some of them and omits others. The order of the
//! fields is checked, because it is the same in every server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kubernetes_types::group_version::GroupVersionKind;
use kubernetes_types::schema::{Field, Kind, MESSAGES, MessageId, Shape};
use serde_json::{Map, Value, json};

/// The prefix of an object that is encoded as protobuf.
const PREFIX: &[u8] = b"k8s\0";

/// The content of a field: a number, or bytes.
#[derive(Clone, Copy, Debug)]
enum Content<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Reads an object, or the events of a watch; returns `None` if the body is neither.
pub(crate) fn readable(body: &[u8]) -> Option<Value> {
    if body.starts_with(PREFIX) { object(body) } else { events(body) }
}

/// Reads a watch event without the length that precedes it.
pub(crate) fn event(message: &[u8]) -> Option<Value> {
    let (mut happened, mut embedded) = (None, None);
    for (number, content) in fields(message)? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => happened = Some(text(bytes)),
            (2, Content::Bytes(bytes)) => {
                let [(1, Content::Bytes(raw))] = fields(bytes)?[..] else { return None };
                embedded = object(raw);
            }
            _ => return None,
        }
    }
    Some(json!({"type": happened?, "object": embedded?}))
}

fn events(mut body: &[u8]) -> Option<Value> {
    let mut events = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (message, rest) = rest.split_at_checked(length)?;
        events.push(event(message)?);
        body = rest;
    }
    (body.is_empty() && !events.is_empty()).then_some(Value::Array(events))
}

fn object(body: &[u8]) -> Option<Value> {
    let envelope = fields(body.strip_prefix(PREFIX)?)?;
    let [(1, Content::Bytes(kind)), (2, Content::Bytes(raw)), (3, encoding), (4, media_type)] = envelope[..]
    else {
        return None;
    };
    let [(1, Content::Bytes(api_version)), (2, Content::Bytes(kind))] = fields(kind)?[..] else {
        return None;
    };
    let type_meta = json!({"apiVersion": text(api_version), "kind": text(kind)});
    let kind = GroupVersionKind::from_object(&type_meta);
    let mut members = match MESSAGES.of_response(&kind) {
        Some(message) => message_of(message, raw)?,
        None => list(&kind, raw)?,
    };
    members.extend(type_meta.as_object().cloned()?);
    members.insert("encoding".to_owned(), "protobuf".into());
    if !matches!((encoding, media_type), (Content::Bytes(b""), Content::Bytes(b""))) {
        members.insert("envelope".to_owned(), format!("{encoding:?} {media_type:?}").into());
    }
    Some(Value::Object(members))
}

fn list(kind: &GroupVersionKind, raw: &[u8]) -> Option<Map<String, Value>> {
    let item = GroupVersionKind { kind: kind.kind.strip_suffix("List")?.to_owned(), ..kind.clone() };
    let message = MESSAGES.of_kind(&item)?;
    let metadata = MESSAGES.of_response(&GroupVersionKind::new("", "", "ListMeta"))?;
    let (mut members, mut items) = (Map::new(), Vec::new());
    for (number, content) in fields(raw)? {
        match (number, content) {
            (1, Content::Bytes(bytes)) if items.is_empty() => {
                members.insert("metadata".to_owned(), message_of(metadata, bytes)?.into());
            }
            (2, Content::Bytes(bytes)) => items.push(Value::Object(message_of(message, bytes)?)),
            _ => return None,
        }
    }
    members.insert("items".to_owned(), items.into());
    Some(members)
}

fn message_of(id: MessageId, bytes: &[u8]) -> Option<Map<String, Value>> {
    let message = MESSAGES.get(id);
    let mut members = Map::new();
    let mut last = 0;
    for (number, content) in fields(bytes)? {
        let field = message.fields.iter().find(|field| field.number == number);
        let is_repeated = field.is_some_and(|field| matches!(field.shape, Shape::List | Shape::Map));
        if number < last || (number == last && !is_repeated) {
            members.insert("out of order".to_owned(), number.into());
        }
        last = number;
        let Some(field) = field else {
            members.insert(format!("field {number}"), format!("{content:?}").into());
            continue;
        };
        let name = match (field.name, field.kind) {
            ("", Kind::Message(id)) => MESSAGES.get(id).name.to_owned(),
            ("", _) => format!("field {number}"),
            (name, _) => name.to_owned(),
        };
        add(members.entry(name).or_insert(Value::Null), field, content)?;
    }
    Some(members)
}

/// Adds one occurrence of a field to the field's JSON value. Repeated fields occur once for each item.
fn add(value: &mut Value, field: &Field, content: Content<'_>) -> Option<()> {
    match (field.shape, content) {
        (Shape::Plain | Shape::Optional, content) => *value = read(field.kind, content)?,
        (Shape::List, content) => {
            let item = read(field.kind, content)?;
            match value.as_array_mut() {
                Some(items) => items.push(item),
                None => *value = json!([item]),
            }
        }
        (Shape::Map, Content::Bytes(entry)) => {
            let entry = fields(entry)?;
            let (key, entry) = match entry[..] {
                [(1, Content::Bytes(key)), (2, content)] => (text(key), read(field.kind, content)?),
                [(1, Content::Bytes(key))] => (text(key), Value::Null),
                _ => return None,
            };
            let last = value.as_object().and_then(|entries| entries.keys().next_back());
            let key =
                if last.is_some_and(|last| *last > key) { format!("{key} (out of order)") } else { key };
            value[key] = entry;
        }
        (Shape::Map, _) => return None,
    }
    Some(())
}

fn read(kind: Kind, content: Content<'_>) -> Option<Value> {
    Some(match (kind, content) {
        (Kind::String | Kind::Json, Content::Bytes(bytes)) => text(bytes).into(),
        (Kind::Bytes, Content::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Kind::Bool, Content::Number(number)) if number < 2 => (number == 1).into(),
        (Kind::Int32 | Kind::Int64, Content::Number(number)) => number.cast_signed().into(),
        (Kind::Double, Content::Fixed(bits)) => f64::from_bits(bits).into(),
        (Kind::Quantity, Content::Bytes(bytes)) => match fields(bytes)?[..] {
            [(1, Content::Bytes(quantity))] => text(quantity).into(),
            _ => return None,
        },
        (Kind::Time | Kind::MicroTime, Content::Bytes(b"")) => "zero".into(),
        (Kind::Time | Kind::MicroTime, Content::Bytes(bytes)) => match fields(bytes)?[..] {
            [(1, Content::Number(seconds)), (2, Content::Number(nanos))] => {
                let nanos = i32::try_from(nanos).ok()?;
                Timestamp::new(seconds.cast_signed(), nanos).ok()?.to_string().into()
            }
            _ => return None,
        },
        (Kind::IntOrString, Content::Bytes(bytes)) => match fields(bytes)?[..] {
            [(1, Content::Number(which)), (2, Content::Number(number)), (3, Content::Bytes(string))] => {
                json!([which, number.cast_signed(), text(string)])
            }
            _ => return None,
        },
        (Kind::Message(id), Content::Bytes(bytes)) => message_of(id, bytes)?.into(),
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the numbered fields of a message in the order in which they are encoded; `None` if the bytes are not a
/// message.
fn fields(mut bytes: &[u8]) -> Option<Vec<(i32, Content<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let number = i32::try_from(tag >> 3).ok()?;
        let content = match tag & 7 {
            0 => Content::Number(varint(&mut bytes)?),
            1 => {
                let (fixed, rest) = bytes.split_first_chunk::<8>()?;
                bytes = rest;
                Content::Fixed(u64::from_le_bytes(*fixed))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (content, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Content::Bytes(content)
            }
            _ => return None,
        };
        fields.push((number, content));
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_values_and_the_order_of_fields_are_shown() {
        let status = b"\x0a\x06\x0a\x00\x12\x00\x1a\x00\x12\x07Failure\x30\x90\x03\x1a\x01x";
        let envelope = [
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12".as_slice(),
            &[u8::try_from(status.len()).unwrap_or(0)],
            status,
            b"\x1a\0\"\0",
        ]
        .concat();
        assert_eq!(
            readable(&envelope),
            Some(json!({
                "apiVersion": "v1", "kind": "Status", "encoding": "protobuf", "status": "Failure", "message": "x",
                "metadata": {"selfLink": "", "resourceVersion": "", "continue": ""}, "code": 400, "out of order": 3,
            }))
        );
        assert_eq!(readable(b"not protobuf"), None);
    }
}
