//! Defines the custom parameters of step expressions.

use std::fmt;
use std::str::FromStr;

use cucumber::Parameter;

/// The admission plugin that calls a webhook.
#[derive(Clone, Copy, Debug, Parameter, PartialEq, Eq)]
#[param(name = "admission", regex = "mutating|validating")]
pub(crate) enum Admission {
    /// The mutating plugin, which calls webhooks one after another, so that each can change the object.
    Mutating,
    /// The validating plugin, which calls webhooks in parallel after all mutations.
    Validating,
}

/// A number of occurrences, such as `once`, `twice`, or `3 times`.
#[derive(Clone, Copy, Debug, Parameter, PartialEq, Eq)]
#[param(name = "times", regex = r"once|twice|\d+ times")]
pub(crate) struct Times(pub(crate) usize);

/// An ordinal number, counted from 1, such as `first`, `second`, `third`, or `4th`.
#[derive(Clone, Copy, Debug, Parameter, PartialEq, Eq)]
#[param(name = "ordinal", regex = r"first|second|third|\d+th")]
pub(crate) struct Ordinal(pub(crate) usize);

/// The operations of a rule, such as `CREATE`, `CREATE and DELETE`, or `CREATE, UPDATE and DELETE`.
#[derive(Clone, Debug, Parameter, PartialEq, Eq)]
#[param(name = "operations", regex = r"[A-Z]+(?:(?:, | and )[A-Z]+)*")]
pub(crate) struct Operations(pub(crate) Vec<String>);

/// The verbs of a role, such as `get`, `get and list`, or `get, list and watch`.
#[derive(Clone, Debug, Parameter, PartialEq, Eq)]
#[param(name = "verbs", regex = r"[a-z]+(?:(?:, | and )[a-z]+)*")]
pub(crate) struct Verbs(pub(crate) Vec<String>);

/// The values of the parameters in step expressions, by the name of the parameter.
pub(crate) const VALUES: [(&str, &str); 8] = [
    ("string", "quoted text"),
    ("word", "a word"),
    ("int", "a number"),
    ("admission", "`mutating` or `validating`"),
    ("times", "`once`, `twice`, or a number, as in `3 times`"),
    ("ordinal", "`first`, `second`, `third`, or a number, as in `4th`"),
    ("operations", "operations such as `CREATE`, `CREATE and DELETE`, or `CREATE, UPDATE and DELETE`"),
    ("verbs", "verbs such as `get`, `get and list`, or `get, list and watch`"),
];

/// The error for a word that the regular expression of the parameter does not allow.
#[derive(Debug, thiserror::Error)]
#[error("unexpected word `{0}`")]
pub(crate) struct UnknownWord(String);

impl FromStr for Admission {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "mutating" => Ok(Self::Mutating),
            "validating" => Ok(Self::Validating),
            other => Err(UnknownWord(other.to_owned())),
        }
    }
}

impl FromStr for Times {
    type Err = UnknownWord;

    fn from_str(words: &str) -> Result<Self, UnknownWord> {
        let number = match words {
            "once" => Some(1),
            "twice" => Some(2),
            other => other.strip_suffix(" times").and_then(|number| number.parse().ok()),
        };
        number.map(Self).ok_or_else(|| UnknownWord(words.to_owned()))
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0 times"),
            1 => f.write_str("once"),
            2 => f.write_str("twice"),
            number => write!(f, "{number} times"),
        }
    }
}

impl FromStr for Ordinal {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let number = match word {
            "first" => Some(1),
            "second" => Some(2),
            "third" => Some(3),
            other => other.strip_suffix("th").and_then(|number| number.parse().ok()),
        };
        number.filter(|&number| number > 0).map(Self).ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("first"),
            2 => f.write_str("second"),
            3 => f.write_str("third"),
            number => write!(f, "{number}th"),
        }
    }
}

impl FromStr for Operations {
    type Err = UnknownWord;

    fn from_str(words: &str) -> Result<Self, UnknownWord> {
        Ok(Self(words.split(", ").flat_map(|part| part.split(" and ")).map(str::to_owned).collect()))
    }
}

impl FromStr for Verbs {
    type Err = UnknownWord;

    fn from_str(words: &str) -> Result<Self, UnknownWord> {
        Ok(Self(words.split(", ").flat_map(|part| part.split(" and ")).map(str::to_owned).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_from_words_and_numbers() {
        assert_eq!("once".parse::<Times>().unwrap(), Times(1));
        assert_eq!("12 times".parse::<Times>().unwrap(), Times(12));
        "often".parse::<Times>().unwrap_err();
    }

    #[test]
    fn ordinals_start_at_one() {
        assert_eq!("second".parse::<Ordinal>().unwrap(), Ordinal(2));
        assert_eq!("4th".parse::<Ordinal>().unwrap(), Ordinal(4));
        "0th".parse::<Ordinal>().unwrap_err();
    }

    #[test]
    fn operations_parse_from_an_english_list() {
        let operations = "CREATE, UPDATE and DELETE".parse::<Operations>().unwrap();
        assert_eq!(operations.0, ["CREATE", "UPDATE", "DELETE"]);
    }
}
