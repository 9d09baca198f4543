//! Generates objects that violate one constraint of their schema.

use serde_json::{Map, Value, json};

use super::{NearMiss, pattern, strings};

/// The maximum number of items or characters that are added to exceed a limit.
const MAX_LENGTH: usize = 4096;
/// Strings that most patterns do not match.
const STRANGE: [&str; 5] = ["", "!", " ~", "\u{7f}", "-"];

/// Returns copies of `object` that violate one constraint of `schema`.
///
/// The API server may still accept some of the copies because of a default or another alternative.
pub(super) fn near_misses(schema: &Value, object: &Value) -> Vec<NearMiss> {
    let mut walk = Walk { object, found: Vec::new() };
    walk.visit(schema, object, "");
    walk.found
}

struct Walk<'a> {
    object: &'a Value,
    found: Vec<NearMiss>,
}

impl Walk<'_> {
    /// Adds a copy of the object in which `value` replaces the value at `pointer`.
    fn add(&mut self, pointer: &str, keyword: &str, value: Value) {
        let mut object = self.object.clone();
        let Some(place) = object.pointer_mut(pointer) else { return };
        *place = value;
        self.found.push(NearMiss { what: format!("{pointer} {keyword}").trim_start().to_owned(), object });
    }

    fn visit(&mut self, schema: &Value, value: &Value, pointer: &str) {
        if !pointer.is_empty() {
            self.of_any(schema, pointer);
        }
        match value {
            Value::Object(members) => self.of_object(schema, members, pointer),
            Value::Array(items) => self.of_array(schema, items, pointer),
            Value::String(text) => self.of_text(schema, text, pointer),
            Value::Number(number) => self.of_number(schema, number.as_f64().unwrap_or_default(), pointer),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn of_any(&mut self, schema: &Value, pointer: &str) {
        let wrong = match schema["type"].as_str() {
            Some("string") => Some(json!(7)),
            Some("integer" | "number" | "boolean" | "object" | "array") => Some(json!("text")),
            _ => None,
        };
        if let Some(wrong) = wrong {
            self.add(pointer, "type", wrong);
        }
        if schema.get("enum").is_some() && schema["type"] == "string" {
            self.add(pointer, "enum", "not-one-of-them".into());
        }
    }

    fn of_object(&mut self, schema: &Value, members: &Map<String, Value>, pointer: &str) {
        let without = |name: &str| {
            let mut members = members.clone();
            members.remove(name);
            members
        };
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if members.contains_key(name) {
                self.add(pointer, &format!("required {name}"), without(name).into());
            }
        }
        if schema["x-kubernetes-embedded-resource"] == true {
            self.add(pointer, "embedded kind", without("kind").into());
        }
        let least = schema["minProperties"].as_u64().and_then(|least| usize::try_from(least).ok());
        if let Some(least) = least.filter(|least| (1..=members.len()).contains(least)) {
            let few: Map<String, Value> = members.clone().into_iter().take(least - 1).collect();
            self.add(pointer, "minProperties", few.into());
        }
        let most = schema["maxProperties"].as_u64().and_then(|most| usize::try_from(most).ok());
        let most = most.filter(|most| *most < MAX_LENGTH);
        if let (Some(most), Some(example)) = (most, members.values().next()) {
            let more = (members.len()..=most).map(|index| (format!("more{index}"), example.clone()));
            self.add(
                pointer,
                "maxProperties",
                Value::Object(members.clone().into_iter().chain(more).collect()),
            );
        }
        for (name, member) in members {
            // The schema does not describe the members that every object has.
            if pointer.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            let of_member = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
            if let Some(of_member) = of_member {
                let name = name.replace('~', "~0").replace('/', "~1");
                self.visit(of_member, member, &format!("{pointer}/{name}"));
            }
        }
    }

    fn of_array(&mut self, schema: &Value, items: &[Value], pointer: &str) {
        let limit = |name: &str| schema[name].as_u64().and_then(|limit| usize::try_from(limit).ok());
        if let Some(few) = limit("minItems").and_then(|least| items.get(..least.checked_sub(1)?)) {
            self.add(pointer, "minItems", few.into());
        }
        let most = limit("maxItems").filter(|most| *most < MAX_LENGTH);
        if let (Some(most), Some(last)) = (most, items.last()) {
            let more = std::iter::repeat_n(last, (most + 1).saturating_sub(items.len()));
            self.add(pointer, "maxItems", items.iter().chain(more).cloned().collect());
        }
        if let Some(first) = items.first() {
            let twice: Value = items.iter().chain([first]).cloned().collect();
            match schema["x-kubernetes-list-type"].as_str() {
                Some(kind @ ("set" | "map")) => self.add(pointer, &format!("list-type {kind}"), twice),
                _ if schema["uniqueItems"] == true => self.add(pointer, "uniqueItems", twice),
                _ => {}
            }
            self.visit(&schema["items"], first, &format!("{pointer}/0"));
        }
    }

    fn of_text(&mut self, schema: &Value, text: &str, pointer: &str) {
        let (least, most) = strings::lengths(schema);
        if least > 0 {
            self.add(pointer, "minLength", text.chars().take(least - 1).collect::<String>().into());
        }
        if most < MAX_LENGTH {
            let more = (most + 1).saturating_sub(text.chars().count());
            self.add(pointer, "maxLength", format!("{text}{}", "x".repeat(more)).into());
        }
        if let Some(expression) = schema["pattern"].as_str()
            && let Some(strange) = STRANGE.into_iter().find(|text| !pattern::is_match(expression, text))
        {
            self.add(pointer, "pattern", strange.into());
        }
        if let Some(format) = schema["format"].as_str() {
            self.add(pointer, &format!("format {format}"), "not of it: \u{1}".into());
        }
    }

    fn of_number(&mut self, schema: &Value, number: f64, pointer: &str) {
        let limit = |name: &str| schema[name].as_f64();
        let beyond = |excluded: &str| if schema[excluded] == true { 0.0 } else { 1.0 };
        let numbers = [
            ("minimum", limit("minimum").map(|least| least - beyond("exclusiveMinimum"))),
            ("maximum", limit("maximum").map(|most| most + beyond("exclusiveMaximum"))),
            (
                "multipleOf",
                limit("multipleOf").map(|step| number + if step > 1.0 { 1.0 } else { step / 2.0 }),
            ),
        ];
        for (keyword, number) in numbers {
            let Some(number) = number else { continue };
            // The shortest form of an integral number has no fraction.
            if let Ok(number) = serde_json::from_str(&number.to_string()) {
                self.add(pointer, keyword, number);
            }
        }
    }
}
