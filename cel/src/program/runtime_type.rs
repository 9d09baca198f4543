//! Compares types at run time by their names.
//!
//! Source: cel-go common/types/types.go, `defaultIsAssignableRuntimeType`.

use crate::types::Type;
use crate::value::Value;

/// Returns whether a parameter accepts a value at run time. Only the first entry of a list or map is checked.
pub(super) fn accepts(parameter: &Type, value: &Value<'_>) -> bool {
    match (parameter, value) {
        (Type::Dyn | Type::Any | Type::Parameter(_) | Type::Variable(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Type(_) | Type::AnyType, Value::Type(_)) => true,
        (Type::Wrapper(of), value) => matches!(value, Value::Null) || accepts(of, value),
        (Type::List(element), Value::List(list)) => list.get(0).is_none_or(|first| accepts(element, &first)),
        (Type::Map(key, element), Value::Map(map)) => {
            map.iter().next().is_none_or(|(first, value)| accepts(key, &first) && accepts(element, &value))
        }
        (Type::Object(name) | Type::Opaque(name, _), value) => **name == *value.type_name(),
        _ => false,
    }
}
