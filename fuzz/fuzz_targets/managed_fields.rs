#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tests::laws::check("managed_fields", input));
