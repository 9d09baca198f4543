//! Implements `jsonpatch.escapeKey`, which escapes keys for the paths of JSON patches.
//!
//! Source: apiserver pkg/cel/library/jsonpatch.go.

use super::costs::ONE_PASS;
use crate::function::{Call, Error, Function, Overload};
use crate::types::Type;
use crate::value::Value;

pub(crate) fn functions() -> Vec<Function> {
    let escape =
        Overload::global("string_jsonpatch_escapeKey_string", vec![Type::String], Type::String, escape_key);
    vec![Function::new("jsonpatch.escapeKey", vec![escape]).with_cost(ONE_PASS)]
}

/// Escapes a string for use as one reference token of a JSON pointer.
fn escape_key<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?.as_str();
    Ok(Value::text(text.replace('~', "~0").replace('/', "~1")))
}
