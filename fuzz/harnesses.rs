//! The harnesses that the tests of the crates share with the fuzz targets: each takes any bytes, and panics where a
//! promise is broken.
#![allow(dead_code, reason = "the harnesses use a part of what the tests share")]

pub mod client;
pub mod harness;
pub mod protocol;
pub mod server;
pub mod store;
