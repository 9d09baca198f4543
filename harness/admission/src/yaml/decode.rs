//! Converts the nodes of a document to JSON.
//!
//! Source: sigs.k8s.io/yaml goyaml.v2/decode.go; yaml.go, `convertToJSONableObject`.

use std::collections::HashSet;

use kubernetes_types::quoting::quote;
use serde_json::{Map, Number, Value};

use super::Document;
use super::compose::{Content, MAX_LEVELS, MAX_VALUES, Node, NodeId, Nodes, Scalar, TOO_COMPLEX};
use super::scalar::{MERGE, Resolved, resolve};

/// The maximum size of all scalars that are decoded through aliases, in bytes.
///
/// Each alias copies its target, so many aliases of a long text would take much memory. kube-apiserver does not have
/// this limit.
const MAX_ALIASED_BYTES: usize = 8 << 20;

/// Converts a document.
pub(super) fn document(nodes: &Nodes) -> Result<Document, String> {
    let mut decoder = Decoder {
        nodes,
        aliases: HashSet::new(),
        values: 0,
        aliased: 0,
        aliased_bytes: 0,
        repeated: Vec::new(),
    };
    let value = match nodes.root {
        None => Value::Null,
        Some(root) => decoder.value(root, 0)?,
    };
    Ok(Document { value, repeated: decoder.repeated })
}

struct Decoder<'a> {
    nodes: &'a Nodes,
    /// The aliases whose targets are being decoded.
    aliases: HashSet<NodeId>,
    values: usize,
    /// The number of values that are decoded through aliases.
    aliased: usize,
    /// The size of the scalars that are decoded through aliases.
    aliased_bytes: usize,
    repeated: Vec<String>,
}

/// The members of a mapping so far, those of merged mappings included.
#[derive(Default)]
struct Mapping {
    members: Map<String, Value>,
    /// The keys in Go's syntax. Keys of different types may have the same name in `members`.
    keys: HashSet<String>,
}

