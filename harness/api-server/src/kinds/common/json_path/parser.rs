//! Parses `JSONPath` expressions. Accepts and rejects the same malformed paths as client-go's parser.
//!
//! Source: client-go util/jsonpath/parser.go.

use serde_json::Value;

use crate::kinds::common::json_path::{Node, Operator};

/// The maximum nesting depth of filters and unions.
const MAX_DEPTH: usize = 8;

/// The reason why a path cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The path is also invalid for client-go's parser.
    Invalid,
    /// The path is valid, but admit does not support it.
    Unsupported,
}

/// Returns the nodes in each pair of braces of `{TEXT}`. The text may close the first brace and open others.
pub(crate) fn actions(text: &str) -> Result<Vec<Vec<Node>>, Unreadable> {
    parse(&format!("{{{text}}}"), MAX_DEPTH)
}

/// Returns the nodes in the first braces of `{TEXT}`.
fn action(text: &str, depth: usize) -> Result<Vec<Node>, Unreadable> {
    let depth = depth.checked_sub(1).ok_or(Unreadable::Unsupported)?;
    Ok(parse(&format!("{{{text}}}"), depth)?.into_iter().next().unwrap_or_default())
}

/// Parses the actions in braces and ignores text outside braces.
fn parse(text: &str, depth: usize) -> Result<Vec<Vec<Node>>, Unreadable> {
    let mut actions = Vec::new();
    let mut rest = text;
    while let Some((_, inside)) = rest.split_once('{') {
        let mut parser = Parser { rest: inside, nodes: Vec::new(), depth };
        parser.action()?;
        rest = parser.rest;
        actions.push(parser.nodes);
    }
    Ok(actions)
}

struct Parser<'a> {
    rest: &'a str,
    nodes: Vec<Node>,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// Parses an action including its closing brace.
    fn action(&mut self) -> Result<(), Unreadable> {
        loop {
            if let Some(after) = self.rest.strip_prefix('}') {
                self.rest = after;
                return Ok(());
            }
            if let Some(after) = self.rest.strip_prefix("[?(") {
                self.rest = after;
                self.filter()?;
                continue;
            }
            if let Some(after) = self.rest.strip_prefix("..") {
                if self.nodes.last() == Some(&Node::Recursive) {
                    return Err(Unreadable::Invalid);
                }
                self.rest = after;
                self.nodes.push(Node::Recursive);
                if after.starts_with(is_alphanumeric) {
                    self.field();
                }
                continue;
            }
            let before = self.rest;
            let mut characters = before.chars();
            let first = characters.next().ok_or(Unreadable::Invalid)?;
            self.rest = characters.as_str();
            match first {
                ' ' | '@' | '$' => {}
                '[' => self.bracket()?,
                '"' | '\'' => self.quote(first)?,
                '.' => self.field(),
                '+' | '-' => self.number(before)?,
                digit if digit.is_numeric() => self.number(before)?,
                letter if is_alphanumeric(letter) => self.identifier(before)?,
                _ => return Err(Unreadable::Invalid),
            }
        }
    }

    /// Returns the text before the position `end` and advances past it.
    fn take(&mut self, text: &'a str, end: usize) -> Result<&'a str, Unreadable> {
        let (taken, rest) = text.split_at_checked(end).ok_or(Unreadable::Invalid)?;
        self.rest = rest;
        Ok(taken)
    }

    fn identifier(&mut self, text: &'a str) -> Result<(), Unreadable> {
        let word = self.take(text, text.find(is_terminator).unwrap_or(text.len()))?;
        self.nodes.push(match word {
            "true" => Node::Literal(true.into()),
            "false" => Node::Literal(false.into()),
            // kube-apiserver's columns with a range return different values each time.
            "range" => return Err(Unreadable::Unsupported),
            "end" => Node::End,
            _ => Node::Unknown,
        });
        Ok(())
    }

    fn number(&mut self, text: &'a str) -> Result<(), Unreadable> {
        let is_part =
            |(at, it): &(usize, char)| *it == '.' || it.is_numeric() || (*at == 0 && matches!(it, '+' | '-'));
        let end = text.char_indices().find(|it| !is_part(it)).map_or(text.len(), |(at, _)| at);
        let number = self.take(text, end)?;
        let float = || number.parse().ok().filter(|float: &f64| float.is_finite()).map(Value::from);
        let node = match number.parse() {
            Ok(integer) => Node::Integer(integer),
            Err(_) => Node::Literal(float().ok_or(Unreadable::Invalid)?),
        };
        self.nodes.push(node);
        Ok(())
    }

    /// Parses a field name. A backslash escapes the next character.
    fn field(&mut self) {
        let mut characters = self.rest.chars();
        let (mut raw, mut rest) = (String::new(), self.rest);
        while let Some(next) = characters.next() {
            if next == '\\' {
                raw.push(next);
                raw.extend(characters.next());
            } else if is_terminator(next) {
                break;
            } else {
                raw.push(next);
            }
            rest = characters.as_str();
        }
        self.rest = rest;
        self.nodes.push(if raw == "*" { Node::Wildcard } else { Node::Field(raw.replace('\\', "")) });
    }

    fn bracket(&mut self) -> Result<(), Unreadable> {
        let (inside, after) = self.rest.split_once(']').ok_or(Unreadable::Invalid)?;
        if inside.contains('\n') {
            return Err(Unreadable::Invalid);
        }
        self.rest = after;
        let inside = if inside == "*" { ":" } else { inside };
        if inside.contains(',') {
            let part = |part: &str| action(&format!("[{}]", part.trim_matches(' ')), self.depth);
            let parts = inside.split(',').map(part).collect::<Result<_, _>>()?;
            self.nodes.push(Node::Union(parts));
            return Ok(());
        }
        let key = inside.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            self.nodes.extend(action(&format!(".{key}"), self.depth)?);
            return Ok(());
        }
        self.nodes.push(slice(inside).ok_or(Unreadable::Invalid)?);
        Ok(())
    }

    /// Parses a filter. It ends at the first closing parenthesis outside its first quoted string.
    fn filter(&mut self) -> Result<(), Unreadable> {
        let text = self.rest;
        let (mut quote, mut is_closed, mut before) = (None, false, ' ');
        for (at, character) in text.char_indices() {
            match character {
                '\n' => break,
                '"' | '\'' if quote.is_none() => quote = Some(character),
                '"' | '\'' if quote == Some(character) && before != '\\' => is_closed = true,
                ')' if quote.is_some() == is_closed => {
                    let inside = self.take(text, at)?;
                    self.rest = self.rest.strip_prefix(")]").ok_or(Unreadable::Invalid)?;
                    let node = filter_node(inside, self.depth)?;
                    self.nodes.push(node);
                    return Ok(());
                }
                _ => {}
            }
            before = character;
        }
        Err(Unreadable::Invalid)
    }

    fn quote(&mut self, quote: char) -> Result<(), Unreadable> {
        let mut before = quote;
        for (at, character) in self.rest.char_indices() {
            if character == '\n' {
                break;
            }
            if character == quote && before != '\\' {
                let inside = self.take(self.rest, at)?;
                self.rest = self.rest.strip_prefix(quote).ok_or(Unreadable::Invalid)?;
                let text = unquoted(inside, quote).ok_or(Unreadable::Invalid)?;
                self.nodes.push(Node::Text(text.into()));
                return Ok(());
            }
            before = character;
        }
        Err(Unreadable::Invalid)
    }
}

