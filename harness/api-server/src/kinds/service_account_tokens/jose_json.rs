//! Decodes the JSON of tokens strictly, because duplicate keys can hide a claim.
//!
//! Source: go-jose json/decode.go, `object` and `objectInterface`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Decodes a JSON document without duplicate keys.
///
/// # Errors
/// Returns the message of go-jose for a duplicate key, and a message of the parser for invalid JSON.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = UniqueKeys.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| {
        let text = error.to_string();
        // The parser adds the position, which go-jose does not.
        text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
    })
}

struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("json: duplicate key '{key}' in object")));
            }
            let value = entries.next_value_seed(Self)?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_keys_are_rejected_at_every_level() {
        let duplicate = |key: &str| Err(format!("json: duplicate key '{key}' in object"));
        assert_eq!(decode(br#"{"exp": 1, "nbf": 2, "exp": 3}"#), duplicate("exp"));
        assert_eq!(decode(br#"[{"a": {"b": null, "b": null}}]"#), duplicate("b"));
        assert_eq!(decode(br#"{"a\u0062": 1, "ab": 2}"#), duplicate("ab"));
        assert_eq!(decode(br#"{"a": 1, "A": -1, "b": [1.5, "x", true, null]}"#).unwrap(), {
            json!({"a": 1, "A": -1, "b": [1.5, "x", true, null]})
        });
        assert!(decode(b"{} {}").is_err() && decode(b"").is_err());
    }
}
