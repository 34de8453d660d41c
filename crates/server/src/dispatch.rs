//! From a request to calls of the store and back to an answer: the one place where the wire and the store
//! meet.

mod admin;
mod reads;
mod stats;
mod writes;

use larder_protocol::{Reply, Request};
use larder_store::{Call, KeyHash};

use crate::session::{Ctx, Served, Session};

pub(crate) use writes::{Stored, answer_put, forget, is_too_large, put_of};

/// What can be asked of a request before it is executed.
pub(crate) trait Prefetch {
    /// Hashes the first key and begins to fetch its index bucket, so that a batch's cache misses overlap.
    fn first_key_hash(&self, ctx: &Ctx<'_>) -> KeyHash;
}

impl Prefetch for Request<'_> {
    #[inline]
    fn first_key_hash(&self, ctx: &Ctx<'_>) -> KeyHash {
        let store = &ctx.shared.store;
        let hash = match self {
            Request::Get(get) => match get.keys.single() {
                Some(key) => store.hash(key.bytes()),
                None => return KeyHash::default(),
            },
            Request::Store(request) => store.hash(request.key.bytes()),
            Request::Delete(request) => store.hash(request.key.bytes()),
            Request::Arith(request) => store.hash(request.key.bytes()),
            Request::Touch(request) => store.hash(request.key.bytes()),
            Request::Debug(request) => store.hash(request.key.bytes()),
            _ => return KeyHash::default(),
        };
        store.prefetch(hash);
        hash
    }
}

/// Returns the cas unique that a client is shown: 0 with `-C`.
fn shown_cas(ctx: &Ctx<'_>, cas: u64) -> u64 {
    if ctx.shared.config.cas { cas } else { 0 }
}

/// Returns the cas unique to compare an item's with. With `-C` no item has one, so that none matches.
fn compare_of(ctx: &Ctx<'_>, compare: Option<u64>) -> Option<u64> {
    if ctx.shared.config.cas { compare } else { compare.map(|_| u64::MAX) }
}

fn is_meta(reply: &Reply<'_>) -> bool {
    matches!(reply, Reply::Meta { .. })
}

impl Session {
    /// Executes one request; `hash` is its single key's, if it has one.
    pub(crate) fn execute(&mut self, ctx: &mut Ctx<'_>, request: &Request<'_>, hash: KeyHash) -> Served {
        match request {
            Request::Get(get) => self.get(ctx, get, hash),
            Request::Store(store) => self.put(ctx, store, hash),
            Request::Delete(delete) => self.delete(ctx, delete, hash),
            Request::Arith(arith) => self.arith(ctx, arith, hash),
            Request::Touch(touch) => self.touch(ctx, touch, hash),
            Request::Debug(debug) => self.debug(ctx, debug, hash),
            Request::Flush(flush) => self.flush_all(ctx, flush),
            Request::Noop(reply)
            | Request::Version(reply)
            | Request::Verbosity(_, reply)
            | Request::Quit(reply) => self.small_talk(ctx, request, reply),
            Request::Stats(arguments, reply) => self.stats(ctx, arguments, reply),
            Request::Admin(admin) => self.admin(ctx, admin),
        }
    }

    /// A call of the store for the request at the front of the input.
    fn call<'a>(&'a self, ctx: &Ctx<'_>, key: &'a [u8], hash: KeyHash) -> Call<'a> {
        let loaded = self.loaded.as_ref().map(|read| read.loaded());
        Call { key, hash, now: ctx.now, loaded, on_full: self.on_full(ctx) }
    }
}
