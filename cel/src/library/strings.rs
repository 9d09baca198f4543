//! Implements the string functions of cel-go's extension.
//!
//! Indices count code points.
//!
//! Source: cel-go ext/strings.go, version 2; costs: apiserver pkg/cel/library/cost.go.

use std::ops::Range;
use std::sync::Arc;

use crate::function::{Call, CallCost, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Text, Value};

use super::{costs, format};

/// The maximum size, in bytes, of a result; kube-apiserver is limited only by its memory.
const MAX_RESULT_BYTES: usize = 1 << 26;

/// Returns the functions of a version of the library; version 0 has neither `format` nor `strings.quote`.
pub(crate) fn library(version: u32) -> Vec<Function> {
    let (text, int) = (Type::String, Type::Int);
    let texts = Type::list(Type::String);
    let mut functions = vec![
        methods("charAt", &text, char_at, [("string_char_at_int", vec![&text, &int])]),
        methods(
            "indexOf",
            &int,
            index_of,
            [
                ("string_index_of_string", vec![&text, &text]),
                ("string_index_of_string_int", vec![&text, &text, &int]),
            ],
        )
        .with_cost(costs::TRAVERSAL),
        methods(
            "lastIndexOf",
            &int,
            last_index_of,
            [
                ("string_last_index_of_string", vec![&text, &text]),
                ("string_last_index_of_string_int", vec![&text, &text, &int]),
            ],
        )
        .with_cost(costs::TRAVERSAL),
        methods("lowerAscii", &text, lower_ascii, [("string_lower_ascii", vec![&text])]).with_cost(ONCE),
        methods(
            "replace",
            &text,
            replace,
            [
                ("string_replace_string_string", vec![&text, &text, &text]),
                ("string_replace_string_string_int", vec![&text, &text, &text, &int]),
            ],
        )
        .with_cost(TWICE),
        methods(
            "split",
            &texts,
            split,
            [
                ("string_split_string", vec![&text, &text]),
                ("string_split_string_int", vec![&text, &text, &int]),
            ],
        )
        .with_cost(TWICE),
        methods(
            "substring",
            &text,
            substring,
            [
                ("string_substring_int", vec![&text, &int]),
                ("string_substring_int_int", vec![&text, &int, &int]),
            ],
        )
        .with_cost(ONCE),
        methods("trim", &text, trim, [("string_trim", vec![&text])]).with_cost(ONCE),
        methods("upperAscii", &text, upper_ascii, [("string_upper_ascii", vec![&text])]).with_cost(ONCE),
    ];
    if version >= 1 {
        let arguments = Type::list(Type::Dyn);
        let format = methods("format", &text, format::format, [("string_format", vec![&text, &arguments])]);
        functions.push(format.variadic());
        let quote = Overload::global("strings_quote", vec![Type::String], Type::String, quote);
        functions.push(Function::new("strings.quote", vec![quote]));
    }
    functions.push(
        methods(
            "join",
            &text,
            join,
            [("list_join", vec![&texts]), ("list_join_string", vec![&texts, &text])],
        )
        .with_cost(|_, _, result| {
            Some(costs::share(2 * result.map_or(1, Value::size_or_one), costs::TRAVERSED))
        }),
    );
    functions
}

const ONCE: CallCost =
    |_, arguments, _| Some(costs::share(arguments.first()?.size_or_one(), costs::TRAVERSED));
const TWICE: CallCost =
    |_, arguments, _| Some(costs::share(2 * arguments.first()?.size_or_one(), costs::TRAVERSED));

fn methods<const N: usize>(
    name: &'static str,
    result: &Type,
    implementation: Implementation,
    overloads: [(&'static str, Vec<&Type>); N],
) -> Function {
    let overloads = overloads.map(|(id, parameters)| {
        Overload::member(id, parameters.into_iter().cloned().collect(), result.clone(), implementation)
    });
    Function::new(name, overloads.into())
}

fn out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

/// Returns the byte offset of the code point at `index`, or `None` if `index` is out of range. The index after the last
/// code point is in range.
fn byte_of(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(index)
}

/// Returns the number of code points before the byte offset `byte`.
fn points_before(text: &str, byte: usize) -> i64 {
    let before = text.get(..byte).unwrap_or(text).chars().count();
    i64::try_from(before).unwrap_or(i64::MAX)
}

/// Returns a part of a string. The part is borrowed if the string is borrowed.
fn part<'a>(text: &Text<'a>, range: Range<usize>) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::String(Text::Borrowed(text.get(range).unwrap_or_default())),
        Text::Shared(text) if range == (0..text.len()) => Value::String(Text::Shared(Arc::clone(text))),
        Text::Shared(text) => Value::text(text.get(range).unwrap_or_default()),
    }
}

/// Converts a slice of `text`, such as the result of a method of `str`, to a string value.
pub(super) fn part_of<'a>(text: &Text<'a>, part_of_it: &str) -> Value<'a> {
    let start = part_of_it.as_ptr() as usize - text.as_str().as_ptr() as usize;
    part(text, start..start + part_of_it.len())
}

fn char_at<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let (text, index) = (call.text(0)?, call.int(1)?);
    let start = byte_of(text.as_str(), index).ok_or_else(|| out_of_range(index))?;
    let length = text.as_str().get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    Ok(part(text, start..start + length))
}

