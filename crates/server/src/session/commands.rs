//! Maps each request to calls of the store, and the result to a reply.

mod admin;
mod keys;
mod limits;
mod reads;
mod stats;
mod writes;

use larder_protocol::{Exptime, Reply, Request};
use larder_store::{Call, Expiry, KeyHash, Seconds};

use super::{Ctx, Served, Session};
use crate::clock::Clock;

pub use stats::{Lines, all_figures, mrc_figures, prefix_figures, settings, statistics};

pub(super) use keys::KeyListing;
pub(super) use stats::ConnectionListing;
pub(super) use writes::{STORES, Stored, answer_put, forget, is_too_large, put_of, show_put, show_stored};

/// Work for a request that can be done before it is executed.
pub(super) trait Prefetch {
    /// Hashes the single key and prefetches its index bucket, so that a batch's cache misses overlap.
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
            Request::Check(request) => store.hash(request.key.bytes()),
            Request::Touch(request) => store.hash(request.key.bytes()),
            Request::Debug(request) => store.hash(request.key.bytes()),
            _ => return KeyHash::default(),
        };
        store.prefetch(hash);
        hash
    }
}

/// Exptimes up to this many seconds (30 days) are relative, larger ones are absolute Unix time (memcached's
/// rule).
const RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;

/// Returns the expiry that an exptime sent now means.
fn expiry_of(clock: &Clock, exptime: Exptime, now: Seconds) -> Expiry {
    match exptime.0 {
        0 => Expiry::Never,
        ..0 => Expiry::At(Seconds(1)),
        1..=RELATIVE_MAX => Expiry::At(Seconds(now.0.saturating_add(exptime.0 as u32))),
        absolute => Expiry::At(Seconds((absolute - clock.unix_base()).clamp(1, i64::from(u32::MAX)) as u32)),
    }
}

impl Ctx<'_> {
    /// Returns the expiry that an exptime sent now means.
    fn expiry(&self, exptime: Exptime) -> Expiry {
        expiry_of(&self.shared.clock, exptime, self.now)
    }
}

/// Returns the cas unique that a client is shown: 0 with `-C`.
fn shown_cas(ctx: &Ctx<'_>, cas: u64) -> u64 {
    if ctx.shared.config.cas { cas } else { 0 }
}

/// Returns the cas unique to compare an item's with. With `-C` no item has one, so none matches.
fn compare_of(ctx: &Ctx<'_>, compare: Option<u64>) -> Option<u64> {
    if ctx.shared.config.cas { compare } else { compare.map(|_| u64::MAX) }
}

fn is_meta(reply: &Reply<'_>) -> bool {
    matches!(reply, Reply::Meta { .. })
}

impl Session {
    /// Executes one request. `hash` is that of its single key, if it has one.
    pub(super) fn execute(&mut self, ctx: &mut Ctx<'_>, request: &Request<'_>, hash: KeyHash) -> Served {
        match request {
            Request::Get(get) => self.get(ctx, get, hash),
            Request::Store(store) => self.put(ctx, store, hash),
            Request::Delete(delete) => self.delete(ctx, delete, hash),
            Request::Arith(arith) => self.arith(ctx, arith, hash),
            Request::Check(check) => self.check(ctx, check, hash),
            Request::Touch(touch) => self.touch(ctx, touch, hash),
            Request::Debug(debug) => self.debug(ctx, debug, hash),
            Request::Flush(flush) => self.flush_all(ctx, flush),
            Request::Noop(reply)
            | Request::Version(reply)
            | Request::Verbosity(_, reply)
            | Request::Quit(reply) => self.small_talk(ctx, request, reply),
            Request::Subscribe(reply) => self.subscribe(ctx, reply),
            Request::Stats(arguments, reply) => self.stats(ctx, arguments, reply),
            Request::Admin(admin) => self.admin(ctx, admin),
        }
    }

    /// Returns a call of the store for the request at the front of the input.
    fn call<'a>(&'a self, ctx: &Ctx<'_>, key: &'a [u8], hash: KeyHash) -> Call<'a> {
        let loaded = self.loaded.as_ref().map(|read| read.loaded());
        Call { key, hash, now: ctx.now, loaded, on_full: self.on_full(ctx) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exptimes_mean_what_they_mean_to_memcached() {
        let clock = Clock::new();
        let now = clock.now();
        let unix = clock.unix(now) as i64;
        let expiry = |exptime| expiry_of(&clock, Exptime(exptime), now);
        assert_eq!(expiry(0), Expiry::Never);
        assert!(expiry(-1).has_passed(now));
        assert_eq!(expiry(60).seconds_left(now), Some(60));
        assert_eq!(expiry(RELATIVE_MAX).seconds_left(now), Some(2_592_000));
        assert!(expiry(RELATIVE_MAX + 1).has_passed(now), "an absolute time in 1970");
        assert_eq!(expiry(unix + 100).seconds_left(now), Some(100));
        let far = expiry(i64::from(u32::MAX)).seconds_left(now).map(i64::from);
        assert_eq!(far, Some(i64::from(u32::MAX) - unix), "the binary wire's latest second, in 2106");
    }
}
