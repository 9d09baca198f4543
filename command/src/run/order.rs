//! Decides the order in which finished scenarios are shown.
//!
//! Scenarios run in parallel and finish in any order. On a terminal, the first finished scenario is shown first, but
//! all scenarios of its rule, and then of its feature, are shown before any other. A slow feature therefore does not
//! delay the others, and each heading is printed once. In a log, scenarios are shown in file order, so that logs can be
//! compared.

use std::ops::Range;

/// The order in which scenarios are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// As they finish, grouped by rule and feature.
    Finished,
    /// In file order.
    Files,
}

/// Tracks which scenarios were shown and which scenario may be shown next.
#[derive(Debug)]
pub(crate) struct Order {
    sequence: Sequence,
    states: Vec<State>,
    features: Vec<Feature>,
    open: Option<Open>,
}

/// The ranges of the scenarios in each rule of a feature.
type Feature = Vec<Range<usize>>;

/// The feature and rule whose scenarios are being shown.
#[derive(Debug)]
struct Open {
    feature: Feature,
    /// The scenarios of the rule.
    rule: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Awaited,
    Done,
    Shown,
}

impl Order {
    /// Creates an order from the feature and rule of each scenario.
    ///
    /// Scenarios of the same feature and rule must be adjacent.
    pub(crate) fn new<F: PartialEq, R: PartialEq>(
        sequence: Sequence,
        places: impl IntoIterator<Item = (F, R)>,
    ) -> Self {
        let mut features: Vec<Feature> = Vec::new();
        let mut last = None;
        let mut count = 0;
        for (feature, rule) in places {
            let (same_feature, same_rule) = match &last {
                Some((last_feature, last_rule)) => (*last_feature == feature, *last_rule == rule),
                None => (false, false),
            };
            if !same_feature {
                features.push(Vec::new());
            }
            if let Some(rules) = features.last_mut() {
                match rules.last_mut() {
                    Some(open) if same_feature && same_rule => open.end = count + 1,
                    _ => rules.push(count..count + 1),
                }
            }
            last = Some((feature, rule));
            count += 1;
        }
        Self { sequence, states: vec![State::Awaited; count], features, open: None }
    }

    /// Excludes a scenario, so that it is never shown.
    pub(crate) fn leave_out(&mut self, position: usize) {
        self.set(position, State::Shown);
    }

    /// Marks a scenario as finished, and returns the scenarios to show now.
    pub(crate) fn done(&mut self, position: usize) -> Vec<usize> {
        self.set(position, State::Done);
        let mut shown = Vec::new();
        while let Some(next) = self.next() {
            self.set(next, State::Shown);
            shown.push(next);
        }
        shown
    }

    /// Returns the finished scenarios that are not shown yet. Called after all scenarios have ended.
    pub(crate) fn rest(&mut self) -> Vec<usize> {
        let mut rest = Vec::new();
        for (position, state) in self.states.iter_mut().enumerate() {
            if *state == State::Done {
                *state = State::Shown;
                rest.push(position);
            }
        }
        rest
    }

    fn next(&mut self) -> Option<usize> {
        if self.sequence == Sequence::Files {
            let next = self.states.iter().position(|state| *state != State::Shown)?;
            return (self.states.get(next) == Some(&State::Done)).then_some(next);
        }
        let mut begun = None;
        if let Some(Open { feature, rule }) = &self.open {
            if let Some(next) = self.first(rule, State::Done) {
                return Some(next);
            }
            if self.first(rule, State::Awaited).is_some() {
                return None;
            }
            begun = self.begin(feature);
            if begun.is_none() && feature.iter().any(|rule| self.first(rule, State::Awaited).is_some()) {
                return None;
            }
        }
        let (open, next) = begun.or_else(|| self.features.iter().find_map(|feature| self.begin(feature)))?;
        self.open = Some(open);
        Some(next)
    }

    /// Returns the first rule of the feature with a finished scenario, and the first finished scenario in the rule.
    fn begin(&self, feature: &Feature) -> Option<(Open, usize)> {
        let begun = |rule: &Range<usize>| Some((rule.clone(), self.first(rule, State::Done)?));
        let (rule, next) = feature.iter().find_map(begun)?;
        Some((Open { feature: feature.clone(), rule }, next))
    }

    /// Returns the first scenario in `range` that has the given state.
    fn first(&self, range: &Range<usize>, state: State) -> Option<usize> {
        let mut states = self.states.iter().enumerate().take(range.end).skip(range.start);
        states.find(|(_, found)| **found == state).map(|(position, _)| position)
    }

    fn set(&mut self, position: usize, state: State) {
        if let Some(slot) = self.states.get_mut(position) {
            *slot = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two features: `a` with the rules 1 (scenarios 0, 1) and 2 (2), `b` without a rule (3, 4).
    fn places() -> [(&'static str, Option<usize>); 5] {
        [("a", Some(1)), ("a", Some(1)), ("a", Some(2)), ("b", None), ("b", None)]
    }

    fn order() -> Order {
        Order::new(Sequence::Finished, places())
    }

    #[track_caller]
    fn check(done: &[usize], expected: &[&[usize]]) {
        let mut order = order();
        let shown: Vec<_> = done.iter().map(|position| order.done(*position)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn first_finished_scenario_is_shown_first() {
        check(&[1, 0], &[&[1], &[0]]);
        check(&[4], &[&[4]]);
    }

    #[test]
    fn a_rule_that_was_begun_is_shown_whole() {
        check(&[1, 2, 0], &[&[1], &[], &[0, 2]]);
    }

    #[test]
    fn a_feature_that_was_begun_is_shown_whole() {
        check(&[2, 3, 1, 4, 0], &[&[2], &[], &[1], &[], &[0, 3, 4]]);
    }

    #[test]
    fn a_scenario_that_is_left_out_holds_nothing_back() {
        let mut order = order();
        order.leave_out(0);
        assert_eq!(order.done(1), [1]);
        assert_eq!(order.done(2), [2]);
        assert_eq!(order.done(3), [3]);
    }

    #[test]
    fn delayed_output_is_shown_at_the_end() {
        let mut order = order();
        assert_eq!(order.done(0), [0]);
        assert!(order.done(4).is_empty());
        assert_eq!(order.rest(), [4]);
        assert!(order.rest().is_empty());
    }

    #[test]
    fn scenarios_of_a_log_are_shown_in_the_order_of_the_files() {
        let mut order = Order::new(Sequence::Files, places());
        order.leave_out(1);
        assert!(order.done(4).is_empty());
        assert!(order.done(2).is_empty());
        assert_eq!(order.done(0), [0, 2]);
        assert_eq!(order.done(3), [3, 4]);
    }

    #[test]
    fn the_same_rule_line_in_two_features_is_two_rules() {
        let mut order = Order::new(Sequence::Finished, [("a", Some(1)), ("b", Some(1))]);
        assert_eq!(order.done(1), [1]);
        assert_eq!(order.done(0), [0]);
    }
}
