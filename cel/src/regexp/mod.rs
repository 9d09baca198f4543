//! Regular expressions in Go's syntax, with its limits and error messages.
//!
//! Both Go and the `regex` crate take time that grows with the text only, and prefer the same match. What differs is
//! the syntax: an expression is parsed as Go does and written anew for the crate.

mod class;
mod node;
mod parser;
mod property;

use std::thread;

use regex::{Regex, RegexBuilder};

use node::Node;

/// The bytes that a compiled expression may take.
const COMPILED_SIZE: usize = 10 << 20;

/// From this depth on, an expression is compiled on a stack of its own.
const DEEP: usize = 50;

/// What the deepest expression that Go takes needs.
const STACK: usize = 1 << 26;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Regexp {
    regex: Regex,
    /// Whether it has a `\B`, with which `Regex::is_match` misses matches in a text that is not ASCII.
    has_no_boundary: bool,
}

impl Regexp {
    /// Compiles an expression in Go's syntax.
    ///
    /// # Errors
    ///
    /// Go's message, such as ``error parsing regexp: missing closing ]: `[a` ``.
    ///
    /// Source: Go regexp/syntax/parse.go.
    pub fn new(expression: &str) -> Result<Self, String> {
        let node = parser::parse(expression).map_err(|error| format!("error parsing regexp: {error}"))?;
        let too_large = || format!("unsupported: regular expression too large: `{expression}`");
        let regex = compile(&node).ok_or_else(too_large)?;
        let has_no_boundary = regex.as_str().contains(node::NO_BOUNDARY);
        Ok(Self { regex, has_no_boundary })
    }

    /// Whether it matches anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        if self.has_no_boundary { self.regex.find(text).is_some() } else { self.regex.is_match(text) }
    }

    /// The leftmost match in `text`.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex.find(text).map(|found| found.as_str())
    }

    /// All matches in `text` that do not overlap.
    pub fn find_all<'r, 't>(&'r self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'r, 't> {
        self.regex.find_iter(text).map(|found| found.as_str())
    }
}

/// The expression for the `regex` crate; none if it takes too much memory.
fn compile(node: &Node) -> Option<Regex> {
    let depth = node.height();
    let pattern = node.to_string();
    let build = || {
        // The groups that precedence demands count as well.
        let limit = u32::try_from(4 * depth + 100).unwrap_or(u32::MAX);
        RegexBuilder::new(&pattern).size_limit(COMPILED_SIZE).nest_limit(limit).build().ok()
    };
    if depth < DEEP {
        return build();
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, build).ok()?;
        builder.join().ok().flatten()
    })
}

#[cfg(test)]
mod tests;
