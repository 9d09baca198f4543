//! Encodes objects as YAML in the same way as kube-apiserver.
//!
//! Source: `go.yaml.in/yaml/v2`: `encode.go`, `resolve.go`, `sorter.go`, and `emitterc.go`.

mod scalars;

use std::cmp::Ordering;

use serde_json::{Map, Value};

use self::scalars::{Place, Style, escaped, is_break, is_printable, number};

/// The column after which a space becomes a line break: `best_width`.
const BEST_WIDTH: usize = 80;

/// The indentation of each level: `best_indent`.
const BEST_INDENT: usize = 2;

/// The maximum length in bytes of a key that is written without the indicator `?`.
const MAX_SIMPLE_KEY: usize = 128;

/// Encodes a value as a YAML document.
pub(crate) fn encode(value: &Value) -> Vec<u8> {
    let mut emitter = Emitter::default();
    emitter.node(value, None, false);
    if emitter.column > 0 {
        emitter.line_break();
    }
    emitter.text.into_bytes()
}

/// The YAML output and the column at which it ends.
#[derive(Debug, Default)]
struct Emitter {
    text: String,
    /// The number of characters in the last line.
    column: usize,
}

impl Emitter {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn line_break(&mut self) {
        self.text.push('\n');
        self.column = 0;
    }

    /// Begins a line at `indent`, unless the current line contains only indentation and indicators up to that column.
    fn indent(&mut self, indent: usize) {
        if self.column > indent
            || (self.column == indent && !self.text.ends_with([' ', '\n']) && self.column > 0)
        {
            self.line_break();
        }
        while self.column < indent {
            self.put(" ");
        }
    }

    /// Writes a space before a token unless the output is empty or ends with a space or a line break.
    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.put(" ");
        }
    }

    /// Writes a value; `outer` is the indentation of the collection that contains it, `None` for the document.
    fn node(&mut self, value: &Value, outer: Option<usize>, in_mapping: bool) {
        let inner = outer.map_or(0, |outer| outer + BEST_INDENT);
        match value {
            Value::Object(members) if !members.is_empty() => self.mapping(members, inner),
            Value::Array(items) if !items.is_empty() => {
                let indent = if in_mapping { outer.unwrap_or_default() } else { inner };
                self.sequence(items, indent, in_mapping);
            }
            Value::Object(_) => self.plain("{}"),
            Value::Array(_) => self.plain("[]"),
            Value::Null => self.plain("null"),
            Value::Bool(flag) => self.plain(if *flag { "true" } else { "false" }),
            Value::Number(value) => self.plain(&number(value)),
            Value::String(text) => self.string(text, outer.map_or(BEST_INDENT, |outer| outer + BEST_INDENT)),
        }
    }

    fn plain(&mut self, text: &str) {
        self.space();
        self.put(text);
    }

    fn mapping(&mut self, members: &Map<String, Value>, indent: usize) {
        for (name, value) in sorted(members.iter().collect()) {
            self.indent(indent);
            let is_simple = name.len() <= MAX_SIMPLE_KEY && !name.contains(is_break);
            if is_simple {
                self.key(name);
                self.put(":");
            } else {
                self.put("? ");
                self.string(name, indent + BEST_INDENT);
                self.indent(indent);
                self.put(":");
            }
            self.node(value, Some(indent), true);
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize, in_mapping: bool) {
        for (index, item) in items.iter().enumerate() {
            // The first item of a sequence in a mapping begins a new line.
            if in_mapping && index == 0 {
                self.line_break();
            }
            self.indent(indent);
            self.put("-");
            self.put(" ");
            self.node(item, Some(indent), false);
        }
    }

    fn key(&mut self, name: &str) {
        match Style::for_text(name, Place::Key) {
            Style::Plain => self.put(name),
            Style::SingleQuoted => {
                self.put("'");
                self.put(&name.replace('\'', "''"));
                self.put("'");
            }
            Style::DoubleQuoted | Style::Literal => self.double_quoted(name, None),
        }
    }

    fn string(&mut self, text: &str, indent: usize) {
        match Style::for_text(text, Place::Value) {
            Style::Plain => {
                self.space();
                self.folded(text, indent, false);
            }
            Style::SingleQuoted => {
                self.space();
                self.put("'");
                self.folded(text, indent, true);
                self.put("'");
            }
            Style::DoubleQuoted => {
                self.space();
                self.double_quoted(text, Some(indent));
            }
            Style::Literal => {
                self.space();
                self.literal(text, indent);
            }
        }
    }

    /// Writes a string and breaks its long lines at single spaces.
    fn folded(&mut self, text: &str, indent: usize, is_quoted: bool) {
        let mut spaces = false;
        let mut characters = text.char_indices().peekable();
        let mut buffer = [0; 4];
        while let Some((at, character)) = characters.next() {
            if character == ' ' {
                let next = characters.peek().map(|(_, next)| *next);
                let is_inside = !is_quoted || (at > 0 && next.is_some());
                if !spaces && self.column > BEST_WIDTH && is_inside && next != Some(' ') {
                    self.continue_at(indent);
                } else {
                    self.put(" ");
                }
                spaces = true;
                continue;
            }
            if is_break(character) {
                self.put(character.encode_utf8(&mut buffer));
                self.column = 0;
                continue;
            }
            while self.column == 0 && self.column < indent && !self.text.ends_with('\n') {
                self.put(&" ".repeat(indent));
            }
            if character == '\'' && is_quoted {
                self.put("'");
            }
            self.put(character.encode_utf8(&mut buffer));
            spaces = false;
        }
    }

    fn continue_at(&mut self, indent: usize) {
        self.line_break();
        while self.column < indent {
            self.put(" ");
        }
    }

    /// Writes a string in double quotes. Breaks long lines if `indent` is set.
    fn double_quoted(&mut self, text: &str, indent: Option<usize>) {
        self.put("\"");
        let mut spaces = false;
        let mut characters = text.char_indices().peekable();
        let mut buffer = [0; 4];
        while let Some((at, character)) = characters.next() {
            let is_escaped = !is_printable(character) || is_break(character) || "\"\\".contains(character);
            if is_escaped {
                self.put(&escaped(character));
                spaces = false;
            } else if character == ' ' {
                let next = characters.peek().map(|(_, next)| *next);
                match indent {
                    Some(indent) if !spaces && self.column > BEST_WIDTH && at > 0 && next.is_some() => {
                        self.continue_at(indent);
                        if next == Some(' ') {
                            self.put("\\");
                        }
                    }
                    _ => self.put(" "),
                }
                spaces = true;
            } else {
                self.put(character.encode_utf8(&mut buffer));
                spaces = false;
            }
        }
        self.put("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with(|first: char| first == ' ' || is_break(first)) {
            self.put("2");
        }
        let mut last = text.chars().rev();
        match (last.next().is_some_and(is_break), last.next()) {
            (false, _) => self.put("-"),
            (true, None) => self.put("+"),
            (true, Some(before)) if is_break(before) => self.put("+"),
            (true, Some(_)) => {}
        }
        self.line_break();
        let mut breaks = true;
        let mut buffer = [0; 4];
        for character in text.chars() {
            if is_break(character) {
                self.put(character.encode_utf8(&mut buffer));
                self.column = 0;
                breaks = true;
            } else {
                if breaks {
                    while self.column < indent {
                        self.put(" ");
                    }
                }
                self.put(character.encode_utf8(&mut buffer));
                breaks = false;
            }
        }
    }
}

