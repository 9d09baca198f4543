//! Defines the parameters of behaviors that choose between other behaviors.

use serde::{Deserialize, Serialize};

use super::{Behavior, Condition};
use crate::random;

/// The behaviors of a `sequence`; there is at least one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Vec<Behavior>", into = "Vec<Behavior>")]
pub struct Sequence {
    before: Vec<Behavior>,
    last: Box<Behavior>,
}

impl Sequence {
    /// Returns the behavior on the `nth` call, counted from 0.
    pub fn behavior(&self, nth: u64) -> &Behavior {
        usize::try_from(nth).ok().and_then(|nth| self.before.get(nth)).unwrap_or(&self.last)
    }

    /// Returns all behaviors in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Behavior> {
        self.before.iter().chain([&*self.last])
    }

    /// Returns the call number to pass to the behavior that is chosen for the `nth` call.
    pub(crate) fn within(&self, nth: u64) -> u64 {
        nth.saturating_sub(self.before.len() as u64)
    }
}

impl TryFrom<Vec<Behavior>> for Sequence {
    type Error = &'static str;

    fn try_from(mut behaviors: Vec<Behavior>) -> Result<Self, &'static str> {
        let last = behaviors.pop().ok_or("a sequence needs at least one behavior")?;
        Ok(Self { before: behaviors, last: Box::new(last) })
    }
}

impl From<Sequence> for Vec<Behavior> {
    fn from(sequence: Sequence) -> Self {
        let mut behaviors = sequence.before;
        behaviors.push(*sequence.last);
        behaviors
    }
}

/// The behaviors of a `cycle`; there is at least one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Vec<Behavior>", into = "Vec<Behavior>")]
pub struct Cycle {
    first: Box<Behavior>,
    further: Vec<Behavior>,
}

impl Cycle {
    /// Returns all behaviors in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Behavior> {
        [&*self.first].into_iter().chain(&self.further)
    }

    /// Returns the behavior on the `nth` call, counted from 0, and the round of the cycle.
    pub(crate) fn behavior(&self, nth: u64) -> (&Behavior, u64) {
        let length = self.further.len() as u64 + 1;
        let place = usize::try_from(nth % length).unwrap_or_default();
        let behavior = place.checked_sub(1).and_then(|place| self.further.get(place)).unwrap_or(&self.first);
        (behavior, nth / length)
    }
}

impl TryFrom<Vec<Behavior>> for Cycle {
    type Error = &'static str;

    fn try_from(mut behaviors: Vec<Behavior>) -> Result<Self, &'static str> {
        if behaviors.is_empty() {
            return Err("a cycle needs at least one behavior");
        }
        let further = behaviors.split_off(1);
        let first = behaviors.pop().ok_or("a cycle needs at least one behavior")?;
        Ok(Self { first: Box::new(first), further })
    }
}

impl From<Cycle> for Vec<Behavior> {
    fn from(cycle: Cycle) -> Self {
        std::iter::once(*cycle.first).chain(cycle.further).collect()
    }
}

/// The parameters of `first`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct First {
    /// The number of calls that use `of`.
    pub calls: u64,
    /// The behavior on the first calls.
    pub of: Behavior,
    /// The behavior on later calls.
    #[serde(default)]
    pub then: Behavior,
}

/// The parameters of `rate`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rate {
    /// The behavior to use with this probability.
    pub of: Behavior,
    /// The probability, from 0 (never) to 1 (always).
    pub probability: Probability,
    /// The seed for the random numbers, which makes results reproducible.
    #[serde(default)]
    pub seed: u64,
    /// The behavior on other calls.
    #[serde(default)]
    pub otherwise: Behavior,
}

impl Rate {
    /// Returns the behavior on the `nth` call, counted from 0.
    pub(crate) fn behavior(&self, nth: u64) -> &Behavior {
        if random::fraction(self.seed, nth) < self.probability.0 { &self.of } else { &self.otherwise }
    }
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Probability(f64);

impl TryFrom<f64> for Probability {
    type Error = String;

    fn try_from(number: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!("invalid probability {number}: must be 0 to 1"))
        }
    }
}

impl From<Probability> for f64 {
    fn from(probability: Probability) -> Self {
        probability.0
    }
}

/// The parameters of `when`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct When {
    /// The condition that is checked for each call.
    #[serde(rename = "if")]
    pub condition: Condition,
    /// The behavior if the condition is true.
    pub then: Behavior,
    /// The behavior if the condition is false.
    #[serde(default)]
    pub otherwise: Behavior,
}
