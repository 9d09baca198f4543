//! Parses the duration for which a fake hangs.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The duration of a hang: `forever`, or a duration such as `2s` or `500ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Hang {
    /// The hang lasts until the caller disconnects.
    #[default]
    Forever,
    /// The hang lasts for this duration.
    For(Duration),
}

/// The error for a string that is not a duration or `forever`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration `{0}`: must be forever, or a duration such as 2s or 500ms")]
pub struct InvalidHang(String);

impl FromStr for Hang {
    type Err = InvalidHang;

    fn from_str(text: &str) -> Result<Self, InvalidHang> {
        if text == "forever" {
            return Ok(Self::Forever);
        }
        let duration =
            text.parse::<jiff::SignedDuration>().ok().and_then(|signed| Duration::try_from(signed).ok());
        duration.map(Self::For).ok_or_else(|| InvalidHang(text.to_owned()))
    }
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forever => f.write_str("forever"),
            Self::For(duration) => write!(f, "{duration:?}"),
        }
    }
}

impl TryFrom<String> for Hang {
    type Error = InvalidHang;

    fn try_from(text: String) -> Result<Self, InvalidHang> {
        text.parse()
    }
}

impl From<Hang> for String {
    fn from(hang: Hang) -> Self {
        match hang {
            Hang::Forever => "forever".to_owned(),
            Hang::For(duration) => format!("{}ns", duration.as_nanos()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_other_text_is_rejected() {
        assert_eq!("forever".parse(), Ok(Hang::Forever));
        assert_eq!("2s".parse(), Ok(Hang::For(Duration::from_secs(2))));
        assert_eq!("1m 500ms".parse(), Ok(Hang::For(Duration::from_millis(60_500))));
        for wrong in ["", "2", "-2s", "soon"] {
            let message = wrong.parse::<Hang>().unwrap_err().to_string();
            assert!(message.contains("must be forever"), "{message}");
        }
    }

    #[test]
    fn serialized_durations_are_parsed_back() {
        for hang in [Hang::Forever, Hang::For(Duration::from_millis(1_500))] {
            assert_eq!(String::from(hang).parse(), Ok(hang));
        }
    }
}
