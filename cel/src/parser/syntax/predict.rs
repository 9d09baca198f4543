//! Predicts the alternative that a generated parser takes.
//!
//! Source: ANTLR's adaptive prediction, antlr4-go `parser_atn_simulator.go`,
//! `prediction_mode.go` and `prediction_context.go`.

use std::collections::{HashMap, HashSet};

use super::network::{NETWORK, Role, State, Step};
use crate::parser::lexer::Kind;

/// A stack of states to return to, identified by a number; 0 is the empty stack.
type Stack = u32;

const EMPTY: Stack = 0;

/// A configuration: a possible position of a prediction in the network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Config {
    state: usize,
    alternative: usize,
    stack: Stack,
    /// Whether the configuration left the rule of the decision.
    outside: bool,
    /// Whether the configuration left the outermost call to the decision's left-recursive rule.
    kept: bool,
    /// The precedence that the operator must have, if any.
    precedence: Option<u8>,
}

/// The result of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prediction {
    /// The number of the predicted alternative, starting with 1.
    Alternative(usize),
    /// No alternative matches; `ahead` is the index of the last examined token, counted from the current one.
    None { ahead: usize },
}

/// The successor of a set of configurations for a token.
#[derive(Clone, Debug)]
enum Next {
    Nothing,
    Set(usize),
    /// The only alternative that remains.
    Unique(usize),
    Conflict,
}

/// Predicts alternatives and caches the results.
#[derive(Debug, Default)]
pub(super) struct Predictor {
    /// The state at the top of each stack, and the stack below it.
    stacks: Vec<(usize, Stack)>,
    known_stacks: HashMap<(usize, Stack), Stack>,
    /// The sets of configurations, by number.
    sets: Vec<Vec<Config>>,
    known_sets: HashMap<Vec<Config>, usize>,
    /// The initial set of each decision, by its state and the precedence of the rule.
    starts: HashMap<(usize, u8), usize>,
    following: HashMap<(usize, Kind), Next>,
}

/// A point at which the parser must choose an alternative.
pub(super) struct Decision<'d> {
    pub(super) state: usize,
    /// The precedence of the call to the enclosing rule.
    pub(super) precedence: u8,
    /// The states that called the enclosing rules, innermost last.
    pub(super) callers: &'d [usize],
}

fn state(index: usize) -> &'static State {
    static NOWHERE: State =
        State { role: Role::Plain, rule: super::rules::Rule::Start, steps: Vec::new(), precedence: false };
    NETWORK.states.get(index).unwrap_or(&NOWHERE)
}

impl Predictor {
    fn push(&mut self, top: usize, rest: Stack) -> Stack {
        if let Some(known) = self.known_stacks.get(&(top, rest)) {
            return *known;
        }
        self.stacks.push((top, rest));
        let number = crate::source::narrow(self.stacks.len());
        self.known_stacks.insert((top, rest), number);
        number
    }

    fn pop(&self, stack: Stack) -> Option<(usize, Stack)> {
        self.stacks.get((stack as usize).checked_sub(1)?).copied()
    }

    /// Chooses an alternative; `token(0)` returns the next token, `token(1)` the one after it.
    pub(super) fn predict(
        &mut self,
        decision: &Decision<'_>,
        mut token: impl FnMut(usize) -> Kind,
    ) -> Prediction {
        let key = (decision.state, decision.precedence);
        let mut current = if let Some(known) = self.starts.get(&key) {
            *known
        } else {
            let start = self.local_start(decision);
            let number = self.number(start);
            self.starts.insert(key, number);
            number
        };
        let mut ahead = 0;
        loop {
            let kind = token(ahead);
            let next = if let Some(known) = self.following.get(&(current, kind)) {
                known.clone()
            } else {
                let next = self.local_next(current, kind, decision);
                self.following.insert((current, kind), next.clone());
                next
            };
            match next {
                Next::Unique(alternative) => return Prediction::Alternative(alternative),
                Next::Conflict => return self.predict_with_callers(decision, token),
                Next::Set(set) => current = set,
                Next::Nothing => {
                    let before = self.sets.get(current).map(Vec::as_slice).unwrap_or_default();
                    return finished(before).map_or(Prediction::None { ahead }, Prediction::Alternative);
                }
            }
            if kind != Kind::End {
                ahead += 1;
            }
        }
    }

