//! The HTTP interface.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::server::web::check(data));