impl Decoder<'_> {
    fn value(&mut self, id: NodeId, level: usize) -> Result<Value, String> {
        self.count(level)?;
        let node = self.nodes.node(id)?;
        match &node.content {
            Content::Scalar(scalar) => json(self.resolved(scalar)?),
            Content::Sequence(items) => {
                let items: Result<Vec<Value>, String> =
                    items.iter().map(|item| self.value(*item, level + 1)).collect();
                items.map(Value::from)
            }
            Content::Mapping(_) => {
                let mut mapping = Mapping::default();
                self.mapping(node, level, &mut mapping)?;
                Ok(mapping.members.into())
            }
            Content::Alias { name, target } => {
                self.through(id, name, |decoder| decoder.value(*target, level + 1))
            }
        }
    }

    /// Counts a value against the limits.
    ///
    /// Source: sigs.k8s.io/yaml goyaml.v2/decode.go, `decoder.unmarshal`.
    fn count(&mut self, level: usize) -> Result<(), String> {
        self.values += 1;
        if !self.aliases.is_empty() {
            self.aliased += 1;
        }
        // Go allows a smaller part of a document above 400,000 values, which is beyond the limit here.
        let is_excessive = self.aliased > 100 && self.values > 1_000 && self.aliased * 100 > self.values * 99;
        if is_excessive {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        if self.values > MAX_VALUES || level > MAX_LEVELS {
            return Err(TOO_COMPLEX.to_owned());
        }
        Ok(())
    }

    /// Resolves a scalar, and counts its size if it is decoded through an alias.
    fn resolved(&mut self, scalar: &Scalar) -> Result<Resolved, String> {
        if !self.aliases.is_empty() {
            self.aliased_bytes = self.aliased_bytes.saturating_add(scalar.value.len());
            if self.aliased_bytes > MAX_ALIASED_BYTES {
                return Err(TOO_COMPLEX.to_owned());
            }
        }
        resolve(scalar)
    }

    /// Decodes the target of an alias.
    fn through<T>(
        &mut self,
        alias: NodeId,
        name: &str,
        decode: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if !self.aliases.insert(alias) {
            return Err(format!("yaml: anchor '{name}' value contains itself"));
        }
        let decoded = decode(self)?;
        self.aliases.remove(&alias);
        Ok(decoded)
    }

    /// Adds the members of a mapping.
    fn mapping(&mut self, node: &Node, level: usize, mapping: &mut Mapping) -> Result<(), String> {
        let Content::Mapping(pairs) = &node.content else {
            return Err("yaml: map merge requires map or sequence of maps as the value".to_owned());
        };
        for (key, value) in pairs {
            let key_node = self.nodes.node(*key)?;
            if is_merge(key_node) {
                self.merge(*value, level + 1, mapping)?;
                continue;
            }
            let line = self.nodes.node(*value)?.line;
            let (key, shown) = self.key(*key, level)?;
            let value = self.value(*value, level + 1)?;
            let key =
                key.map_err(|what| format!("unsupported map key of type: {what}, value: {}", go(&value)))?;
            if !mapping.keys.insert(shown.clone()) {
                self.repeated.push(format!("line {line}: key {shown} already set in map"));
            }
            mapping.members.insert(key, value);
        }
        Ok(())
    }

    /// Adds the members of the mappings that a merge key names. The first mapping of a list takes precedence.
    fn merge(&mut self, id: NodeId, level: usize, mapping: &mut Mapping) -> Result<(), String> {
        let node = self.nodes.node(id)?;
        if let Content::Sequence(items) = &node.content {
            for item in items.iter().rev() {
                self.merge_one(*item, level, mapping)?;
            }
            return Ok(());
        }
        self.merge_one(id, level, mapping)
    }

    fn merge_one(&mut self, id: NodeId, level: usize, mapping: &mut Mapping) -> Result<(), String> {
        self.count(level)?;
        let node = self.nodes.node(id)?;
        let Content::Alias { name, target } = &node.content else {
            return self.mapping(node, level, mapping);
        };
        let target = self.nodes.node(*target)?;
        self.through(id, name, |decoder| decoder.mapping(target, level, mapping))
    }

    /// Returns a key as text, or the reason why JSON does not have such a key, and the key in Go's syntax.
    fn key(&mut self, id: NodeId, level: usize) -> Result<(Result<String, String>, String), String> {
        self.count(level)?;
        let node = self.nodes.node(id)?;
        let resolved = match &node.content {
            Content::Scalar(scalar) => self.resolved(scalar)?,
            Content::Alias { name, target } => {
                return self.through(id, name, |decoder| decoder.key(*target, level + 1));
            }
            Content::Sequence(_) | Content::Mapping(_) => {
                let value = self.value(id, level + 1)?;
                return Err(format!("yaml: invalid map key: {}", go(&value)));
            }
        };
        Ok(match resolved {
            Resolved::Text(text) => {
                let shown = quote(&text);
                (Ok(text), shown)
            }
            Resolved::Bool(word) => (Ok(word.to_string()), word.to_string()),
            Resolved::Int(number) => (Ok(number.to_string()), number.to_string()),
            Resolved::Float(number) => (Ok(float_key(number)), number.to_string()),
            Resolved::Null => (Err("%!s(<nil>), key: <nil>".to_owned()), "interface {}(nil)".to_owned()),
            Resolved::Uint(number) => (Err(format!("uint64, key: {number:#x}")), format!("{number:#x}")),
        })
    }
}

/// Returns whether a key merges other mappings into its own.
fn is_merge(key: &Node) -> bool {
    let Content::Scalar(scalar) = &key.content else { return false };
    scalar.value == "<<" && (scalar.is_implicit || scalar.tag == MERGE)
}

/// Converts a scalar to JSON. Like Go, writes a float without a fraction as an integer.
fn json(resolved: Resolved) -> Result<Value, String> {
    Ok(match resolved {
        Resolved::Null => Value::Null,
        Resolved::Bool(word) => word.into(),
        Resolved::Int(number) => number.into(),
        Resolved::Uint(number) => number.into(),
        Resolved::Text(text) => text.into(),
        Resolved::Float(number) => {
            let Some(float) = Number::from_f64(number) else {
                let shown = match number {
                    f64::INFINITY => "+Inf",
                    f64::NEG_INFINITY => "-Inf",
                    _ => "NaN",
                };
                return Err(format!("json: unsupported value: {shown}"));
            };
            // Go writes the shortest digits, followed by zeros.
            number.to_string().parse::<i64>().map_or(float.into(), Value::from)
        }
    })
}

/// Returns a float as the name of a member.
///
/// Source: Go strconv/ftoa.go, `FormatFloat(_, 'g', -1, 32)`.
#[expect(clippy::cast_possible_truncation, reason = "Go takes the float32 with the nearest value, too")]
fn float_key(number: f64) -> String {
    if !number.is_finite() {
        let infinite = if number > 0.0 { ".inf" } else { "-.inf" };
        return if number.is_nan() { ".nan" } else { infinite }.to_owned();
    }
    let number = number as f32;
    let scientific = format!("{number:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            if (-4..6).contains(&exponent) {
                return number.to_string();
            }
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        None => scientific,
    }
}

/// Returns a value in Go's syntax, as `%#v` does.
fn go(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(word) => word.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}:{}", quote(key), go(value))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", members.join(", "))
        }
    }
}
