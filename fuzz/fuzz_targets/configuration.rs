//! Command lines, environments and files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = larder_fuzz::server::configuration::check(data);
});
