//! Encodes objects in protobuf as Go's generated code does.

use jiff::Timestamp;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::go_base64;
use kubernetes_types::json::text;
use kubernetes_types::quoting;
use kubernetes_types::schema::{Field, Form, Kind, MESSAGES, Message, MessageId, Shape};
use serde_json::{Map, Value};

use super::{PREFIX, fields_v1};

/// Encodes an object in its envelope; returns `None` if its kind does not have a protobuf message.
///
/// Source: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, `doEncode`.
pub(crate) fn encode(object: &Value) -> Option<Vec<u8>> {
    let kind = GroupVersionKind::from_object(object);
    let Some(message) = MESSAGES.of_response(&kind) else {
        return encode_list(object, &kind);
    };
    let mut writer = Writer::default();
    let end = writer.begin_envelope();
    writer.message(message, object);
    Some(writer.end_envelope(end, object))
}

/// Encodes a list. The table of messages does not have entries for kinds of lists.
fn encode_list(object: &Value, kind: &GroupVersionKind) -> Option<Vec<u8>> {
    let mut list = ListEncoder::new(kind)?;
    let items = object.get("items").and_then(Value::as_array);
    items.into_iter().flatten().rev().for_each(|item| list.prepend(item));
    Some(list.finish(object))
}

/// Encodes a list from its last item to its first, so that only one decoded item has to be in memory.
///
/// Every list has its metadata in field 1 and its items in field 2.
pub(crate) struct ListEncoder {
    writer: Writer,
    end: usize,
    items: MessageId,
}

impl ListEncoder {
    /// Creates an encoder for a list; returns `None` if the kind of its items does not have a protobuf message.
    pub(crate) fn new(kind: &GroupVersionKind) -> Option<Self> {
        let item = GroupVersionKind { kind: kind.kind.strip_suffix("List")?.to_owned(), ..kind.clone() };
        let items = MESSAGES.of_kind(&item)?;
        let mut writer = Writer::default();
        let end = writer.begin_envelope();
        Some(Self { writer, end, items })
    }

    /// Adds an item before all others.
    pub(crate) fn prepend(&mut self, item: &Value) {
        let end = self.writer.end();
        self.writer.message(self.items, item);
        self.writer.close(2, end);
    }

    /// Returns the list with the `apiVersion`, `kind`, and `metadata` of `head`.
    pub(crate) fn finish(mut self, head: &Value) -> Vec<u8> {
        let end = self.writer.end();
        if let Some(message) = MESSAGES.of_response(&GroupVersionKind::new("", "", "ListMeta")) {
            self.writer.message(message, head.get("metadata").unwrap_or(&Value::Null));
        }
        self.writer.close(1, end);
        self.writer.end_envelope(self.end, head)
    }
}

/// Returns a watch event with an encoded object, preceded by its length.
///
/// Source: apimachinery pkg/util/framer/framer.go, `NewLengthDelimitedFrameWriter`; pkg/apis/meta/v1/generated.proto,
/// `WatchEvent`.
pub(crate) fn event(happened: &str, object: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    let end = writer.end();
    writer.bytes(1, object);
    writer.close(2, end);
    writer.bytes(1, happened.as_bytes());
    let length = u32::try_from(writer.end()).unwrap_or(u32::MAX);
    writer.prepend(&length.to_be_bytes());
    writer.finish()
}

/// Writes messages backward, so that the length of each message is known before the length is written.
#[derive(Debug, Default)]
struct Writer {
    /// The bytes written so far, the last one first.
    reversed: Vec<u8>,
}

impl Writer {
    /// Returns the current position. Callers pass it to [`Self::close`] as the end of the content that follows.
    fn end(&self) -> usize {
        self.reversed.len()
    }

    fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }

    fn prepend(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    fn varint(&mut self, number: u64) {
        let mut bytes = [0; 10];
        let (mut length, mut rest) = (0, number);
        for byte in &mut bytes {
            length += 1;
            let [low, ..] = (rest & 0x7f).to_le_bytes();
            rest >>= 7;
            *byte = if rest == 0 { low } else { low | 0x80 };
            if rest == 0 {
                break;
            }
        }
        self.prepend(bytes.get(..length).unwrap_or_default());
    }

    fn tag(&mut self, number: i32, wire_type: u64) {
        self.varint(u64::from(number.unsigned_abs()) << 3 | wire_type);
    }

    /// Writes the length and the tag of a field whose content ends at `end`.
    fn close(&mut self, number: i32, end: usize) {
        let length = self.end() - end;
        self.varint(u64::try_from(length).unwrap_or_default());
        self.tag(number, 2);
    }

    fn bytes(&mut self, number: i32, bytes: &[u8]) {
        let end = self.end();
        self.prepend(bytes);
        self.close(number, end);
    }

    fn number(&mut self, number: i32, value: i64) {
        self.varint(value.cast_unsigned());
        self.tag(number, 0);
    }

    /// Begins the object of an envelope. Only an empty content encoding and an empty content type follow the object.
    ///
    /// Source: apimachinery pkg/runtime/generated.proto, `Unknown`.
    fn begin_envelope(&mut self) -> usize {
        self.bytes(4, b"");
        self.bytes(3, b"");
        self.end()
    }

    fn end_envelope(mut self, end: usize, object: &Value) -> Vec<u8> {
        self.close(2, end);
        let end = self.end();
        self.bytes(2, text(object, &["kind"]).as_bytes());
        self.bytes(1, text(object, &["apiVersion"]).as_bytes());
        self.close(1, end);
        self.prepend(PREFIX);
        self.finish()
    }

    fn message(&mut self, id: MessageId, value: &Value) {
        let message = MESSAGES.get(id);
        match message.form {
            Form::Object => self.object(message, value.as_object()),
            Form::Value => self.variants(message, value),
        }
    }

    fn object(&mut self, message: &'static Message, members: Option<&Map<String, Value>>) {
        for field in message.by_number().iter().rev() {
            if let Kind::Message(id) = field.kind
                && field.name.is_empty()
            {
                self.embedded(field, id, members);
                continue;
            }
            let value = members.and_then(|members| members.get(field.name));
            self.field(field, value.filter(|value| !value.is_null()));
        }
    }

    /// Writes an embedded struct. In JSON, its members are members of the parent.
    fn embedded(&mut self, field: &Field, id: MessageId, members: Option<&Map<String, Value>>) {
        let message = MESSAGES.get(id);
        let is_member = |name: &String| message.member(name).is_some();
        let is_present = members.is_some_and(|members| members.keys().any(is_member));
        if field.shape == Shape::Plain || is_present {
            let end = self.end();
            self.object(message, members);
            self.close(field.number, end);
        }
    }

    /// Writes a message with several JSON forms.
    ///
    /// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/marshal.go, `UnmarshalJSON`.
    fn variants(&mut self, message: &'static Message, value: &Value) {
        for field in message.by_number().iter().rev() {
            let is_it = match (field.shape, field.kind) {
                (Shape::List, _) => value.is_array(),
                (_, Kind::Json) => !value.is_null(),
                (_, Kind::Message(_)) => value.is_object(),
                // A schema in place of a Boolean also sets the Boolean.
                (_, Kind::Bool) => {
                    self.number(field.number, i64::from(*value == true || value.is_object()));
                    false
                }
                _ => false,
            };
            if is_it && field.kind == Kind::Json {
                self.bytes(field.number, json_in(message, value).as_bytes());
            } else if is_it {
                self.field(field, Some(value));
            }
        }
    }

    fn field(&mut self, field: &Field, value: Option<&Value>) {
        match (field.shape, value) {
            (Shape::List, Some(Value::Array(items))) => {
                items.iter().rev().for_each(|item| self.value(field.number, field.kind, item));
            }
            (Shape::Map, Some(Value::Object(entries))) => {
                // The members of an object are sorted, as Go sorts the keys of a map.
                for (key, value) in entries.iter().rev() {
                    let end = self.end();
                    if !(field.kind == Kind::Bytes && value.is_null()) {
                        self.value(2, field.kind, value);
                    }
                    self.bytes(1, key.as_bytes());
                    self.close(field.number, end);
                }
            }
            (Shape::Plain | Shape::Optional, Some(value)) => self.value(field.number, field.kind, value),
            (Shape::Plain, None) if !is_nil_if_absent(field.kind) => {
                self.value(field.number, field.kind, &Value::Null);
            }
            (Shape::List | Shape::Map | Shape::Optional | Shape::Plain, _) => {}
        }
    }

    /// Writes a value with its tag. `null` is encoded as the zero value.
    fn value(&mut self, number: i32, kind: Kind, value: &Value) {
        match kind {
            Kind::String => self.bytes(number, value.as_str().unwrap_or_default().as_bytes()),
            Kind::Bool => self.number(number, i64::from(value.as_bool().unwrap_or_default())),
            Kind::Int32 | Kind::Int64 => self.number(number, value.as_i64().unwrap_or_default()),
            Kind::Double => {
                self.prepend(&value.as_f64().unwrap_or_default().to_le_bytes());
                self.tag(number, 1);
            }
            Kind::Bytes => self.bytes(number, &go_base64::bytes(value).unwrap_or_default()),
            Kind::Json => self.bytes(number, value.to_string().as_bytes()),
            Kind::Quantity => {
                let end = self.end();
                self.bytes(1, value.as_str().unwrap_or("0").as_bytes());
                self.close(number, end);
            }
            Kind::Time | Kind::MicroTime => {
                let end = self.end();
                if let Some(time) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
                    let micros = if kind == Kind::MicroTime { time.subsec_microsecond() } else { 0 };
                    self.number(2, i64::from(micros) * 1000);
                    self.number(1, time.as_second());
                }
                self.close(number, end);
            }
            Kind::IntOrString => {
                let end = self.end();
                self.bytes(3, value.as_str().unwrap_or_default().as_bytes());
                self.number(2, value.as_i64().unwrap_or_default());
                self.number(1, i64::from(value.is_string()));
                self.close(number, end);
            }
            Kind::Message(id) => {
                let end = self.end();
                self.message(id, value);
                self.close(number, end);
            }
        }
    }
}

/// Returns the JSON that a message contains as bytes.
///
/// kube-apiserver keeps the JSON of a `RawExtension` as the client sent it, and encodes other values itself.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/conversion.go, `Convert_apiextensions_JSON_To_v1_JSON`.
fn json_in(message: &Message, value: &Value) -> String {
    match message.name {
        "FieldsV1" => fields_v1::encode(value),
        "RawExtension" => value.to_string(),
        _ => quoting::encode(value),
    }
}

/// Returns whether Go stores an absent field of this kind as nil although its type is not a pointer.
fn is_nil_if_absent(kind: Kind) -> bool {
    match kind {
        Kind::Bytes | Kind::Json => true,
        Kind::Message(id) => {
            let message = MESSAGES.get(id);
            message.form == Form::Value && message.fields.iter().all(|field| field.shape == Shape::List)
        }
        Kind::String
        | Kind::Bool
        | Kind::Int32
        | Kind::Int64
        | Kind::Double
        | Kind::Quantity
        | Kind::Time
        | Kind::MicroTime
        | Kind::IntOrString => false,
    }
}