fn index_of<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let (text, wanted) = (call.text(0)?.as_str(), call.text(1)?.as_str());
    let offset = if call.arguments.len() > 2 { call.int(2)? } else { 0 };
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let start = byte_of(text, offset);
    let index = match start {
        Some(_) if wanted.is_empty() => offset,
        None if wanted.is_empty() => points_before(text, text.len()),
        Some(start) => text
            .get(start..)
            .and_then(|rest| rest.find(wanted))
            .map_or(-1, |found| points_before(text, start + found)),
        None => -1,
    };
    Ok(Value::Int(index))
}

fn last_index_of<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let (text, wanted) = (call.text(0)?.as_str(), call.text(1)?.as_str());
    let length = points_before(text, text.len());
    let offset = if call.arguments.len() > 2 { Some(call.int(2)?) } else { None };
    let index = match offset {
        Some(offset) if offset < 0 => return Err(out_of_range(offset)),
        _ if wanted.is_empty() => offset.unwrap_or(length).min(length),
        Some(offset) if offset >= length => -1,
        None => text.rfind(wanted).map_or(-1, |found| points_before(text, found)),
        Some(offset) => {
            // A match must start at or before the offset, but can end after the offset.
            let start = byte_of(text, offset).unwrap_or(text.len());
            let mut end = start.saturating_add(wanted.len()).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let before = text.get(..end).unwrap_or_default();
            before.rfind(wanted).map_or(-1, |found| points_before(text, found))
        }
    };
    Ok(Value::Int(index))
}

fn lower_ascii<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(changed(call.text(0)?, u8::is_ascii_uppercase, str::to_ascii_lowercase))
}

fn upper_ascii<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(changed(call.text(0)?, u8::is_ascii_lowercase, str::to_ascii_uppercase))
}

fn changed<'a>(text: &Text<'a>, affected: fn(&u8) -> bool, change: fn(&str) -> String) -> Value<'a> {
    if text.as_str().as_bytes().iter().any(affected) {
        Value::text(change(text.as_str()))
    } else {
        Value::String(text.clone())
    }
}

fn replace<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?;
    let (old, new) = (call.text(1)?.as_str(), call.text(2)?.as_str());
    let limit = if call.arguments.len() > 3 { call.int(3)? } else { -1 };
    // A negative limit means no limit.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = text.as_str().matches(old).take(limit).count();
    if count == 0 || old == new {
        return Ok(Value::String(text.clone()));
    }
    let length = text.as_str().len() - count * old.len();
    if length.saturating_add(count.saturating_mul(new.len())) > MAX_RESULT_BYTES {
        return Err(too_long("replace"));
    }
    Ok(Value::text(text.as_str().replacen(old, new, count)))
}

/// Creates the error for a result that exceeds the size limit.
pub(super) fn too_long(function: &str) -> Error {
    Error::Unsupported(format!("the result of {function} is longer than {MAX_RESULT_BYTES} bytes"))
}

/// Returns whether a result of this many bytes exceeds the size limit.
pub(super) fn is_too_long(length: usize) -> bool {
    length > MAX_RESULT_BYTES
}

fn split<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?;
    let separator = call.text(1)?.as_str();
    let limit = if call.arguments.len() > 2 { call.int(2)? } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let whole = text.as_str();
    let parts: Vec<Value<'a>> = if separator.is_empty() {
        let ends = whole.char_indices().map(|(byte, point)| byte + point.len_utf8());
        let mut start = 0;
        let count = whole.chars().count().min(limit);
        ends.take(count)
            .enumerate()
            .map(|(index, end)| {
                let end = if index + 1 == count { whole.len() } else { end };
                let range = start..end;
                start = end;
                part(text, range)
            })
            .collect()
    } else {
        whole.splitn(limit, separator).map(|found| part_of(text, found)).collect()
    };
    Ok(Value::list(parts))
}

fn substring<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let (text, start) = (call.text(0)?, call.int(1)?);
    let end = if call.arguments.len() > 2 { Some(call.int(2)?) } else { None };
    if let Some(end) = end
        && start > end
    {
        return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let first = byte_of(text.as_str(), start).ok_or_else(|| out_of_range(start))?;
    let last = match end {
        Some(end) => byte_of(text.as_str(), end).ok_or_else(|| out_of_range(end))?,
        None => text.as_str().len(),
    };
    Ok(part(text, first..last))
}

fn trim<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?;
    // Go and Rust both use the property White_Space.
    Ok(part_of(text, text.as_str().trim()))
}

/// Implements `strings.quote`. Escapes only the characters that CEL escapes.
///
/// Source: cel-go ext/strings.go, `quote`.
fn quote<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?.as_str();
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for point in text.chars() {
        match point {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' | '"' => quoted.extend(['\\', point]),
            _ => quoted.push(point),
        }
    }
    quoted.push('"');
    Ok(Value::text(quoted))
}

fn join<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let list = call.list(0)?;
    let separator = if call.arguments.len() > 1 { call.text(1)?.as_str() } else { "" };
    let mut joined = String::new();
    for (index, element) in list.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        let Value::String(text) = &element else {
            return Err(Error::new(format!("join: invalid input: {element}")));
        };
        joined.push_str(text.as_str());
        if is_too_long(joined.len()) {
            return Err(too_long("join"));
        }
    }
    Ok(Value::text(joined))
}
