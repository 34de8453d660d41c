//! One run on several hosts: each makes its share of the load at the same time, and the results are put
//! together.
//!
//! ```text
//!   coordinator                               agent, one a host (over ssh, or any command that leads there)
//!     shell, script, perhaps the program  -->
//!                                         <-- hello: version, cores
//!     prepare: arguments of `run`, share  -->   connects, stores its share of the keys
//!                                         <-- ready
//!     16 pings                           <-->   how far its clock is off
//!     start at T, on the agent's clock    -->   load
//!                                         <-- a message a second
//!                                         <-- done: the whole result
//!     16 pings                           <-->   how far its clock is off now
//! ```
//!
//! An agent needs no open port and no daemon. It ends when its input does.

pub mod agent;
pub mod merge;
pub mod message;
pub mod offset;
mod peers;
pub mod proof;
mod session;
pub mod share;
pub mod table;

pub use session::{Found, examine, execute};

use crate::engine::Plan;
use crate::transport::{Host, Program, Transport};

/// Reads the plan that arguments of `run` describe, and whether the generator's ceiling is to be found.
pub type PlanOf = fn(&[String]) -> Result<(Plan, bool), String>;

/// Hosts, and how to reach them.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The hosts, in the order of their shares.
    pub hosts: Vec<Host>,
    /// The command that leads to a shell on another host.
    pub transport: Transport,
    /// The program that runs there.
    pub program: Program,
}
