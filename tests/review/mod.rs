//! Tests the output of `admit review` for people and programs by running the binary against fakes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

mod conversions;
mod files;
mod inputs;
mod record;
mod verdicts;
