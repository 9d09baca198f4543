//! Tests the human-readable and the machine-readable output of `admit review` by running the binary against fakes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

mod cluster;
mod conversions;
mod files;
mod inputs;
mod policies;
mod record;
mod verdicts;
