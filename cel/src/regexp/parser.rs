//! Parses Go's regular expressions.
//!
//! Source: Go regexp/syntax/parse.go and regexp/syntax/doc.go, with the flags `Perl`.

use std::mem;

use super::characters::{
    INVALID_ESCAPE, before, bracketed_class, error, escape, escaped_class, skip, split_first,
};
use super::class::Class;
use super::node::{Assertion, Node};

/// The maximum number of instructions in an expression.
const MAX_SIZE: u64 = (128 << 20) / 40;

/// The maximum height of a tree.
const MAX_HEIGHT: usize = 1000;

/// The maximum count of a repetition, and the maximum product of the counts of nested repetitions.
const MAX_REPEAT: u64 = 1000;

const INVALID_NAME: &str = "invalid named capture";
const INVALID_PERL: &str = "invalid or unsupported Perl syntax";
const MISSING_ARGUMENT: &str = "missing argument to repetition operator";
const REPEAT_COUNT: &str = "invalid repeat count";

/// Parses a regular expression in Go's syntax.
///
/// # Errors
///
/// Returns Go's message without the prefix `error parsing regexp: `.
pub(super) fn parse(expression: &str) -> Result<Node, String> {
    let mut parser = Parser {
        whole: expression,
        flags: Flags::default(),
        groups: vec![Group::default()],
        nodes: 0,
        repeats: 1,
    };
    parser.expression()?;
    parser.finish()
}

#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a letter of its own: imsU")]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_all: bool,
    lazy: bool,
}

/// An open group, or the whole expression.
#[derive(Debug, Default)]
struct Group {
    captures: bool,
    before: Flags,
    alternatives: Vec<Node>,
    parts: Vec<Node>,
}

#[derive(Debug)]
struct Parser<'e> {
    whole: &'e str,
    flags: Flags,
    groups: Vec<Group>,
    /// The estimated number of nodes that Go's parser creates.
    ///
    /// Go checks the size of an expression only if this number or the product of all counted repetitions is large.
    nodes: u64,
    repeats: u64,
}

