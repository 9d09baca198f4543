//! What the conditions of a webhook came to.

use std::sync::Arc;
use std::time::Duration;

use kubernetes_types::status::aggregate;

/// What the conditions of a webhook came to, for one request in one round.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an evaluation has these parts")]
pub struct Evaluation {
    /// The conditions that were evaluated, in order: all of them unless the budget ran out.
    pub conditions: Vec<Evaluated>,
    /// What follows.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// One condition that was evaluated.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a condition has these parts")]
pub struct Evaluated {
    /// Its name.
    pub name: Arc<str>,
    /// Its expression, as it is written.
    pub expression: Arc<str>,
    /// Its value, or why it has none.
    pub value: Result<bool, EvaluationError>,
    /// What it cost, of 1,000,000 that it may and of 2,500,000 that all may.
    pub cost: u64,
    /// How long it took.
    pub took: Duration,
}

/// Why a condition has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "either the server has an error, or admit has no answer")]
pub enum EvaluationError {
    /// An error of the server, in its words.
    #[error("{0}")]
    Server(String),
    /// kube-apiserver would have gone on, and admit does not, such as with texts of more than 64 MiB.
    #[error("not supported: {0}")]
    Unsupported(String),
}

/// What follows from the conditions of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these four")]
pub enum Outcome {
    /// All are true: the webhook is called.
    True,
    /// This one is false, whatever the others say: the webhook is not called.
    False {
        /// Its index.
        index: usize,
    },
    /// None is false, and some have no value: the failure policy decides. Their errors in the server's words.
    Errors(String),
    /// All together cost too much, whatever their values: the failure policy decides.
    OutOfBudget,
}

/// What the client is told when the conditions of a webhook cost too much.
///
/// Source: apiserver pkg/admission/plugin/cel/activation.go, `Evaluate`.
/// Rule: MC-15.
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Evaluation {
    /// Why there is no answer, in the server's words: the failure policy decides.
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::True | Outcome::False { .. } => None,
            Outcome::Errors(text) => Some(text),
            Outcome::OutOfBudget => Some(OUT_OF_BUDGET),
        }
    }

    /// What kube-apiserver would have gone on with and admit does not.
    pub fn unsupported(&self) -> Option<&str> {
        self.conditions.iter().find_map(|condition| match &condition.value {
            Err(EvaluationError::Unsupported(what)) => Some(what.as_str()),
            Ok(_) | Err(EvaluationError::Server(_)) => None,
        })
    }

    /// How many errors the server counts: those before the first condition that is false, and none if the budget ran
    /// out.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go, `Match`.
    /// Rule: MC-15, MET-11.
    pub fn counted_errors(&self) -> u64 {
        let scanned = match self.outcome {
            Outcome::True | Outcome::OutOfBudget => 0,
            Outcome::False { index } => index,
            Outcome::Errors(_) => self.conditions.len(),
        };
        let errors = self.conditions.iter().take(scanned).filter(|condition| condition.value.is_err());
        errors.count() as u64
    }

    /// What all of them cost.
    pub fn cost(&self) -> u64 {
        self.conditions.iter().map(|condition| condition.cost).sum()
    }
}

/// What follows from these conditions, none of which went over the budget.
///
/// Source: apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go, `Match`; apimachinery
/// pkg/util/errors/errors.go, `aggregate.Error`.
/// Rule: MC-10.
pub(super) fn outcome(conditions: &[Evaluated]) -> Outcome {
    if let Some(index) = conditions.iter().position(|condition| condition.value == Ok(false)) {
        return Outcome::False { index };
    }
    let errors = conditions.iter().filter_map(|condition| condition.value.as_ref().err());
    let errors = aggregate(errors.map(ToString::to_string));
    if errors.is_empty() { Outcome::True } else { Outcome::Errors(errors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conditions of these values: `t`, `f`, or the text of an error.
    fn evaluation(values: &[&str]) -> Evaluation {
        let conditions: Vec<Evaluated> = values
            .iter()
            .map(|value| Evaluated {
                name: "n".into(),
                expression: "e".into(),
                value: match *value {
                    "t" => Ok(true),
                    "f" => Ok(false),
                    error => Err(EvaluationError::Server(error.to_owned())),
                },
                cost: 1,
                took: Duration::ZERO,
            })
            .collect();
        Evaluation { outcome: outcome(&conditions), conditions, took: Duration::ZERO }
    }

    #[track_caller]
    fn check(values: &[&str], expected: &Outcome, counted: u64) {
        let evaluation = evaluation(values);
        assert_eq!(evaluation.outcome, *expected, "{values:?}");
        assert_eq!(evaluation.counted_errors(), counted, "{values:?}");
    }

    #[test]
    fn false_wins_over_errors_and_these_are_listed_once() {
        let errors = |text: &str| Outcome::Errors(text.to_owned());
        check(&[], &Outcome::True, 0);
        check(&["t", "t"], &Outcome::True, 0);
        check(&["t", "f", "f"], &Outcome::False { index: 1 }, 0);
        check(&["a", "f", "b"], &Outcome::False { index: 1 }, 1);
        check(&["f", "a"], &Outcome::False { index: 0 }, 0);
        check(&["t", "a"], &errors("a"), 1);
        check(&["a", "t", "b"], &errors("[a, b]"), 2);
        check(&["a", "a"], &errors("a"), 2);
    }

    #[test]
    fn what_is_unsupported_is_no_error_of_the_server() {
        let mut evaluation = evaluation(&["f", "expression 'e' resulted in error: no such key: a"]);
        assert_eq!(evaluation.unsupported(), None);
        evaluation.conditions[1].value = Err(EvaluationError::Unsupported("more than 64 MiB".to_owned()));
        assert_eq!(evaluation.unsupported(), Some("more than 64 MiB"));
    }

    #[test]
    fn a_budget_that_ran_out_wins_over_false() {
        let evaluation = Evaluation { outcome: Outcome::OutOfBudget, ..evaluation(&["a", "f", "t"]) };
        assert_eq!(evaluation.error(), Some(OUT_OF_BUDGET));
        assert_eq!((evaluation.counted_errors(), evaluation.cost()), (0, 3));
    }
}
