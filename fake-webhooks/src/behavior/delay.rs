//! Defines the parameters of behaviors that delay other behaviors.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Behavior, Hang, Time};
use crate::random;

/// The parameters of `timeout`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Timeout {
    /// The time without a response; not even a status line is sent.
    pub hang: Hang,
    /// The behavior after the hang.
    pub then: Box<Behavior>,
}

/// The parameters of `delay`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Delay {
    /// The distribution of the delay.
    #[serde(rename = "for")]
    pub time: Distribution,
    /// The seed for the random numbers, which makes delays reproducible.
    #[serde(default)]
    pub seed: u64,
    /// The behavior after the delay.
    #[serde(default)]
    pub then: Behavior,
}

impl Delay {
    /// Returns the delay of the `nth` call, counted from 0.
    pub(crate) fn for_call(&self, nth: u64) -> Duration {
        let fraction = random::fraction(self.seed, nth);
        match &self.time {
            Distribution::Fixed(time) => time.duration(),
            Distribution::Uniform(Uniform { from, to }) => {
                let (from, to) = (from.duration(), to.duration());
                from.saturating_add(to.saturating_sub(from).mul_f64(fraction))
            }
            Distribution::Exponential(Exponential { mean, most }) => {
                let seconds = -(1.0 - fraction).ln() * mean.duration().as_secs_f64();
                let most = most.duration();
                Duration::try_from_secs_f64(seconds).unwrap_or(most).min(most)
            }
        }
    }
}

/// The distribution of delays.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Distribution {
    /// `fixed: 100ms`: all delays are equal.
    Fixed(Time),
    /// `uniform: {from: 10ms, to: 200ms}`: delays are uniformly distributed.
    Uniform(Uniform),
    /// `exponential: {mean: 50ms, most: 2s}`: delays are exponentially distributed and limited to a maximum.
    Exponential(Exponential),
}

/// The parameters of a uniform distribution of delays.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// The minimum delay.
    pub from: Time,
    /// The maximum delay.
    pub to: Time,
}

/// The parameters of an exponential distribution of delays.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Exponential {
    /// The mean of the delays before they are limited to the maximum.
    pub mean: Time,
    /// The maximum delay; the default is 30 s.
    #[serde(default = "thirty_seconds")]
    pub most: Time,
}

fn thirty_seconds() -> Time {
    Duration::from_secs(30).into()
}
