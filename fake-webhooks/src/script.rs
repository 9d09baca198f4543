//! The parameters of behaviors that choose, delay, or extend other behaviors.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Behavior, dice};

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

    /// Returns the call number that the behavior chosen for the `nth` call receives.
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

/// Parameters of `first`.
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

/// Parameters of `rate`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rate {
    /// The behavior that is used with this probability.
    pub of: Behavior,
    /// The probability, from 0 (never) to 1 (always).
    pub probability: Probability,
    /// The seed of the random numbers, which makes results reproducible.
    #[serde(default)]
    pub seed: u64,
    /// The behavior on other calls.
    #[serde(default)]
    pub otherwise: Behavior,
}

impl Rate {
    /// Returns the behavior on the `nth` call, counted from 0.
    pub(crate) fn behavior(&self, nth: u64) -> &Behavior {
        if dice::fraction(self.seed, nth) < self.probability.0 { &self.of } else { &self.otherwise }
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

/// Parameters of `delay`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Delay {
    /// The distribution of the delay.
    #[serde(rename = "for")]
    pub time: Distribution,
    /// The seed of the random numbers, which makes delays reproducible.
    #[serde(default)]
    pub seed: u64,
    /// The behavior after the delay.
    #[serde(default)]
    pub then: Behavior,
}

impl Delay {
    /// Returns the delay of the `nth` call, counted from 0.
    pub(crate) fn for_call(&self, nth: u64) -> Duration {
        let fraction = dice::fraction(self.seed, nth);
        match &self.time {
            Distribution::Fixed(time) => time.0,
            Distribution::Uniform(Uniform { from, to }) => {
                from.0.saturating_add(to.0.saturating_sub(from.0).mul_f64(fraction))
            }
            Distribution::Exponential(Exponential { mean, most }) => {
                let seconds = -(1.0 - fraction).ln() * mean.0.as_secs_f64();
                Duration::try_from_secs_f64(seconds).unwrap_or(most.0).min(most.0)
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

/// Parameters of `uniform`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// The minimum delay.
    pub from: Time,
    /// The maximum delay.
    pub to: Time,
}

/// Parameters of `exponential`.
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
    Time(Duration::from_secs(30))
}

/// A duration such as `2s` or `500ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(Duration);

/// The error for a text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration `{0}`: must be like 2s or 500ms")]
pub struct InvalidTime(String);

impl Time {
    /// Returns the duration as the standard library's type.
    pub const fn duration(self) -> Duration {
        self.0
    }

    fn is_zero(&self) -> bool {
        self.0.is_zero()
    }
}

impl From<Duration> for Time {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl FromStr for Time {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let signed = text.parse::<jiff::SignedDuration>().ok();
        let duration = signed.and_then(|signed| Duration::try_from(signed).ok());
        duration.map(Self).ok_or_else(|| InvalidTime(text.to_owned()))
    }
}

impl TryFrom<String> for Time {
    type Error = InvalidTime;

    fn try_from(text: String) -> Result<Self, InvalidTime> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        format!("{}ns", time.0.as_nanos())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Parameters of `side-effect`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SideEffect {
    /// A request to send, in addition to the count in the journal. Boxed, because nested behaviors are parsed recursively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Box<Write>>,
    /// The behavior after the side effect.
    pub then: Box<Behavior>,
}

/// An HTTP request that a side effect sends. Strings can contain the placeholders of `mutate`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Write {
    /// The URL, such as `http://127.0.0.1:8001/api/v1/namespaces/demo/configmaps`, or its path with a kubeconfig.
    pub url: Target,
    /// The kubeconfig with the server, its CA certificates, and the token; read for each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
    /// The bearer token; the header is omitted if the token is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The trusted CA certificates as PEM, for `https`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ca_bundle: String,
    /// The body of the POST; the default is a ConfigMap that is named after the call.
    #[serde(default = "config_map")]
    pub body: Value,
    /// The delay between the call and the request, which is sent even if the caller no longer waits. By default, the
    /// request is sent before the response.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub after: Time,
}

/// An `http` or `https` URL, or a path that begins with `/`, which can contain placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target(String);

impl Target {
    /// Returns the URL as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        Self(change(&self.0))
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self(text));
        }
        match text.parse::<url::Url>() {
            Ok(url) if ["http", "https"].contains(&url.scheme()) && url.has_host() => Ok(Self(text)),
            Ok(_) => Err(format!("invalid URL `{text}`: must have http:// or https:// and a host")),
            Err(error) => Err(format!("invalid URL `{text}`: {error}")),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.0
    }
}

fn config_map() -> Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "side-effect-{uid}"},
        "data": {"operation": "{operation}", "namespace": "{namespace}", "name": "{name}"},
    })
}

/// Parameters of `leak`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Leak {
    /// The bytes to leak for each call.
    pub bytes: u32,
    /// The maximum number of leaked bytes.
    pub most: u32,
    /// The behavior that responds.
    pub then: Box<Behavior>,
}

impl Default for Leak {
    fn default() -> Self {
        Self { bytes: 64 << 10, most: 16 << 20, then: Box::default() }
    }
}

/// Parameters of `queue`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Queue {
    /// The duration of each call; a call starts after all earlier calls end, even those whose callers disconnected.
    pub hold: Time,
    /// The behavior that responds.
    pub then: Box<Behavior>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { hold: Time(Duration::from_millis(100)), then: Box::default() }
    }
}

/// Parameters of `mix-up`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MixUp {
    /// The delay of each response, so that calls overlap.
    pub hold: Time,
    /// The behavior that responds, with the uid of another review in progress if there is one.
    pub then: Box<Behavior>,
}

impl Default for MixUp {
    fn default() -> Self {
        Self { hold: Time(Duration::from_millis(100)), then: Box::default() }
    }
}
