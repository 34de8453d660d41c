//! memcached's wire, sans-IO: bytes in, [`Request`]s out; outcomes in, bytes out.
//!
//! One normalised [`Request`] serves the three wires (classic text, meta text, binary), so that whoever executes
//! requests does it once; the [`Reply`] inside each request remembers how to say the answer on the wire it came from.
//! No sockets, no clock, no store, no allocation on the hot path.
#![forbid(unsafe_code)]
