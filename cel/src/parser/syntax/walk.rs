//! Traverses the network as a generated parser does, with the same error recovery.
//!
//! Source: antlr4-go `error_strategy.go`, `parser.go` and the templates of generated parsers; cel-go parser/parser.go,
//! `recoveryLimitErrorStrategy`.

use super::expected::{Expected, behind, expected, look, recovery};
use super::network::{Decide, NETWORK, Part, Role};
use super::predict::{Decision, Prediction, Predictor};
use super::rules::{Label, RULES, Rule};
use super::tokens::Tokens;
use super::tree::{Child, Leaf, Tree};
use crate::parser::MAX_RECURSION_DEPTH;
use crate::parser::lexer::Kind;

/// The maximum number of error recoveries in one expression.
const MAX_RECOVERIES: u32 = 30;

/// The maximum number of tokens that a recovery skips.
const MAX_SKIPPED_TOKENS: u32 = 256;

/// The reason why a rule ends early.
enum Stop {
    /// The rule has an error, and the parser recovers.
    Wrong(Wrong),
    /// The parser gives up on the whole text.
    Abort,
}

enum Wrong {
    Mismatch(Expected),
    /// No alternative matches; `ahead` is the index of the last examined token, counted from the current one.
    NoAlternative {
        ahead: usize,
    },
}

/// A rule that is being parsed.
struct Frame {
    /// The state that called the rule, if any.
    caller: Option<usize>,
    precedence: u8,
}

pub(super) struct Walker<'w, 's, 't> {
    pub(super) tokens: &'w mut Tokens<'s, 't>,
    /// The index of the current token.
    at: usize,
    state: usize,
    frames: Vec<Frame>,
    depths: [u32; RULES],
    predictor: Predictor,
    recovering: bool,
    /// The token at which the last recovery started, and the states in which recoveries started there.
    last: Option<(usize, Vec<usize>)>,
    recoveries: u32,
}

impl<'w, 's, 't> Walker<'w, 's, 't> {
    pub(super) fn new(tokens: &'w mut Tokens<'s, 't>) -> Self {
        Self {
            tokens,
            at: 0,
            state: 0,
            frames: Vec::new(),
            depths: [0; RULES],
            predictor: Predictor::default(),
            recovering: false,
            last: None,
            recoveries: 0,
        }
    }

    /// Parses the whole text, or returns `None` if the parser gives up.
    pub(super) fn walk(mut self) -> Option<Tree> {
        self.rule(Rule::Start, 0, None).ok()
    }

    fn rule(&mut self, rule: Rule, precedence: u8, caller: Option<usize>) -> Result<Tree, Stop> {
        if let Some(depth) = self.depths.get_mut(rule as usize) {
            *depth += 1;
            if *depth > MAX_RECURSION_DEPTH {
                self.tokens.report(format!("expression recursion limit exceeded: {MAX_RECURSION_DEPTH}"));
                return Err(Stop::Abort);
            }
        }
        self.frames.push(Frame { caller, precedence });
        let mut tree = Tree::new(rule, Label::None, self.at);
        let parts = NETWORK.rules.get(rule as usize).map(Vec::as_slice).unwrap_or_default();
        match self.parts(parts, &mut tree) {
            Ok(()) => {}
            Err(Stop::Wrong(wrong)) => {
                self.report(wrong);
                self.recover()?;
            }
            Err(Stop::Abort) => return Err(Stop::Abort),
        }
        self.frames.pop();
        if let Some(depth) = self.depths.get_mut(rule as usize) {
            *depth -= 1;
        }
        if let Some(caller) = caller {
            self.state = caller;
        }
        Ok(tree)
    }

    fn parts(&mut self, parts: &'static [Part], tree: &mut Tree) -> Result<(), Stop> {
        parts.iter().try_for_each(|part| self.part(part, tree))
    }

