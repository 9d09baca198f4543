//! The tree of an expression, and its conversion to the syntax of the `regex` crate.

use std::fmt::{self, Display, Formatter, Write as _};

/// A part of an expression. Groups do not record what they match, because no caller uses this information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// An empty expression. It matches the empty string.
    Empty,
    /// A character, ignoring case if `fold`.
    Literal { character: char, fold: bool },
    /// A bracketed class or another pattern for one character, in the syntax of the `regex` crate.
    Class(String),
    /// An assertion about the position.
    Assertion(Assertion),
    /// A part that is repeated; without a maximum, any number of times.
    Repeat { part: Box<Node>, least: u32, most: Option<u32>, greedy: bool, measure: Measure },
    /// Parts that match one after another.
    Concat(Vec<Node>, Measure),
    /// Alternatives; earlier ones are preferred.
    Alternate(Vec<Node>, Measure),
    /// A capturing group.
    Capture(Box<Node>, Measure),
}

/// An assertion about a position in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertion {
    /// The position is at the beginning of the text.
    TextStart,
    /// The position is at the end of the text.
    TextEnd,
    /// The position is at the beginning of the text, or after a line feed.
    LineStart,
    /// The position is at the end of the text, or before a line feed.
    LineEnd,
    /// The position is between a word character (an ASCII letter, digit, or underscore) and something else.
    Boundary,
    /// The position is not a [`Assertion::Boundary`].
    NoBoundary,
}

impl Assertion {
    /// Returns the assertion in the syntax of the `regex` crate.
    pub(super) fn pattern(self) -> &'static str {
        match self {
            Self::TextStart => r"\A",
            Self::TextEnd => r"\z",
            Self::LineStart => "(?m:^)",
            Self::LineEnd => "(?m:$)",
            Self::Boundary => r"(?-u:\b)",
            Self::NoBoundary => r"(?-u:\B)",
        }
    }

    /// Returns whether the assertion is true at byte `at` of `text`.
    pub(super) fn is_at(self, text: &str, at: usize) -> bool {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before)).copied();
        let behind = bytes.get(at).copied();
        let is_word =
            |byte: Option<u8>| byte.is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        match self {
            Self::TextStart => before.is_none(),
            Self::TextEnd => behind.is_none(),
            Self::LineStart => before.is_none_or(|byte| byte == b'\n'),
            Self::LineEnd => behind.is_none_or(|byte| byte == b'\n'),
            Self::Boundary => is_word(before) != is_word(behind),
            Self::NoBoundary => is_word(before) == is_word(behind),
        }
    }
}

/// The size, the height, and the number of copies of a part. Go limits each of them.
///
/// Source: Go regexp/syntax/parse.go, `calcSize`, `calcHeight` and `repeatIsValid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measure {
    /// The maximum number of instructions.
    pub(super) size: u64,
    /// The height of the tree.
    pub(super) height: usize,
    /// The maximum number of copies of a part that nested counted repetitions create.
    pub(super) copies: u64,
}

impl Measure {
    const LEAF: Self = Self { size: 1, height: 1, copies: 1 };

    /// Returns the measure of a node that consists of these parts.
    fn above<'n>(parts: impl Iterator<Item = &'n Node>) -> Self {
        parts.map(Node::measure).fold(Self { size: 0, height: 1, copies: 1 }, |whole, part| Self {
            size: whole.size.saturating_add(part.size),
            height: whole.height.max(part.height + 1),
            copies: whole.copies.max(part.copies),
        })
    }
}

/// Returns the parts. Replaces each part that `inner` splits with the inner parts.
fn flattened(parts: Vec<Node>, inner: fn(Node) -> Result<Vec<Node>, Node>) -> Vec<Node> {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match inner(part) {
            Ok(parts) => flat.extend(parts),
            Err(part) => flat.push(part),
        }
    }
    flat
}

impl Node {
    /// Creates a sequence of parts.
    pub(super) fn concat(parts: Vec<Self>) -> Self {
        let mut flat = flattened(parts, |part| match part {
            Self::Concat(inner, _) => Ok(inner),
            other => Err(other),
        });
        match flat.pop() {
            None => Self::Empty,
            Some(only) if flat.is_empty() => only,
            Some(last) => {
                flat.push(last);
                let mut measure = Measure::above(flat.iter());
                if flat.iter().all(|part| matches!(part, Self::Literal { .. })) {
                    measure.height = 1;
                }
                Self::Concat(flat, measure)
            }
        }
    }

