//! The standard library: operators, sizes, conversions, strings, and times.
//!
//! Source: cel-go common/stdlib/standard.go, with cross-type comparisons of numbers and UTC as the default time zone.
//! Overloads are in cel-go's order of declaration.

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

/// Returns the error for a call whose function does not support the type of its first argument.
///
/// Source: cel-go interpreter/interpretable.go: strings, durations, and timestamps do not have a method with that name.
fn unknown(function: &str, argument: &crate::value::Value<'_>) -> Error {
    use crate::value::Value;
    match argument {
        Value::String(_) | Value::Duration(_) | Value::Timestamp(_) => Error::no_such_overload(),
        _ => Error::new(format!("no such overload: {function}")),
    }
}
