//! Implements the conversion functions, `type`, and `dyn`.

use std::sync::Arc;

use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{self, Value};

/// Creates a conversion with an overload for each source type.
fn conversion(
    name: &'static str,
    to: &Type,
    implementation: Implementation,
    overloads: Vec<(&'static str, Type)>,
) -> Function {
    let overload = |(id, from)| Overload::global(id, vec![from], to.clone(), implementation);
    Function::new(name, overloads.into_iter().map(overload).collect())
}

pub(super) fn functions() -> Vec<Function> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let a = || Type::Parameter("A");
    vec![
        Function::new(
            "type",
            vec![Overload::global("type", vec![a()], Type::Type(Arc::new(a())), type_of).unguarded()],
        ),
        conversion(
            "bool",
            &Bool,
            |call| convert(call, &Bool),
            vec![("bool_to_bool", Bool), ("string_to_bool", String)],
        ),
        conversion(
            "bytes",
            &Bytes,
            |call| convert(call, &Bytes),
            vec![("bytes_to_bytes", Bytes), ("string_to_bytes", String)],
        ),
        conversion(
            "double",
            &Double,
            |call| convert(call, &Double),
            vec![
                ("double_to_double", Double),
                ("int64_to_double", Int),
                ("string_to_double", String),
                ("uint64_to_double", Uint),
            ],
        ),
        conversion(
            "duration",
            &Duration,
            |call| convert(call, &Duration),
            vec![("duration_to_duration", Duration), ("string_to_duration", String)],
        ),
        Function::new("dyn", vec![Overload::global("to_dyn", vec![a()], Type::Dyn, identity).unguarded()]),
        conversion(
            "int",
            &Int,
            |call| convert(call, &Int),
            vec![
                ("int64_to_int64", Int),
                ("double_to_int64", Double),
                ("duration_to_int64", Duration),
                ("string_to_int64", String),
                ("timestamp_to_int64", Timestamp),
                ("uint64_to_int64", Uint),
            ],
        ),
        conversion(
            "string",
            &String,
            |call| convert(call, &String),
            vec![
                ("string_to_string", String),
                ("bool_to_string", Bool),
                ("bytes_to_string", Bytes),
                ("double_to_string", Double),
                ("duration_to_string", Duration),
                ("int64_to_string", Int),
                ("timestamp_to_string", Timestamp),
                ("uint64_to_string", Uint),
            ],
        ),
        conversion(
            "timestamp",
            &Timestamp,
            |call| convert(call, &Timestamp),
            vec![
                ("timestamp_to_timestamp", Timestamp),
                ("int64_to_timestamp", Int),
                ("string_to_timestamp", String),
            ],
        ),
        conversion(
            "uint",
            &Uint,
            |call| convert(call, &Uint),
            vec![
                ("uint64_to_uint64", Uint),
                ("double_to_uint64", Double),
                ("int64_to_uint64", Int),
                ("string_to_uint64", String),
            ],
        ),
    ]
}

fn convert<'a>(call: &Call<'_, 'a>, to: &Type) -> Result<Value<'a>, Error> {
    match call.arguments {
        [value] => value::convert(value, to),
        _ => Err(Error::no_such_overload()),
    }
}

fn identity<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    call.arguments.first().cloned().ok_or_else(Error::no_such_overload)
}

fn type_of<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let value = call.arguments.first().ok_or_else(Error::no_such_overload)?;
    if let Value::Preserved(_) = value {
        return Err(Error::new(
            "type conversion to 'type' not supported for values preserved by \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
    Ok(Value::Type(Arc::from(value.type_name())))
}
