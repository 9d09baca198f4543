//! Converts protobuf messages to the JSON that Go's encoder writes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kubernetes_types::quantity::Quantity;
use kubernetes_types::schema::{Field, Form, Kind, MESSAGES, Message, MessageId, Shape};
use serde_json::{Map, Value};

use super::DecodeError;
use super::wire::{Fields, Wire, low_i32, varint};

/// The maximum number of messages in an object.
///
/// An empty message takes two bytes in the body and hundreds of bytes in memory.
pub(super) const MAX_MESSAGES: usize = 100_000;

/// The maximum nesting depth of messages.
pub(super) const MAX_DEPTH: usize = 100;

/// Decodes one object and counts its messages.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    parts: usize,
    depth: usize,
}

impl Decoder {
    /// Decodes a message to JSON. Omits null members.
    ///
    /// # Errors
    /// Returns [`DecodeError`] if the bytes are not a message of this type or the message is too large.
    pub(super) fn decode(&mut self, id: MessageId, bytes: &[u8]) -> Result<Value, DecodeError> {
        if self.parts == MAX_MESSAGES || self.depth == MAX_DEPTH {
            return Err(DecodeError::TooLarge);
        }
        self.parts += 1;
        self.depth += 1;
        let message = MESSAGES.get(id);
        let mut found: Vec<Vec<Wire<'_>>> = vec![Vec::new(); message.fields.len()];
        for field in Fields::new(message.name, bytes) {
            let (number, wire) = field?;
            // The server skips unknown fields, even with strict field validation.
            let mut fields = message.fields.iter().zip(&mut found);
            if let Some((_, wires)) = fields.find(|(field, _)| field.number == number) {
                wires.push(wire);
            }
        }
        let value = match message.form {
            Form::Object => self.object(message, &found)?,
            Form::Value => self.first(message, &found)?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self, message: &Message, found: &[Vec<Wire<'_>>]) -> Result<Value, DecodeError> {
        let mut members = Map::new();
        for (field, wires) in message.fields.iter().zip(found) {
            match self.field(field, wires)? {
                None | Some(Value::Null) => {}
                Some(Value::Object(inner)) if field.name.is_empty() => members.extend(inner),
                Some(value) => {
                    members.insert(field.name.to_owned(), value);
                }
            }
        }
        Ok(Value::Object(members))
    }

    fn first(&mut self, message: &Message, found: &[Vec<Wire<'_>>]) -> Result<Value, DecodeError> {
        for (field, wires) in message.fields.iter().zip(found) {
            if let Some(value) = self.field(field, wires)? {
                return Ok(value);
            }
        }
        Ok(Value::Null)
    }

    /// Decodes a field; returns `None` if JSON omits it.
    fn field(&mut self, field: &Field, wires: &[Wire<'_>]) -> Result<Option<Value>, DecodeError> {
        match field.shape {
            Shape::List => {
                let mut items = Vec::new();
                for wire in wires {
                    self.items(field, *wire, &mut items)?;
                }
                Ok((!items.is_empty()).then_some(Value::Array(items)))
            }
            Shape::Map => {
                let mut members = Map::new();
                for wire in wires {
                    let (key, value) = self.entry(field, wire.bytes(field.name)?)?;
                    members.insert(key, value);
                }
                Ok((!members.is_empty()).then_some(Value::Object(members)))
            }
            Shape::Optional => match merged(field, wires)? {
                Some(wire) => self.value(field, wire.as_wire()).map(Some),
                None => Ok(None),
            },
            Shape::Plain if field.always => match merged(field, wires)? {
                Some(wire) => self.value(field, wire.as_wire()).map(Some),
                None => self.zero(field.kind).map(Some),
            },
            Shape::Plain => match merged(field, wires)? {
                Some(wire) => {
                    let value = self.value(field, wire.as_wire())?;
                    // A JSON value is set even if it is an empty string.
                    if matches!(field.kind, Kind::Json) {
                        return Ok(Some(value).filter(|value| !value.is_null()));
                    }
                    Ok((value != self.zero(field.kind)? && !is_zero(&value)).then_some(value))
                }
                None => Ok(None),
            },
        }
    }

    /// Decodes one item of a list, or several packed numbers, into `items`.
    fn items(&mut self, field: &Field, wire: Wire<'_>, items: &mut Vec<Value>) -> Result<(), DecodeError> {
        match (field.kind, wire) {
            (Kind::Int32 | Kind::Int64 | Kind::Bool, Wire::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    let number = Wire::Varint(varint(&mut packed)?);
                    items.push(self.value(field, number)?);
                }
            }
            _ => items.push(self.value(field, wire)?),
        }
        Ok(())
    }

    fn entry(&mut self, field: &Field, bytes: &[u8]) -> Result<(String, Value), DecodeError> {
        let (mut key, mut value) = (String::new(), None);
        for entry in Fields::new("", bytes) {
            match entry? {
                (1, wire) => key = wire.text(field.name)?,
                (2, wire) => value = Some(wire),
                _ => {}
            }
        }
        let value = match value {
            Some(wire) => self.value(field, wire)?,
            None if field.kind == Kind::Bytes => Value::from(""),
            None => self.zero(field.kind)?,
        };
        Ok((key, value))
    }

    fn value(&mut self, field: &Field, wire: Wire<'_>) -> Result<Value, DecodeError> {
        let name = field.name;
        Ok(match field.kind {
            Kind::String => wire.text(name)?.into(),
            Kind::Bool => (wire.varint(name)? != 0).into(),
            Kind::Int32 => low_i32(wire.varint(name)?).into(),
            Kind::Int64 => wire.varint(name)?.cast_signed().into(),
            Kind::Double => match wire {
                Wire::Fixed64(bits) => double(f64::from_bits(bits))?,
                Wire::Varint(_) | Wire::Bytes(_) | Wire::Fixed32 | Wire::Group => {
                    return Err(wire.wrong(name).into());
                }
            },
            Kind::Bytes => STANDARD.encode(wire.bytes(name)?).into(),
            Kind::Json => match wire.bytes(name)? {
                [] => Value::Null,
                text => serde_json::from_slice(text)?,
            },
            Kind::Quantity => quantity(wire.bytes(name)?)?,
            Kind::Time => time(wire.bytes(name)?, false)?,
            Kind::MicroTime => time(wire.bytes(name)?, true)?,
            Kind::IntOrString => int_or_string(wire.bytes(name)?)?,
            Kind::Message(id) => self.decode(id, wire.bytes(name)?)?,
        })
    }

    /// Returns the JSON that Go writes for an unset field of this kind.
    fn zero(&mut self, kind: Kind) -> Result<Value, DecodeError> {
        Ok(match kind {
            Kind::String => "".into(),
            Kind::Bool => false.into(),
            Kind::Int32 | Kind::Int64 | Kind::IntOrString => 0.into(),
            Kind::Double => 0.0.into(),
            Kind::Bytes | Kind::Json | Kind::Time | Kind::MicroTime => Value::Null,
            Kind::Quantity => "0".into(),
            Kind::Message(id) => self.decode(id, &[])?,
        })
    }
}

/// The merged value of a field that occurs at least once.
enum Merged<'a> {
    Wire(Wire<'a>),
    Joined(Vec<u8>),
}

impl Merged<'_> {
    fn as_wire(&self) -> Wire<'_> {
        match self {
            Self::Wire(wire) => *wire,
            Self::Joined(bytes) => Wire::Bytes(bytes),
        }
    }
}

/// Merges all values of a field. Concatenates messages; for any other type, returns the last value.
fn merged<'a>(field: &Field, wires: &[Wire<'a>]) -> Result<Option<Merged<'a>>, DecodeError> {
    let Some((last, others)) = wires.split_last() else { return Ok(None) };
    if others.is_empty() || !matches!(field.kind, Kind::Message(_)) {
        return Ok(Some(Merged::Wire(*last)));
    }
    let mut joined = Vec::new();
    for wire in wires {
        joined.extend_from_slice(wire.bytes(field.name)?);
    }
    Ok(Some(Merged::Joined(joined)))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Converts a number to JSON. Whole numbers do not have a decimal point.
