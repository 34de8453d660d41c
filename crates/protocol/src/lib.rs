//! memcached's wire, sans-IO: bytes in, [`Request`]s out; outcomes in, bytes out.
//!
//! One normalised [`Request`] serves the three wires (classic text, meta text, binary), so that
//! executing a request is written once; the [`Reply`] inside each request remembers how to encode the reply on
//! the wire it came from. No sockets, no clock, no store, no allocation on the hot path.
//!
//! ```text
//! bytes -- parse() --> Step::Request(Request { .., reply }) -- executed elsewhere --> reply.hit_head(..) --> bytes
//!              +-----> Step::Body(Store { .., reply }) ------- value streamed ------> reply.outcome(..) --+
//!              +-----> Step::Reject(reject) ----------------------------------------> reject.encode(..) --+
//! ```
//!
//! ```
//! use larder_protocol::{ItemInfo, Request, Step, Wire, parse};
//!
//! let mut out = Vec::new();
//! if let Step::Request { request: Request::Get(get), len } = parse(Wire::Text, b"get larder\r\nget") {
//!     assert_eq!(len, 12);
//!     for key in get.keys.clone() {
//!         let item = ItemInfo { value_len: 3, ..ItemInfo::default() };
//!         get.reply.hit_head(&mut out, key.bytes(), &item, get.value);
//!         out.extend_from_slice(b"ham");
//!         get.reply.hit_tail(&mut out, get.value);
//!     }
//!     get.reply.end(&mut out);
//! }
//! assert_eq!(out, b"VALUE larder 0 3\r\nham\r\nEND\r\n");
//! ```
//!
//! What is accepted and every string that is said is memcached's, version [`VERSION`], but for one command of Larder's
//! own, `ml` ([`Check`]). Where a behaviour of
//! that version looks like an accident the comment at the place says what is done here and why.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that unwraps nothing should fail"))]

mod base64;
mod encode;
mod limits;
mod login;
mod opcode;
mod parse;
mod reject;
mod reply;
mod request;
mod status;
pub mod text;
mod token;

pub use encode::{
    ClusterNode, Departure, WatchEvent, WatchedItem, all_changed_line, cachedump_line, changed_line,
    cluster_reply, metadump_line, mgdump_line, skipped_line, subscription_line, uri_encode, watch_line,
};
pub use larder_rate as rate;
pub use limits::{KEY_BYTES_MAX, Limits};
pub use login::{Login, LoginReply, Verdict, Wish};
pub use parse::{BINARY_HEADER_BYTES, Step, Wire, body_tail_is_valid, detect, parse, parse_unauthenticated};
pub use reject::Reject;
pub use reply::{ItemInfo, Outcome, OwnedReply, Reply, Verb};
pub use request::{
    Admin, Arith, Automove, Check, Clock, Crawler, Debug, Delete, Exptime, Flush, Get, Key, Keys, Lease, Lru,
    Request, ShutdownMode, Slabs, Store, StoreMode, Touch, WatchClasses,
};
pub use text::VERSION;
