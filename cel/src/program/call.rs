//! Calls the overloads of functions.

use std::sync::Arc;

use crate::function::{Call as Arguments, Error, Overload};
use crate::value::Value;

use super::plan::Call;
use super::runtime_type;

/// Calls the overload that accepts the arguments.
///
/// # Errors
///
/// Returns an error if the function fails, or `no such overload` if no overload accepts the arguments.
///
/// Source: cel-go common/decls/decls.go, `guardedUnaryOp` and its siblings, `MaybeNoSuchOverload`.
pub(super) fn invoke<'a>(call: &Call, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    if call.regex.is_some() {
        return search(call, arguments);
    }
    for overload in &call.candidates {
        let accepted = overload.unguarded
            || overload.parameters.len() == arguments.len()
                && overload
                    .parameters
                    .iter()
                    .zip(arguments)
                    .all(|(parameter, argument)| runtime_type::accepts(parameter, argument));
        if accepted {
            return (overload.implementation)(&Arguments { arguments, regex: call.regex.as_ref() });
        }
    }
    let types: Vec<&str> = arguments.iter().map(Value::type_name).collect();
    Err(Error::new(format!("no such overload: {}({})", call.function, types.join(", "))))
}

/// Calls a function with a constant regular expression.
///
/// As in cel-go, such a call accepts every value that Go represents as a string, including type names and strings in
/// optionals.
///
/// Source: cel-go interpreter/optimizations.go; apiserver pkg/cel/library/regex.go, `FindRegexOptimization` and
/// `FindAllRegexOptimization`.
fn search<'a>(call: &Call, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut native = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        let value = match (index, in_optionals(argument)) {
            (0, Value::Type(name)) => Value::text(Arc::clone(name)),
            (0, Value::String(text)) => Value::String(text.clone()),
            (2, Value::Int(limit)) => Value::Int(*limit),
            (1, _) => argument.clone(),
            _ => return Err(Error::no_such_overload()),
        };
        native.push(value);
    }
    let fitting = |overload: &&Arc<Overload>| overload.parameters.len() == arguments.len();
    let overload = call.candidates.iter().find(fitting).ok_or_else(Error::no_such_overload)?;
    (overload.implementation)(&Arguments { arguments: &native, regex: call.regex.as_ref() })
}

/// Returns the value, or the innermost value of nested optionals.
fn in_optionals<'v, 'a>(mut value: &'v Value<'a>) -> &'v Value<'a> {
    while let Value::Optional(Some(inner)) = value {
        value = inner;
    }
    value
}
