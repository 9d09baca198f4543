//! Computes the tokens that can follow a state.
//!
//! Source: antlr4-go `ll1_analyzer.go`, `atn.go` and `interval_set.go`.

use std::collections::HashSet;
use std::fmt;

use super::network::{NETWORK, Role, Step};
use crate::parser::lexer::Kind;

/// A set of expected tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    kinds: Vec<Kind>,
    /// Whether the end of the rule can be reached without consuming a token.
    pub(super) reaches_end: bool,
}

impl Expected {
    pub(super) fn contains(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    pub(super) fn add(&mut self, other: &Self) {
        for kind in &other.kinds {
            if !self.contains(*kind) {
                self.kinds.push(*kind);
            }
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds = self.kinds.clone();
        kinds.sort_by_key(|kind| (*kind != Kind::End, *kind));
        let names: Vec<_> = kinds.into_iter().map(name).collect();
        match names.as_slice() {
            [one] => f.write_str(one),
            all => write!(f, "{{{}}}", all.join(", ")),
        }
    }
}

/// Returns the name of a token in error messages.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Equals => "'=='",
        Kind::NotEquals => "'!='",
        Kind::In => "'in'",
        Kind::Less => "'<'",
        Kind::LessEquals => "'<='",
        Kind::GreaterEquals => "'>='",
        Kind::Greater => "'>'",
        Kind::And => "'&&'",
        Kind::Or => "'||'",
        Kind::LeftBracket => "'['",
        Kind::RightBracket => "']'",
        Kind::LeftBrace => "'{'",
        Kind::RightBrace => "'}'",
        Kind::LeftParenthesis => "'('",
        Kind::RightParenthesis => "')'",
        Kind::Dot => "'.'",
        Kind::Comma => "','",
        Kind::Minus => "'-'",
        Kind::Exclamation => "'!'",
        Kind::Question => "'?'",
        Kind::Colon => "':'",
        Kind::Plus => "'+'",
        Kind::Star => "'*'",
        Kind::Slash => "'/'",
        Kind::Percent => "'%'",
        Kind::True => "'true'",
        Kind::False => "'false'",
        Kind::Null => "'null'",
        Kind::Double => "NUM_FLOAT",
        Kind::Int => "NUM_INT",
        Kind::Uint => "NUM_UINT",
        Kind::String => "STRING",
        Kind::Bytes => "BYTES",
        Kind::Ident => "IDENTIFIER",
        Kind::EscapedIdent => "ESC_IDENTIFIER",
        Kind::End => "<EOF>",
    }
}

/// Returns the tokens that can follow a state within its rule.
pub(super) fn look(state: usize) -> Expected {
    let mut found = Expected::default();
    let mut seen = HashSet::new();
    let mut open = vec![state];
    while let Some(index) = open.pop() {
        let Some(state) = NETWORK.states.get(index).filter(|_| seen.insert(index)) else { continue };
        if state.role == Role::Stop {
            // This is the end of the rule itself, because no rule that it calls is empty.
            found.reaches_end = true;
            continue;
        }
        for step in &state.steps {
            match step {
                Step::Free(target) | Step::Precedence(_, target) => open.push(*target),
                Step::Call { rule, .. } => open.extend(NETWORK.starts.get(*rule as usize)),
                Step::Tokens(kinds, _) => {
                    let kinds = kinds.clone();
                    found.add(&Expected { kinds, reaches_end: false });
                }
                Step::Return { .. } => {}
            }
        }
    }
    found
}

/// Returns the state after the token or rule call that starts at `state`.
pub(super) fn behind(state: usize) -> Option<usize> {
    match NETWORK.states.get(state)?.steps.first()? {
        Step::Tokens(_, to) | Step::Call { back: to, .. } | Step::Free(to) | Step::Precedence(_, to) => {
            Some(*to)
        }
        Step::Return { .. } => None,
    }
}

/// Returns the tokens that can follow a state, including tokens of the calling rules. The innermost of `callers` is
/// last.
pub(super) fn expected(state: usize, callers: &[usize]) -> Expected {
    let mut all = look(state);
    let mut reaches_end = all.reaches_end;
    all.reaches_end = false;
    for caller in callers.iter().rev() {
        if !reaches_end {
            break;
        }
        if let Some(next) = behind(*caller).map(look) {
            all.add(&next);
            reaches_end = next.reaches_end;
        }
    }
    if reaches_end {
        all.add(&Expected { kinds: vec![Kind::End], reaches_end: false });
    }
    all
}

/// Returns all tokens that can follow one of the enclosing rules.
pub(super) fn recovery(callers: &[usize]) -> Expected {
    let mut all = Expected::default();
    for caller in callers {
        if let Some(next) = behind(*caller).map(look) {
            all.add(&next);
        }
    }
    all
}
