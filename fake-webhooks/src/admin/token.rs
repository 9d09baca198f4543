//! What somebody shows who may steer.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

/// What somebody shows who may steer.
#[derive(Clone)]
pub struct Token(String);

/// A text that is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token has at least {SHORTEST} letters, digits or other visible ASCII characters, and nothing else"
)]
pub struct InvalidToken;

/// What is shorter can be guessed.
const SHORTEST: usize = 16;

impl Token {
    /// 256 random bits. None if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let mut bytes = [0; 32];
        rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).ok()?;
        Some(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text, for those who may have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a request shows it. How long that takes does not tell how much of it is right.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl FromStr for Token {
    type Err = InvalidToken;

    /// White space around it is no part of it: files end with a line feed.
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidToken);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Without the text, so that it cannot end up in a log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_was_shown_and_nothing_near_it() {
        let token: Token = "0123456789abcdef\n".parse().unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"] {
            assert!(!token.is(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn what_can_be_guessed_or_not_be_sent_is_no_token() {
        for wrong in ["", "short", "0123456789 abcdef", "0123456789abcdefä"] {
            assert_eq!(wrong.parse::<Token>().unwrap_err(), InvalidToken, "{wrong}");
        }
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.as_str(), other.as_str());
        assert!(one.as_str().parse::<Token>().is_ok());
    }
}
