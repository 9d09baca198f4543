//! Parses field selectors.

use super::FieldRequirement;

/// Parses a field selector; its terms are sorted.
///
/// # Errors
/// Returns kube-apiserver's message if the selector is invalid.
///
/// Source: apimachinery pkg/fields/selector.go, `ParseSelector`.
pub(crate) fn parse_fields(selector: &str) -> Result<Vec<FieldRequirement>, String> {
    let mut terms = split_terms(selector);
    terms.sort_unstable();
    terms
        .into_iter()
        .filter(|term| !term.is_empty())
        .map(|term| {
            let (field, negated, value) = split_term(term)
                .ok_or_else(|| format!("invalid selector: '{selector}'; can't understand '{term}'"))?;
            Ok(FieldRequirement { field: field.to_owned(), negated, value: unescape(value)? })
        })
        // Upstream drops requirements without field and value when it transforms them.
        .filter(|term: &Result<FieldRequirement, String>| {
            !term.as_ref().is_ok_and(|term| term.field.is_empty() && term.value.is_empty())
        })
        .collect()
}

/// Splits a selector at commas without a preceding backslash.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut escaped = false;
    selector
        .split(|character| {
            let is_end = character == ',' && !escaped;
            escaped = character == '\\' && !escaped;
            is_end
        })
        .collect()
}

/// Splits a term at the first operator into the field, whether the field must differ, and the value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let (field, rest) = term.split_at(at);
        let (operator, value) = ["!=", "==", "="]
            .into_iter()
            .find_map(|operator| Some((operator, rest.strip_prefix(operator)?)))?;
        Some((field, operator == "!=", value))
    })
}

/// Unescapes a value: removes the backslashes before special characters.
///
/// Source: apimachinery pkg/fields/selector.go, `UnescapeValue`.
fn unescape(text: &str) -> Result<String, String> {
    let invalid =
        |sequence: String| Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                Some(other) => return invalid(format!("\\{other}")),
                None => return invalid("\\".to_owned()),
            },
            ',' | '=' => {
                let number = u32::from(character);
                return Err(format!("invalid field selector: unescaped character in value: {number}"));
            }
            _ => value.push(character),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: Result<&[(&str, bool, &str)], &str>) {
        let requirements = parse_fields(selector);
        let found = requirements.as_ref().map(|requirements| {
            let found = requirements.iter();
            found.map(|found| (found.field.as_str(), found.negated, found.value.as_str())).collect::<Vec<_>>()
        });
        assert_eq!(found, expected.map(<[_]>::to_vec).map_err(str::to_owned).as_ref().cloned(), "{selector}");
    }

    #[test]
    fn terms_are_sorted() {
        check("", Ok(&[]));
        check("b=1,a!=2,,c==3", Ok(&[("a", true, "2"), ("b", false, "1"), ("c", false, "3")]));
        check("a=", Ok(&[("a", false, "")]));
        check("=", Ok(&[]));
    }

    #[test]
    fn commas_and_equal_signs_in_values_are_escaped() {
        check(r"a=b\,c\=d\\", Ok(&[("a", false, r"b,c=d\")]));
        check(r"a=b\c", Err(r"invalid field selector: invalid escape sequence: \c"));
        check(r"a=b\", Err(r"invalid field selector: invalid escape sequence: \"));
        check("a=b=c", Err("invalid field selector: unescaped character in value: 61"));
    }

    #[test]
    fn a_term_without_operator_is_an_error() {
        check("a=b,c", Err("invalid selector: 'a=b,c'; can't understand 'c'"));
    }
}
