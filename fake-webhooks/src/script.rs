//! Parameters of the behaviors that choose, delay or accompany others.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Behavior, dice};

/// The behaviors of a `sequence`: at least one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Vec<Behavior>", into = "Vec<Behavior>")]
pub struct Sequence {
    before: Vec<Behavior>,
    last: Box<Behavior>,
}

impl Sequence {
    /// What is done on the `nth` call (counted from 0).
    pub fn behavior(&self, nth: u64) -> &Behavior {
        usize::try_from(nth).ok().and_then(|nth| self.before.get(nth)).unwrap_or(&self.last)
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Behavior> {
        self.before.iter().chain([&*self.last])
    }

    /// The call number as the behavior that is chosen on the `nth` call sees it.
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

/// The behaviors of a `cycle`: at least one.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Vec<Behavior>", into = "Vec<Behavior>")]
pub struct Cycle {
    first: Box<Behavior>,
    further: Vec<Behavior>,
}

impl Cycle {
    /// All of them, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Behavior> {
        [&*self.first].into_iter().chain(&self.further)
    }

    /// What is done on the `nth` call (counted from 0), and which round of the cycle that is.
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
    /// How many calls.
    pub calls: u64,
    /// What is done on them.
    pub of: Behavior,
    /// What is done on those that follow.
    #[serde(default)]
    pub then: Behavior,
}

/// Parameters of `rate`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rate {
    /// What is done sometimes.
    pub of: Behavior,
    /// How often: a number from 0 (never) to 1 (always).
    pub probability: Probability,
    /// The seed of the dice: an equal seed does the same on the same calls.
    #[serde(default)]
    pub seed: u64,
    /// What is done else.
    #[serde(default)]
    pub otherwise: Behavior,
}

impl Rate {
    /// What is done on the `nth` call (counted from 0).
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
            Err(format!("{number} is not a probability: expected 0 to 1"))
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
    /// How long nothing is sent.
    #[serde(rename = "for")]
    pub time: Distribution,
    /// The seed of the dice: an equal seed delays the same calls by the same time.
    #[serde(default)]
    pub seed: u64,
    /// What is answered then.
    #[serde(default)]
    pub then: Behavior,
}

impl Delay {
    /// How long the `nth` call (counted from 0) waits.
    pub(crate) fn of_call(&self, nth: u64) -> Duration {
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

/// How delays are spread.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Distribution {
    /// `fixed: 100ms`: always this long.
    Fixed(Time),
    /// `uniform: {from: 10ms, to: 200ms}`: each time between as likely as any other.
    Uniform(Uniform),
    /// `exponential: {mean: 50ms, most: 2s}`: mostly short, sometimes long.
    Exponential(Exponential),
}

/// Parameters of `uniform`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// The shortest.
    pub from: Time,
    /// The longest.
    pub to: Time,
}

/// Parameters of `exponential`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Exponential {
    /// The mean of all, if none were cut.
    pub mean: Time,
    /// The longest; 30 s unless given.
    #[serde(default = "thirty_seconds")]
    pub most: Time,
}

fn thirty_seconds() -> Time {
    Time(Duration::from_secs(30))
}

/// A time, such as `2s` or `500ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(Duration);

/// A text that says no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration `{0}`: expected one such as 2s or 500ms")]
pub struct InvalidTime(String);

impl Time {
    /// The time.
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
    /// A request that is sent, beside the count that the journal shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Write>,
    /// What is answered then.
    pub then: Box<Behavior>,
}

/// An HTTP request that a side effect sends. In its texts `{uid}` and the like stand for facts of the call, as in
/// `mutate`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Write {
    /// Where to, such as `http://127.0.0.1:8001/api/v1/namespaces/demo/configmaps`.
    pub url: Target,
    /// The token that is sent as `Authorization: Bearer TOKEN`; none if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The certificates that the server's may be signed by, as PEM; for `https`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ca_bundle: String,
    /// The body, which is sent by POST. Unless given, a ConfigMap with a name that tells of the call.
    #[serde(default = "config_map")]
    pub body: Value,
    /// How long after the call it is sent, whether the caller still waits or not. At once unless given, and before the
    /// answer.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub after: Time,
}

/// A URL of a plain HTTP server or of one with TLS. It may have facts of the call in its path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target(String);

impl Target {
    /// The URL as it is written.
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
        match text.parse::<url::Url>() {
            Ok(url) if ["http", "https"].contains(&url.scheme()) && url.has_host() => Ok(Self(text)),
            Ok(_) => Err(format!("`{text}` is no URL to write to: expected http:// or https:// and a host")),
            Err(error) => Err(format!("`{text}` is no URL: {error}")),
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
    /// How many bytes are kept for each call.
    pub bytes: u32,
    /// How many bytes are kept at the most, so that no machine suffers: further calls leak nothing.
    pub most: u32,
    /// What is answered.
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
    /// How long each call takes, after those before it: also after those whose caller has gone.
    pub hold: Time,
    /// What is answered.
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
    /// How long each answer is held back, so that calls overlap.
    pub hold: Time,
    /// What is answered: under the uid of another review that still waits, if there is one.
    pub then: Box<Behavior>,
}

impl Default for MixUp {
    fn default() -> Self {
        Self { hold: Time(Duration::from_millis(100)), then: Box::default() }
    }
}
