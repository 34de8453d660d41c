//! The wire parser and its encoders, on both framings.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::protocol::fuzz_body::check(data));
