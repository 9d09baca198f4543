//! Parses the text of an expression into a tree.
//!
//! Source: cel-go parser/parser.go and parser/gen/CEL.g4.

mod grammar;
pub(crate) mod lexer;
mod macros;
mod syntax;
mod tree;
mod unescape;

#[cfg(test)]
mod tests;

use crate::ast::{Ast, Expression, NodeId};
use crate::source::{Issues, Source};
use grammar::Parser;
use lexer::{Kind, Token};
use tree::Tree;

pub(crate) use grammar::RESERVED;
pub use macros::MacroSet;

/// The maximum number of code points in an expression.
const MAX_CODE_POINTS: usize = 100_000;

/// The maximum nesting depth of grammar rules and operators.
const MAX_RECURSION_DEPTH: u32 = 250;

/// The reason why parsing ends without a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abort {
    /// The text does not match the grammar.
    Syntax,
    /// The rules of the grammar are nested too deeply.
    Depth,
    /// The tree is too large.
    TooManyNodes,
}

/// The reason why an expression is rejected.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The expression has errors. They were added to the issues.
    Issues,
    /// The expression is valid, but this crate does not support it, for the given reason.
    Unsupported(&'static str),
}

/// The syntax options of an environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syntax<'s> {
    pub(crate) macros: &'s [MacroSet],
}

impl Syntax<'_> {
    fn optional(self) -> bool {
        self.macros.contains(&MacroSet::Optional)
    }
}

/// Parses an expression and adds errors to `issues`.
pub(crate) fn parse(source: &Source<'_>, syntax: Syntax<'_>, issues: &mut Issues) -> Result<Ast, Refused> {
    if source.text.len() > MAX_CODE_POINTS {
        let size = source.text.chars().count();
        if size > MAX_CODE_POINTS {
            let limit = "expression code point size exceeds limit";
            issues.add_at(None, format!("{limit}: size: {size}, limit {MAX_CODE_POINTS}"));
            return Err(Refused::Issues);
        }
    }
    let parsed = lexer::tokens(source).ok_or(Abort::Syntax).and_then(|tokens| {
        let expander = Expander {
            tree: Tree::default(),
            macros: syntax.macros,
            wrongs: Vec::new(),
            source: source.text,
        };
        Parser::new(expander, syntax.optional(), &tokens).parse()
    });
    match parsed {
        Ok((expander, whole)) => {
            for (offset, message) in expander.wrongs {
                issues.add(source, Some(offset), message);
            }
            if whole.height > MAX_RECURSION_DEPTH {
                issues.add_at(None, "max recursion depth exceeded");
            }
            if issues.is_empty() {
                Ok(expander.tree.finish(source.text, whole.node))
            } else {
                Err(Refused::Issues)
            }
        }
        Err(Abort::Syntax) => {
            syntax::explain(source, syntax, issues);
            Err(Refused::Issues)
        }
        Err(Abort::Depth) => {
            issues.add_at(None, format!("expression recursion limit exceeded: {MAX_RECURSION_DEPTH}"));
            Err(Refused::Issues)
        }
        Err(Abort::TooManyNodes) => Err(Refused::Unsupported("macros expand to more than 1,000,000 nodes")),
    }
}

/// Creates nodes, expands macros, and records errors that the grammar does not cover.
struct Expander<'s, 't> {
    tree: Tree,
    macros: &'s [MacroSet],
    wrongs: Vec<(u32, String)>,
    source: &'t str,
}

impl Expander<'_, '_> {
    /// Records an error, and returns a placeholder node.
    fn wrong(&mut self, offset: u32, message: impl Into<String>) -> NodeId {
        self.wrongs.push((offset, message.into()));
        self.tree.add(offset, Expression::Null)
    }

    /// Creates a literal node; `sign` is the minus sign before a number.
    fn literal(&mut self, token: Token, sign: Option<Token>) -> NodeId {
        let offset = sign.unwrap_or(token).offset;
        let text = self.source.get(token.start as usize..token.end as usize).unwrap_or_default();
        let minus = if sign.is_some() { "-" } else { "" };
        let value = match token.kind {
            Kind::Int => integer(text, minus).ok_or("invalid int literal").map(Expression::Int),
            Kind::Uint => {
                let digits = text.strip_suffix(['u', 'U']).unwrap_or(text);
                let value = match digits.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => digits.parse(),
                };
                value.map_err(|_range| "invalid uint literal").map(Expression::Uint)
            }
            Kind::Double => format!("{minus}{text}")
                .parse()
                .ok()
                .filter(|value: &f64| value.is_finite())
                .ok_or("invalid double literal")
                .map(Expression::Double),
            Kind::String => unescape::string(text).map(Expression::String),
            Kind::Bytes => unescape::bytes(text).map(Expression::Bytes),
            Kind::True => Ok(Expression::Bool(true)),
            Kind::False => Ok(Expression::Bool(false)),
            _ => Ok(Expression::Null),
        };
        match value {
            Ok(value) => self.tree.add(offset, value),
            Err(message) => self.wrong(offset, message),
        }
    }
}

fn integer(text: &str, minus: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(&format!("{minus}{digits}"), 16).ok(),
        None => format!("{minus}{text}").parse().ok(),
    }
}
