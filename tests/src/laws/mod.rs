//! Defines laws that hold for any input. A fuzzer searches for counterexamples, and tests replay inputs that it found.
//!
//! A law is a function of bytes that panics if the law does not hold. `fuzz/` has a target for each law, which passes
//! its input to the law. `fuzz/corpus/NAME/` contains the inputs that `cargo test` replays, including inputs that once
//! broke the law.

mod answers;
mod certificates;
mod configurations;
mod definitions;
mod documents;
#[path = "../../../cel/tests/laws/mod.rs"]
mod expressions;
mod features;
mod managed_fields;
mod patches;
mod protobuf;
mod queries;
mod requests;
mod review;
mod runtime;
mod stored;
mod verify;
mod webhook;

/// A law. Its fuzz target and its corpus have the same name.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a law is a name and a function")]
pub struct Law {
    /// The name of the law.
    pub name: &'static str,
    /// The check. It panics if the law does not hold for the given bytes.
    pub check: fn(&[u8]),
}

/// All laws, sorted by name.
pub const ALL: [Law; 13] = [
    Law { name: "answers", check: answers::check },
    Law { name: "certificates", check: certificates::check },
    Law { name: "configurations", check: configurations::check },
    Law { name: "definitions", check: definitions::check },
    Law { name: "expressions", check: |input| with_text(input, expressions::check) },
    Law { name: "features", check: features::check },
    Law { name: "managed_fields", check: managed_fields::check },
    Law { name: "patches", check: patches::check },
    Law { name: "protobuf", check: protobuf::check },
    Law { name: "queries", check: queries::check },
    Law { name: "requests", check: requests::check },
    Law { name: "review", check: review::check },
    Law { name: "verify", check: verify::check },
];

/// Checks an input against the law `name`.
///
/// # Panics
/// Panics if the law does not hold, or if there is no law with this name.
pub fn check(name: &str, input: &[u8]) {
    let law = ALL.iter().find(|law| law.name == name).unwrap_or_else(|| panic!("there is no law {name}"));
    (law.check)(input);
}

/// Runs `check` if the input is valid UTF-8.
fn with_text(input: &[u8], check: impl FnOnce(&str)) {
    if let Ok(text) = std::str::from_utf8(input) {
        check(text);
    }
}