    /// Creates a choice between alternatives.
    pub(super) fn alternate(parts: Vec<Self>) -> Self {
        let mut flat = flattened(parts, |part| match part {
            Self::Alternate(inner, _) => Ok(inner),
            other => Err(other),
        });
        match flat.pop() {
            None => Self::Empty,
            Some(only) if flat.is_empty() => only,
            Some(last) => {
                flat.push(last);
                let mut measure = Measure::above(flat.iter());
                measure.size = measure.size.saturating_add(flat.len() as u64 - 1);
                Self::Alternate(flat, measure)
            }
        }
    }

    /// Creates a capturing group.
    pub(super) fn capture(part: Self) -> Self {
        let mut measure = Measure::above([&part].into_iter());
        measure.size = measure.size.saturating_add(2);
        Self::Capture(Box::new(part), measure)
    }

    /// Creates `x*`, `x+`, or `x?`.
    pub(super) fn star(part: Self, least: u32, most: Option<u32>, greedy: bool) -> Self {
        let mut measure = Measure::above([&part].into_iter());
        // A star takes one or two instructions.
        let instructions = if least == 0 && most.is_none() { 2 } else { 1 };
        measure.size = measure.size.saturating_add(instructions);
        Self::Repeat { part: Box::new(part), least, most, greedy, measure }
    }

    /// Creates `x{n,m}`.
    pub(super) fn repeat(part: Self, least: u32, most: Option<u32>, greedy: bool) -> Self {
        let mut measure = Measure::above([&part].into_iter());
        let inner = part.measure();
        measure.size = match most {
            Some(most) => u64::from(most)
                .saturating_mul(inner.size)
                .saturating_add(u64::from(most.saturating_sub(least))),
            None if least == 0 => inner.size.saturating_add(2),
            None => u64::from(least).saturating_mul(inner.size).saturating_add(1),
        }
        .max(1);
        measure.copies = match most.unwrap_or(least) {
            0 if most.is_some() => 1,
            copies => inner.copies.saturating_mul(u64::from(copies.max(1))),
        };
        Self::Repeat { part: Box::new(part), least, most, greedy, measure }
    }

    /// Returns the size, the height, and the number of copies of the node.
    pub(super) fn measure(&self) -> Measure {
        match self {
            Self::Empty | Self::Literal { .. } | Self::Class(_) | Self::Assertion(_) => Measure::LEAF,
            Self::Repeat { measure, .. }
            | Self::Concat(_, measure)
            | Self::Alternate(_, measure)
            | Self::Capture(_, measure) => *measure,
        }
    }

    /// Returns the height of the tree.
    pub(super) fn height(&self) -> usize {
        self.measure().height
    }

    /// Returns whether the part can be repeated without a group around it.
    fn is_atom(&self) -> bool {
        match self {
            Self::Literal { fold, .. } => !fold,
            Self::Class(_) => true,
            Self::Empty
            | Self::Assertion(_)
            | Self::Repeat { .. }
            | Self::Concat(..)
            | Self::Alternate(..)
            | Self::Capture(..) => false,
        }
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("(?:)"),
            Self::Literal { character, fold: true } => {
                f.write_str("(?i:")?;
                write_character(f, *character)?;
                f.write_char(')')
            }
            Self::Literal { character, fold: false } => write_character(f, *character),
            Self::Class(class) => f.write_str(class),
            Self::Assertion(place) => f.write_str(place.pattern()),
            Self::Repeat { part, least, most, greedy, .. } => {
                if part.is_atom() {
                    write!(f, "{part}")?;
                } else {
                    write!(f, "(?:{part})")?;
                }
                match (least, most) {
                    (0, None) => f.write_char('*')?,
                    (1, None) => f.write_char('+')?,
                    (0, Some(1)) => f.write_char('?')?,
                    (least, None) => write!(f, "{{{least},}}")?,
                    (least, Some(most)) => write!(f, "{{{least},{most}}}")?,
                }
                if *greedy { Ok(()) } else { f.write_char('?') }
            }
            Self::Concat(parts, _) => parts.iter().try_for_each(|part| {
                if matches!(part, Self::Alternate(..)) {
                    write!(f, "(?:{part})")
                } else {
                    write!(f, "{part}")
                }
            }),
            Self::Alternate(parts, _) => parts.iter().enumerate().try_for_each(|(index, part)| {
                if index > 0 {
                    f.write_char('|')?;
                }
                write!(f, "{part}")
            }),
            Self::Capture(part, _) => write!(f, "(?:{part})"),
        }
    }
}

/// Writes a literal character, with an escape that is also valid in brackets.
pub(super) fn write_character(f: &mut impl fmt::Write, character: char) -> fmt::Result {
    if character.is_ascii_alphanumeric() {
        f.write_char(character)
    } else {
        write!(f, "\\x{{{:X}}}", u32::from(character))
    }
}
