//! The daemon `larder` as a library, for `main.rs` and the tests.
//!
//! In reading order: [`config`] (options to values), [`daemon`] (start and stop), [`startup`] (everything that
//! runs once), [`worker`] (one event loop), [`session`] (one connection, sans-IO: the wire and the store meet
//! there), [`shared`], [`counters`] and [`latency`] (the state of all workers, their counts and their times),
//! [`auth`] (users and what they may do), [`tls`] (certificates, and the records of connections), [`leases`] (which
//! changes are announced to whom), [`watchers`] (which events are shown to whom), [`mail`] (the connections that a
//! worker has news for), [`roster`] (the list of connections), [`budget`] (the bound on the memory of all workers),
//! [`http`] and [`metrics`] (what operators read), [`wear`] (what was written to the SSD over its life), [`shadows`]
//! and [`curves`] (what caches of other sizes would miss), [`service`] and [`supervision`] (the service manager, and
//! what it is told), [`log`] (lines on standard error), [`plan`] (what a cache would take, without one).
//! Imports point to the right only:
//!
//! ```text
//!   daemon --> startup --> http --> metrics --> session --> shared --> auth, tls, clock, prefixes, roster
//!          |-> worker ----------------------/            /        |--> config --> budget
//!          |-> wear, shadows -------------------------/         |--> leases, watchers --> mail
//!          \-> supervision --> service --> process               \--> curves, latency --> histogram --> counters
//! ```

pub mod auth;
pub mod budget;
pub mod checks;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod counters;
pub mod curves;
pub mod daemon;
pub mod histogram;
pub mod http;
pub mod json;
pub mod latency;
pub mod leases;
pub mod listener;
pub mod log;
pub mod mail;
pub mod metrics;
pub mod plan;
pub mod prefixes;
pub mod process;
pub mod roster;
pub mod service;
pub mod session;
pub mod shadows;
pub mod shared;
pub mod small_file;
pub mod startup;
pub mod supervision;
pub mod tls;
pub mod watchers;
pub mod wear;
pub mod worker;
pub mod write_rate;
