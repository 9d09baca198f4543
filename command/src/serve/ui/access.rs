//! Decides which HTTP requests may use the page.
//!
//! Every request must be addressed to this listener by its loopback name, so that a website whose name resolves to
//! loopback cannot use it (DNS rebinding), and must not come from another website. Requests for data need a token that
//! only the page has.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};

use crate::Failure;
use crate::serve::kubeconfig::random_token;

/// The maximum number of browser tabs with a session. A new session ends the oldest one.
const MAX_SESSIONS: usize = 16;

/// The header in which a browser states which website a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

type Digest = [u8; 32];

/// The tokens that are valid, as digests.
#[derive(Debug)]
pub(super) struct Access {
    port: u16,
    tokens: Mutex<Tokens>,
}

#[derive(Debug)]
struct Tokens {
    /// The token of the link that has not been used yet.
    link: Digest,
    sessions: VecDeque<Digest>,
}

impl Access {
    /// Creates the access to the listener on `port`, and the first link.
    ///
    /// # Errors
    /// Returns an error if the system does not provide random numbers.
    pub(super) fn new(port: u16) -> Result<(Self, String), Failure> {
        let token = random_token()?;
        let tokens = Mutex::new(Tokens { link: digest(&token), sessions: VecDeque::new() });
        let access = Self { port, tokens };
        let link = access.link(&token);
        Ok((access, link))
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a link with its token in the fragment, which browsers do not send.
    fn link(&self, token: &str) -> String {
        format!("http://127.0.0.1:{}/#token={token}", self.port)
    }

    /// Returns whether the request is addressed to this listener and does not come from another website.
    pub(super) fn is_from_page(&self, headers: &HeaderMap) -> bool {
        let Ok(Some(host)) = single(headers, &HOST) else { return false };
        let is_own = ["127.0.0.1", "localhost"].iter().any(|name| *host == format!("{name}:{}", self.port));
        let Ok(origin) = single(headers, &ORIGIN) else { return false };
        let is_own_origin = origin.is_none_or(|origin| origin == format!("http://{host}"));
        is_own && is_own_origin
    }

    /// Returns whether a browser states that another website caused the request.
    ///
    /// A link on another website may open the page, but nothing else.
    pub(super) fn is_cross_site(headers: &HeaderMap) -> bool {
        !matches!(single(headers, &FETCH_SITE), Ok(None | Some("same-origin")))
    }

    /// Exchanges the token of a link for the token of a session and the next link; `None` if the token is not valid.
    ///
    /// # Errors
    /// Returns an error if the system does not provide random numbers.
    pub(super) fn exchange(&self, headers: &HeaderMap) -> Result<Option<(String, String)>, Failure> {
        let (session, next) = (random_token()?, random_token()?);
        let mut tokens = self.tokens();
        if !bearer(headers).is_some_and(|token| is_equal(&digest(token), &tokens.link)) {
            return Ok(None);
        }
        tokens.link = digest(&next);
        tokens.sessions.push_back(digest(&session));
        if tokens.sessions.len() > MAX_SESSIONS {
            tokens.sessions.pop_front();
        }
        Ok(Some((session, self.link(&next))))
    }

    /// Returns whether the request has the token of a session.
    pub(super) fn has_session(&self, headers: &HeaderMap) -> bool {
        let Some(given) = bearer(headers).map(digest) else { return false };
        // Compares with each session, so that the duration does not depend on which one is equal.
        self.tokens().sessions.iter().fold(false, |found, session| found | is_equal(&given, session))
    }
}

/// A header that occurs several times, or is not text.
#[derive(Debug, PartialEq, Eq)]
struct InvalidHeader;

/// Returns the value of a header that may occur once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, InvalidHeader> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_not_text| InvalidHeader),
        (Some(_), Some(_)) => Err(InvalidHeader),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    single(headers, &AUTHORIZATION).ok()??.strip_prefix("Bearer ")
}

fn digest(token: &str) -> Digest {
    Sha256::digest(token).into()
}

/// Compares two digests in constant time.
fn is_equal(one: &Digest, other: &Digest) -> bool {
    one.iter().zip(other).fold(0, |found, (one, other)| black_box(found | (one ^ other))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn with_token(token: &str) -> HeaderMap {
        headers(&[("authorization", &format!("Bearer {token}"))])
    }

    fn token(link: &str) -> &str {
        link.split_once("http://127.0.0.1:8080/#token=").unwrap().1
    }

    #[test]
    fn a_link_works_once_and_is_replaced() {
        let (access, link) = Access::new(8080).unwrap();
        assert!(!access.has_session(&with_token(token(&link))), "a link is not a session");
        assert_eq!(access.exchange(&with_token("guess")).unwrap(), None);
        assert_eq!(access.exchange(&HeaderMap::new()).unwrap(), None);
        let (session, next) = access.exchange(&with_token(token(&link))).unwrap().unwrap();
        assert!(access.has_session(&with_token(&session)));
        assert_eq!(access.exchange(&with_token(token(&link))).unwrap(), None);
        assert_eq!(access.exchange(&with_token(&session)).unwrap(), None);
        let (other, _) = access.exchange(&with_token(token(&next))).unwrap().unwrap();
        assert!(access.has_session(&with_token(&other)) && access.has_session(&with_token(&session)));
        assert!(!access.has_session(&with_token("")) && !access.has_session(&HeaderMap::new()));
    }

    #[test]
    fn the_oldest_of_many_sessions_ends() {
        let (access, mut link) = Access::new(8080).unwrap();
        let mut sessions = Vec::new();
        for _ in 0..=MAX_SESSIONS {
            let (session, next) = access.exchange(&with_token(token(&link))).unwrap().unwrap();
            sessions.push(session);
            link = next;
        }
        let valid = sessions.iter().filter(|session| access.has_session(&with_token(session))).count();
        assert_eq!(valid, MAX_SESSIONS);
        assert!(!access.has_session(&with_token(sessions.first().unwrap())));
    }

    #[test]
    fn only_requests_to_the_own_address_and_from_the_own_page_are_accepted() {
        let (access, _) = Access::new(8080).unwrap();
        let check = |pairs: &[(&str, &str)], expected: bool| {
            assert_eq!(access.is_from_page(&headers(pairs)), expected, "{pairs:?}");
        };
        check(&[("host", "127.0.0.1:8080")], true);
        check(&[("host", "localhost:8080"), ("origin", "http://localhost:8080")], true);
        check(&[], false);
        for host in
            ["127.0.0.1", "127.0.0.1:80", "rebound.example.com:8080", "127.0.0.1.nip.io:8080", "[::1]:8080"]
        {
            check(&[("host", host)], false);
        }
        check(&[("host", "127.0.0.1:8080"), ("host", "evil.example.com:8080")], false);
        for origin in [
            "null",
            "http://localhost:8080",
            "http://127.0.0.1:8081",
            "https://127.0.0.1:8080",
            "http://evil.example.com",
        ] {
            check(&[("host", "127.0.0.1:8080"), ("origin", origin)], false);
        }
    }

    #[test]
    fn requests_that_another_site_caused_are_recognized() {
        assert!(!Access::is_cross_site(&headers(&[])));
        assert!(!Access::is_cross_site(&headers(&[("sec-fetch-site", "same-origin")])));
        for site in ["cross-site", "same-site", "none"] {
            assert!(Access::is_cross_site(&headers(&[("sec-fetch-site", site)])), "{site}");
        }
    }
}
