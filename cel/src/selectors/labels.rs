//! Parses label selectors.

use std::collections::BTreeSet;

use go_std::quote::quote;

use super::{LabelOperator, LabelRequirement};
use crate::names::{label_key, label_value};

/// Parses a label selector; its requirements are sorted by key.
///
/// # Errors
/// Returns kube-apiserver's message if the selector is invalid.
///
/// Source: apimachinery pkg/labels/selector.go, `ParseToRequirements`.
pub(crate) fn parse_labels(selector: &str) -> Result<Vec<LabelRequirement>, String> {
    let mut parser = Parser { tokens: tokens(selector), position: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek(Context::Values) {
            Token::Identifier(_) | Token::Symbol("!") => {
                let requirement =
                    parser.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
                requirements.push(requirement);
                match parser.next(Context::Values) {
                    Token::End => break,
                    Token::Symbol(",") => match parser.peek(Context::Values) {
                        Token::Identifier(_) | Token::Symbol("!") => {}
                        token @ (Token::Symbol(_) | Token::End) => {
                            return Err(format!("found '{token}', expected: identifier after ','"));
                        }
                    },
                    token @ (Token::Identifier(_) | Token::Symbol(_)) => {
                        return Err(format!("found '{token}', expected: ',' or 'end of string'"));
                    }
                }
            }
            Token::End => break,
            token @ Token::Symbol(_) => {
                return Err(format!("found '{token}', expected: !, identifier, or 'end of string'"));
            }
        }
    }
    requirements.sort_by(|left: &LabelRequirement, right| left.key.cmp(&right.key));
    Ok(requirements)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Identifier(&'t str),
    /// An operator, including `in` and `notin`, or a delimiter.
    Symbol(&'static str),
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Identifier(text) | Self::Symbol(text) => f.write_str(text),
            Self::End => Ok(()),
        }
    }
}

/// Whether `in` and `notin` are read as operators or as ordinary values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    KeyAndOperator,
    Values,
}

/// The symbols, in the order in which the parser tries them: longer ones first.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