type Member<'a> = (&'a String, &'a Value);

/// Sorts the members by key with a merge sort.
///
/// [`compare_keys`] is not a total order for some keys with zeros, so `sort_by` might panic.
fn sorted(mut members: Vec<Member<'_>>) -> Vec<Member<'_>> {
    if members.len() < 2 {
        return members;
    }
    let second = sorted(members.split_off(members.len() / 2));
    let (mut first, mut second) = (sorted(members).into_iter().peekable(), second.into_iter().peekable());
    let mut merged = Vec::with_capacity(first.len() + second.len());
    while let (Some((one, _)), Some((other, _))) = (first.peek(), second.peek()) {
        let is_first = compare_keys(one, other) != Ordering::Greater;
        merged.extend(if is_first { first.next() } else { second.next() });
    }
    merged.extend(first);
    merged.extend(second);
    merged
}

/// Compares keys. Letters come last, and digits are compared as numbers.
///
/// Source: `sorter.go`, `Less`.
fn compare_keys(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let common = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let (Some(first), Some(second)) = (one.get(common), other.get(common)) else {
        return one.len().cmp(&other.len());
    };
    match (first.is_alphabetic(), second.is_alphabetic()) {
        (true, true) => return first.cmp(second),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let begins_number = (*first == '0' || *second == '0')
        && one
            .iter()
            .take(common)
            .rev()
            .take_while(|digit| digit.is_ascii_digit())
            .any(|digit| *digit != '0');
    let number = |text: &[char]| {
        let digits = text.iter().skip(common).map_while(|digit| digit.to_digit(10));
        let start = (i64::from(begins_number), 0_usize);
        digits.fold(start, |(number, length), digit| {
            (number.wrapping_mul(10).wrapping_add(i64::from(digit)), length + 1)
        })
    };
    number(&one).cmp(&number(&other)).then_with(|| first.cmp(second))
}

#[cfg(test)]
mod tests;
