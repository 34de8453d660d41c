//! The contents of an SSD.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = larder_fuzz::store::ssd::check(data);
});
