//! Counters: how fast stores increment one number for several clients at once, and whether they do it right.
//!
//! ```text
//!   entry (name=address) -> store::Kind::open -> Store --connect--> Worker, one a thread
//!                                                  |                   | increment, timed
//!   shootout: threads x stores x repeats  ------ measure -------> history::History -> verdict
//!                                                                                      |
//!                                                result::Counter, table <--------------+
//! ```

mod ceilings;
pub mod entry;
pub mod history;
pub mod measure;
pub mod seed;
pub mod self_check;
pub mod shootout;
pub mod store;
pub mod table;
