//! The grammar as a network of states that cel-go's generated parser traverses.
//!
//! Source: cel-go parser/gen/CEL.g4; ANTLR builds the network from it, and turns left recursion into loops.

use std::sync::LazyLock;

use super::rules::{ALL, Draft, Label, Rule, Slot, draft};
use crate::parser::lexer::Kind;

/// A part of a rule, together with its states.
#[derive(Debug)]
pub(super) enum Part {
    /// One token of the kinds in `kinds`.
    Tokens { state: usize, kinds: Vec<Kind>, slot: Slot },
    /// A call to a rule, with the lowest precedence of the operators that the rule accepts.
    Rule { state: usize, rule: Rule, precedence: u8, slot: Slot },
    /// Optional parts. They are present if one of the tokens in `first` follows.
    Optional { state: usize, first: Vec<Kind>, parts: Vec<Part> },
    /// Parts repeated any number of times, or at least once.
    Loop { entry: usize, back: usize, at_least_once: bool, decide: Decide, parts: Vec<Part> },
    /// A choice between alternatives.
    Choice { state: usize, decide: Decide, alternatives: Vec<(Label, Vec<Part>)> },
    /// A left-recursive rule: its beginning, and the operators with their precedences.
    Recursion {
        first: Vec<Part>,
        entry: usize,
        back: usize,
        choice: usize,
        operators: Vec<(Label, Vec<Part>)>,
    },
}

/// How the parser chooses an alternative.
#[derive(Clone, Debug)]
pub(super) enum Decide {
    /// By the next token; the list contains the first tokens of each alternative.
    Token(Vec<Vec<Kind>>),
    /// By prediction. As many tokens as necessary are examined.
    Predict,
}

/// A transition from one state to another.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Free(usize),
    /// The end of a called rule: the state at which the caller continues, and the left-recursive rule whose outermost
    /// call ends, if any.
    Return {
        to: usize,
        outermost: Option<Rule>,
    },
    /// One token of these kinds, and the next state.
    Tokens(Vec<Kind>, usize),
    /// A call to a rule.
    Call {
        rule: Rule,
        back: usize,
    },
    /// A transition that only operators of at least this precedence can take.
    Precedence(u8, usize),
}

/// The role of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    /// The start of a choice, an optional part, or a loop.
    Decision,
    /// The end of a choice or an optional part.
    BlockEnd,
    /// The end of an iteration of a loop.
    LoopBack,
    /// The end of a rule.
    Stop,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) role: Role,
    pub(super) rule: Rule,
    pub(super) steps: Vec<Step>,
    /// Whether the state is the operator loop of a left-recursive rule.
    pub(super) precedence: bool,
}

#[derive(Debug)]
pub(super) struct Network {
    pub(super) states: Vec<State>,
    /// The first state of each rule.
    pub(super) starts: Vec<usize>,
    pub(super) rules: Vec<Vec<Part>>,
}

pub(super) static NETWORK: LazyLock<Network> = LazyLock::new(build);

struct Builder {
    states: Vec<State>,
    rule: Rule,
}

impl Builder {
    fn state(&mut self, role: Role) -> usize {
        self.states.push(State { role, rule: self.rule, steps: Vec::new(), precedence: false });
        self.states.len() - 1
    }

    fn step(&mut self, from: usize, step: Step) {
        if let Some(state) = self.states.get_mut(from) {
            state.steps.push(step);
        }
    }

    fn free(&mut self, from: usize, to: usize) {
        self.step(from, Step::Free(to));
    }

    /// Builds a sequence of parts, and returns the parts with the first and the last state.
    fn sequence(&mut self, drafts: Vec<Draft>) -> (Vec<Part>, usize, usize) {
        let first = self.state(Role::Plain);
        let mut last = first;
        let mut parts = Vec::new();
        for draft in drafts {
            let (part, start, end) = self.part(draft);
            self.free(last, start);
            last = end;
            parts.push(part);
        }
        (parts, first, last)
    }

    fn part(&mut self, draft: Draft) -> (Part, usize, usize) {
        match draft {
            Draft::Tokens(kinds, slot) => {
                let (state, end) = (self.state(Role::Plain), self.state(Role::Plain));
                let kinds = kinds.to_vec();
                self.step(state, Step::Tokens(kinds.clone(), end));
                (Part::Tokens { state, kinds, slot }, state, end)
            }
            Draft::Rule(rule, precedence, slot) => {
                let (state, back) = (self.state(Role::Plain), self.state(Role::Plain));
                self.step(state, Step::Call { rule, back });
                (Part::Rule { state, rule, precedence, slot }, state, back)
            }
            Draft::Optional(first, drafts) => {
                let (state, end) = (self.state(Role::Decision), self.state(Role::BlockEnd));
                let (parts, inner, last) = self.sequence(drafts);
                self.free(state, inner);
                self.free(state, end);
                self.free(last, end);
                (Part::Optional { state, first: first.to_vec(), parts }, state, end)
            }
            Draft::Loop { at_least_once, first, parts } => self.repeated(at_least_once, first, parts),
            Draft::Choice(tokens, drafts) => {
                let (state, end) = (self.state(Role::Decision), self.state(Role::BlockEnd));
                let mut alternatives = Vec::new();
                for (label, drafts) in drafts {
                    let (parts, inner, last) = self.sequence(drafts);
                    self.free(state, inner);
                    self.free(last, end);
                    alternatives.push((label, parts));
                }
                let decide = tokens.map_or(Decide::Predict, Decide::Token);
                (Part::Choice { state, decide, alternatives }, state, end)
            }
            Draft::Recursion(first, operators) => self.recursion(first, operators),
        }
    }

