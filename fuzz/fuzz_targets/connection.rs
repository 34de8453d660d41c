//! Whole connections with pipelines, over a simulated store.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::server::connection::check(data));
