//! Writes: stores, deletes, counters, flushes.

use larder_protocol::{
    Arith, Delete, Flush, ItemInfo, Outcome, Reply, Store as StoreRequest, StoreMode, WatchClasses,
};
use larder_store::{
    ArithResult, Call, Expiry, KeyHash, OnFull, Payload, Put, PutMode, PutResult, RECORD_HEADER_BYTES,
    Remove, RemoveResult, Step,
};

use super::{compare_of, is_meta, shown_cas};
use crate::prefixes::Event;
use crate::session::watch::{Hit, WatchedStore};
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
    ctx.shared.note_change(hash);
}

/// The classes of watchers that are shown sets and their kind.
pub(in crate::session) const STORES: WatchClasses = WatchClasses::FETCHERS.and(WatchClasses::MUTATIONS);

/// Shows watchers that a set and its kind came to an end, with memcached's words for it.
#[cold]
pub(in crate::session) fn show_put(
    ctx: &Ctx<'_>,
    key: &[u8],
    put: &Put,
    is_cas: bool,
    status: &'static str,
    value_len: u32,
) {
    if !ctx.is_watched(WatchClasses::MUTATIONS) {
        return;
    }
    let command = match put.mode {
        PutMode::Set if is_cas => "cas",
        PutMode::Set => "set",
        PutMode::Add => "add",
        PutMode::Replace => "replace",
        PutMode::Append => "append",
        PutMode::Prepend => "prepend",
    };
    let ttl_s = put.expiry.seconds_left(ctx.now).unwrap_or(0);
    ctx.show_store(key, &WatchedStore { status, command, ttl_s, value_len });
}

/// Shows watchers what a set and its kind found, if that is known, and what came of it.
#[cold]
pub(in crate::session) fn show_stored(
    ctx: &Ctx<'_>,
    key: &[u8],
    put: &Put,
    looked: Option<Option<Hit>>,
    stored: &Stored,
) {
    if let Some(hit) = looked {
        ctx.show_get(key, hit);
    }
    let status = match stored.result {
        PutResult::Stored(_) => "stored",
        PutResult::NotStored => "not_stored",
        PutResult::Exists => "exists",
        PutResult::NotFound => "not_found",
        PutResult::TooLarge => "too_large",
    };
    show_put(ctx, key, put, stored.is_cas, status, stored.value_len);
}

/// Encodes the reply to a set and its kind, counts it, and announces the change.
pub(in crate::session) fn answer_put(
    ctx: &Ctx<'_>,
    out: &mut Vec<u8>,
    reply: &Reply<'_>,
    (key, hash): (&[u8], KeyHash),
    stored: Stored,
) {
    if matches!(stored.result, PutResult::Stored(_) | PutResult::TooLarge) {
        ctx.shared.note_change(hash);
    }
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

/// Shows watchers a counter that was created, as memcached does; others that change are not shown.
fn show_created(ctx: &Ctx<'_>, key: &[u8], result: &ArithResult) {
    if let ArithResult::Value { value, expiry, created: true, .. } = result
        && ctx.is_watched(WatchClasses::MUTATIONS)
    {
        let ttl_s = expiry.seconds_left(ctx.now).unwrap_or(0);
        let value_len = value.checked_ilog10().unwrap_or(0) + 1;
        ctx.show_store(key, &WatchedStore { status: "stored", command: "add", ttl_s, value_len });
    }
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
        let is_cas = request.compare.is_some();
        show_put(ctx, key, &put_of(ctx, request), is_cas, "too_large", request.value_len);
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
        let is_watched = ctx.is_watched(STORES);
        let looked = if is_watched { self.look(ctx, STORES, key, hash) } else { None };
        let mut payload = Payload::Bytes(request.value);
        let step = ctx.shared.store.put(&self.call(ctx, key, hash), &put, &mut payload);
        self.release_read(&step);
        match step {
            Step::Done(result) => {
                let (is_cas, value_len) = (request.compare.is_some(), payload.len() as u32);
                let stored = Stored { result, is_cas, value_len };
                if is_watched {
                    show_stored(ctx, key, &put, looked, &stored);
                }
                answer_put(ctx, self.out.tail(), &request.reply, (key, hash), stored);
                Served::Done
            }
            Step::Read(plan) => self.wait_for_read(ctx, plan),
            Step::Again => self.try_again(),
            Step::Busy => self.wait_for_room(ctx),
            Step::NoMemory => {
                let is_cas = request.compare.is_some();
                show_put(ctx, key, &put, is_cas, "no_memory", request.value_len);
                if request.mode == StoreMode::Set && request.compare.is_none() {
                    forget(ctx, key, hash);
                }
                self.no_memory(ctx, &request.reply, key)
            }
        }
    }

    pub(super) fn no_memory(&mut self, ctx: &Ctx<'_>, reply: &Reply<'_>, key: &[u8]) -> Served {
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
        let watched = WatchClasses::FETCHERS.and(WatchClasses::DELETIONS);
        let looked = self.look(ctx, watched, key, hash);
        let step = ctx.shared.store.remove(&self.call(ctx, key, hash), &remove);
        self.release_read(&step);
        if let (Step::Done(result), Some(hit)) = (&step, looked) {
            ctx.show_get(key, hit);
            if let (RemoveResult::Removed, Some(hit)) = (result, hit) {
                ctx.show_delete(key, if is_meta(&request.reply) { "md" } else { "delete" }, hit);
            }
        }
        let outcome = match step {
            Step::Done(RemoveResult::Removed | RemoveResult::Kept(_)) => {
                ctx.shared.note_change(hash);
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
        let watched = WatchClasses::FETCHERS.and(WatchClasses::MUTATIONS);
        let looked = self.look(ctx, watched, key, hash);
        let step = ctx.shared.store.arith(&self.call(ctx, key, hash), &arith);
        self.release_read(&step);
        if let (Step::Done(result), Some(hit)) = (&step, looked) {
            ctx.show_get(key, hit);
            show_created(ctx, key, result);
        }
        let counters = ctx.counters;
        let (hits, misses) = match request.decrement {
            true => (&counters.decr_hits, &counters.decr_misses),
            false => (&counters.incr_hits, &counters.incr_misses),
        };
        let mut item = ItemInfo::default();
        let mut reply = request.reply.clone();
        let outcome = match step {
            Step::Done(ArithResult::Value { value, cas, expiry_before, expiry, created }) => {
                ctx.shared.note_change(hash);
                hits.up();
                item.cas = shown_cas(ctx, cas);
                item.ttl_after_s = Expiry::seconds_left(expiry, ctx.now);
                item.ttl_before_s = Expiry::seconds_left(expiry_before, ctx.now);
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
            ctx.shared.note_change_of_all();
            Outcome::Ok
        } else {
            Outcome::FlushNotAllowed
        };
        flush.reply.outcome(self.out.tail(), b"", outcome, &ItemInfo::default());
        Served::Done
    }
}
