//! Generates, parses, and compares the token of the admin endpoint.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

/// The token that authenticates requests to the admin endpoint.
#[derive(Clone)]
pub struct Token(String);

/// The error for a token that is too short or contains characters other than printable ASCII.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid token: must be at least {MIN_LENGTH} printable ASCII characters without spaces")]
pub struct InvalidToken;

/// The minimum length of a token.
const MIN_LENGTH: usize = 16;

impl Token {
    /// Creates a token of 256 random bits, or returns `None` if the system does not provide random numbers.
    pub fn random() -> Option<Self> {
        let mut bytes = [0; 32];
        rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).ok()?;
        Some(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the token as a string; callers must keep it secret.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether `shown` is the token, compared in constant time.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl FromStr for Token {
    type Err = InvalidToken;

    /// Parses a token and trims white space, because files end with a newline.
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        if text.len() < MIN_LENGTH || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidToken);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Formats the token without its secret value.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_token_matches() {
        let token: Token = "0123456789abcdef\n".parse().unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"] {
            assert!(!token.is(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn short_or_unprintable_tokens_are_rejected() {
        for wrong in ["", "short", "0123456789 abcdef", "0123456789abcdefä"] {
            assert_eq!(wrong.parse::<Token>().unwrap_err(), InvalidToken, "{wrong}");
        }
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.as_str(), other.as_str());
        assert!(one.as_str().parse::<Token>().is_ok());
    }
}
