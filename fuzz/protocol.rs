//! Of the parser and its encoders.

#[path = "../crates/protocol/tests/support/fuzz_body.rs"]
pub mod fuzz_body;
