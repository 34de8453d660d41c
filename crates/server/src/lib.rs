//! The daemon `larder` as a library: what `main.rs` starts and the tests reach.

pub mod config;
