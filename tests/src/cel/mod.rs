//! CEL expressions at random: what Kubernetes' own packages make of them, and whether another implementation does the
//! same.
//!
//! Expression `k` of a seed depends on both numbers only. Of a difference the smallest expression is shown that still
//! differs in the same member of the answer.

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

/// Which expressions.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// From which all expressions follow.
    pub seed: u64,
    /// The number of the first one.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// What a search came to.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// How many expressions came to what, as Kubernetes has it.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Expressions whose answer differs.
    pub differing: u64,
    /// Expressions that Kubernetes answers in more than one way: Go's maps have no order.
    pub order_dependent: u64,
    /// How many differ first in which member, at which shrunk expression.
    pub places: BTreeMap<String, u64>,
    /// How often the oracle ended though no single expression makes it end.
    pub unexplained: usize,
}

/// The version whose expressions are compiled.
pub const KUBERNETES: &str = "1.37";

/// So many expressions are asked at once, and so often progress is told.
const BATCH: u64 = 2000;
/// Of the differences in one member, so many are shrunk and shown.
const SHOWN: u64 = 40;
/// An expression whose answer differs is asked so often again.
const LOOKS: usize = 64;
/// No difference is worth more questions than these.
const STEPS: usize = 400;

impl Search {
    /// Asks; `each` sees every answer of Kubernetes, `tell` hears of progress and of differences.
    ///
    /// # Errors
    /// Kubernetes' packages cannot be asked. Differences are no error.
    pub fn run(&self, each: &dyn Fn(&Answer), tell: &dyn Fn(&str)) -> Result<Found, OracleError> {
        let generator = Generator::default();
        let mut oracle = Oracle::start(KUBERNETES)?;
        let mut found = Found::default();
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

/// In what the crate's answer differs from that of Kubernetes.
fn differs(generated: &Generated, expected: &Answer) -> Option<Difference> {
    expected.differs(&candidate::answer(&generated.question()))
}

impl Found {
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

    /// Whether every answer was the same.
    pub fn agrees(&self) -> bool {
        self.differing == 0
    }
}

/// The smallest expression that differs in the same member, as far as a number of questions leads.
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

impl std::fmt::Display for Found {
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
