//! What is calculated when a program is planned.
//!
//! Source: cel-go interpreter/decorators.go, `decOptimize`.

use crate::function::Error;
use crate::types::Type;
use crate::value::{List, Map, Value, convert, equal};

/// Whether a function of one constant is called when the program is planned.
pub(super) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

/// The elements of a constant list as keys of a map, with the numbers of other types that they equal; none if the list has
/// elements of other types than bool, numbers and texts.
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
            // A double is only joined by integers that it equals; an integer also by the double to which it is rounded.
            if !matches!(element, Value::Double(_)) || equal(&other, &element) == Ok(true) {
                add(other);
            }
        }
        add(element);
    }
    Some(set)
}

/// Checks that a constant can be an index.
///
/// # Errors
///
/// Its type cannot.
pub(super) fn check_index(value: &Value<'_>) -> Result<(), Error> {
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(()),
        _ => Err(Error::new(format!("invalid qualifier type: {}", value.go_type()))),
    }
}
