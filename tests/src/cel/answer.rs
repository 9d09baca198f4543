//! What an implementation makes of an expression, in the words of the Go program `tests/cel/oracle`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An expression, and on what it is evaluated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Question {
    /// The expression.
    pub expr: String,
    /// A schema of `tests/cel/schemas.json` of which it is a rule; none for conditions of admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// A context of `tests/cel/contexts.json`, or a document of the schema; none for `update` or `usual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The expression.
    pub expr: String,
    /// The schema, as in the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The context, as in the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The static type, unless the expression does not compile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// The value: an object whose one member names its type, as `Render` in `tests/cel/kubecel/value.go` describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The type of the value at run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    /// What the evaluation was charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// What it costs at least and at most, as far as the text says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Why it is no condition. With a type: it compiles, but is not boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_error: Option<String>,
    /// Why an expression that is not boolean cannot be evaluated at all; of a boolean one, that is the compile error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_error: Option<String>,
    /// Why the evaluation failed, without the prefix `expression '...' resulted in error: `.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_error: Option<String>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A static cost estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

impl Question {
    /// The question that was answered.
    pub fn of(answer: &Answer) -> Self {
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
    /// With what the failure of an expression begins at which the oracle ends.
    pub const CRASH: &str = "the oracle ends: ";

    /// In what the answer of an implementation differs from this one of Kubernetes. Where Kubernetes panics, an
    /// implementation says that it does not support that; where it has no answer otherwise, there is nothing to compare.
    pub fn differs(&self, actual: &Self) -> Option<Difference> {
        if let Some(failure) = &self.failure {
            // Kubernetes does not tell a cost that is below zero for it.
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
        // An implementation compiles to a program: it does not tell the type of what is none.
        if let Some(error) = expected.program_error.take() {
            expected.r#type = None;
            expected.compile_error = Some(format!("program instantiation failed: {error}"));
        }
        expected.difference(actual)
    }

    /// The first member in which two answers differ, and both values of it.
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

    /// What became of the expression, in a word.
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

/// One member of two answers that is not equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub member: &'static str,
    /// What Kubernetes says, as JSON.
    pub expected: String,
    /// What the other implementation says, as JSON.
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
