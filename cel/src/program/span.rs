//! Maps nodes of the tree to parts of the text.

use std::ops::Range;

use crate::ast::{Ast, Expression, NodeId};
use crate::parser::lexer::{Kind, Token, tokens};
use crate::source::Source;

/// Returns the byte range of each node's text, or `None` for nodes that a macro created.
pub(super) fn spans(ast: &Ast) -> Vec<Option<Range<usize>>> {
    let Some(tokens) = tokens(&Source::new(&ast.source)) else { return vec![None; ast.nodes.len()] };
    let reader = Reader { ast, tokens, found: Vec::new() };
    reader.read()
}

/// The indices of a node's first and last tokens.
type Ends = (usize, usize);

struct Reader<'t> {
    ast: &'t Ast,
    tokens: Vec<Token>,
    /// The tokens of each node, if known; children come before their parents.
    found: Vec<Option<Ends>>,
}

impl Reader<'_> {
    fn read(mut self) -> Vec<Option<Range<usize>>> {
        for node in &self.ast.nodes {
            let token = node
                .offset
                .and_then(|offset| self.tokens.binary_search_by_key(&offset, |token| token.offset).ok());
            let ends = token
                .and_then(|token| self.ends(&node.expression, token))
                .and_then(|ends| self.balanced(ends));
            self.found.push(ends);
        }
        let bytes = |(first, last): Ends| {
            Some(self.tokens.get(first)?.start as usize..self.tokens.get(last)?.end as usize)
        };
        self.found.iter().map(|ends| ends.and_then(bytes)).collect()
    }

    fn kind(&self, token: usize) -> Option<Kind> {
        self.tokens.get(token).map(|token| token.kind)
    }

    fn ends_of(&self, node: NodeId) -> Option<Ends> {
        self.found.get(node.0 as usize).copied().flatten()
    }

    fn ends(&self, expression: &Expression, token: usize) -> Option<Ends> {
        let kind = self.kind(token)?;
        match (expression, kind) {
            (Expression::Ident(name), _) if name.starts_with('@') => None,
            (Expression::Ident(name), _) => {
                let last = token + 2 * name.trim_start_matches('.').matches('.').count();
                matches!(kind, Kind::Ident | Kind::Dot).then_some((token, last))
            }
            (Expression::Select { test: true, .. }, Kind::LeftParenthesis) => {
                Some((token.checked_sub(1)?, self.closing(token)?))
            }
            (Expression::Select { operand, .. }, Kind::Dot) => {
                Some((self.ends_of(*operand)?.0, self.field(token)))
            }
            (Expression::Call { function, target, arguments }, _) => {
                self.call(function, *target, arguments, token, kind)
            }
            (Expression::List { .. }, Kind::LeftBracket) | (Expression::Map(_), Kind::LeftBrace) => {
                Some((token, self.closing(token)?))
            }
            (Expression::Struct { .. }, Kind::LeftBrace) => Some((self.name(token)?, self.closing(token)?)),
            (Expression::Comprehension(it), Kind::LeftParenthesis) => {
                Some((self.ends_of(it.range).or_else(|| self.ends_of(it.initial))?.0, self.closing(token)?))
            }
            (Expression::Int(_) | Expression::Double(_), Kind::Minus) => Some((token, token + 1)),
            (
                Expression::Null
                | Expression::Bool(_)
                | Expression::Int(_)
                | Expression::Uint(_)
                | Expression::Double(_)
                | Expression::String(_)
                | Expression::Bytes(_),
                Kind::Null
                | Kind::True
                | Kind::False
                | Kind::Int
                | Kind::Uint
                | Kind::Double
                | Kind::String
                | Kind::Bytes,
            ) => Some((token, token)),
            _ => None,
        }
    }

    fn call(
        &self,
        function: &str,
        target: Option<NodeId>,
        arguments: &[NodeId],
        token: usize,
        kind: Kind,
    ) -> Option<Ends> {
        let first = |index: usize| self.ends_of(*arguments.get(index)?);
        match (function, kind) {
            ("_?._", Kind::Dot) => Some((first(0)?.0, self.field(token))),
            ("_[_]" | "_[?_]", Kind::LeftBracket) => Some((first(0)?.0, self.closing(token)?)),
            ("!_", Kind::Exclamation) | ("-_", Kind::Minus) => Some((token, first(0)?.1)),
            ("_?_:_", Kind::Question) => Some((first(0)?.0, first(2)?.1)),
            (_, Kind::LeftParenthesis) if !function.starts_with(['_', '@', '!']) => {
                let start = match target {
                    Some(target) => self.ends_of(target)?.0,
                    None => self.name(token)?,
                };
                Some((start, self.closing(token)?))
            }
            (_, Kind::LeftParenthesis) => None,
            _ => match arguments {
                [left, right] => Some((self.ends_of(*left)?.0, self.ends_of(*right)?.1)),
                _ => None,
            },
        }
    }

    /// Returns the index of the token with the field name after a dot.
    fn field(&self, dot: usize) -> usize {
        if self.kind(dot + 1) == Some(Kind::Question) { dot + 2 } else { dot + 1 }
    }

    /// Returns the index of the first token of the qualified name before a token.
    fn name(&self, token: usize) -> Option<usize> {
        let mut first = token.checked_sub(1)?;
        while first > 0 && self.kind(first - 1) == Some(Kind::Dot) {
            first =
                if first > 1 && self.kind(first - 2) == Some(Kind::Ident) { first - 2 } else { first - 1 };
        }
        Some(first)
    }

    /// Returns the index of the closing token that matches an opening one, if any.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::LeftBracket | Kind::LeftBrace | Kind::LeftParenthesis => depth += 1,
                Kind::RightBracket | Kind::RightBrace | Kind::RightParenthesis => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(index);
            }
        }
        None
    }

    /// Returns the range extended by the parentheses around the operands at its start and end.
    fn balanced(&self, (mut first, mut last): Ends) -> Option<Ends> {
        let (mut open, mut missing) = (0_usize, 0_usize);
        for token in self.tokens.get(first..=last)? {
            match token.kind {
                Kind::LeftParenthesis => open += 1,
                Kind::RightParenthesis if open == 0 => missing += 1,
                Kind::RightParenthesis => open -= 1,
                _ => {}
            }
        }
        while missing > 0 {
            first = first.checked_sub(1)?;
            missing -= usize::from(self.kind(first)? == Kind::LeftParenthesis);
        }
        while open > 0 {
            last += 1;
            open -= usize::from(self.kind(last)? == Kind::RightParenthesis);
        }
        Some((first, last))
    }
}