    fn number(&mut self, set: Vec<Config>) -> usize {
        if let Some(known) = self.known_sets.get(&set) {
            return *known;
        }
        self.sets.push(set.clone());
        self.known_sets.insert(set, self.sets.len() - 1);
        self.sets.len() - 1
    }

    fn local_start(&mut self, decision: &Decision<'_>) -> Vec<Config> {
        let start = self.start(decision, EMPTY, false);
        if !state(decision.state).precedence {
            return start;
        }
        // Operators with a precedence that is too low do not continue the loop; otherwise, the loop continues if
        // possible.
        let mut kept: Vec<Config> = start
            .iter()
            .filter(|config| config.alternative == 1)
            .filter(|config| config.precedence.is_none_or(|needed| needed >= decision.precedence))
            .map(|config| Config { precedence: None, ..config.clone() })
            .collect();
        let continued: HashMap<usize, Vec<Stack>> =
            kept.iter().map(|config| (config.state, stacks_at(&kept, config.state, 1))).collect();
        let others = start.iter().filter(|config| config.alternative != 1).filter(|config| {
            let here = || stacks_at(&start, config.state, config.alternative);
            config.kept || continued.get(&config.state).is_none_or(|stacks| *stacks != here())
        });
        kept.extend(others.cloned());
        kept
    }

    fn start(&mut self, decision: &Decision<'_>, stack: Stack, whole: bool) -> Vec<Config> {
        let mut closure = Closure::new(self, decision, whole, false);
        for (index, step) in state(decision.state).steps.iter().enumerate() {
            let (Step::Free(target) | Step::Precedence(_, target)) = step else { continue };
            closure.seen.clear();
            closure.add(
                Config {
                    state: *target,
                    alternative: index + 1,
                    stack,
                    outside: false,
                    kept: false,
                    precedence: None,
                },
                Some(0),
            );
        }
        closure.finish()
    }

    fn local_next(&mut self, current: usize, kind: Kind, decision: &Decision<'_>) -> Next {
        let set = self.sets.get(current).cloned().unwrap_or_default();
        let Some(reach) = self.reach(&set, kind, decision, false) else { return Next::Nothing };
        if let Some(alternative) = unique(&reach) {
            return Next::Unique(alternative);
        }
        let all_stopped = reach.iter().all(|config| state(config.state).role == Role::Stop);
        if all_stopped || (has_conflict(&reach) && !has_lone_state(&reach)) {
            return Next::Conflict;
        }
        Next::Set(self.number(reach))
    }

    /// Predicts again, taking into account the rules that called the decision's rule.
    fn predict_with_callers(
        &mut self,
        decision: &Decision<'_>,
        mut token: impl FnMut(usize) -> Kind,
    ) -> Prediction {
        let mut stack = EMPTY;
        for caller in decision.callers {
            if let Some(Step::Call { back, .. }) = state(*caller).steps.first() {
                stack = self.push(*back, stack);
            }
        }
        let mut current = self.start(decision, stack, true);
        let mut ahead = 0;
        loop {
            let kind = token(ahead);
            let Some(reach) = self.reach(&current, kind, decision, true) else {
                return finished(&current).map_or(Prediction::None { ahead: 0 }, Prediction::Alternative);
            };
            if let Some(alternative) = unique(&reach).or_else(|| viable(&reach)) {
                return Prediction::Alternative(alternative);
            }
            current = reach;
            if kind != Kind::End {
                ahead += 1;
            }
        }
    }

