//! Writes: stores, deletes, counters, flushes.

use larder_protocol::{Arith, Delete, Flush, ItemInfo, Outcome, Reply, Store as StoreRequest, StoreMode};
use larder_store::{
    ArithResult, Call, Expiry, KeyHash, OnFull, Payload, Put, PutMode, PutResult, RECORD_HEADER_BYTES,
    Remove, RemoveResult, Step,
};

use super::{compare_of, is_meta, shown_cas};
use crate::prefixes::Event;
use crate::session::{Ctx, Served, Session};

/// The result of storing an item, with the facts that its reply may tell.
pub(in crate::session) struct Stored {
    pub result: PutResult,
    pub is_cas: bool,
    pub value_len: u32,
}

/// The bytes that memcached adds to key and value before it compares with `-I`: its item header, a cas unique, a
/// NUL, CR LF.
const MEMCACHED_OVERHEAD_BYTES: usize = 48 + 8 + 1 + 2;

/// Returns whether an item is larger than `-I` allows.
pub(in crate::session) fn is_too_large(ctx: &Ctx<'_>, key_len: usize, value_len: usize) -> bool {
    (key_len + value_len + MEMCACHED_OVERHEAD_BYTES) as u64 > ctx.shared.config.item_size_max_bytes
}

/// Returns the store's request for a set and its kind.
pub(in crate::session) fn put_of(ctx: &Ctx<'_>, request: &StoreRequest<'_>) -> Put {
    Put {
        mode: match request.mode {
            StoreMode::Set => PutMode::Set,
            StoreMode::Add => PutMode::Add,
            StoreMode::Replace => PutMode::Replace,
            StoreMode::Append => PutMode::Append,
            StoreMode::Prepend => PutMode::Prepend,
        },
        client_flags: request.flags,
        expiry: ctx.expiry(request.exptime),
        // As in memcached, the binary wire's stores go without a compare where the text wire's cannot succeed.
        compare: match request.reply {
            Reply::Binary { .. } if !ctx.shared.config.cas => None,
            _ => compare_of(ctx, request.compare),
        },
        new_cas: request.new_cas,
        invalidate: request.invalidate,
        vivify: request.vivify.map(|exptime| ctx.expiry(exptime)),
        key_is_binary: request.key.is_base64(),
        item_bytes_max: (ctx.shared.config.item_size_max_bytes as usize)
            .saturating_sub(MEMCACHED_OVERHEAD_BYTES - RECORD_HEADER_BYTES),
    }
}

/// Removes the item of a set that failed: its old value must not be read any more.
pub(in crate::session) fn forget(ctx: &Ctx<'_>, key: &[u8], hash: KeyHash) {
    ctx.shared.store.forget(&Call { key, hash, now: ctx.now, loaded: None, on_full: OnFull::Drop });
}

/// Encodes the reply to a set and its kind, and counts it.
pub(in crate::session) fn answer_put(
    ctx: &Ctx<'_>,
    out: &mut Vec<u8>,
    reply: &Reply<'_>,
    key: &[u8],
    stored: Stored,
) {
    let counters = ctx.counters;
    counters.cmd_set.up();
    if is_meta(reply) {
        counters.cmd_meta.up();
    } else {
        ctx.shared.prefixes.count(key, Event::Set);
    }
    let mut item = ItemInfo { value_len: stored.value_len, ..ItemInfo::default() };
    let outcome = match stored.result {
        PutResult::Stored(cas) => {
            counters.total_items.up();
            if stored.is_cas {
                counters.cas_hits.up();
            }
            item.cas = shown_cas(ctx, cas);
            Outcome::Stored
        }
        PutResult::NotStored => Outcome::NotStored,
        PutResult::Exists => {
            counters.cas_badval.up();
            Outcome::Exists
        }
        PutResult::NotFound => {
            if stored.is_cas {
                counters.cas_misses.up();
            }
            Outcome::NotFound
        }
        PutResult::TooLarge => {
            counters.store_too_large.up();
            Outcome::TooLarge
        }
    };
    reply.outcome(out, key, outcome, &item);
}

impl Session {
    /// Refuses a value that is too large.
    pub(in crate::session) fn refuse_too_large(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &StoreRequest<'_>,
        hash: KeyHash,
    ) {
        ctx.counters.store_too_large.up();
        let key = request.key.bytes();
        if !is_meta(&request.reply) {
            ctx.shared.prefixes.count(key, Event::Set);
        }
        if request.mode == StoreMode::Set && request.compare.is_none() {
            forget(ctx, key, hash);
        }
        request.reply.outcome(self.out.tail(), key, Outcome::TooLarge, &ItemInfo::default());
    }