/// Parses the operands and the operator of a filter; a single operand tests for existence.
fn filter_node(text: &str, depth: usize) -> Result<Node, Unreadable> {
    const SIGNS: [char; 4] = ['!', '<', '>', '='];
    let exists = || {
        let (operator, right) = (Operator::Exists, Vec::new());
        Ok(Node::Filter { left: action(text, depth)?, operator, right })
    };
    let Some((left, rest)) = text.find(SIGNS).and_then(|start| text.split_at_checked(start)) else {
        return exists();
    };
    let mut right = rest.trim_start_matches(SIGNS);
    if right.is_empty() && rest.len() > 1 {
        // Something must follow the sign.
        right = rest.get(rest.len() - 1..).unwrap_or_default();
    }
    if left.is_empty() || right.is_empty() {
        return exists();
    }
    let operator = match rest.strip_suffix(right).unwrap_or_default() {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => Operator::Unknown,
    };
    Ok(Node::Filter { left: action(left, depth)?, operator, right: action(right, depth)? })
}

/// Parses `START:END:STEP` or an index.
fn slice(text: &str) -> Option<Node> {
    let number = |text: &str| {
        let is_digits = text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
        if text.is_empty() { Some(None) } else { text.parse::<i64>().ok().filter(|_| is_digits).map(Some) }
    };
    let mut parts = text.split(':');
    let start = number(parts.next()?)?;
    let (end, is_index) = match parts.next() {
        Some(end) => (number(end)?, false),
        None => (Some(start.unwrap_or_default().wrapping_add(1)), true),
    };
    let step = parts.next().map_or(Some(None), number)?;
    parts.next().is_none().then_some(Node::Slice { start, end, is_index, step })
}

/// Decodes the Go escape sequences in a quoted string; `None` if one is invalid.
///
/// Source: client-go util/jsonpath/parser.go, `UnquoteExtend`; Go strconv, `UnquoteChar`.
fn unquoted(text: &str, quote: char) -> Option<String> {
    let mut bytes = Vec::new();
    let mut characters = text.chars();
    while let Some(next) = characters.next() {
        if next == quote && text.contains('\\') {
            return None;
        }
        if next != '\\' {
            bytes.extend(next.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let escape = characters.next()?;
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if digits > 0 {
            let code = number_of(&mut characters, digits, 16)?;
            match escape {
                'x' => bytes.push(u8::try_from(code).ok()?),
                _ => bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes()),
            }
            continue;
        }
        bytes.push(match escape {
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 0x0b,
            '\\' => b'\\',
            '\'' | '"' if escape == quote => u8::try_from(escape).ok()?,
            '0'..='7' => {
                let first = escape.to_digit(8)?;
                u8::try_from(first * 64 + number_of(&mut characters, 2, 8)?).ok()?
            }
            _ => return None,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn number_of(characters: &mut std::str::Chars<'_>, digits: usize, radix: u32) -> Option<u32> {
    let mut number = 0_u32;
    for _ in 0..digits {
        number = number.checked_mul(radix)?.checked_add(characters.next()?.to_digit(radix)?)?;
    }
    Some(number)
}

fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

fn is_terminator(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
