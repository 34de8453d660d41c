//! The contents of a memory file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = larder_fuzz::store::memory::check(data);
});