    fn part(&mut self, part: &'static Part, tree: &mut Tree) -> Result<(), Stop> {
        if self.tokens.is_full() {
            return Err(Stop::Abort);
        }
        match part {
            Part::Tokens { state, kinds, slot } => {
                self.state = *state;
                let leaf = self.take(kinds)?;
                tree.children.push((*slot, Child::Leaf(leaf)));
            }
            Part::Rule { state, rule, precedence, slot } => {
                self.state = *state;
                let inner = self.rule(*rule, *precedence, Some(*state))?;
                tree.children.push((*slot, Child::Tree(Box::new(inner))));
            }
            Part::Optional { state, first, parts } => {
                self.sync(*state)?;
                if first.contains(&self.kind(0)) {
                    self.parts(parts, tree)?;
                }
            }
            Part::Loop { entry, back, at_least_once, decide, parts } => {
                self.sync(*entry)?;
                let decision = if *at_least_once { *back } else { *entry };
                let mut goes_on = *at_least_once || self.continues(decision, decide)?;
                while goes_on {
                    self.parts(parts, tree)?;
                    self.sync(*back)?;
                    goes_on = self.continues(decision, decide)?;
                }
            }
            Part::Choice { state, decide, alternatives } => {
                self.sync(*state)?;
                let index = match decide {
                    Decide::Predict => self.predict(*state)? - 1,
                    Decide::Token(first) => {
                        let kind = self.kind(0);
                        let found = first.iter().position(|kinds| kinds.contains(&kind));
                        found.ok_or(Stop::Wrong(Wrong::NoAlternative { ahead: 0 }))?
                    }
                };
                if let Some((label, parts)) = alternatives.get(index) {
                    tree.label = *label;
                    self.parts(parts, tree)?;
                }
            }
            Part::Recursion { first, entry, back, choice, operators } => {
                tree.label = Label::Other;
                self.parts(first, tree)?;
                self.sync(*entry)?;
                while self.predict(*entry)? == 1 {
                    let index = if operators.len() > 1 {
                        self.sync(*choice)?;
                        self.predict(*choice)? - 1
                    } else {
                        0
                    };
                    if let Some((label, parts)) = operators.get(index) {
                        tree.wrap(*label);
                        self.parts(parts, tree)?;
                    }
                    self.sync(*back)?;
                }
            }
        }
        Ok(())
    }

    fn kind(&mut self, ahead: usize) -> Kind {
        self.tokens.kind(self.at + ahead)
    }

    fn continues(&mut self, state: usize, decide: &Decide) -> Result<bool, Stop> {
        match decide {
            Decide::Predict => Ok(self.predict(state)? == 1),
            Decide::Token(first) => {
                let kind = self.kind(0);
                Ok(first.iter().flatten().any(|known| *known == kind))
            }
        }
    }

    fn predict(&mut self, state: usize) -> Result<usize, Stop> {
        let callers: Vec<_> = self.frames.iter().filter_map(|frame| frame.caller).collect();
        let decides = NETWORK.states.get(state).is_some_and(|state| state.precedence);
        let precedence = if decides { self.frames.last().map_or(0, |frame| frame.precedence) } else { 0 };
        let decision = Decision { state, precedence, callers: &callers };
        let (tokens, at) = (&mut *self.tokens, self.at);
        match self.predictor.predict(&decision, |ahead| tokens.kind(at + ahead)) {
            Prediction::Alternative(alternative) => Ok(alternative),
            Prediction::None { ahead } => Err(Stop::Wrong(Wrong::NoAlternative { ahead })),
        }
    }

    fn consume(&mut self) {
        if self.kind(0) != Kind::End {
            self.at += 1;
        }
    }

    /// Ends error recovery after a matching token.
    fn matched(&mut self) {
        self.recovering = false;
        self.last = None;
    }

    fn take(&mut self, kinds: &[Kind]) -> Result<Leaf, Stop> {
        if kinds.contains(&self.kind(0)) {
            self.matched();
            let leaf = Leaf::Token(self.at);
            self.consume();
            return Ok(leaf);
        }
        self.attempt()?;
        if self.delete() {
            let leaf = Leaf::Token(self.at);
            self.consume();
            return Ok(leaf);
        }
        // If the current token may follow, the expected one is missing.
        let follows = behind(self.state).map(|next| expected(next, &self.callers()));
        let kind = self.kind(0);
        let wanted = expected(self.state, &self.callers());
        if follows.is_some_and(|follows| follows.contains(kind)) {
            if !self.recovering {
                self.recovering = true;
                let found = self.tokens.display(self.at);
                self.tokens.report_syntax(self.at, &format!("missing {wanted} at {found}"));
            }
            return Ok(Leaf::Missing);
        }
        Err(Stop::Wrong(Wrong::Mismatch(wanted)))
    }

