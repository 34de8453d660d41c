//! The records of a client, and what comes between them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::server::stream::check(data));
