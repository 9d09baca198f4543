//! Defines the result of evaluating a webhook's match conditions.

use std::sync::Arc;
use std::time::Duration;

use kubernetes_types::status::aggregate;

/// The result of evaluating a webhook's match conditions for one request in one round.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an evaluation has these parts")]
pub struct Evaluation {
    /// The evaluated conditions, in order. If the budget ran out, later conditions are missing.
    pub conditions: Vec<Evaluated>,
    /// The result of all conditions together.
    pub outcome: Outcome,
    /// The duration of the evaluation.
    pub took: Duration,
}

/// A condition with its value and the cost of its evaluation.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a condition has these parts")]
pub struct Evaluated {
    /// The condition's name.
    pub name: Arc<str>,
    /// The condition's expression, as written.
    pub expression: Arc<str>,
    /// The condition's value, or the evaluation error.
    pub value: Result<bool, EvaluationError>,
    /// The cost of the evaluation: at most 1,000,000 for one condition and 2,500,000 for all conditions of a webhook.
    pub cost: u64,
    /// The duration of the evaluation.
    pub took: Duration,
}

/// The reason why a condition does not have a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "either the server has an error, or admit has no answer")]
pub enum EvaluationError {
    /// An error that kube-apiserver also reports; contains its error message.
    #[error("{0}")]
    Server(String),
    /// An operation that only kube-apiserver supports, such as an operation on a string of more than 64 MiB.
    #[error("not supported: {0}")]
    Unsupported(String),
}

/// The overall result of a webhook's conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these four")]
pub enum Outcome {
    /// All conditions are true: the webhook is called.
    True,
    /// At least one condition is false: the webhook is not called.
    False {
        /// The index of the first false condition.
        index: usize,
    },
    /// No condition is false, and at least one failed: the failure policy applies.
    ///
    /// Contains kube-apiserver's error message.
    Errors(String),
    /// The conditions exceeded their cost budget: the failure policy applies.
    OutOfBudget,
}

/// The message for the client if the conditions of a webhook exceed their cost budget.
///
/// Source: apiserver pkg/admission/plugin/cel/activation.go, `Evaluate`.
/// Rule: MC-15.
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Evaluation {
    /// Returns whether all conditions are true.
    pub fn is_true(&self) -> bool {
        self.outcome == Outcome::True
    }

    /// Returns kube-apiserver's error message if the failure policy applies, otherwise `None`.
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::True | Outcome::False { .. } => None,
            Outcome::Errors(text) => Some(text),
            Outcome::OutOfBudget => Some(OUT_OF_BUDGET),
        }
    }

    /// Returns the feature that a condition uses and admit does not support; `None` if there is none.
    pub fn unsupported(&self) -> Option<&str> {
        self.conditions.iter().find_map(|condition| match &condition.value {
            Err(EvaluationError::Unsupported(what)) => Some(what.as_str()),
            Ok(_) | Err(EvaluationError::Server(_)) => None,
        })
    }

    /// Returns the number of errors that kube-apiserver counts: the errors before the first false condition.
    ///
    /// The count is zero if the budget ran out.
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

    /// Returns the total cost of the conditions.
    pub fn cost(&self) -> u64 {
        self.conditions.iter().map(|condition| condition.cost).sum()
    }
}

/// Returns the overall result of conditions that stayed within the budget.
///
/// Source: apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go, `Match`; apimachinery
/// pkg/util/errors/errors.go, `aggregate.Error`.
/// Rule: MC-10.
pub(crate) fn outcome(conditions: &[Evaluated]) -> Outcome {
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

    /// Builds an evaluation from values: `t`, `f`, or an error message.
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
    fn false_takes_precedence_over_errors_which_are_deduplicated() {
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
    fn unsupported_conditions_are_not_counted_as_server_errors() {
        let mut evaluation = evaluation(&["f", "expression 'e' resulted in error: no such key: a"]);
        assert_eq!(evaluation.unsupported(), None);
        evaluation.conditions[1].value = Err(EvaluationError::Unsupported("more than 64 MiB".to_owned()));
        assert_eq!(evaluation.unsupported(), Some("more than 64 MiB"));
    }

    #[test]
    fn an_exceeded_budget_takes_precedence_over_false() {
        let evaluation = Evaluation { outcome: Outcome::OutOfBudget, ..evaluation(&["a", "f", "t"]) };
        assert_eq!(evaluation.error(), Some(OUT_OF_BUDGET));
        assert_eq!((evaluation.counted_errors(), evaluation.cost()), (0, 3));
    }
}