    fn callers(&self) -> Vec<usize> {
        self.frames.iter().filter_map(|frame| frame.caller).collect()
    }

    fn attempt(&mut self) -> Result<(), Stop> {
        if self.recoveries == MAX_RECOVERIES {
            let message = format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}");
            self.tokens.report_syntax(self.at, &message);
            return Err(Stop::Abort);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Skips an unexpected token if the next one is expected, and returns whether the token was skipped.
    fn delete(&mut self) -> bool {
        let next = if self.kind(0) == Kind::End { Kind::End } else { self.kind(1) };
        let wanted = expected(self.state, &self.callers());
        if !wanted.contains(next) {
            return false;
        }
        self.unwanted(&wanted);
        self.consume();
        self.matched();
        true
    }

    fn unwanted(&mut self, wanted: &Expected) {
        if self.recovering {
            return;
        }
        self.recovering = true;
        let found = self.tokens.display(self.at);
        self.tokens.report_syntax(self.at, &format!("extraneous input {found} expecting {wanted}"));
    }

    /// Checks whether the current token is expected before a decision is made. If not, recovers or fails.
    fn sync(&mut self, state: usize) -> Result<(), Stop> {
        self.state = state;
        if self.recovering {
            return Ok(());
        }
        let next = look(state);
        let kind = self.kind(0);
        if next.reaches_end || next.contains(kind) {
            return Ok(());
        }
        match NETWORK.states.get(state).map(|state| state.role) {
            Some(Role::Decision) => {
                if self.delete() {
                    return Ok(());
                }
                Err(Stop::Wrong(Wrong::Mismatch(expected(state, &self.callers()))))
            }
            Some(Role::LoopBack) => {
                let wanted = expected(state, &self.callers());
                self.unwanted(&wanted);
                let mut until = wanted;
                until.add(&recovery(&self.callers()));
                while self.kind(0) != Kind::End && !until.contains(self.kind(0)) {
                    self.consume();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn report(&mut self, wrong: Wrong) {
        if self.recovering {
            return;
        }
        self.recovering = true;
        match wrong {
            Wrong::Mismatch(wanted) => {
                let found = self.tokens.display(self.at);
                let message = format!("mismatched input {found} expecting {wanted}");
                self.tokens.report_syntax(self.at, &message);
            }
            Wrong::NoAlternative { ahead } => {
                let text = self.tokens.between(self.at, self.at + ahead);
                let message = keyword_as_name(&text)
                    .unwrap_or_else(|| format!("no viable alternative at input '{text}'"));
                self.tokens.report_syntax(self.at + ahead, &message);
            }
        }
    }

    /// Skips tokens up to one that can follow an enclosing rule.
    fn recover(&mut self) -> Result<(), Stop> {
        self.attempt()?;
        let mut skipped = 0;
        if self.last.as_ref().is_some_and(|(at, states)| *at == self.at && states.contains(&self.state)) {
            self.skip(&mut skipped)?;
        }
        let mut states = match self.last.take() {
            Some((_, states)) => states,
            None => Vec::new(),
        };
        states.push(self.state);
        self.last = Some((self.at, states));
        let until = recovery(&self.callers());
        while self.kind(0) != Kind::End && !until.contains(self.kind(0)) {
            self.skip(&mut skipped)?;
        }
        Ok(())
    }

    fn skip(&mut self, skipped: &mut u32) -> Result<(), Stop> {
        if *skipped >= MAX_SKIPPED_TOKENS {
            self.tokens
                .report(format!("error recovery token lookahead limit exceeded: {MAX_SKIPPED_TOKENS}"));
            return Err(Stop::Abort);
        }
        *skipped += 1;
        self.consume();
        Ok(())
    }
}

/// Returns cel-go's message for a keyword that is used as a name, or `None` for other text.
///
/// Source: cel-go parser/parser.go, `reservedIdentifier`.
fn keyword_as_name(text: &str) -> Option<String> {
    let mut letters = text.chars();
    letters.next()?;
    let word = letters.as_str();
    matches!(word, "true" | "false" | "null")
        .then(|| format!("mismatched input '{word}' expecting IDENTIFIER"))
}
