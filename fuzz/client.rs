//! Of the client: its shared cache in a file, and what servers send.

use crate::harness;

#[path = "../crates/client/tests/fuzz/cache.rs"]
pub mod cache;
#[path = "../crates/client/tests/fuzz/replies.rs"]
pub mod replies;
#[path = "../crates/client/tests/l1/rig.rs"]
mod rig;
