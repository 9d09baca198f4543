//! Any text as an expression: it is refused or evaluated, without a panic, in bounded time.
//!
//! libFuzzer bounds the memory (`-rss_limit_mb`), and ends what never ends (`-timeout`).

#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/laws/mod.rs"]
mod laws;

/// With the coverage of a fuzzer a step takes several times as long as without.
const LONGEST: Duration = Duration::from_secs(20);

fuzz_target!(|text: &str| {
    let began = Instant::now();
    laws::check(text);
    assert!(began.elapsed() < LONGEST, "it takes {:?}", began.elapsed());
});