/// Returns the tokens. As in kube-apiserver, a null character ends a token and is dropped; outside a token, it ends the
/// text.
fn tokens(selector: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = selector;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if rest.is_empty() || rest.starts_with('\0') {
            tokens.push(Token::End);
            return tokens;
        }
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push(Token::Symbol(symbol));
            rest = rest.strip_prefix(symbol).unwrap_or_default();
            rest = rest.strip_prefix('\0').unwrap_or(rest);
            continue;
        }
        let end = rest.find(|character: char| " \t\r\n=!(),><\0".contains(character)).unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        tokens.push(match text {
            "in" => Token::Symbol("in"),
            "notin" => Token::Symbol("notin"),
            _ => Token::Identifier(text),
        });
        rest = after.strip_prefix('\0').unwrap_or(after);
    }
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    position: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self, context: Context) -> Token<'t> {
        match self.tokens.get(self.position) {
            Some(Token::Symbol(word @ ("in" | "notin"))) if context == Context::Values => {
                Token::Identifier(word)
            }
            Some(token) => *token,
            None => Token::End,
        }
    }

    fn next(&mut self, context: Context) -> Token<'t> {
        let token = self.peek(context);
        self.position += 1;
        token
    }

    /// Parses a requirement, such as `app in (a,b)`.
    ///
    /// Source: apimachinery pkg/labels/selector.go, `parseRequirement`.
    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let mut token = self.next(Context::Values);
        let negated = token == Token::Symbol("!");
        if negated {
            token = self.next(Context::Values);
        }
        let Token::Identifier(key) = token else {
            return Err(format!("found '{token}', expected: identifier"));
        };
        check("<nil>", key, &label_key(key))?;
        let is_alone = matches!(self.peek(Context::Values), Token::End | Token::Symbol(","));
        if negated || is_alone {
            let operator = if negated { LabelOperator::DoesNotExist } else { LabelOperator::Exists };
            return Ok(LabelRequirement { key: key.to_owned(), operator, values: vec![] });
        }
        let operator = self.operator()?;
        let values = if matches!(operator, LabelOperator::In | LabelOperator::NotIn) {
            self.values()?
        } else {
            BTreeSet::from([self.exact_value()?])
        };
        let values: Vec<_> = values.into_iter().map(str::to_owned).collect();
        validate(key, operator, &values)?;
        Ok(LabelRequirement { key: key.to_owned(), operator, values })
    }

    fn operator(&mut self) -> Result<LabelOperator, String> {
        match self.next(Context::KeyAndOperator) {
            Token::Symbol("in") => Ok(LabelOperator::In),
            Token::Symbol("notin") => Ok(LabelOperator::NotIn),
            Token::Symbol("=") => Ok(LabelOperator::Equals),
            Token::Symbol("==") => Ok(LabelOperator::DoubleEquals),
            Token::Symbol("!=") => Ok(LabelOperator::NotEquals),
            Token::Symbol(">") => Ok(LabelOperator::GreaterThan),
            Token::Symbol("<") => Ok(LabelOperator::LessThan),
            token @ (Token::Identifier(_) | Token::Symbol(_) | Token::End) => {
                Err(format!("found '{token}', expected: in, notin, =, ==, !=, gt, lt"))
            }
        }
    }

    /// Parses the values in parentheses.
    ///
    /// Source: apimachinery pkg/labels/selector.go, `parseValues`.
    fn values(&mut self) -> Result<BTreeSet<&'t str>, String> {
        let open = self.next(Context::Values);
        if open != Token::Symbol("(") {
            return Err(format!("found '{open}' expected: '('"));
        }
        match self.peek(Context::Values) {
            Token::Identifier(_) | Token::Symbol(",") => {
                let values = self.listed_values()?;
                self.next(Context::Values);
                Ok(values)
            }
            Token::Symbol(")") => {
                self.next(Context::Values);
                Ok(BTreeSet::from([""]))
            }
            token @ (Token::Symbol(_) | Token::End) => {
                Err(format!("found '{token}', expected: ',', ')' or identifier"))
            }
        }
    }

    /// Parses values up to the closing parenthesis.
    ///
    /// Source: apimachinery pkg/labels/selector.go, `parseIdentifiersList`.
    fn listed_values(&mut self) -> Result<BTreeSet<&'t str>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next(Context::Values) {
                Token::Identifier(value) => {
                    values.insert(value);
                    match self.peek(Context::Values) {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(values),
                        token @ (Token::Identifier(_) | Token::Symbol(_) | Token::End) => {
                            return Err(format!("found '{token}', expected: ',' or ')'"));
                        }
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() {
                        values.insert("");
                    }
                    match self.peek(Context::Values) {
                        Token::Symbol(")") => {
                            values.insert("");
                            return Ok(values);
                        }
                        Token::Symbol(",") => {
                            values.insert("");
                        }
                        Token::Identifier(_) | Token::Symbol(_) | Token::End => {}
                    }
                }
                token @ (Token::Symbol(_) | Token::End) => {
                    return Err(format!("found '{token}', expected: ',', or identifier"));
                }
            }
        }
    }

    fn exact_value(&mut self) -> Result<&'t str, String> {
        if matches!(self.peek(Context::Values), Token::End | Token::Symbol(",")) {
            return Ok("");
        }
        match self.next(Context::Values) {
            Token::Identifier(value) => Ok(value),
            token @ (Token::Symbol(_) | Token::End) => Err(format!("found '{token}', expected: identifier")),
        }
    }
}

