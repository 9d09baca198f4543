//! Advice on operators whose operands have types that do not fit together.

/// The types that a conversion function such as `string` accepts.
const SCALARS: [&str; 5] = ["string", "int", "uint", "double", "bool"];

/// Returns the advice on a compile error about the operand types of a binary operator, such as
/// `found no matching overload for '_==_' applied to '(null, string)'`.
pub fn advice(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("found no matching overload for '_")?;
    let (operator, rest) = rest.split_once("_' applied to '(")?;
    let (operands, _) = rest.split_once(")'")?;
    let (left, right) = operands.split_once(", ")?;
    let is_comparison = ["==", "!=", "<", "<=", ">", ">="].contains(&operator);
    if left == right || right.contains(", ") {
        return None;
    }
    Some(if ["==", "!="].contains(&operator) && (left == "null" || right == "null") {
        let other = if left == "null" { right } else { left };
        let default = match other {
            "string" => "''",
            "int" => "0",
            "bool" => "false",
            _ => return None,
        };
        format!(
            "Do not use null here: the other operand of `{operator}` has the type {other}, which cannot be null. If null is a \
             default value, replace it with one of that type, as in `.orValue({default})`."
        )
    } else if is_comparison && [left, right].iter().all(|operand| SCALARS.contains(operand)) {
        format!(
            "Compare values of the same type: the left side is {left}, and the right side is {right}. Convert one of them, as in \
             `string(...)` or `int(...)`."
        )
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_different_types_have_advice() {
        let error = |operator: &str, operands: &str| {
            format!(
                "ERROR: <input>:1:16: found no matching overload for '{operator}' applied to '({operands})'\n | a == b"
            )
        };
        let starts_with = |operator, operands, start: &str| {
            let advice = advice(&error(operator, operands)).unwrap_or_default();
            assert!(advice.starts_with(start) && advice.ends_with('.'), "{advice}");
        };
        starts_with(
            "_==_",
            "null, string",
            "Do not use null here: the other operand of `==` has the type string, ",
        );
        starts_with(
            "_!=_",
            "int, null",
            "Do not use null here: the other operand of `!=` has the type int, ",
        );
        starts_with("_==_", "int, string", "Compare values of the same type");
        for (operator, operands) in [
            ("_+_", "int, string"),
            ("_==_", "null, list(string)"),
            ("_==_", "list(string), string"),
            ("_==_", "optional_type(string), string"),
            ("_>_", "int, null"),
            ("@in", "string, string"),
            ("_?_:_", "int, int, string"),
            ("startsWith", "string, int"),
        ] {
            assert_eq!(advice(&error(operator, operands)), None, "{operator} {operands}");
        }
        assert_eq!(advice("undeclared reference to 'a'"), None);
    }
}
