//! Implements the functions that find matches of a regular expression.
//!
//! Source: apiserver pkg/cel/library/regex.go; costs: pkg/cel/library/cost.go.

use crate::function::{Call, CallCost, Error, Function, Overload};
use crate::regexp::{Regexp, RegexpError};
use crate::types::Type;
use crate::value::Value;

use super::costs;
use super::strings::part_of;

pub(crate) fn library() -> Vec<Function> {
    let texts = Type::list(Type::String);
    let find = Overload::member("string_find_string", vec![Type::String, Type::String], Type::String, find);
    let find_all = [
        ("string_find_all_string", vec![Type::String, Type::String]),
        ("string_find_all_string_int", vec![Type::String, Type::String, Type::Int]),
    ]
    .map(|(id, parameters)| Overload::member(id, parameters, texts.clone(), find_all_matches).with_regex(1));
    vec![
        Function::new("find", vec![find.with_regex(1)]).with_cost(COST),
        Function::new("findAll", find_all.into()).with_cost(COST),
    ]
}

const COST: CallCost = |_, arguments, _| {
    let [text, expression, ..] = arguments else { return None };
    let text = costs::share(text.size_or_one().saturating_add(1), costs::TRAVERSED);
    Some(text.saturating_mul(costs::share(expression.size_or_one(), 0.25)))
};

/// Calls `search` with the call's constant regular expression, or with the regular expression in the second argument.
fn with_expression<T>(
    call: &Call<'_, '_>,
    search: impl FnOnce(&Regexp) -> Result<T, Error>,
) -> Result<T, Error> {
    if let Some(expression) = call.regex {
        return search(expression);
    }
    let expression = Regexp::new(call.text(1)?.as_str());
    let expression = expression.map_err(|error| match error {
        RegexpError::Invalid(_) => Error::new(format!("Illegal regex: {error}")),
        RegexpError::TooLarge(_) => Error::from(error),
    });
    search(&expression?)
}

fn find<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?;
    with_expression(call, |expression| {
        let found = expression.find(text.as_str());
        Ok(found.map_or_else(|| Value::text(""), |found| part_of(text, found)))
    })
}

fn find_all_matches<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?;
    let limit = if call.arguments.len() > 2 { call.int(2)? } else { -1 };
    // A negative limit means no limit.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    with_expression(call, |expression| {
        let found: Vec<Value<'a>> =
            expression.find_all(text.as_str()).take(limit).map(|found| part_of(text, found)).collect();
        Ok(Value::list(found))
    })
}
