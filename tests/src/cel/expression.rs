//! Represents expressions as trees, so that parts can be removed to shrink an expression.

use std::fmt;

/// An expression: pieces of text and nested expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    pub(crate) pieces: Vec<Piece>,
    /// The number of macro variables in scope.
    pub(crate) scope: usize,
}

/// A piece of an expression: text, or a nested expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Part(Expression),
}

impl Expression {
    /// Creates an expression without nested expressions.
    pub(crate) fn leaf(text: impl Into<String>, scope: usize) -> Self {
        Self { pieces: vec![Piece::Text(text.into())], scope }
    }

    /// Returns the number of nested expressions at any depth, including this one.
    pub(crate) fn size(&self) -> usize {
        1 + self.parts().map(Self::size).sum::<usize>()
    }

    fn parts(&self) -> impl Iterator<Item = &Self> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Part(part) => Some(part),
            Piece::Text(_) => None,
        })
    }

    /// Returns smaller expressions, smallest first: each part, simple literals, and this one with a smaller part.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let mut found: Vec<Self> = self.parts().filter(|part| part.scope <= self.scope).cloned().collect();
        for simple in ["1", "'a'", "true", "[]", "dyn(1)"] {
            if self.size() > 1 {
                found.push(Self::leaf(simple, self.scope));
            }
        }
        for (place, piece) in self.pieces.iter().enumerate() {
            let Piece::Part(part) = piece else { continue };
            for smaller in part.smaller() {
                let mut pieces = self.pieces.clone();
                pieces[place] = Piece::Part(smaller);
                found.push(Self { pieces, scope: self.scope });
            }
        }
        found.sort_by_key(|expression| (expression.size(), expression.to_string().len()));
        found
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Part(part) => part.fmt(f)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(left: Expression, operator: &str, right: Expression) -> Expression {
        let pieces = vec![Piece::Part(left), Piece::Text(operator.to_owned()), Piece::Part(right)];
        Expression { pieces, scope: 0 }
    }

    #[test]
    fn smaller_expressions_are_parts_and_expressions_with_a_smaller_part() {
        let sum = both(Expression::leaf("x", 0), " + ", Expression::leaf("y", 0));
        let whole = both(sum, " * ", Expression::leaf("z", 0));
        let smaller: Vec<String> = whole.smaller().iter().map(ToString::to_string).collect();
        for expected in ["z", "x + y", "x * z", "1 * z", "1"] {
            assert!(smaller.iter().any(|text| text == expected), "{expected} is not in {smaller:?}");
        }
        assert!(whole.smaller().iter().all(|expression| expression.size() < whole.size()));
    }

    #[test]
    fn a_part_with_the_variable_of_a_macro_does_not_leave_it() {
        let predicate = Expression::leaf("v0 > 1", 1);
        let all = Expression {
            pieces: vec![
                Piece::Part(Expression::leaf("l", 0)),
                Piece::Text(".all(v0, ".to_owned()),
                Piece::Part(predicate),
            ],
            scope: 0,
        };
        assert!(all.smaller().iter().all(|smaller| smaller.to_string() != "v0 > 1"));
    }
}
