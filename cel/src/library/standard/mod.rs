//! The standard library: operators, sizes, conversions, strings, and times.
//!
//! Source: cel-go common/stdlib/standard.go, with cross-type comparisons of numbers and UTC as default time zone. Overloads
//! stand in the order in which they are declared there.

mod conversions;
mod operators;
mod text;
mod time;

use crate::function::{Error, Function};

/// Returns the functions of the standard library.
pub(crate) fn functions() -> Vec<Function> {
    let mut functions = operators::functions();
    functions.extend(conversions::functions());
    functions.extend(text::functions());
    functions.extend(time::functions());
    functions
}

/// Returns the error of a function that the type of its first argument does not have.
///
/// Source: cel-go interpreter/interpretable.go: texts, durations and timestamps are asked for a method of that name, and
/// have none.
fn unknown(function: &str, argument: &crate::value::Value<'_>) -> Error {
    use crate::value::Value;
    match argument {
        Value::String(_) | Value::Duration(_) | Value::Timestamp(_) => Error::no_such_overload(),
        _ => Error::new(format!("no such overload: {function}")),
    }
}
