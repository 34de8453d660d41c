//! The daemon `larder` as a library: what `main.rs` starts and the tests reach.
//!
//! In reading order: [`config`] (options to values), [`daemon`] (start and stop), [`worker`] (one event
//! loop), [`session`] (one connection, sans-IO), `dispatch` (requests to store calls and back), [`shared`]
//! and [`counters`] (what all workers see), [`log`] (lines on standard error).

pub mod budget;
pub mod clock;
pub mod config;
pub mod counters;
pub mod daemon;
pub mod log;
pub mod prefixes;
pub mod process;
pub mod session;
pub mod shared;
pub mod startup;
pub mod worker;
