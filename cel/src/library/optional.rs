//! Implements the functions for optional values.
//!
//! Source: cel-go cel/library.go, `OptionalTypes` in version 2.

use crate::function::{Call, Error, Function, Overload};
use crate::types::Type;
use crate::value::{List, Value};

fn v() -> Type {
    Type::Parameter("V")
}

fn optional() -> Type {
    Type::optional(v())
}

fn list() -> Type {
    Type::list(v())
}

fn map() -> Type {
    Type::map(Type::Parameter("K"), v())
}

/// Returns the functions of optional values. The planner implements `or`, `orValue`, `_?._`, and `_[?_]`.
pub(crate) fn functions() -> Vec<Function> {
    let index = Type::Int;
    let key = || Type::Parameter("K");
    vec![
        Function::new("optional.of", vec![Overload::global("optional_of", vec![v()], optional(), of)]),
        Function::new(
            "optional.ofNonZeroValue",
            vec![Overload::global("optional_ofNonZeroValue", vec![v()], optional(), of_non_zero)],
        ),
        Function::new("optional.none", vec![Overload::global("optional_none", vec![], optional(), none)]),
        Function::new("value", vec![Overload::member("optional_value", vec![optional()], v(), value)]),
        Function::new(
            "hasValue",
            vec![Overload::member("optional_hasValue", vec![optional()], Type::Bool, has_value)],
        ),
        Function::new(
            "or",
            vec![Overload::member("optional_or_optional", vec![optional(), optional()], optional(), planned)],
        ),
        Function::new(
            "orValue",
            vec![Overload::member("optional_orValue_value", vec![optional(), v()], v(), planned)],
        ),
        Function::new(
            "_?._",
            vec![Overload::global(
                "select_optional_field",
                vec![Type::Dyn, Type::String],
                optional(),
                planned,
            )],
        ),
        Function::new(
            "_[?_]",
            vec![
                Overload::global(
                    "list_optindex_optional_int",
                    vec![list(), index.clone()],
                    optional(),
                    planned,
                ),
                Overload::global(
                    "optional_list_optindex_optional_int",
                    vec![Type::optional(list()), index.clone()],
                    optional(),
                    planned,
                ),
                Overload::global("map_optindex_optional_value", vec![map(), key()], optional(), planned),
                Overload::global(
                    "optional_map_optindex_optional_value",
                    vec![Type::optional(map()), key()],
                    optional(),
                    planned,
                ),
            ],
        ),
        Function::new(
            "_[_]",
            vec![
                Overload::global(
                    "optional_list_index_int",
                    vec![Type::optional(list()), index],
                    optional(),
                    planned,
                ),
                Overload::global(
                    "optional_map_index_value",
                    vec![Type::optional(map()), key()],
                    optional(),
                    planned,
                ),
            ],
        ),
        Function::new("last", vec![Overload::member("list_last", vec![list()], optional(), last)]),
        Function::new("first", vec![Overload::member("list_first", vec![list()], optional(), first)]),
        Function::new(
            "optional.unwrap",
            vec![Overload::global("optional_unwrap", vec![Type::list(optional())], list(), unwrap)],
        ),
        Function::new(
            "unwrapOpt",
            vec![Overload::member("optional_unwrapOpt", vec![Type::list(optional())], list(), unwrap)],
        ),
    ]
}

fn planned<'a>(_: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Err(Error::no_such_overload())
}

fn of<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    call.arguments.first().cloned().map(Value::some).ok_or_else(Error::no_such_overload)
}

fn of_non_zero<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    match call.arguments {
        [value] if value.is_zero() => Ok(Value::Optional(None)),
        _ => of(call),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every implementation")]
fn none<'a>(_: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(Value::Optional(None))
}

fn value<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    match call.arguments {
        [Value::Optional(Some(value))] => Ok(Value::clone(value)),
        [Value::Optional(None)] => Err(Error::new("optional.none() dereference".to_owned())),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_value<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    match call.arguments {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

fn first<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    element(call, |_| 0)
}

fn last<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    element(call, |list| list.len().saturating_sub(1))
}

fn element<'a>(call: &Call<'_, 'a>, index: fn(&List<'a>) -> usize) -> Result<Value<'a>, Error> {
    match call.arguments {
        [Value::List(list)] => Ok(list.get(index(list)).map_or(Value::Optional(None), Value::some)),
        _ => Err(Error::no_such_overload()),
    }
}

fn unwrap<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let [Value::List(list)] = call.arguments else { return Err(Error::no_such_overload()) };
    let mut values = Vec::new();
    for element in list {
        match element {
            Value::Optional(None) => {}
            Value::Optional(Some(value)) => values.push(Value::clone(&value)),
            other => return Err(Error::new(format!("value {other} is not optional"))),
        }
    }
    Ok(Value::list(values))
}
