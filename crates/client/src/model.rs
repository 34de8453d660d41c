//! A model checker of the tiered client: its real code in several processes of several hosts, in front of one
//! simulated memcached, in every order of their steps. That memcached announces changes, as Larder does, to threads
//! that listen where a program says so.
//!
//! ```text
//!   bounds, faults           that nothing is wrong, and that what is put wrong on purpose is found
//!     v
//!   explore    runs a program again and again, each time with other choices
//!     |  |
//!     |  +---> path       the choices of one execution, and the next execution's
//!     v
//!   stage      the kernel of the client's threads: one runs at a time, by a simulated clock
//!     v
//!   schedule   what may happen next, what happens, and whether that was right
//!     v
//!   memcached, history       the server, and what it had when
//! ```
//! What can happen, and how far it is explored, is a `Program`'s. An execution is judged by what the pages promise:
//! see `State::judge`.

mod bounds;
mod explore;
mod faults;
mod history;
mod memcached;
mod path;
mod programs;
mod schedule;
mod stage;
