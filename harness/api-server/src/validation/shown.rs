//! Structures as messages show them: in JSON with the names and the order of the fields of Go's types.

use kubernetes_types::quoting::{encode, quote};
use serde_json::Value;

use super::fields::{flag, get, int, text};

/// A structure: each field's name in Go, its name in the API, and what it is.
pub(super) type Struct = &'static [(&'static str, &'static str, Kind)];

/// What a field is.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Number,
    Flag,
    /// A text, number or flag that may be nothing, a list or a map of such, or JSON.
    Plain,
    Inner(Struct),
    Maybe(Struct),
    List(Struct),
}

/// Source: apimachinery pkg/util/validation/field/errors.go, `ErrorBody`; Go encoding/json.
pub(super) fn structure(of: Struct, value: &Value) -> String {
    let members = of.iter().map(|(name, field, kind)| {
        let shown = match kind {
            Kind::Text => quote(text(value, field)),
            Kind::Number => int(value, field).unwrap_or(0).to_string(),
            Kind::Flag => flag(value, field).to_string(),
            Kind::Plain => encode(get(value, field)),
            Kind::Maybe(_) if get(value, field).is_null() => "null".to_owned(),
            Kind::Inner(of) | Kind::Maybe(of) => structure(of, get(value, field)),
            Kind::List(of) => structures(of, get(value, field)),
        };
        format!("\"{name}\":{shown}")
    });
    format!("{{{}}}", members.collect::<Vec<String>>().join(","))
}

/// A list of structures, or nothing.
pub(super) fn structures(of: Struct, value: &Value) -> String {
    let Some(items) = value.as_array() else { return "null".to_owned() };
    let items: Vec<String> = items.iter().map(|item| structure(of, item)).collect();
    format!("[{}]", items.join(","))
}
