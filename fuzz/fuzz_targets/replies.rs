//! What a server may send to a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::client::replies::check(data));
