//! Resolves field paths such as `.spec.size` or `['a.b']`: `fieldPath` of a rule, `jsonPath` of a selectable field.

use serde_json::Value;

/// Resolves a path in a schema and formats it for error messages.
///
/// # Errors
/// Returns kube-apiserver's error for an invalid path.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `ValidFieldPath`.
pub(in crate::structural) fn normalized(path: &str, schema: &Value) -> Result<String, String> {
    resolve(path, schema, Notation::WithBrackets).map(|found| found.path)
}

/// The syntax of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Only the dot notation, `.a`.
    DotsAlone,
    /// Both the dot and the bracket notation, `.a` and `['a']`.
    WithBrackets,
}

/// A `fieldPath` that was resolved against the schema.
#[derive(Debug)]
pub struct ResolvedPath<'s> {
    /// The path in the format of error messages.
    pub path: String,
    /// The name of the first field in the path.
    pub root: String,
    /// The schema of the last field.
    pub schema: &'s Value,
}

/// Resolves a path in a schema.
///
/// # Errors
/// Returns kube-apiserver's error for an invalid path.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, `ValidFieldPath`.
pub fn resolve<'s>(path: &str, schema: &'s Value, notation: Notation) -> Result<ResolvedPath<'s>, String> {
    let mut rest = path;
    let mut schema = schema;
    let mut normalized = String::new();
    let mut root = None;
    while !rest.is_empty() {
        let name = match take(&mut rest) {
            "[" if notation == Notation::DotsAlone => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = next(&mut rest)?;
                let inner = quoted.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
                let Some(inner) = inner.filter(|_| quoted.len() >= 2) else {
                    return Err(format!("expected single quoted string but got {quoted}"));
                };
                let name = unescaped(inner)?;
                schema = step(schema, &name, &mut normalized)?;
                root.get_or_insert(name);
                match next(&mut rest)? {
                    "]" => continue,
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => next(&mut rest)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        schema = step(schema, name, &mut normalized)?;
        root.get_or_insert_with(|| name.to_owned());
    }
    Ok(ResolvedPath { path: normalized, root: root.unwrap_or_default(), schema })
}

fn step<'s>(schema: &'s Value, name: &str, normalized: &mut String) -> Result<&'s Value, String> {
    let unknown = || "does not refer to a valid field".to_owned();
    if let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|it| !it.is_empty())
    {
        if !normalized.is_empty() {
            normalized.push('.');
        }
        normalized.push_str(name);
        return properties.get(name).ok_or_else(unknown);
    }
    let values =
        schema.get("additionalProperties").filter(|values| values.is_object()).ok_or_else(unknown)?;
    normalized.extend(["[", name, "]"]);
    Ok(values)
}

fn next<'p>(rest: &mut &'p str) -> Result<&'p str, String> {
    match take(rest) {
        "" => Err("unexpected end of JSON path".to_owned()),
        token => Ok(token),
    }
}

/// Takes the next token: a delimiter, a quoted string, or the characters before a delimiter.
fn take<'p>(rest: &mut &'p str) -> &'p str {
    let mut before = '\0';
    let mut end = rest.len();
    for (at, character) in rest.char_indices() {
        if rest.starts_with('\'') {
            if at > 0 && character == '\'' && before != '\\' {
                end = at + 1;
                break;
            }
        } else if matches!(character, '.' | '[' | ']') {
            end = at.max(1);
            break;
        }
        before = character;
    }
    let (token, behind) = rest.split_at(end);
    *rest = behind;
    token
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        plain.push(match characters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(quote @ ('\'' | '\\')) => quote,
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
            // A trailing backslash does not escape anything.
            None => '\\',
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_resolve_to_fields_and_keys() {
        let schema = json!({"properties": {
            "a": {"properties": {"b.c": {}, "it's": {}}},
            "m": {"additionalProperties": {"properties": {"x": {}}}},
        }});
        for (path, expected) in [
            (".a", Ok("a")),
            (".a['b.c']", Ok("a.b.c")),
            ("['a']['it\\'s']", Ok("a.it's")),
            (".m.key.x", Ok("m[key].x")),
            (".z", Err("does not refer to a valid field")),
            (".a.b.c", Err("does not refer to a valid field")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            ("[a]", Err("expected single quoted string but got a")),
            ("['a'.", Err("expected ] but got .")),
        ] {
            let found = normalized(path, &schema);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
        }
    }
}
