//! A client for memcached servers, and for Larder in particular, with a cache in shared memory in front of them
//! that all processes of a host share.

mod key;
pub mod routing;
pub mod wire;

pub use key::{BadKey, KEY_BYTES_MAX, Key};
