//! Explains syntax errors with the messages of cel-go's generated parser. That parser recovers from errors and
//! continues.

mod expected;
mod network;
mod predict;
mod rules;
mod tokens;
mod tree;
mod visit;
mod walk;

use super::Syntax;
use crate::source::{Issues, Source};
use crate::stack;
use tokens::Tokens;

/// The assumed depth of recursion, for the stack size.
///
/// Rules can be nested only 250 levels deep, but selections and operators as deep as the length of the text allows.
const DEPTH: u32 = 8_000;

/// Adds the syntax errors of an expression to `issues`.
pub(super) fn explain(source: &Source<'_>, syntax: Syntax<'_>, issues: &mut Issues) {
    let explained = stack::with_room(DEPTH, || {
        let mut tokens = Tokens::new(source, issues);
        let tree = walk::Walker::new(&mut tokens).walk();
        if let Some(tree) = tree {
            visit::visit(&tree, &mut tokens, source, syntax);
        }
    });
    if explained.is_none() || issues.is_empty() {
        issues.add_at(None, "Syntax error");
    }
}
