//! The file of a client's shared cache.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::client::cache::check(data));
