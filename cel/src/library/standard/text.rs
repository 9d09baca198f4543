//! Implements the string functions of the standard library.

use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::regexp::Regexp;
use crate::types::Type;
use crate::value::Value;

use super::unknown;

pub(super) fn functions() -> Vec<Function> {
    let test = |name, id, implementation: Implementation| {
        let parameters = vec![Type::String, Type::String];
        Function::new(name, vec![Overload::member(id, parameters, Type::Bool, implementation).unguarded()])
    };
    let parameters = || vec![Type::String, Type::String];
    vec![
        test("contains", "contains_string", |call| texts(call, |text, part| text.contains(part))),
        test("endsWith", "ends_with_string", |call| texts(call, |text, end| text.ends_with(end))),
        test("startsWith", "starts_with_string", |call| texts(call, |text, start| text.starts_with(start))),
        Function::new(
            "matches",
            vec![
                Overload::global("matches", parameters(), Type::Bool, matches).unguarded().with_regex(1),
                Overload::member("matches_string", parameters(), Type::Bool, matches)
                    .unguarded()
                    .with_regex(1),
            ],
        ),
    ]
}

fn texts<'a>(call: &Call<'_, 'a>, holds: fn(&str, &str) -> bool) -> Result<Value<'a>, Error> {
    match call.arguments {
        [Value::String(text), Value::String(other)] => Ok(Value::Bool(holds(text.as_str(), other.as_str()))),
        _ => Err(Error::no_such_overload()),
    }
}

fn matches<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    match call.arguments {
        [Value::String(text), Value::String(pattern)] => match call.regex {
            Some(regex) => Ok(Value::Bool(regex.is_match(text.as_str()))),
            None => Regexp::new(pattern.as_str())
                .map(|regex| Value::Bool(regex.is_match(text.as_str())))
                .map_err(Error::from),
        },
        [text, _] if call.regex.is_none() => Err(unknown("matches", text)),
        _ => Err(Error::no_such_overload()),
    }
}