    /// Returns the configurations after a token, or `None` if no configuration accepts the token.
    fn reach(
        &mut self,
        set: &[Config],
        kind: Kind,
        decision: &Decision<'_>,
        whole: bool,
    ) -> Option<Vec<Config>> {
        let at_end = kind == Kind::End;
        let mut stopped = Vec::new();
        let mut behind = Vec::new();
        for config in set {
            if state(config.state).role == Role::Stop {
                if whole || at_end {
                    stopped.push(config.clone());
                }
                continue;
            }
            for step in &state(config.state).steps {
                if let Step::Tokens(kinds, target) = step
                    && kinds.contains(&kind)
                {
                    behind.push(Config { state: *target, ..config.clone() });
                }
            }
        }
        let decided = stopped.is_empty() && !at_end && (behind.len() == 1 || unique(&behind).is_some());
        let mut reach = if decided {
            behind
        } else {
            let mut closure = Closure::new(self, decision, whole, at_end);
            for config in behind {
                closure.add(config, None);
            }
            closure.finish()
        };
        if at_end {
            reach.retain(|config| state(config.state).role == Role::Stop);
        }
        if !stopped.is_empty()
            && (!whole || !reach.iter().any(|config| state(config.state).role == Role::Stop))
        {
            reach.extend(stopped);
        }
        (!reach.is_empty()).then_some(reach)
    }
}

/// Computes all configurations that are reachable without consuming a token.
struct Closure<'p> {
    predictor: &'p mut Predictor,
    /// Whether the enclosing rules are known. If not, every caller of a rule is considered when the rule ends.
    whole: bool,
    at_end: bool,
    /// The rule of the decision, if the decision is the operator loop of a left-recursive rule.
    recursive: Option<super::rules::Rule>,
    /// The precedence of the call to the rule of the decision.
    precedence: u8,
    found: Vec<Config>,
    seen: HashSet<(Config, Option<u32>)>,
}

impl<'p> Closure<'p> {
    fn new(predictor: &'p mut Predictor, decision: &Decision<'_>, whole: bool, at_end: bool) -> Self {
        let start = state(decision.state);
        Self {
            predictor,
            whole,
            at_end,
            recursive: start.precedence.then_some(start.rule),
            precedence: decision.precedence,
            found: Vec::new(),
            seen: HashSet::new(),
        }
    }

    fn keep(&mut self, config: Config) {
        match self.found.iter_mut().find(|known| {
            known.state == config.state
                && known.alternative == config.alternative
                && known.stack == config.stack
                && known.precedence == config.precedence
        }) {
            Some(known) => {
                known.outside |= config.outside;
                known.kept |= config.kept;
            }
            None => self.found.push(config),
        }
    }

    /// Adds a configuration and its successors.
    ///
    /// `depth` is the number of rules entered since the decision, or `None` if precedences are no longer checked.
    fn add(&mut self, config: Config, depth: Option<u32>) {
        let mut open = vec![(config, depth)];
        while let Some((config, depth)) = open.pop() {
            if !self.seen.insert((config.clone(), depth)) {
                continue;
            }
            let here = state(config.state);
            if here.role == Role::Stop {
                if let Some((back, rest)) = self.predictor.pop(config.stack) {
                    open.push((Config { state: back, stack: rest, ..config }, depth));
                    continue;
                }
                if self.whole {
                    self.keep(config);
                    continue;
                }
            }
            let is_free = |step: &Step| !matches!(step, Step::Tokens(..));
            if !here.steps.first().is_some_and(is_free) {
                self.keep(config.clone());
            }
            for step in here.steps.iter().rev() {
                match step {
                    Step::Free(target) => open.push((Config { state: *target, ..config.clone() }, depth)),
                    Step::Return { to, outermost } => {
                        let kept = config.kept || (self.recursive.is_some() && *outermost == self.recursive);
                        let config = Config { state: *to, outside: true, kept, ..config.clone() };
                        open.push((config, depth.and_then(|depth| depth.checked_sub(1))));
                    }
                    Step::Tokens(kinds, target) => {
                        if self.at_end && kinds.contains(&Kind::End) {
                            open.push((Config { state: *target, ..config.clone() }, depth));
                        }
                    }
                    Step::Call { rule, back } => {
                        let stack = self.predictor.push(*back, config.stack);
                        let start = NETWORK.starts.get(*rule as usize).copied().unwrap_or_default();
                        let depth = depth.map(|depth| depth + 1);
                        open.push((Config { state: start, stack, ..config.clone() }, depth));
                    }
                    Step::Precedence(needed, target) => {
                        let mut config = Config { state: *target, ..config.clone() };
                        if depth == Some(0) {
                            if self.whole && *needed < self.precedence {
                                continue;
                            }
                            if !self.whole {
                                config.precedence = Some(*needed);
                            }
                        }
                        open.push((config, depth));
                    }
                }
            }
        }
    }

