//! Evaluates constants when a program is planned.
//!
//! Source: cel-go interpreter/decorators.go, `decOptimize`.

use crate::function::Error;
use crate::types::Type;
use crate::value::{List, Map, Value, convert, equal};

/// Returns whether calls to a function with one constant argument are evaluated when the program is planned.
pub(super) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

/// Returns the elements of a constant list as map keys, including equal numbers of other types; returns `None` if an
/// element is not a bool, number, or string.
pub(super) fn set(list: &List<'static>) -> Option<Map<'static>> {
    let mut set = Map::default();
    let mut add = |value: Value<'static>| set.insert(value, Value::Bool(true));
    for element in list {
        let others: &[Type] = match element {
            Value::Bool(_) | Value::String(_) => &[],
            Value::Int(_) => &[Type::Double, Type::Uint],
            Value::Uint(_) => &[Type::Double, Type::Int],
            Value::Double(_) => &[Type::Int, Type::Uint],
            _ => return None,
        };
        for other in others {
            let Ok(other) = convert(&element, other) else { continue };
            // A double is added only for exactly equal integers; an integer is also added as the double to
            // which it is rounded.
            if !matches!(element, Value::Double(_)) || equal(&other, &element) == Ok(true) {
                add(other);
            }
        }
        add(element);
    }
    Some(set)
}

/// Checks that a constant is a valid index.
///
/// # Errors
///
/// Returns an error if the type of the value is not a valid index type.
pub(super) fn check_index(value: &Value<'_>) -> Result<(), Error> {
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(()),
        _ => Err(Error::new(format!("invalid qualifier type: {}", value.go_type()))),
    }
}