impl<'e> Parser<'e> {
    fn expression(&mut self) -> Result<(), String> {
        let mut rest = self.whole;
        // The start of the repetition directly before the next character.
        let mut last_repeat: Option<&'e str> = None;
        while let Some((first, behind)) = split_first(rest) {
            let mut repeat = None;
            rest = match first {
                '(' if behind.starts_with('?') => self.perl_group(rest)?,
                '(' => {
                    self.open(true);
                    behind
                }
                '|' => {
                    self.close_alternative()?;
                    behind
                }
                ')' => {
                    self.close_group()?;
                    behind
                }
                '^' => self.push(
                    Node::Assertion(if self.flags.multi_line {
                        Assertion::LineStart
                    } else {
                        Assertion::TextStart
                    }),
                    behind,
                )?,
                '$' => self.push(
                    Node::Assertion(if self.flags.multi_line {
                        Assertion::LineEnd
                    } else {
                        Assertion::TextEnd
                    }),
                    behind,
                )?,
                '.' => {
                    let class = if self.flags.dot_all { r"[\x{0}-\x{10FFFF}]" } else { r"[^\n]" };
                    self.push(Node::Class(class.to_owned()), behind)?
                }
                '[' => {
                    let (class, behind) = bracketed_class(rest, self.flags.fold)?;
                    self.push(Node::Class(class), behind)?
                }
                '*' | '+' | '?' => {
                    repeat = Some(rest);
                    let (least, most) = match first {
                        '*' => (0, None),
                        '+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    self.repeat(rest, behind, last_repeat, |part, greedy| {
                        Node::star(part, least, most, greedy)
                    })?
                }
                '{' => match Count::parse(behind) {
                    Some((count, after)) => {
                        repeat = Some(rest);
                        self.counted(count, rest, after, last_repeat)?
                    }
                    None => self.literal('{', behind)?,
                },
                '\\' => self.backslash(rest)?,
                _ => self.literal(first, behind)?,
            };
            last_repeat = repeat;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Node, String> {
        self.close_alternative()?;
        match (self.groups.pop(), self.groups.is_empty()) {
            (Some(group), true) => {
                let node = Node::alternate(group.alternatives);
                self.check(&node)?;
                Ok(node)
            }
            _ => error("missing closing )", self.whole),
        }
    }

    fn group(&mut self) -> Result<&mut Group, String> {
        let whole = self.whole;
        self.groups.last_mut().ok_or_else(|| format!("unexpected ): `{whole}`"))
    }

    /// Adds a part, and returns the rest of the text.
    fn push(&mut self, node: Node, rest: &'e str) -> Result<&'e str, String> {
        // Go creates one node for a run of characters.
        let last = self.groups.last().and_then(|group| group.parts.last());
        if !matches!((&node, last), (Node::Literal { .. }, Some(Node::Literal { .. }))) {
            self.nodes += 1;
        }
        self.group()?.parts.push(node);
        Ok(rest)
    }

    fn literal(&mut self, character: char, rest: &'e str) -> Result<&'e str, String> {
        let fold = self.flags.fold;
        self.push(Node::Literal { character, fold }, rest)
    }

    /// Adds a character by its code. The code may be a surrogate.
    fn literal_number(&mut self, number: u32, rest: &'e str) -> Result<&'e str, String> {
        match char::from_u32(number) {
            Some(character) => self.literal(character, rest),
            None => self.push(Node::Class(Class::default().finish(false, false)), rest),
        }
    }

    fn open(&mut self, captures: bool) {
        self.nodes += 1;
        self.groups.push(Group { captures, before: self.flags, ..Group::default() });
    }

    fn close_alternative(&mut self) -> Result<(), String> {
        let group = self.group()?;
        let node = Node::concat(mem::take(&mut group.parts));
        self.check(&node)?;
        self.nodes += 1;
        self.group()?.alternatives.push(node);
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), String> {
        self.close_alternative()?;
        let unexpected = || format!("unexpected ): `{}`", self.whole);
        let Some(group) = (self.groups.len() > 1).then(|| self.groups.pop()).flatten() else {
            return Err(unexpected());
        };
        self.flags = group.before;
        let mut node = Node::alternate(group.alternatives);
        self.check(&node)?;
        if group.captures {
            node = Node::capture(node);
            self.check(&node)?;
        }
        self.group()?.parts.push(node);
        Ok(())
    }

    /// Checks Go's limits for a part.
    ///
    /// As in Go, a repetition that is an entire alternative is counted again each time it is pushed.
    ///
    /// Source: Go regexp/syntax/parse.go, `checkLimits`.
    fn check(&mut self, node: &Node) -> Result<(), String> {
        let measure = node.measure();
        if let Node::Repeat { least, most, .. } = node {
            let copies = u64::from(most.unwrap_or(*least)).max(1);
            self.repeats = self.repeats.saturating_mul(copies).min(MAX_SIZE);
        }
        let is_watched = self.nodes >= MAX_SIZE / self.repeats.max(1);
        if is_watched && measure.size > MAX_SIZE {
            return error("expression too large", self.whole);
        }
        if measure.height > MAX_HEIGHT {
            return error("expression nests too deeply", self.whole);
        }
        Ok(())
    }

    /// Repeats the last part. `operator` is the text that starts with the operator, and `behind` is the text after the
    /// operator.
    fn repeat(
        &mut self,
        operator: &'e str,
        behind: &'e str,
        last_repeat: Option<&'e str>,
        make: impl FnOnce(Node, bool) -> Node,
    ) -> Result<&'e str, String> {
        let (behind, lazy) = behind.strip_prefix('?').map_or((behind, false), |behind| (behind, true));
        if let Some(last) = last_repeat {
            return error("invalid nested repetition operator", before(last, behind));
        }
        let greedy = self.flags.lazy == lazy;
        let Some(part) = self.group()?.parts.pop() else {
            return error(MISSING_ARGUMENT, before(operator, behind));
        };
        self.nodes += 1;
        let node = make(part, greedy);
        self.check(&node)?;
        let copies = node.measure().copies;
        self.group()?.parts.push(node);
        if copies > MAX_REPEAT {
            return error(REPEAT_COUNT, before(operator, behind));
        }
        Ok(behind)
    }

    fn counted(
        &mut self,
        count: Count,
        operator: &'e str,
        behind: &'e str,
        last_repeat: Option<&'e str>,
    ) -> Result<&'e str, String> {
        let Count::Fits { least, most } = count else {
            return error(REPEAT_COUNT, before(operator, behind));
        };
        self.repeat(operator, behind, last_repeat, |part, greedy| Node::repeat(part, least, most, greedy))
    }

    /// Parses a group that begins with `(?`, or a change to the flags.
    fn perl_group(&mut self, text: &'e str) -> Result<&'e str, String> {
        let named = if text.len() > 4 { text.strip_prefix("(?P<") } else { None };
        if let Some(name) = named.or_else(|| if text.len() > 3 { text.strip_prefix("(?<") } else { None }) {
            let Some((name, behind)) = name.split_once('>') else { return error(INVALID_NAME, text) };
            let is_valid =
                !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
            if !is_valid {
                return error(INVALID_NAME, before(text, behind));
            }
            self.open(true);
            return Ok(behind);
        }
        let mut flags = self.flags;
        let (mut value, mut seen) = (true, false);
        let mut rest = skip(text, 2);
        while let Some((letter, behind)) = split_first(rest) {
            rest = behind;
            match letter {
                'i' => flags.fold = value,
                'm' => flags.multi_line = value,
                's' => flags.dot_all = value,
                'U' => flags.lazy = value,
                '-' if value => {
                    (value, seen) = (false, false);
                    continue;
                }
                ':' | ')' if value || seen => {
                    if letter == ':' {
                        self.open(false);
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => break,
            }
            seen = true;
        }
        error(INVALID_PERL, before(text, rest))
    }

    fn backslash(&mut self, text: &'e str) -> Result<&'e str, String> {
        let behind = skip(text, 2);
        match text.as_bytes().get(1) {
            Some(b'A') => return self.push(Node::Assertion(Assertion::TextStart), behind),
            Some(b'b') => return self.push(Node::Assertion(Assertion::Boundary), behind),
            Some(b'B') => return self.push(Node::Assertion(Assertion::NoBoundary), behind),
            Some(b'z') => return self.push(Node::Assertion(Assertion::TextEnd), behind),
            Some(b'C') => return error(INVALID_ESCAPE, r"\C"),
            Some(b'Q') => {
                let (quoted, rest) = behind.split_once(r"\E").unwrap_or((behind, ""));
                for character in quoted.chars() {
                    self.literal(character, "")?;
                }
                return Ok(rest);
            }
            _ => {}
        }
        if let Some((class, rest)) = escaped_class(text)? {
            let mut whole = Class::default();
            whole.add(&class);
            return self.push(Node::Class(whole.finish(false, self.flags.fold)), rest);
        }
        let (number, rest) = escape(text)?;
        self.literal_number(number, rest)
    }
}

/// The count of a repetition: `{n}`, `{n,}`, or `{n,m}`.
#[derive(Clone, Copy, Debug)]
enum Count {
    Fits { least: u32, most: Option<u32> },
    TooLarge,
}

impl Count {
    /// Parses the count after an opening brace, and returns it with the rest, or returns `None` if the brace is
    /// literal.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (least, rest) = number(text)?;
        let (most, rest) = match rest.strip_prefix(',') {
            None => (Some(least), rest),
            Some(rest) if rest.starts_with('}') => (None, rest),
            Some(rest) => {
                let (most, rest) = number(rest)?;
                (Some(most), rest)
            }
        };
        let rest = rest.strip_prefix('}')?;
        let is_too_large = |number: u32| {
            u64::from(number) > MAX_REPEAT || most.is_some_and(|most| u64::from(most) > MAX_REPEAT)
        };
        let count = match most {
            _ if is_too_large(least) => Self::TooLarge,
            Some(most) if least > most => Self::TooLarge,
            most => Self::Fits { least, most },
        };
        Some((count, rest))
    }
}

/// Parses a decimal number without leading zeros; a number that is too large becomes `u32::MAX`.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