    pub(super) fn put(&mut self, ctx: &mut Ctx<'_>, request: &StoreRequest<'_>, hash: KeyHash) -> Served {
        let key = request.key.bytes();
        if is_too_large(ctx, key.len(), request.value.len()) {
            self.refuse_too_large(ctx, request, hash);
            return Served::Done;
        }
        let put = put_of(ctx, request);
        let mut payload = Payload::Bytes(request.value);
        let step = ctx.shared.store.put(&self.call(ctx, key, hash), &put, &mut payload);
        self.release_read(&step);
        match step {
            Step::Done(result) => {
                let stored =
                    Stored { result, is_cas: request.compare.is_some(), value_len: payload.len() as u32 };
                answer_put(ctx, self.out.tail(), &request.reply, key, stored);
                Served::Done
            }
            Step::Read(plan) => self.wait_for_read(ctx, plan),
            Step::Again => self.try_again(),
            Step::Busy => self.wait_for_room(ctx),
            Step::NoMemory => {
                if request.mode == StoreMode::Set && request.compare.is_none() {
                    forget(ctx, key, hash);
                }
                self.no_memory(ctx, &request.reply, key)
            }
        }
    }

    fn no_memory(&mut self, ctx: &Ctx<'_>, reply: &Reply<'_>, key: &[u8]) -> Served {
        ctx.counters.store_no_memory.up();
        reply.outcome(self.out.tail(), key, Outcome::OutOfMemory, &ItemInfo::default());
        Served::Done
    }

    pub(super) fn delete(&mut self, ctx: &mut Ctx<'_>, request: &Delete<'_>, hash: KeyHash) -> Served {
        let key = request.key.bytes();
        let remove = Remove {
            compare: compare_of(ctx, request.compare),
            invalidate: request.invalidate,
            empty: request.empty_value,
            touch: request.touch.map(|exptime| ctx.expiry(exptime)),
            new_cas: request.new_cas,
        };
        let step = ctx.shared.store.remove(&self.call(ctx, key, hash), &remove);
        self.release_read(&step);
        let outcome = match step {
            Step::Done(RemoveResult::Removed | RemoveResult::Kept(_)) => {
                ctx.counters.delete_hits.up();
                Outcome::Deleted
            }
            Step::Done(RemoveResult::NotFound) => {
                ctx.counters.delete_misses.up();
                Outcome::NotFound
            }
            Step::Done(RemoveResult::Exists) => Outcome::Exists,
            Step::Read(plan) => return self.wait_for_read(ctx, plan),
            Step::Again => return self.try_again(),
            Step::Busy => return self.wait_for_room(ctx),
            Step::NoMemory => return self.no_memory(ctx, &request.reply, key),
        };
        if is_meta(&request.reply) {
            ctx.counters.cmd_meta.up();
        } else {
            ctx.shared.prefixes.count(key, Event::Delete);
        }
        request.reply.outcome(self.out.tail(), key, outcome, &ItemInfo::default());
        Served::Done
    }

    pub(super) fn arith(&mut self, ctx: &mut Ctx<'_>, request: &Arith<'_>, hash: KeyHash) -> Served {
        let key = request.key.bytes();
        let arith = larder_store::Arith {
            delta: request.delta,
            decrement: request.decrement,
            initial: request.initial.map(|(value, exptime)| (value, ctx.expiry(exptime))),
            compare: compare_of(ctx, request.compare),
            new_cas: request.new_cas,
            touch: request.touch.map(|exptime| ctx.expiry(exptime)),
            key_is_binary: request.key.is_base64(),
        };
        let step = ctx.shared.store.arith(&self.call(ctx, key, hash), &arith);
        self.release_read(&step);
        let counters = ctx.counters;
        let (hits, misses) = match request.decrement {
            true => (&counters.decr_hits, &counters.decr_misses),
            false => (&counters.incr_hits, &counters.incr_misses),
        };
        let mut item = ItemInfo::default();
        let mut reply = request.reply.clone();
        let outcome = match step {
            Step::Done(ArithResult::Value { value, cas, expiry, created }) => {
                hits.up();
                item.cas = shown_cas(ctx, cas);
                item.ttl_after_s = Expiry::seconds_left(expiry, ctx.now);
                item.ttl_before_s = item.ttl_after_s.filter(|_| !created);
                // memcached's q hides that a counter was changed, not that it was created.
                if let (Reply::Meta { quiet, .. }, true) = (&mut reply, created) {
                    *quiet = false;
                }
                Outcome::Number { value }
            }
            Step::Done(ArithResult::NotFound) => {
                misses.up();
                Outcome::NotFound
            }
            Step::Done(ArithResult::Exists) => Outcome::Exists,
            Step::Done(ArithResult::NonNumeric) => Outcome::NonNumeric,
            Step::Read(plan) => return self.wait_for_read(ctx, plan),
            Step::Again => return self.try_again(),
            Step::Busy => return self.wait_for_room(ctx),
            Step::NoMemory => return self.no_memory(ctx, &request.reply, key),
        };
        if is_meta(&request.reply) {
            counters.cmd_meta.up();
        }
        reply.outcome(self.out.tail(), key, outcome, &item);
        Served::Done
    }

    pub(super) fn flush_all(&mut self, ctx: &mut Ctx<'_>, flush: &Flush<'_>) -> Served {
        let outcome = if ctx.shared.config.flush_all {
            ctx.counters.cmd_flush.up();
            let at = match ctx.expiry(flush.delay) {
                Expiry::Never => None,
                Expiry::At(at) => Some(at),
            };
            ctx.shared.store.flush(at, ctx.now);
            Outcome::Ok
        } else {
            Outcome::FlushNotAllowed
        };
        flush.reply.outcome(self.out.tail(), b"", outcome, &ItemInfo::default());
        Served::Done
    }
}
