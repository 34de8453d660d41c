//! The wire parser and its encoders, on both framings. The properties are those of the crate's own fuzz test.
#![no_main]

#[path = "../../crates/protocol/tests/support/fuzz_body.rs"]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_body::check(data));
