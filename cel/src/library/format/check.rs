//! Checks formats and arguments at compile time.
//!
//! Source: cel-go ext/formatting.go, `stringFormatValidator`.

use crate::ast::{Expression, NodeId};
use crate::checked::Checked;
use crate::types::Type;

use super::{Clause, Failure, interpolate};

/// Checks a constant format against the literal list of its arguments.
///
/// # Errors
///
/// Returns the error message with the invalid argument or part of an argument, or with `None` if the error concerns the
/// whole call.
pub(crate) fn check(
    checked: &Checked,
    format: &str,
    arguments: &[NodeId],
) -> Result<(), (Option<NodeId>, String)> {
    let mut used = 0;
    let result = interpolate(format, arguments.len(), &mut String::new(), |index, clause, _| {
        used = index + 1;
        let Some(&argument) = arguments.get(index) else { return Ok(()) };
        refused(checked, clause, argument).map_or(Ok(()), |node| Err((node, clause)))
    });
    match result {
        Err(Failure::Format(message)) => Err((None, end_of_string(format, used).unwrap_or(message))),
        Err(Failure::Argument((node, clause))) => {
            let message = clause.refusal(unwrapped(checked.type_of(node)).runtime_name());
            Err((Some(node), format!("error during formatting: {message}")))
        }
        Ok(()) if used < arguments.len() => Err((
            None,
            format!(
                "too many arguments supplied to string.format (expected {used}, got {})",
                arguments.len()
            ),
        )),
        Ok(()) => Ok(()),
    }
}

/// Returns the error for a percent sign at the end of the format. Unlike at run time, this error takes precedence over
/// a missing argument.
fn end_of_string(format: &str, arguments: usize) -> Option<String> {
    let before = format.strip_suffix('%')?;
    let right = interpolate(before, arguments, &mut String::new(), |_, _, _| Ok::<_, ()>(())).is_ok();
    right.then(|| "unexpected end of string".to_owned())
}

/// Returns the argument, or the part of the argument, that a clause does not accept, or `None` if the clause accepts
/// the argument.
fn refused(checked: &Checked, clause: Clause, argument: NodeId) -> Option<NodeId> {
    if clause == Clause::Text {
        return refused_as_text(checked, argument);
    }
    let accepted = match (clause, unwrapped(checked.type_of(argument))) {
        (_, Type::Dyn)
        | (
            Clause::Decimal | Clause::Binary | Clause::Octal | Clause::Hex { .. },
            Type::Int | Type::Uint,
        )
        // The strings `NaN`, `Infinity`, and `-Infinity` are numbers.
        | (Clause::Fixed(_) | Clause::Scientific(_), Type::Double | Type::String)
        | (Clause::Binary, Type::Bool)
        | (Clause::Hex { .. }, Type::String | Type::Bytes) => true,
        _ => false,
    };
    (!accepted).then_some(argument)
}

fn refused_as_text(checked: &Checked, argument: NodeId) -> Option<NodeId> {
    let accepted = match unwrapped(checked.type_of(argument)) {
        Type::Dyn
        | Type::List(_)
        | Type::Map(..)
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::Bool
        | Type::String
        | Type::Timestamp
        | Type::Bytes
        | Type::Duration
        | Type::Type(_)
        | Type::AnyType
        | Type::Null => true,
        Type::Error
        | Type::Any
        | Type::Wrapper(_)
        | Type::Object(_)
        | Type::Opaque(..)
        | Type::Parameter(_)
        | Type::Variable(_) => false,
    };
    if !accepted {
        return Some(argument);
    }
    match checked.ast.nodes.get(argument.0 as usize).map(|node| &node.expression) {
        Some(Expression::List { elements, .. }) => {
            elements.iter().find_map(|&element| refused_as_text(checked, element))
        }
        Some(Expression::Map(entries)) => entries.iter().find_map(|entry| {
            refused_as_text(checked, entry.key).or_else(|| refused_as_text(checked, entry.value))
        }),
        _ => None,
    }
}

/// Returns the wrapped type of a wrapper such as `google.protobuf.Int64Value`, or `of` for other types.
fn unwrapped(of: &Type) -> &Type {
    if let Type::Wrapper(inner) = of { inner } else { of }
}
