//! Generates random rules (`x-kubernetes-validations`) in one part of a schema.

use serde_json::{Map, Value, json};

use super::super::situation::Generator;

/// Adds one or two rules to one of the schemas in `schema`, in some situations.
pub(super) fn add(generator: &mut Generator<'_>, schema: &mut Value) {
    if !generator.random.chance(60) {
        return;
    }
    let mut places = Vec::new();
    collect(schema, String::new(), &mut places);
    let place = generator.random.one_of(&places);
    let Some(target) = schema.pointer_mut(&place) else { return };
    let count = generator.random.between(1, 2);
    let rules: Vec<Value> = (0..count).map(|_| rule(generator, target)).collect();
    target["x-kubernetes-validations"] = rules.into();
}

/// Collects JSON pointers to a schema and to all schemas in it.
fn collect(schema: &Value, place: String, places: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(property, format!("{place}/properties/{name}"), places);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            collect(&schema[below], format!("{place}/{below}"), places);
        }
    }
    places.push(place);
}

fn rule(generator: &mut Generator<'_>, schema: &Value) -> Value {
    let properties: Vec<&str> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let mut rule = Map::new();
    let text = expression(generator, schema, &properties);
    rule.insert("rule".to_owned(), json!(text));
    if generator.random.chance(30) {
        rule.insert("message".to_owned(), json!(generator.random.one_of(&["not so", " not so ", ""])));
    }
    if generator.random.chance(20) {
        let messages = ["'it is ' + string(self)", "'two ' + 'words'", "self.nothing", "string(self)"];
        rule.insert("messageExpression".to_owned(), json!(generator.random.one_of(&messages)));
    }
    if generator.random.chance(25) {
        let reasons = [
            "FieldValueInvalid",
            "FieldValueForbidden",
            "FieldValueRequired",
            "FieldValueDuplicate",
            "FieldValueOdd",
        ];
        rule.insert("reason".to_owned(), json!(generator.random.one_of(&reasons)));
    }
    if generator.random.chance(20)
        && let Some(name) = properties.first()
    {
        let path = generator.random.one_of(&[
            format!(".{name}"),
            ".nothing".to_owned(),
            format!("['{name}']"),
            name.to_string(),
        ]);
        rule.insert("fieldPath".to_owned(), json!(path));
    }
    if text.contains("oldSelf.") || generator.random.chance(5) {
        rule.insert("optionalOldSelf".to_owned(), json!(true));
    }
    rule.into()
}

fn expression(generator: &mut Generator<'_>, schema: &Value, properties: &[&str]) -> String {
    let random = &mut generator.random;
    if random.chance(12) {
        return random
            .one_of(&[
                "self == oldSelf",
                "!oldSelf.hasValue() || self == oldSelf.value()",
                "self",
                "1 / 0 == 1",
            ])
            .to_owned();
    }
    let choices: &[&str] = match schema["type"].as_str() {
        Some("integer") => &["self >= 2", "self % 2 == 0", "self + 1 < 4", "string(self) != '1'"],
        Some("number") => &["self > 1.0", "self >= 2", "self * 2.0 < 6.0"],
        Some("boolean") => &["self", "!self", "self || self == oldSelf"],
        Some("string") => &[
            "self != 'abc'",
            "self.startsWith('a')",
            "size(self) > 2",
            "self.matches('^a[a-z]*$')",
            "self.find('[0-9]+') != ''",
            "self in ['ab', 'abc']",
        ],
        Some("array") => &[
            "self.size() < 2",
            "self.all(x, x == self[0])",
            "self.exists_one(x, x == self[0])",
            "self.map(x, x) == self",
            "self == oldSelf",
            "self[1] == self[0]",
        ],
        Some("object") if properties.is_empty() => &[
            "self.size() < 2",
            "self.all(k, k in ['a', 'b'])",
            "'a' in self",
            "self.exists(k, self[k] == self[k])",
        ],
        Some("object") => {
            let (one, other) = (random.one_of(properties), random.one_of(properties));
            return random.one_of(&[
                format!("has(self.{one})"),
                format!("!has(self.{one}) || has(self.{other})"),
                format!("has(self.{one}) == has(oldSelf.{one})"),
                format!("self.{one} == self.{one}"),
                format!("!has(self.{one}) || self.{one} == oldSelf.{one}"),
                "has(self.nothing)".to_owned(),
            ]);
        }
        _ => &["type(self) == int", "type(self) == int || self.startsWith('x')", "string(self) != 'x'"],
    };
    random.one_of(choices).to_owned()
}
