//! The index of `docs/reference/faults.md`: the error messages that `admit explain-error` recognizes.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use fake_webhooks::{Fault, catalog};
use serde::Deserialize;

use super::page::{anchor, cell};

/// The maximum number of faults to link for a cause.
const MAX_FAULTS: usize = 3;
/// The maximum number of messages to show for a cause.
const MAX_MESSAGES: usize = 3;

/// The part of a cause that the index needs.
#[derive(Debug, Deserialize)]
struct Cause {
    id: String,
    pattern: String,
    meaning: String,
    #[serde(default)]
    faults: Vec<String>,
}

/// Returns the section with a row for each cause.
pub(super) fn index() -> String {
    let mut causes: Vec<Cause> =
        serde_saphyr::from_str(include_str!("../../../command/src/explain_error/causes.yaml"))
            .unwrap_or_else(|error| panic!("causes.yaml: {error}"));
    causes.sort_by_key(|cause| cause.id.starts_with("conver"));
    let mut text = "
## Find an error

`admit explain-error` recognizes these messages, and prints what to look for. An ellipsis (…) replaces names and numbers.

| The message contains | Meaning | Faults |
|---|---|---|
"
    .to_owned();
    for cause in &causes {
        let messages = readable(&cause.pattern);
        let messages =
            messages.iter().take(MAX_MESSAGES).map(|message| format!("`{}`", cell(message.trim())));
        let faults = catalog().iter().filter(|fault| cause.faults.contains(&fault.id)).take(MAX_FAULTS);
        let link = |fault: &Fault| format!("[{}](#{})", fault.id, anchor(fault));
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            messages.collect::<Vec<_>>().join(", "),
            cell(&without_names(&cause.meaning)),
            faults.map(link).collect::<Vec<_>>().join(", ")
        );
    }
    text
}

/// Replaces the names in braces with an ellipsis.
fn without_names(meaning: &str) -> String {
    let mut text = String::new();
    for (index, part) in meaning.split('{').enumerate() {
        match part.split_once('}').filter(|_| index > 0) {
            Some((_, rest)) => text = format!("{text}…{rest}"),
            None => text.push_str(part),
        }
    }
    text
}

/// Returns the texts that a pattern matches, one for each alternative. An ellipsis replaces the parts that vary.
fn readable(pattern: &str) -> Vec<String> {
    alternatives(&mut pattern.chars().peekable())
}

/// Reads the alternatives up to the end of a group or of the pattern.
fn alternatives(rest: &mut Peekable<Chars<'_>>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text = String::new();
    while let Some(letter) = rest.next_if(|letter| *letter != ')') {
        let part = match letter {
            '|' => {
                texts.push(std::mem::take(&mut text));
                continue;
            }
            '^' | '$' => continue,
            '.' => "…".to_owned(),
            '\\' => match rest.next() {
                Some('S' | 'w' | 'd') => "…".to_owned(),
                Some('b' | 's') | None => String::new(),
                Some(literal) => literal.to_string(),
            },
            '[' => {
                skip_to(rest, ']');
                "…".to_owned()
            }
            '(' => {
                if rest.next_if_eq(&'?').is_some() {
                    let end = if rest.peek() == Some(&'P') { '>' } else { ':' };
                    skip_to(rest, end);
                }
                let inner = alternatives(rest);
                rest.next();
                inner.into_iter().next().unwrap_or_default()
            }
            literal => literal.to_string(),
        };
        let part = if is_optional(rest) && part != "…" { String::new() } else { part };
        if !(part == "…" && text.ends_with('…')) {
            text.push_str(&part);
        }
    }
    texts.push(text);
    texts
}

fn skip_to(rest: &mut Peekable<Chars<'_>>, end: char) {
    while rest.next().is_some_and(|letter| letter != end) {}
}

/// Reads a quantifier, and returns whether it makes the preceding text optional.
fn is_optional(rest: &mut Peekable<Chars<'_>>) -> bool {
    let quantifier = rest.next_if(|letter| "?*+{".contains(*letter));
    if quantifier == Some('{') {
        skip_to(rest, '}');
    }
    if quantifier.is_some() {
        rest.next_if_eq(&'?');
    }
    matches!(quantifier, Some('?' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_the_texts_that_they_match() {
        for (pattern, expected) in [
            (r"dial tcp \S+: connect: connection refused", &["dial tcp …: connect: connection refused"][..]),
            (r"^is (?:not )?valid for (?P<a>.*?), (?:not|but) (?P<b>\S+)", &["is valid for …, not …"]),
            (r"a\.b|(?P<n>\d+) objects|x[^\x22]*y", &["a.b", "… objects", "x…y"]),
        ] {
            assert_eq!(readable(pattern), expected, "{pattern}");
        }
        assert_eq!(without_names("for {a}, but {b}."), "for …, but ….");
    }

    #[test]
    fn every_cause_has_a_message() {
        let index = index();
        assert!(!index.contains("| `` "), "{index}");
        assert!(index.contains("`no endpoints available for service \"…\"`"), "{index}");
    }
}
