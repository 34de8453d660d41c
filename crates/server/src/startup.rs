//! Everything that runs once, before the first connection is served: opens the SSD tier, the store's memory and
//! the sockets, each so that no file of another program or user is touched.

pub mod cluster;
pub mod descriptors;
pub mod greeting;
pub mod host;
pub mod http;
pub mod kept_memory;
pub mod kept_sockets;
pub mod listen;
pub mod memory;
pub mod notice;
pub mod owned_file;
pub mod ssd;
pub mod state;
pub mod tls;
pub mod users;
