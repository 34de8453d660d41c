//! Meta commands of all kinds, on both tiers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::server::meta::check(data));
