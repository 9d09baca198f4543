//! Declares the operators and the function `size`.

use std::cmp::Ordering;

use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{self, Value};

use super::unknown;

fn a() -> Type {
    Type::Parameter("A")
}

fn list_of_a() -> Type {
    Type::list(a())
}

fn map_of_a() -> Type {
    Type::map(a(), Type::Parameter("B"))
}

/// Creates a function whose overloads share one implementation. The implementation checks the argument types.
fn unguarded(
    name: &'static str,
    implementation: Implementation,
    overloads: Vec<(&'static str, Vec<Type>, Type)>,
) -> Function {
    let overload =
        |(id, parameters, result)| Overload::global(id, parameters, result, implementation).unguarded();
    Function::new(name, overloads.into_iter().map(overload).collect())
}

/// Creates overloads whose two parameters and result have the same type.
fn closed(overloads: &[(&'static str, Type)]) -> Vec<(&'static str, Vec<Type>, Type)> {
    overloads.iter().map(|(id, of)| (*id, vec![of.clone(), of.clone()], of.clone())).collect()
}

pub(super) fn functions() -> Vec<Function> {
    use Type::{Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let mut functions = logic();
    functions.extend([
        unguarded("_+_", |call| binary(call, value::add), {
            let mut overloads = closed(&[("add_bytes", Bytes), ("add_double", Double)]);
            overloads.extend([
                ("add_duration_duration", vec![Duration, Duration], Duration),
                ("add_duration_timestamp", vec![Duration, Timestamp], Timestamp),
                ("add_timestamp_duration", vec![Timestamp, Duration], Timestamp),
            ]);
            overloads.extend(closed(&[
                ("add_int64", Int),
                ("add_list", list_of_a()),
                ("add_string", String),
                ("add_uint64", Uint),
            ]));
            overloads
        }),
        unguarded(
            "_/_",
            |call| binary(call, value::divide),
            closed(&[("divide_double", Double), ("divide_int64", Int), ("divide_uint64", Uint)]),
        ),
        unguarded(
            "_%_",
            |call| binary(call, value::modulo),
            closed(&[("modulo_int64", Int), ("modulo_uint64", Uint)]),
        ),
        unguarded(
            "_*_",
            |call| binary(call, value::multiply),
            closed(&[("multiply_double", Double), ("multiply_int64", Int), ("multiply_uint64", Uint)]),
        ),
        unguarded(
            "-_",
            |call| unary(call, value::negate),
            vec![("negate_double", vec![Double], Double), ("negate_int64", vec![Int], Int)],
        ),
        unguarded(
            "_-_",
            |call| binary(call, value::subtract),
            vec![
                ("subtract_double", vec![Double, Double], Double),
                ("subtract_duration_duration", vec![Duration, Duration], Duration),
                ("subtract_int64", vec![Int, Int], Int),
                ("subtract_timestamp_duration", vec![Timestamp, Duration], Timestamp),
                ("subtract_timestamp_timestamp", vec![Timestamp, Timestamp], Duration),
                ("subtract_uint64", vec![Uint, Uint], Uint),
            ],
        ),
    ]);
    functions.extend(comparisons());
    functions.extend(containers());
    functions
}

/// Returns the declarations of the conditional and logical operators, `==`, and `!=`.
///
/// The planner implements all of them except `!_`: their operands are evaluated only as needed and may be errors.
fn logic() -> Vec<Function> {
    use Type::Bool;
    vec![
        unguarded("_?_:_", planned, vec![("conditional", vec![Bool, a(), a()], a())]),
        unguarded("_&&_", planned, vec![("logical_and", vec![Bool, Bool], Bool)]),
        unguarded("_||_", planned, vec![("logical_or", vec![Bool, Bool], Bool)]),
        unguarded("!_", |call| unary(call, not), vec![("logical_not", vec![Bool], Bool)]),
        unguarded("@not_strictly_false", planned, vec![("not_strictly_false", vec![Bool], Bool)]),
        unguarded("_==_", planned, vec![("equals", vec![a(), a()], Bool)]),
        unguarded("_!=_", planned, vec![("not_equals", vec![a(), a()], Bool)]),
    ]
}

fn comparisons() -> Vec<Function> {
    const LESS: [&str; 14] = [
        "less_bool",
        "less_int64",
        "less_int64_double",
        "less_int64_uint64",
        "less_uint64",
        "less_uint64_double",
        "less_uint64_int64",
        "less_double",
        "less_double_int64",
        "less_double_uint64",
        "less_string",
        "less_bytes",
        "less_timestamp",
        "less_duration",
    ];
    const LESS_EQUALS: [&str; 14] = [
        "less_equals_bool",
        "less_equals_int64",
        "less_equals_int64_double",
        "less_equals_int64_uint64",
        "less_equals_uint64",
        "less_equals_uint64_double",
        "less_equals_uint64_int64",
        "less_equals_double",
        "less_equals_double_int64",
        "less_equals_double_uint64",
        "less_equals_string",
        "less_equals_bytes",
        "less_equals_timestamp",
        "less_equals_duration",
    ];
    const GREATER: [&str; 14] = [
        "greater_bool",
        "greater_int64",
        "greater_int64_double",
        "greater_int64_uint64",
        "greater_uint64",
        "greater_uint64_double",
        "greater_uint64_int64",
        "greater_double",
        "greater_double_int64",
        "greater_double_uint64",
        "greater_string",
        "greater_bytes",
        "greater_timestamp",
        "greater_duration",
    ];
    const GREATER_EQUALS: [&str; 14] = [
        "greater_equals_bool",
        "greater_equals_int64",
        "greater_equals_int64_double",
        "greater_equals_int64_uint64",
        "greater_equals_uint64",
        "greater_equals_uint64_double",
        "greater_equals_uint64_int64",
        "greater_equals_double",
        "greater_equals_double_int64",
        "greater_equals_double_uint64",
        "greater_equals_string",
        "greater_equals_bytes",
        "greater_equals_timestamp",
        "greater_equals_duration",
    ];
    let comparison = |name, implementation, ids: [&'static str; 14]| {
        let operands = {
            use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
            [
                (Bool, Bool),
                (Int, Int),
                (Int, Double),
                (Int, Uint),
                (Uint, Uint),
                (Uint, Double),
                (Uint, Int),
                (Double, Double),
                (Double, Int),
                (Double, Uint),
                (String, String),
                (Bytes, Bytes),
                (Timestamp, Timestamp),
                (Duration, Duration),
            ]
        };
        let overloads =
            ids.into_iter().zip(operands).map(|(id, (left, right))| (id, vec![left, right], Type::Bool));
        unguarded(name, implementation, overloads.collect())
    };
    vec![
        comparison("_<_", |call| compare(call, "_<_", Ordering::is_lt), LESS),
        comparison("_<=_", |call| compare(call, "_<=_", Ordering::is_le), LESS_EQUALS),
        comparison("_>_", |call| compare(call, "_>_", Ordering::is_gt), GREATER),
        comparison("_>=_", |call| compare(call, "_>=_", Ordering::is_ge), GREATER_EQUALS),
    ]
}

fn containers() -> Vec<Function> {
    let size = [
        ("size_bytes", "bytes_size", Type::Bytes),
        ("size_list", "list_size", list_of_a()),
        ("size_map", "map_size", map_of_a()),
        ("size_string", "string_size", Type::String),
    ];
    let size = size.into_iter().flat_map(|(global, member, of)| {
        let implementation: Implementation = |call| unary(call, size_of);
        [
            Overload::global(global, vec![of.clone()], Type::Int, implementation).unguarded(),
            Overload::member(member, vec![of], Type::Int, implementation).unguarded(),
        ]
    });
    vec![
        unguarded(
            "_[_]",
            planned,
            vec![
                ("index_list", vec![list_of_a(), Type::Int], a()),
                ("index_map", vec![map_of_a(), a()], Type::Parameter("B")),
            ],
        ),
        unguarded(
            "@in",
            |call| binary(call, |element, container| value::contains(element, container).map(Value::Bool)),
            vec![
                ("in_list", vec![a(), list_of_a()], Type::Bool),
                ("in_map", vec![a(), map_of_a()], Type::Bool),
            ],
        ),
        Function::new("size", size.collect()),
    ]
}

/// Returns an error, as a placeholder for the operators that the planner implements.
fn planned<'a>(_: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Err(Error::no_such_overload())
}

fn unary<'a>(
    call: &Call<'_, 'a>,
    operator: impl Fn(&Value<'a>) -> Result<Value<'a>, Error>,
) -> Result<Value<'a>, Error> {
    match call.arguments {
        [value] => operator(value),
        _ => Err(Error::no_such_overload()),
    }
}

fn binary<'a>(
    call: &Call<'_, 'a>,
    operator: impl Fn(&Value<'a>, &Value<'a>) -> Result<Value<'a>, Error>,
) -> Result<Value<'a>, Error> {
    match call.arguments {
        [left, right] => operator(left, right),
        _ => Err(Error::no_such_overload()),
    }
}

fn compare<'a>(
    call: &Call<'_, 'a>,
    operator: &str,
    accepts: fn(Ordering) -> bool,
) -> Result<Value<'a>, Error> {
    binary(call, |left, right| {
        value::compare(operator, left, right).map(|ordering| Value::Bool(accepts(ordering)))
    })
}

fn not<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    match value {
        Value::Bool(value) => Ok(Value::Bool(!value)),
        _ => Err(Error::no_such_overload()),
    }
}

fn size_of<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    let size = value.size().ok_or_else(|| unknown("size", value))?;
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}