/// Returns an error if the key is invalid, or if the values are invalid for the operator.
///
/// Source: apimachinery pkg/labels/selector.go, `NewRequirement`.
fn validate(key: &str, operator: LabelOperator, values: &[String]) -> Result<(), String> {
    let mut errors = Vec::new();
    if matches!(operator, LabelOperator::GreaterThan | LabelOperator::LessThan) {
        for (index, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
            let wrong = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(format!("values[{index}]: Invalid value: {}: {wrong}", quote(value)));
        }
    }
    for (index, value) in values.iter().enumerate() {
        errors.extend(check(&format!("values[{index}][{key}]"), value, &label_value(value)).err());
    }
    match errors.as_slice() {
        [] => Ok(()),
        [error] => Err(error.clone()),
        errors => Err(format!("[{}]", errors.join(", "))),
    }
}

fn check(path: &str, value: &str, wrong: &[String]) -> Result<(), String> {
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{path}: Invalid value: {}: {}", quote(value), wrong.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_requirements(selector: &str, expected: &[(&str, LabelOperator, &[&str])]) {
        let found = parse_labels(selector).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|found| {
                (
                    found.key.as_str(),
                    found.operator,
                    found.values.iter().map(String::as_str).collect::<Vec<_>>(),
                )
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(key, operator, values)| (*key, *operator, values.to_vec())).collect();
        assert_eq!(found, expected, "{selector:?}");
    }

    #[track_caller]
    fn check_error(selector: &str, error: &str) {
        assert_eq!(parse_labels(selector), Err(error.to_owned()), "{selector:?}");
    }

    #[test]
    fn requirements_are_sorted_by_key() {
        check_requirements("", &[]);
        check_requirements(" \t", &[]);
        check_requirements(
            "z, b in (y,x,y) ,!c,d=1,e==,f != 2,g notin(),h>1,i<2",
            &[
                ("b", LabelOperator::In, &["x", "y"]),
                ("c", LabelOperator::DoesNotExist, &[]),
                ("d", LabelOperator::Equals, &["1"]),
                ("e", LabelOperator::DoubleEquals, &[""]),
                ("f", LabelOperator::NotEquals, &["2"]),
                ("g", LabelOperator::NotIn, &[""]),
                ("h", LabelOperator::GreaterThan, &["1"]),
                ("i", LabelOperator::LessThan, &["2"]),
                ("z", LabelOperator::Exists, &[]),
            ],
        );
    }

    #[test]
    fn operators_can_be_keys_and_values() {
        check_requirements("in in (in,notin)", &[("in", LabelOperator::In, &["in", "notin"])]);
        check_requirements("a in (,b,,)", &[("a", LabelOperator::In, &["", "b"])]);
    }

    #[test]
    fn null_character_ends_the_preceding_token() {
        check_requirements("a\0,b", &[("a", LabelOperator::Exists, &[]), ("b", LabelOperator::Exists, &[])]);
        check_requirements("a \0b", &[("a", LabelOperator::Exists, &[])]);
    }

    #[test]
    fn invalid_selector_has_the_error_of_the_server() {
        check_error("=a", "found '=', expected: !, identifier, or 'end of string'");
        check_error("a,=", "found '=', expected: identifier after ','");
        check_error("!a=b", "found '=', expected: ',' or 'end of string'");
        check_error("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
        check_error("a in b", "unable to parse requirement: found 'b' expected: '('");
        check_error("a in (b", "unable to parse requirement: found '', expected: ',' or ')'");
        check_error("a in (!)", "unable to parse requirement: found '!', expected: ',', ')' or identifier");
        check_error("a=(", "unable to parse requirement: found '(', expected: identifier");
        check_error("!(", "unable to parse requirement: found '(', expected: identifier");
        check_error(
            "a>b!",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be \
             an integer",
        );
    }

    #[test]
    fn keys_and_values_are_validated() {
        let error = parse_labels("a/b/c").unwrap_err();
        assert!(
            error.starts_with(
                "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key"
            )
        );
        let error = parse_labels("a>é").unwrap_err();
        assert!(error.starts_with("unable to parse requirement: [values[0]: Invalid value: \"é\": for 'Gt'"));
        assert!(error.contains("integer, values[0][a]: Invalid value: \"é\": a valid label must be"));
    }
}