    /// Returns the configurations. If the enclosing rules are unknown, a stack that ends early represents all
    /// stacks with that beginning.
    fn finish(self) -> Vec<Config> {
        let Self { predictor, whole, mut found, .. } = self;
        if !whole {
            let all = found.clone();
            found.retain(|config| {
                let mut tops = Vec::new();
                let mut rest = config.stack;
                while let Some((top, below)) = predictor.pop(rest) {
                    tops.push(top);
                    rest = below;
                }
                !all.iter().any(|other| {
                    other.state == config.state
                        && other.alternative == config.alternative
                        && other.precedence == config.precedence
                        && other.stack != config.stack
                        && predictor.is_prefix(other.stack, &tops)
                })
            });
        }
        found
    }
}

impl Predictor {
    /// Returns whether a stack consists of the first states in `tops`.
    fn is_prefix(&self, stack: Stack, tops: &[usize]) -> bool {
        let mut rest = stack;
        for top in tops {
            match self.pop(rest) {
                None => return true,
                Some((other, below)) if other == *top => rest = below,
                Some(_) => return false,
            }
        }
        rest == EMPTY
    }
}

/// Returns the alternative that all configurations share, or `None` if their alternatives differ.
fn unique(set: &[Config]) -> Option<usize> {
    let first = set.first()?.alternative;
    set.iter().all(|config| config.alternative == first).then_some(first)
}

/// Returns the lowest alternative that reached the end of the decision's rule, if any.
fn finished(set: &[Config]) -> Option<usize> {
    set.iter()
        .filter(|config| config.outside || (state(config.state).role == Role::Stop && config.stack == EMPTY))
        .map(|config| config.alternative)
        .min()
}

fn stacks_at(set: &[Config], state: usize, alternative: usize) -> Vec<Stack> {
    let mut stacks: Vec<_> = set
        .iter()
        .filter(|config| config.state == state && config.alternative == alternative)
        .map(|config| config.stack)
        .collect();
    stacks.sort_unstable();
    stacks.dedup();
    stacks
}

/// Returns the sets of alternatives whose configurations have the same state and stacks.
fn subsets(set: &[Config]) -> Vec<Vec<usize>> {
    let places: HashSet<_> = set.iter().map(|config| (config.state, config.alternative)).collect();
    let mut grouped: HashMap<(usize, Vec<Stack>), Vec<usize>> = HashMap::new();
    for (state, alternative) in places {
        grouped.entry((state, stacks_at(set, state, alternative))).or_default().push(alternative);
    }
    grouped.into_values().collect()
}

fn has_conflict(set: &[Config]) -> bool {
    subsets(set).iter().any(|alternatives| alternatives.len() > 1)
}

/// Returns whether at least one state belongs to only one alternative.
fn has_lone_state(set: &[Config]) -> bool {
    let mut alternatives: HashMap<usize, HashSet<usize>> = HashMap::new();
    for config in set {
        alternatives.entry(config.state).or_default().insert(config.alternative);
    }
    alternatives.values().any(|alternatives| alternatives.len() == 1)
}

/// Returns the lowest alternative of the subsets, or `None` if their lowest alternatives differ.
fn viable(set: &[Config]) -> Option<usize> {
    let lowest: HashSet<_> =
        subsets(set).iter().filter_map(|alternatives| alternatives.iter().min().copied()).collect();
    if lowest.len() == 1 { lowest.into_iter().next() } else { None }
}
