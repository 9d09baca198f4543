//! Calls of functions.

use crate::function::{Call as Arguments, Error};
use crate::value::Value;

use super::plan::Call;
use super::runtime_type;

/// Calls the overload that accepts the arguments.
///
/// # Errors
///
/// Those of the function, and no such overload.
///
/// Source: cel-go common/decls/decls.go, `guardedUnaryOp` and its siblings, `MaybeNoSuchOverload`.
pub(super) fn invoke<'a>(call: &Call, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
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
    // A function with a constant regular expression is replaced by one that says less.
    if call.regex.is_some() {
        return Err(Error::no_such_overload());
    }
    let types: Vec<&str> = arguments.iter().map(Value::type_name).collect();
    Err(Error(format!("no such overload: {}({})", call.function, types.join(", "))))
}