///
/// Source: Go encoding/json/encode.go, `floatEncoder`.
fn double(number: f64) -> Result<Value, DecodeError> {
    let text = serde_json::Number::from_f64(number).ok_or(DecodeError::NotFinite)?.to_string();
    Ok(serde_json::from_str(text.strip_suffix(".0").unwrap_or(&text))?)
}

/// Decodes a quantity to JSON.
///
/// Source: `apimachinery pkg/api/resource/quantity_proto.go`, `Unmarshal`.
fn quantity(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut quantity = Quantity::ZERO;
    for field in Fields::new("Quantity", bytes) {
        if let (1, wire) = field? {
            quantity = Quantity::parse(&wire.text("String_")?)?;
        }
    }
    Ok(quantity.to_string().into())
}

/// Decodes a time to JSON; returns `null` if unset. A `Time` has whole seconds; a `MicroTime` has microseconds.
///
/// Source: `apimachinery pkg/apis/meta/v1/time_proto.go` and `micro_time_proto.go`.
fn time(bytes: &[u8], is_micro: bool) -> Result<Value, DecodeError> {
    const ZERO: i64 = -62_135_596_800; // 0001-01-01T00:00:00Z
    const LAST: i64 = 253_402_300_799; // 9999-12-31T23:59:59Z
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields::new("Timestamp", bytes) {
        match field? {
            (1, wire) => seconds = wire.varint("Seconds")?.cast_signed(),
            (2, wire) => nanos = low_i32(wire.varint("Nanos")?),
            _ => {}
        }
    }
    let micros = if is_micro { nanos / 1000 } else { 0 };
    if seconds == ZERO && micros == 0 {
        return Ok(Value::Null);
    }
    if !(ZERO..=LAST).contains(&seconds) {
        return Err(DecodeError::Time);
    }
    let timestamp = Timestamp::new(seconds, micros * 1000).ok().ok_or(DecodeError::Time)?;
    let format = if is_micro { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(timestamp.strftime(format).to_string().into())
}

/// Decodes an `IntOrString` to a JSON number or string.
///
/// Source: apimachinery pkg/util/intstr/intstr.go, `MarshalJSON`.
fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut which, mut number, mut text) = (0, 0, String::new());
    for field in Fields::new("IntOrString", bytes) {
        match field? {
            (1, wire) => which = wire.varint("Type")?,
            (2, wire) => number = low_i32(wire.varint("IntVal")?),
            (3, wire) => text = wire.text("StrVal")?,
            _ => {}
        }
    }
    match which {
        0 => Ok(number.into()),
        1 => Ok(text.into()),
        _ => Err(DecodeError::IntOrString),
    }
}
