//! Derives the grammar of random rules from a schema, in addition to the common [grammar](super::grammar).

use kubernetes_cel::schema::escape;
use serde_json::Value;

/// Returns the rows for a schema, including `self` and `oldSelf`.
pub(crate) fn rows(schema: &Value) -> String {
    let mut rows = Rows::default();
    rows.value("self", schema);
    rows.value("oldSelf", schema);
    rows.lines.join("\n")
}

#[derive(Default)]
struct Rows {
    lines: Vec<String>,
}

impl Rows {
    fn add(&mut self, kind: &str, pattern: impl Into<String>) {
        self.lines.push(format!("{kind} | {}", pattern.into()));
    }

    /// Adds rows for a value, such as `self.spec`, and for the values in it.
    fn value(&mut self, path: &str, schema: &Value) {
        self.add(&kind(schema), path);
        self.add("dyn", format!("dyn({path})"));
        if let Some(old) = path.strip_prefix("self").map(|rest| format!("oldSelf{rest}")) {
            self.add("bool", format!("{path} == {old}"));
            self.add("bool", format!("{old} != {path}"));
            if schema["type"] == "array" {
                self.add(&kind(schema), format!("{path} + {old}"));
                self.add(&kind(schema), format!("{old} + {{{}}}", kind(schema)));
            }
        }
        match schema["type"].as_str() {
            Some("array") => self.list(path, &schema["items"]),
            Some("object") if schema["additionalProperties"].is_object() => {
                self.map(path, &schema["additionalProperties"]);
            }
            Some("object") => self.object(path, schema),
            _ => {}
        }
    }

    fn list(&mut self, path: &str, items: &Value) {
        let element = kind(items);
        for call in ["all", "exists", "exists_one"] {
            self.add("bool", format!("{path}.{call}($1, {{bool/{element}}})"));
        }
        self.add("bool", format!("{path}.all($1, $2, {{bool/int,{element}}})"));
        self.add("bool", format!("{{{element}}} in {path}"));
        self.add("list(dyn)", format!("{path}.map($1, {{dyn/{element}}})"));
        self.add(
            &kind(&serde_json::json!({"type": "array", "items": items})),
            format!("{path}.filter($1, {{bool/{element}}})"),
        );
        self.value(&format!("{path}[{{int}}]"), items);
        self.value(&format!("{path}[0]"), items);
    }

    fn map(&mut self, path: &str, values: &Value) {
        let value = kind(values);
        self.add("bool", format!("{path}.all($1, {{bool/string}})"));
        self.add("bool", format!("{path}.exists($1, $2, {{bool/string,{value}}})"));
        self.add("bool", format!("{{string}} in {path}"));
        self.add("bool", format!("has({path}.a)"));
        self.value(&format!("{path}[{{string}}]"), values);
        self.value(&format!("{path}.a"), values);
    }

    fn object(&mut self, path: &str, schema: &Value) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let Some(name) = escape(name) else { continue };
            self.add("bool", format!("has({path}.{name})"));
            self.add("optional(dyn)", format!("{path}.?{name}"));
            self.value(&format!("{path}.{name}"), property);
        }
    }
}

/// Returns the kind of the values that a schema describes.
fn kind(schema: &Value) -> String {
    let of = |member: &str| schema[member].as_str().unwrap_or_default();
    let kind = match (of("type"), of("format")) {
        _ if schema["x-kubernetes-int-or-string"] == true => "dyn",
        ("integer", _) => "int",
        ("number", _) => "double",
        ("boolean", _) => "bool",
        ("string", "byte") => "bytes",
        ("string", "date" | "date-time") => "timestamp",
        ("string", "duration") => "duration",
        ("string", _) => "string",
        ("array", _) => return format!("list({})", element(&schema["items"])),
        ("object", _) if schema["additionalProperties"].is_object() => {
            return format!("map(string,{})", element(&schema["additionalProperties"]));
        }
        _ => "dyn",
    };
    kind.to_owned()
}

/// Returns the kind of a list element or map value. Only a few kinds of elements have patterns.
fn element(schema: &Value) -> String {
    let kind = kind(schema);
    if ["int", "string", "double", "bool", "duration"].contains(&kind.as_str()) {
        kind
    } else {
        "dyn".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_has_rows_for_its_parts() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a-b": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                "é": {"type": "string"},
            },
        });
        let rows = rows(&schema);
        for row in [
            "list(string) | self.a__dash__b",
            "string | oldSelf.a__dash__b[{int}]",
            "bool | has(self.map)",
            "int | self.map[{string}].n",
            "list(string) | self.a__dash__b + oldSelf.a__dash__b",
        ] {
            assert!(rows.lines().any(|line| line == row), "{row} is missing:\n{rows}");
        }
        assert!(!rows.contains('é'), "{rows}");
    }
}
