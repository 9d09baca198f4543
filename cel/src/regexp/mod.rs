//! Regular expressions in Go's syntax, with Go's limits and error messages.
//!
//! Go and the `regex` crate both run in linear time and prefer the same match. Only the syntax differs: an
//! expression is parsed as in Go and rewritten for the crate. Expressions that are too large for the crate
//! run on a [`Machine`].

mod characters;
mod class;
mod machine;
mod node;
mod parser;
mod property;

use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

use regex::{Regex, RegexBuilder};

use machine::Machine;
use node::{Assertion, Node};

/// The maximum compiled size, in bytes, of an expression for the `regex` crate; compiling takes up to half a second.
const COMPILED_SIZE: usize = 4 << 20;

/// The minimum height of a tree that is compiled on a separate stack.
const DEEP: usize = 50;

/// The stack size, in bytes, for the deepest expression that Go accepts.
const STACK: usize = 1 << 26;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Regexp {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Fast {
        regex: Regex,
        /// Whether the expression contains `\B`, for which `Regex::is_match` misses matches in non-ASCII strings.
        has_no_boundary: bool,
    },
    Large(Arc<Machine>),
}

/// The reason why an expression does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegexpError {
    /// Go rejects the expression, too. `Display` writes Go's message.
    #[error("error parsing regexp: {0}")]
    Invalid(String),
    /// Go compiles the expression, but this crate would need too much memory.
    #[error("regular expression `{0}`")]
    TooLarge(String),
}

impl Regexp {
    /// Compiles an expression in Go's syntax.
    ///
    /// # Errors
    ///
    /// Returns Go's message, such as ``error parsing regexp: missing closing ]: `[a` ``.
    ///
    /// Source: Go regexp/syntax/parse.go.
    pub fn new(expression: &str) -> Result<Self, RegexpError> {
        let node = parser::parse(expression).map_err(RegexpError::Invalid)?;
        let engine = with_room(&node, || compile(&node)).flatten();
        let engine = engine.ok_or_else(|| RegexpError::TooLarge(expression.to_owned()))?;
        Ok(Self { engine })
    }

    /// Returns whether the expression matches anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        match &self.engine {
            Engine::Fast { regex, has_no_boundary: false } => regex.is_match(text),
            Engine::Fast { .. } | Engine::Large(_) => self.find_at(text, 0).is_some(),
        }
    }

    /// Returns the leftmost match in `text`, or `None` if the expression does not match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.get(self.find_at(text, 0)?)
    }

    /// Returns all non-overlapping matches in `text`. An empty match directly after another is skipped.
    ///
    /// Source: Go regexp/regexp.go, `allMatches`.
    pub fn find_all<'r, 't>(&'r self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'r, 't> {
        let mut next = Some(0);
        let mut last_end = None;
        iter::from_fn(move || {
            loop {
                let from = next?;
                let found = self.find_at(text, from)?;
                next = if found.end > from {
                    Some(found.end)
                } else {
                    text.get(from..).and_then(|rest| rest.chars().next()).map(|first| from + first.len_utf8())
                };
                let is_behind_another = found.is_empty() && last_end == Some(found.start);
                last_end = Some(found.end);
                if !is_behind_another {
                    return text.get(found);
                }
            }
        })
    }

    fn find_at(&self, text: &str, from: usize) -> Option<Range<usize>> {
        match &self.engine {
            Engine::Fast { regex, .. } => regex.find_at(text, from).map(|found| found.range()),
            Engine::Large(machine) => machine.find(text, from),
        }
    }
}

/// Compiles an expression for the `regex` crate, or for a machine if the expression is too large.
fn compile(node: &Node) -> Option<Engine> {
    let pattern = node.to_string();
    // Groups added for precedence count, too.
    let limit = u32::try_from(4 * node.height() + 100).unwrap_or(u32::MAX);
    match RegexBuilder::new(&pattern).size_limit(COMPILED_SIZE).nest_limit(limit).build() {
        Ok(regex) => {
            let has_no_boundary = pattern.contains(Assertion::NoBoundary.pattern());
            Some(Engine::Fast { regex, has_no_boundary })
        }
        Err(_) => Machine::new(node).map(|machine| Engine::Large(Arc::new(machine))),
    }
}

/// Runs a recursive function with enough stack for the deepest expression.
fn with_room<T: Send>(node: &Node, run: impl FnOnce() -> T + Send) -> Option<T> {
    if node.height() < DEEP {
        return Some(run());
    }
    thread::scope(|scope| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).ok()?.join().ok())
}

#[cfg(test)]
mod tests;
