//! The module `larder._larder`: the Rust client for Python. The package `larder` around it adds what is better said in
//! Python: exceptions, serializers, asyncio and the adapters of frameworks.
//!
//! Whatever may wait is done without Python's lock (the GIL). A read that shared memory answers keeps it: to let it go
//! and take it back costs more than the read.

#![forbid(unsafe_code)]

mod arguments;
mod client;
mod codec;
mod errors;
mod l1;
mod limiter;
mod tiered;
mod tls;

use pyo3::prelude::*;

/// The Rust client for Python.
#[pymodule]
mod _larder {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::l1::L1;
    #[pymodule_export]
    use crate::limiter::{Decision, Limiter};
    #[pymodule_export]
    use crate::tiered::Tiered;
    #[pymodule_export]
    use crate::tls::Tls;
}