    fn repeated(
        &mut self,
        at_least_once: bool,
        first: Option<Kind>,
        drafts: Vec<Draft>,
    ) -> (Part, usize, usize) {
        let entry = self.state(Role::Decision);
        let back = self.state(Role::LoopBack);
        let end = self.state(Role::Plain);
        let (parts, inner, last) = self.sequence(drafts);
        self.free(last, back);
        if at_least_once {
            self.free(entry, inner);
            self.free(back, entry);
            self.free(back, end);
        } else {
            let block = self.state(Role::Decision);
            self.free(block, inner);
            self.free(entry, block);
            self.free(entry, end);
            self.free(back, entry);
        }
        let decide = first.map_or(Decide::Predict, |kind| Decide::Token(vec![vec![kind]]));
        (Part::Loop { entry, back, at_least_once, decide, parts }, entry, end)
    }

    fn recursion(&mut self, first: Rule, operators: Vec<(Label, u8, Vec<Draft>)>) -> (Part, usize, usize) {
        let (first, start, behind) = self.sequence(vec![Draft::Rule(first, 0, Slot::First)]);
        let entry = self.state(Role::Decision);
        let choice = self.state(Role::Decision);
        let back = self.state(Role::LoopBack);
        let end = self.state(Role::Plain);
        if let Some(state) = self.states.get_mut(entry) {
            state.precedence = true;
        }
        self.free(behind, entry);
        self.free(entry, choice);
        self.free(entry, end);
        self.free(back, entry);
        let mut parts_of = Vec::new();
        for (label, precedence, drafts) in operators {
            let gate = self.state(Role::Plain);
            let (parts, inner, last) = self.sequence(drafts);
            self.step(gate, Step::Precedence(precedence, inner));
            self.free(choice, gate);
            self.free(last, back);
            parts_of.push((label, parts));
        }
        (Part::Recursion { first, entry, back, choice, operators: parts_of }, start, end)
    }
}

fn build() -> Network {
    let mut builder = Builder { states: Vec::new(), rule: Rule::Start };
    let (mut starts, mut stops, mut rules) = (Vec::new(), Vec::new(), Vec::new());
    for rule in ALL {
        builder.rule = rule;
        let (parts, first, last) = builder.sequence(draft(rule));
        let stop = builder.state(Role::Stop);
        builder.free(last, stop);
        starts.push(first);
        stops.push(stop);
        rules.push(parts);
    }
    shorten(&mut builder.states);
    let mut returns = Vec::new();
    for part in rules.iter().flatten() {
        calls(part, &mut returns);
    }
    for (state, rule, precedence) in returns {
        let Some(Step::Call { back, .. }) = builder.states.get(state).and_then(|state| state.steps.first())
        else {
            continue;
        };
        let recursive = matches!(rule, Rule::Relation | Rule::Calc | Rule::Member);
        let outermost = (recursive && precedence == 0).then_some(rule);
        let step = Step::Return { to: *back, outermost };
        if let Some(stop) = stops.get(rule as usize) {
            builder.step(*stop, step);
        }
    }
    Network { states: builder.states, starts, rules }
}

/// Removes states that only lead to another state, so that calls in several alternatives return to the same state, and
/// predictions treat them as one.
///
/// Source: ANTLR's ParserATNFactory.java, `elemList`, and TailEpsilonRemover.java.
fn shorten(states: &mut [State]) {
    let only: Vec<Option<usize>> = states
        .iter()
        .map(|state| match (state.role, state.steps.as_slice()) {
            (Role::Plain, [Step::Free(to)]) => Some(*to),
            _ => None,
        })
        .collect();
    let is_stop: Vec<bool> = states.iter().map(|state| state.role == Role::Stop).collect();
    for step in states.iter_mut().flat_map(|state| &mut state.steps) {
        let (Step::Tokens(_, to) | Step::Call { back: to, .. }) = step else { continue };
        while let Some(next) = only.get(*to).copied().flatten()
            && is_stop.get(next) == Some(&false)
        {
            *to = next;
        }
    }
}

/// Collects the rule calls in a part; each consists of a state, a rule, and a precedence.
fn calls(part: &Part, found: &mut Vec<(usize, Rule, u8)>) {
    let mut all = |parts: &[Part]| parts.iter().for_each(|part| calls(part, found));
    match part {
        Part::Tokens { .. } => {}
        Part::Rule { state, rule, precedence, .. } => found.push((*state, *rule, *precedence)),
        Part::Optional { parts, .. } | Part::Loop { parts, .. } => all(parts),
        Part::Choice { alternatives, .. } => alternatives.iter().for_each(|(_, parts)| all(parts)),
        Part::Recursion { first, operators, .. } => {
            all(first);
            for (_, parts) in operators {
                all(parts);
            }
        }
    }
}
