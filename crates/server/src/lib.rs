//! The daemon `larder` as a library, for `main.rs` and the tests.
//!
//! In reading order: [`config`] (options to values), [`daemon`] (start and stop), [`startup`] (everything that
//! runs once), [`worker`] (one event loop), [`session`] (one connection, sans-IO: the wire and the store meet
//! there), [`shared`] and [`counters`] (the state of all workers), [`auth`] (users and what they may do),
//! [`budget`] (the bound on the memory of all workers), [`log`] (lines on standard error). Imports point to the
//! right only:
//!
//! ```text
//!   daemon --> startup ------------+--> shared --> auth, clock, counters, prefixes, config --> budget
//!          \-> worker --> session --+
//! ```

pub mod auth;
pub mod budget;
pub mod clock;
pub mod config;
pub mod counters;
pub mod daemon;
pub mod listener;
pub mod log;
pub mod prefixes;
pub mod process;
pub mod session;
pub mod shared;
pub mod startup;
pub mod worker;
