//! Parses the durations in a fakes file.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration such as `2s` or `500ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(Duration);

/// The error for a string that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration `{0}`: must be like 2s or 500ms")]
pub struct InvalidTime(String);

impl Time {
    /// Returns the duration as the standard library's type.
    pub const fn duration(self) -> Duration {
        self.0
    }

    pub(super) fn is_zero(&self) -> bool {
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
