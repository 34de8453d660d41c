//! A connection to a server: its address, a socket to it, TLS over that, and errors in words.

pub mod address;
pub mod error;
pub mod socket;
pub mod stream;
pub mod tls;

pub use address::{Address, without_secret};
pub use error::Error;
pub use stream::{Stream, reach};
pub use tls::Tls;
