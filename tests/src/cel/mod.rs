//! Compares an implementation of CEL with Kubernetes' own packages, on random expressions.
//!
//! Expression `k` of a seed depends only on the seed and on `k`. A difference is reported with the smallest expression
//! that still differs in the same member of the answer.

mod answer;
mod candidate;
pub mod confirm;
pub mod conformance;
mod expression;
mod generate;
mod grammar;
mod literals;
mod oracle;
mod rows;
mod rules;
mod schemas;
mod value_literal;

use std::collections::BTreeMap;

pub use answer::{Answer, Difference, Estimate, Question};
pub use expression::Expression;
pub use generate::{Generated, Generator};
pub use oracle::{Oracle, OracleError, folder};

/// The expressions to compare.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The seed of all expressions.
    pub seed: u64,
    /// The number of the first expression.
    pub first: u64,
    /// The number of expressions.
    pub count: u64,
}

/// The results of comparing generated expressions.
#[derive(Clone, Debug, Default)]
pub struct SearchResult {
    /// The number of expressions, by their outcome in Kubernetes.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// The number of expressions whose answers differ.
    pub differing: u64,
    /// The number of expressions with several valid answers in Kubernetes, because Go maps are unordered.
    pub order_dependent: u64,
    /// The number of differing expressions, by the first differing member and the shrunk expression.
    pub places: BTreeMap<String, u64>,
    /// The number of times that the oracle exited although no single expression makes it exit.
    pub unexplained: usize,
}

/// The Kubernetes version whose expressions are compiled.
pub const KUBERNETES: &str = "1.37";

/// The number of expressions in one batch; progress is reported after each batch.
const BATCH: u64 = 2000;
/// The maximum number of differences in one member to shrink and show.
const SHOWN: u64 = 40;
/// The number of times that an expression is evaluated again if the answers differ.
const LOOKS: usize = 64;
/// The maximum number of questions for shrinking one difference.
const STEPS: usize = 400;

impl Search {
    /// Runs the search. `each` receives every answer of Kubernetes, and `tell` receives progress and differences.
    ///
    /// # Errors
    /// Returns an error if Kubernetes' packages cannot be run. Differences are not errors.
    pub fn run(&self, each: &dyn Fn(&Answer), tell: &dyn Fn(&str)) -> Result<SearchResult, OracleError> {
        let generator = Generator::default();
        let mut oracle = Oracle::start(KUBERNETES)?;
        let mut found = SearchResult::default();
        let end = self.first + self.count;
        let mut start = self.first;
        while start < end {
            let numbers = start..end.min(start + BATCH);
            start = numbers.end;
            let generated: Vec<Generated> =
                numbers.map(|number| generator.generate(self.seed, number)).collect();
            let questions: Vec<Question> = generated.iter().map(Generated::question).collect();
            let answers = oracle.ask(&questions)?;
            for (generated, answer) in generated.iter().zip(&answers) {
                each(answer);
                *found.outcomes.entry(answer.outcome()).or_default() += 1;
                if let (Some(failure), "no answer" | "crash the oracle") = (&answer.failure, answer.outcome())
                {
                    tell(&format!("{}\n  {failure}", generated.expression));
                }
                let Some(difference) = differs(generated, answer) else { continue };
                found.note(generated, &difference, &mut oracle, tell)?;
            }
            let done = start - self.first;
            tell(&format!("{done} of {} expressions, {} differ", self.count, found.differing));
        }
        found.unexplained = oracle.unexplained().len();
        for message in oracle.unexplained() {
            tell(&format!("the oracle ended while it was asked several questions: {message}"));
        }
        Ok(found)
    }
}

/// Returns how the crate's answer differs from the answer of Kubernetes.
fn differs(generated: &Generated, expected: &Answer) -> Option<Difference> {
    expected.differs(&candidate::answer(&generated.question()))
}

impl SearchResult {
    fn note(
        &mut self,
        generated: &Generated,
        difference: &Difference,
        oracle: &mut Oracle,
        tell: &dyn Fn(&str),
    ) -> Result<(), OracleError> {
        let again = oracle.ask(&vec![generated.question(); LOOKS])?;
        if again.iter().any(|answer| differs(generated, answer).as_ref() != Some(difference)) {
            self.order_dependent += 1;
            return Ok(());
        }
        self.differing += 1;
        let count = self.places.entry(difference.member.to_owned()).or_default();
        *count += 1;
        if *count > SHOWN {
            return Ok(());
        }
        let (smallest, difference) = shrink(generated, difference, oracle)?;
        tell(&format!("{}\n{difference}", smallest.question()));
        Ok(())
    }

    /// Returns whether all answers agree.
    pub fn agrees(&self) -> bool {
        self.differing == 0
    }
}

/// Returns the smallest expression found that differs in the same member. The number of questions is limited.
fn shrink(
    generated: &Generated,
    difference: &Difference,
    oracle: &mut Oracle,
) -> Result<(Generated, Difference), OracleError> {
    let (mut smallest, mut shown) = (generated.clone(), difference.clone());
    let mut asked = 0;
    'smaller: while asked < STEPS {
        let candidates: Vec<Generated> = smallest
            .expression
            .smaller()
            .into_iter()
            .take(STEPS)
            .map(|expression| Generated { expression, ..smallest.clone() })
            .collect();
        let questions: Vec<Question> = candidates.iter().map(Generated::question).collect();
        asked += questions.len();
        for (smaller, answer) in candidates.into_iter().zip(oracle.ask(&questions)?) {
            if let Some(found) = differs(&smaller, &answer)
                && found.member == difference.member
            {
                (smallest, shown) = (smaller, found);
                continue 'smaller;
            }
        }
        break;
    }
    Ok((smallest, shown))
}

impl std::fmt::Display for SearchResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (outcome, count) in &self.outcomes {
            write!(f, "{count} {outcome}, ")?;
        }
        for (member, count) in &self.places {
            write!(f, "{count} differ in {member}, ")?;
        }
        if self.order_dependent > 0 {
            write!(f, "{} depend on the order of a map, ", self.order_dependent)?;
        }
        write!(f, "{} differ", self.differing)
    }
}
