//! Of the store: what lies on its SSD and in its memory file.

use crate::harness;

#[path = "../crates/store/tests/fuzz/memory.rs"]
pub mod memory;
#[path = "../crates/store/tests/rig/mod.rs"]
mod rig;
#[path = "../crates/store/tests/fuzz/ssd.rs"]
pub mod ssd;
