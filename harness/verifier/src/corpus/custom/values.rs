//! Generates values that a schema allows.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/types_jsonschema.go`.

use serde_json::{Map, Value, json};

use super::{alternatives, numbers, strings};

/// The maximum depth of generated values, because a schema may be recursive through
/// `x-kubernetes-preserve-unknown-fields`.
const MAX_DEPTH: usize = 12;
/// The maximum number of items or members to generate for a value.
const MAX_ITEMS: usize = 256;

/// Which optional parts are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// All optional parts, and two items in each list.
    All,
    /// Only the required parts.
    Required,
    /// The required parts and about half of the optional parts.
    Half,
}

impl Amount {
    /// The number of different amounts.
    pub(super) const COUNT: usize = 3;

    /// Returns the amount for the object with this index.
    pub(super) fn for_object(index: usize) -> Self {
        match index % Self::COUNT {
            0 => Self::All,
            1 => Self::Required,
            _ => Self::Half,
        }
    }
}

/// Selects a value among the values that a schema allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    pub(super) amount: Amount,
    /// The index of the value. Index 0 is the default in the schema, if it has one.
    pub(super) turn: usize,
    pub(super) depth: usize,
}

impl Variant {
    fn within(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Returns whether to generate an optional property. Nearly all objects have a `spec`.
    fn is_wanted(self, position: usize, property: &Value) -> bool {
        let is_structure = || property["type"] == "object" || property["type"] == "array";
        match self.amount {
            Amount::Required => self.depth == 0 && self.turn > 0,
            Amount::All => self.depth < MAX_DEPTH,
            Amount::Half if self.depth == 0 => true,
            Amount::Half if self.turn.is_multiple_of(2) && is_structure() => self.depth < MAX_DEPTH,
            Amount::Half => self.depth < MAX_DEPTH && is_chosen(position, self.turn, self.depth),
        }
    }
}

/// Returns whether the property at `position` is in the selected half of the optional parts.
///
/// The selection changes every second turn and with the depth, so that two fields are not always present together.
fn is_chosen(position: usize, turn: usize, depth: usize) -> bool {
    let mut mixed: usize = 0;
    for part in [position, turn / 2, depth] {
        // The mixing function of splitmix64, in 32 bits.
        mixed = (mixed ^ part).wrapping_add(1).wrapping_mul(0x9e37_79b9) & 0xffff_ffff;
        mixed ^= mixed >> 15;
    }
    (mixed >> 7) % 2 == turn % 2
}

/// Returns a value that `schema` allows.
pub(super) fn value(schema: &Value, variant: Variant) -> Value {
    let schema = &*alternatives::chosen(schema, variant.turn);
    let Variant { amount, turn, .. } = variant;
    let is_object = schema["type"] == "object";
    if turn == 0 && (!is_object || amount == Amount::Required) {
        for given in ["default", "example"] {
            if let Some(value) = schema.get(given) {
                return value.clone();
            }
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.is_empty())
    {
        return allowed.get(turn % allowed.len()).cloned().unwrap_or_default();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        let is_text = schema.get("pattern").is_some() || !turn.is_multiple_of(2);
        return if is_text {
            strings::int_or_string(schema, turn).into()
        } else {
            numbers::integer(schema, turn)
        };
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, variant),
        Some("array") => array(schema, variant),
        Some("boolean") => json!(turn.is_multiple_of(2)),
        Some("integer") => numbers::integer(schema, turn),
        Some("number") => numbers::number(schema, turn),
        Some("string") => strings::string(schema, turn).into(),
        _ => json!({}),
    }
}

fn count(schema: &Value, name: &str) -> Option<usize> {
    schema.get(name).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}

fn object(schema: &Value, variant: Variant) -> Value {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_required = |name: &str| required.contains(&name);
    let least = count(schema, "minProperties").unwrap_or(0).min(MAX_ITEMS);
    let most = count(schema, "maxProperties").unwrap_or(usize::MAX);
    let mut members = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        members.insert("apiVersion".to_owned(), "v1".into());
        members.insert("kind".to_owned(), "ConfigMap".into());
        members.insert("metadata".to_owned(), json!({"name": "embedded"}));
    }
    let properties = || schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties().filter(|(name, _)| is_required(name)) {
        members.insert(name.clone(), value(property, variant.within()));
    }
    for (position, (name, property)) in properties().enumerate() {
        let is_wanted = variant.is_wanted(position, property) && members.len() < most;
        if !members.contains_key(name) && (is_wanted || members.len() < least) {
            members.insert(name.clone(), value(property, variant.within()));
        }
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|schema| schema.is_object()) {
        let wanted = usize::from(variant.amount != Amount::Required && variant.depth < MAX_DEPTH);
        let wanted = least.saturating_sub(members.len()).max(wanted).min(most.saturating_sub(members.len()));
        for index in 0..wanted {
            let name = if index == 0 { "key".to_owned() } else { format!("key{index}") };
            let variant = Variant { turn: variant.turn + index, ..variant.within() };
            members.insert(name, value(additional, variant));
        }
        for name in required.iter().filter(|name| schema["properties"].get(**name).is_none()) {
            members.insert((*name).to_owned(), value(additional, variant.within()));
        }
    }
    Value::Object(members)
}

fn array(schema: &Value, variant: Variant) -> Value {
    let wanted = match variant.amount {
        _ if variant.depth >= MAX_DEPTH => 0,
        Amount::All => 2,
        Amount::Required => 0,
        Amount::Half => 1,
    };
    let least = count(schema, "minItems").unwrap_or(0).min(MAX_ITEMS);
    let wanted = least.max(wanted).min(count(schema, "maxItems").unwrap_or(usize::MAX));
    let items = &schema["items"];
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_unique = schema["uniqueItems"] == true
        || schema["x-kubernetes-list-type"] == "set"
        || schema["x-kubernetes-list-type"] == "map";
    let is_same = |one: &Value, other: &Value| match keys.as_slice() {
        [] => one == other,
        keys => keys.iter().all(|key| one.get(key) == other.get(key)),
    };
    let mut made: Vec<Value> = Vec::new();
    // With few possible values, some are repeated.
    for index in 0..2 * wanted {
        if made.len() == wanted {
            break;
        }
        let item = value(items, Variant { turn: variant.turn + index, ..variant.within() });
        if !is_unique || !made.iter().any(|known| is_same(known, &item)) {
            made.push(item);
        }
    }
    made.into()
}
