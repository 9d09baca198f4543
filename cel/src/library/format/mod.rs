//! Implements `format`: strings with clauses such as `%s` and `%.2f`.
//!
//! Source: cel-go ext/formatting.go, which versions 0 to 3 of the strings library use.

mod check;
mod number;
mod values;

use crate::function::{Call, Error};
use crate::value::Value;

use super::strings::{is_too_long, too_long};

pub(crate) use check::check;

/// A formatting clause after a percent sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// `%s`: text.
    Text,
    /// `%d`: a decimal number.
    Decimal,
    /// `%f`, with its precision.
    Fixed(usize),
    /// `%e`; as in cel-go, the precision before the `e` is used as a width.
    Scientific(usize),
    /// `%b`: a binary number or a boolean.
    Binary,
    /// `%x` or `%X`: hexadecimal digits.
    Hex {
        /// Whether the digits above 9 are uppercase letters.
        upper: bool,
    },
    /// `%o`: an octal number.
    Octal,
}

/// The reason why formatting fails.
#[derive(Debug)]
pub(crate) enum Failure<E> {
    /// The format is invalid. The error message is used without the prefix `error during formatting: `.
    Format(String),
    /// An argument does not match its clause; the error does not include the prefix `error during formatting: `.
    Argument(E),
}

impl Clause {
    /// Returns the message for an argument of the wrong type.
    pub(crate) fn refusal(self, type_name: &str) -> String {
        let rule = match self {
            Self::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                 and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("{rule}, was given {type_name}")
    }
}

/// Formats a string: appends the text between clauses to `output`, and calls `write` for each clause with the index of
/// the argument.
///
/// # Errors
///
/// Returns the first error, from left to right.
///
/// Source: cel-go ext/formatting.go, `parseFormatString`.
pub(crate) fn interpolate<E>(
    format: &str,
    arguments: usize,
    output: &mut String,
    mut write: impl FnMut(usize, Clause, &mut String) -> Result<(), E>,
) -> Result<(), Failure<E>> {
    let mut rest = format;
    let mut argument = 0;
    while let Some((text, behind)) = rest.split_once('%') {
        output.push_str(text);
        if let Some(behind) = behind.strip_prefix('%') {
            output.push('%');
            rest = behind;
            continue;
        }
        if argument >= arguments {
            return Err(Failure::Format(format!("index {argument} out of range")));
        }
        if behind.is_empty() {
            return Err(Failure::Format("unexpected end of string".to_owned()));
        }
        let (clause, behind) = parse(behind)
            .map_err(|error| Failure::Format(format!("could not parse formatting clause: {error}")))?;
        write(argument, clause, output).map_err(Failure::Argument)?;
        argument += 1;
        rest = behind;
    }
    output.push_str(rest);
    Ok(())
}

/// Parses the clause at the beginning of the non-empty `text`, and returns it with the remaining text.
fn parse(text: &str) -> Result<(Clause, &str), String> {
    let (precision, text) = match text.strip_prefix('.') {
        None => (6, text),
        Some(text) => {
            let end = text
                .find(|character: char| !character.is_ascii_digit())
                .ok_or("error while parsing precision: could not find end of precision specifier")?;
            let (digits, text) = text.split_at(end);
            (parse_precision(digits)?, text)
        }
    };
    let clause = match text.as_bytes().first() {
        Some(b's') => Clause::Text,
        Some(b'd') => Clause::Decimal,
        Some(b'f') => Clause::Fixed(precision),
        Some(b'e') => Clause::Scientific(precision),
        Some(b'b') => Clause::Binary,
        Some(b'x') => Clause::Hex { upper: false },
        Some(b'X') => Clause::Hex { upper: true },
        Some(b'o') => Clause::Octal,
        // cel-go treats the byte as a character.
        Some(other) => return Err(format!("unrecognized formatting clause \"{}\"", char::from(*other))),
        None => return Err("unrecognized formatting clause \"\"".to_owned()),
    };
    Ok((clause, text.get(1..).unwrap_or_default()))
}

fn parse_precision(digits: &str) -> Result<usize, String> {
    let reason = match digits.parse::<i64>() {
        Ok(precision) => return Ok(usize::try_from(precision).unwrap_or_default()),
        Err(_) if digits.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(format!(
        "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
         \"{digits}\": {reason}"
    ))
}

/// Implements the function `format`.
pub(super) fn format<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let format = call.text(0)?.as_str();
    let arguments: Vec<Value<'a>> = call.list(1)?.iter().collect();
    let mut output = String::with_capacity(format.len());
    interpolate(format, arguments.len(), &mut output, |index, clause, output| {
        let argument = arguments.get(index).unwrap_or(&Value::Null);
        values::write(output, clause, argument)?;
        if is_too_long(output.len()) { Err(values::FormatError::TooLong) } else { Ok(()) }
    })
    .map_err(|failure| match failure {
        Failure::Format(message) => Error::new(message),
        Failure::Argument(values::FormatError::TooLong) => too_long("format"),
        Failure::Argument(values::FormatError::Panic(reason)) => Error::Panic(reason.to_owned()),
        Failure::Argument(values::FormatError::Message(message)) => {
            Error::new(format!("error during formatting: {message}"))
        }
    })?;
    Ok(Value::text(output))
}

#[cfg(test)]
mod tests;
