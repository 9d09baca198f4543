//! What can be wrong with a server's certificate.

use std::fmt;
use std::str::FromStr;

/// One thing that is wrong with a certificate that is otherwise valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// `expired`: its time ended yesterday.
    Expired,
    /// `not-yet-valid`: its time begins tomorrow.
    NotYetValid,
    /// `wrong-name`: it is for a name that nobody asks for.
    WrongName,
    /// `common-name-only`: the name stands in the subject's common name, and there are no subject alternative names.
    CommonNameOnly,
    /// `unknown-issuer`: another authority signed it than the one whose certificate the caller is given.
    UnknownIssuer,
    /// `no-server-auth`: it may be used by clients, but not by servers.
    NoServerAuth,
}

impl Defect {
    /// Every defect, in the order in which they are documented.
    pub const ALL: [Self; 6] = [
        Self::Expired,
        Self::NotYetValid,
        Self::WrongName,
        Self::CommonNameOnly,
        Self::UnknownIssuer,
        Self::NoServerAuth,
    ];

    /// The name in files and features, such as `not-yet-valid`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::WrongName => "wrong-name",
            Self::CommonNameOnly => "common-name-only",
            Self::UnknownIssuer => "unknown-issuer",
            Self::NoServerAuth => "no-server-auth",
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no defect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no defect of a certificate: expected expired, not-yet-valid, wrong-name, common-name-only, unknown-issuer or no-server-auth"
)]
pub struct UnknownDefect(String);

impl FromStr for Defect {
    type Err = UnknownDefect;

    fn from_str(text: &str) -> Result<Self, UnknownDefect> {
        Self::ALL
            .into_iter()
            .find(|defect| defect.as_str() == text)
            .ok_or_else(|| UnknownDefect(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_parsed_from_what_it_prints() {
        for defect in Defect::ALL {
            assert_eq!(defect.to_string().parse(), Ok(defect));
        }
    }

    #[test]
    fn an_unknown_defect_is_answered_with_every_known_one() {
        let message = "Expired".parse::<Defect>().unwrap_err().to_string();
        assert!(message.contains("`Expired`"), "{message}");
        for defect in Defect::ALL {
            assert!(message.contains(defect.as_str()), "{message}");
        }
    }
}
