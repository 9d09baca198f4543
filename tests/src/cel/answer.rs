//! Compares the answers of CEL implementations. The Go program `tests/cel/oracle` defines their format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An expression and the input for its evaluation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Question {
    /// The CEL expression.
    pub expr: String,
    /// The schema in `tests/cel/schemas.json` that contains the rule; `None` for an admission condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The context in `tests/cel/contexts.json`, or a document of the schema; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// The answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The CEL expression.
    pub expr: String,
    /// The schema in the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The context in the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The static type; `None` if the expression does not compile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// The value: an object with one member. The name of the member is the type of the value.
    ///
    /// `Render` in `tests/cel/kubecel/value.go` describes the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The runtime type of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    /// The cost of the evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// The static estimate of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The reason why the expression is not a valid condition. If there is a type, it compiles but is not boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_error: Option<String>,
    /// The reason why the expression cannot be evaluated; for a boolean expression, this is the compile error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_error: Option<String>,
    /// The reason why the evaluation failed, without the prefix `expression '...' resulted in error: `.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_error: Option<String>,
    /// The reason why the answer is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A static cost estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// The minimum cost.
    pub min: u64,
    /// The maximum cost.
    pub max: u64,
}

impl Question {
    /// Returns the question that `answer` answers.
    pub fn from_answer(answer: &Answer) -> Self {
        Self { expr: answer.expr.clone(), schema: answer.schema.clone(), context: answer.context.clone() }
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.expr)?;
        for (what, name) in [("schema", &self.schema), ("context", &self.context)] {
            if let Some(name) = name {
                write!(f, " ({what} {name})")?;
            }
        }
        Ok(())
    }
}

impl Answer {
    /// The prefix of the failure for an expression that makes the oracle exit.
    pub const CRASH: &str = "the oracle ends: ";

    /// Returns how the answer `actual` of an implementation differs from this answer of Kubernetes.
    ///
    /// If Kubernetes panics, an implementation must report that it does not support the expression. If Kubernetes does
    /// not answer for other reasons, nothing is compared.
    pub fn differs(&self, actual: &Self) -> Option<Difference> {
        if let Some(failure) = &self.failure {
            // Kubernetes does not report a cost that overflows its signed integer.
            if failure.contains("running out of cost budget")
                && actual.cost.is_none_or(|cost| i64::try_from(cost).is_ok())
            {
                return Some(Difference {
                    member: "cost",
                    expected: text(Some(failure)),
                    actual: text(actual.cost.as_ref()),
                });
            }
            let refused =
                actual.compile_error.as_ref().is_some_and(|error| error.starts_with("not supported: "));
            return (failure.starts_with("panic: ") && !refused).then(|| Difference {
                member: "failure",
                expected: text(Some(failure)),
                actual: text(actual.compile_error.as_ref()),
            });
        }
        let mut expected = self.clone();
        // An implementation compiles to a program, so it does not report the type of an expression that is not a
        // program.
        if let Some(error) = expected.program_error.take() {
            expected.r#type = None;
            expected.compile_error = Some(format!("program instantiation failed: {error}"));
        }
        expected.difference(actual)
    }

    /// Returns the first member that differs between two answers, with both values.
    fn difference(&self, other: &Self) -> Option<Difference> {
        let members = [
            ("failure", text(self.failure.as_ref()), text(other.failure.as_ref())),
            ("compile_error", text(self.compile_error.as_ref()), text(other.compile_error.as_ref())),
            ("type", text(self.r#type.as_ref()), text(other.r#type.as_ref())),
            ("program_error", text(self.program_error.as_ref()), text(other.program_error.as_ref())),
            ("run_error", text(self.run_error.as_ref()), text(other.run_error.as_ref())),
            ("value", text(self.value.as_ref()), text(other.value.as_ref())),
            ("value_type", text(self.value_type.as_ref()), text(other.value_type.as_ref())),
            ("cost", text(self.cost.as_ref()), text(other.cost.as_ref())),
            ("estimate", text(self.estimate.as_ref()), text(other.estimate.as_ref())),
        ];
        members
            .into_iter()
            .find(|(_, one, other)| one != other)
            .map(|(member, expected, actual)| Difference { member, expected, actual })
    }

    /// Returns the outcome of the expression in one word.
    pub fn outcome(&self) -> &'static str {
        match (&self.failure, &self.r#type, &self.run_error) {
            (Some(failure), _, _) if failure.starts_with(Self::CRASH) => "crash the oracle",
            (Some(failure), _, _) if failure.starts_with("panic: ") => "panic",
            (Some(failure), _, _) if failure.contains("running out of cost budget") => {
                "cost less than nothing"
            }
            (Some(_), _, _) => "no answer",
            (_, None, _) => "does not compile",
            (_, _, Some(_)) => "fails",
            _ => "has a value",
        }
    }
}

fn text<T: Serialize>(member: Option<&T>) -> String {
    member.map_or_else(|| "none".to_owned(), |value| serde_json::json!(value).to_string())
}

/// A member that differs between two answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the member.
    pub member: &'static str,
    /// The value in the answer of Kubernetes, as JSON.
    pub expected: String,
    /// The value in the answer of the other implementation, as JSON.
    pub actual: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { member, expected, actual } = self;
        write!(f, "  {member}\n    expected {expected}\n    actual   {actual}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_the_first_member_that_is_not_equal() {
        let one = Answer { cost: Some(1), run_error: Some("a".to_owned()), ..Answer::default() };
        let other = Answer { cost: Some(2), run_error: Some("b".to_owned()), ..Answer::default() };
        assert_eq!(one.difference(&one), None);
        assert_eq!(one.difference(&other).map(|it| it.member), Some("run_error"));
    }
}
