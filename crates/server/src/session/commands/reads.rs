//! Reads: gets of one or many keys, touches, item metadata.

use std::ops::Range;

use larder_device::IoBuf;
use larder_protocol::{Debug, Get, ItemInfo, Key, Outcome, Reply, Touch, WatchClasses};
use larder_store::{
    Call, Expiry, Fetch, Found, KeyHash, Loaded, OnFull, RECORD_HEADER_BYTES, ReadPlan, Step, Tier, Value,
};

use super::{is_meta, shown_cas};
use crate::prefixes::Event;
use crate::session::output::{COPY_BYTES_MAX, Output};
use crate::session::read::{LoadedRead, PendingGet, ReadBuffer};
use crate::session::watch::{Hit, class_of};
use crate::session::{Ctx, Served, Session, Wait, echo};

/// Returns the facts about an item that a reply may tell.
fn info(ctx: &Ctx<'_>, found: &Found<'_>) -> ItemInfo {
    let ttl = |expiry: Expiry| expiry.seconds_left(ctx.now);
    ItemInfo {
        client_flags: found.client_flags,
        cas: shown_cas(ctx, found.cas),
        value_len: found.value_len,
        ttl_before_s: ttl(found.expiry),
        ttl_after_s: ttl(found.expiry_after),
        idle_s: ctx.now.0.saturating_sub(found.accessed.0),
        hit_before: found.fetched,
        stale: found.stale,
        won: found.won,
        win_sent: found.win_sent,
        key_is_binary: found.key_is_binary,
    }
}

/// Encodes a hit. A large value that lies in the memory of its own read is left out: returns its place there, to be
/// sent from.
#[must_use]
fn answer_hit(
    ctx: &Ctx<'_>,
    out: &mut Output,
    reply: &Reply<'_>,
    key: &[u8],
    found: &Found<'_>,
    with_value: bool,
    read: Option<&ReadBuffer<'_>>,
) -> Option<Range<usize>> {
    reply.hit_head(out.tail(), key, &info(ctx, found), with_value);
    if with_value {
        match &found.value {
            Value::Slice(bytes) => {
                let part = read.and_then(|read| read.part(bytes));
                if part.is_some() {
                    return part;
                }
                out.tail().extend_from_slice(bytes);
            }
            Value::Parts(parts) => parts.append_to(out.tail()),
            Value::Large(large) => out.push_large(large),
        }
    }
    reply.hit_tail(out.tail(), with_value);
    None
}

/// Completes the reply that [`answer_hit`] left without its value.
fn answer_part(out: &mut Output, reply: &Reply<'_>, buffer: Option<IoBuf>, part: Option<Range<usize>>) {
    if let (Some(buffer), Some(part)) = (buffer, part) {
        out.push_read(buffer, part);
        reply.hit_tail(out.tail(), true);
    }
}

fn hit_of(found: &Found<'_>) -> Hit {
    Hit { tier: found.tier, value_len: found.value_len }
}

fn is_on_ssd(hit: Option<Hit>) -> bool {
    hit.is_some_and(|hit| hit.tier == Tier::Ssd)
}

/// Counts a read, and shows it to watchers.
fn count_get(ctx: &Ctx<'_>, key: &[u8], hit: Option<Hit>, is_touch: bool, is_meta: bool) {
    ctx.show_get(key, hit);
    let counters = ctx.counters;
    counters.cmd_get.up();
    if is_meta {
        counters.cmd_meta.up();
    } else {
        ctx.shared.prefixes.count(key, if hit.is_some() { Event::Hit } else { Event::Miss });
    }
    match hit {
        Some(hit) => {
            counters.get_hits.up();
            match hit.tier {
                Tier::Ram => counters.get_hits_ram.up(),
                Tier::Ssd => counters.get_hits_ssd.up(),
            }
        }
        None => counters.get_misses.up(),
    }
    if is_touch {
        counters.cmd_touch.up();
        match hit {
            Some(_) => counters.touch_hits.up(),
            None => counters.touch_misses.up(),
        }
    }
}

/// Returns whether the reply has the value, which the classic wires always send.
fn wants_value(get: &Get<'_>) -> bool {
    get.value || matches!(get.reply, Reply::Classic { .. })
}

/// Returns the store's request for one key.
fn fetch_of(ctx: &Ctx<'_>, get: &Get<'_>, key: &Key<'_>) -> Fetch {
    Fetch {
        touch: get.touch.map(|exptime| ctx.expiry(exptime)),
        vivify: get.vivify.map(|exptime| ctx.expiry(exptime)),
        recache_seconds: get.recache,
        recache_sees_touch: get.recache_sees_touch,
        may_win: get.may_win,
        new_cas: get.new_cas,
        no_bump: get.no_bump,
        key_is_binary: key.is_base64(),
        without_value: !wants_value(get),
    }
}

/// Encodes the reply to a plain get from its finished read. Returns the hit, and the place of a value that
/// was left out (see [`answer_hit`]).
fn answer_loaded(
    ctx: &Ctx<'_>,
    out: &mut Output,
    pending: &PendingGet,
    read: &ReadBuffer<'_>,
    plan: &ReadPlan,
    is_alone: bool,
) -> Step<(Option<Hit>, Option<Range<usize>>)> {
    let reply = pending.reply.reply();
    let call = Call {
        key: &pending.key,
        hash: pending.hash,
        now: ctx.now,
        loaded: Some(Loaded { plan, bytes: read.bytes() }),
        on_full: OnFull::Drop,
    };
    ctx.shared.store.fetch(&call, &pending.fetch, |found| {
        let part = match found {
            Some(found) => {
                let with_value = pending.value && pending.unless_cas != Some(shown_cas(ctx, found.cas));
                if !is_alone {
                    let value_len = if with_value { found.value.len() } else { 0 };
                    let copied = value_len.min(COPY_BYTES_MAX);
                    out.tail().reserve_exact(copied + pending.key.len() + REPLY_HEAD_BYTES);
                }
                answer_hit(ctx, out, &reply, &pending.key, found, with_value, Some(read))
            }
            None => {
                reply.miss(out.tail(), &pending.key);
                None
            }
        };
        (found.map(hit_of), part)
    })
}

impl Session {
    pub(super) fn get(&mut self, ctx: &mut Ctx<'_>, get: &Get<'_>, hash: KeyHash) -> Served {
        if let Some(key) = get.keys.single() {
            return self.get_one(ctx, get, key, hash, true);
        }
        let mut keys = get.keys.clone().skip(self.progress);
        let mut group = arrayvec::ArrayVec::<(Key<'_>, KeyHash), GROUP>::new();
        loop {
            for key in keys.by_ref().take(GROUP) {
                let hash = ctx.shared.store.hash(key.bytes());
                ctx.shared.store.prefetch(hash);
                group.push((key, hash));
            }
            if group.is_empty() {
                break;
            }
            group.iter().for_each(|(_, hash)| ctx.shared.store.prefetch_item(*hash));
            for (key, hash) in group.drain(..) {
                if self.is_full(ctx) {
                    self.wait = Wait::Drain;
                    return Served::Waits;
                }
                if self.get_one(ctx, get, &key, hash, false) == Served::Waits {
                    return Served::Waits;
                }
                self.progress += 1;
            }
        }
        get.reply.end(self.out.tail());
        Served::Done
    }

    /// Executes a get of one key, or keeps a place for its reply. `ends` if it is the request's only key.
    fn get_one(
        &mut self,
        ctx: &mut Ctx<'_>,
        get: &Get<'_>,
        key: &Key<'_>,
        hash: KeyHash,
        ends: bool,
    ) -> Served {
        if get.announce {
            return self.get_leased(ctx, get, key, hash, ends);
        }
        let fetch = fetch_of(ctx, get, key);
        let with_value = wants_value(get);
        let loaded = self.loaded.take();
        let call = Call {
            key: key.bytes(),
            hash,
            now: ctx.now,
            loaded: loaded.as_ref().map(|read| read.loaded()),
            on_full: self.on_full(ctx),
        };
        let read = loaded.as_ref().map(|loaded| loaded.buffer());
        let out = &mut self.out;
        let step = ctx.shared.store.fetch(&call, &fetch, |found| {
            let part = match found {
                Some(found) => {
                    let with_value = with_value && get.unless_cas != Some(shown_cas(ctx, found.cas));
                    answer_hit(ctx, out, &get.reply, key.bytes(), found, with_value, read)
                }
                None => {
                    get.reply.miss(out.tail(), key.bytes());
                    None
                }
            };
            // A vivified item was not there before.
            (found.filter(|found| !found.created).map(hit_of), part)
        });
        match step {
            Step::Done((hit, part)) => {
                let is_changed = if hit.is_some() { get.touch.is_some() } else { get.vivify.is_some() };
                if is_changed {
                    ctx.shared.note_change(hash);
                }
                answer_part(&mut self.out, &get.reply, loaded.and_then(LoadedRead::into_own), part);
                count_get(ctx, key.bytes(), hit, get.touch.is_some(), is_meta(&get.reply));
                if ends {
                    get.reply.end(self.out.tail());
                }
                Served::Done
            }
            Step::Read(plan) => self.get_from_ssd(ctx, get, (key, hash, ends), fetch, plan),
            Step::Again => {
                self.loaded = loaded;
                self.try_again()
            }
            Step::Busy => self.wait_for_room(ctx),
            Step::NoMemory => self.get_without_memory(ctx, get, key, ends),
        }
    }

    /// Leases the key of a get that asks for it, before it is read, and tells so in the reply.
    #[cold]
    fn get_leased(
        &mut self,
        ctx: &mut Ctx<'_>,
        get: &Get<'_>,
        key: &Key<'_>,
        hash: KeyHash,
        ends: bool,
    ) -> Served {
        let is_leased =
            get.lease().is_some_and(|lease| ctx.shared.lease(hash, lease.subscription, lease.token, ctx.now));
        let reply = if is_leased { get.reply.clone().with_lease() } else { get.reply.clone() };
        self.get_one(ctx, &Get { announce: false, reply, ..get.clone() }, key, hash, ends)
    }

    /// Asks for the read of a get. A plain get waits for it in its place in the output; one that changes the item
    /// waits at the front of the input.
    fn get_from_ssd(
        &mut self,
        ctx: &mut Ctx<'_>,
        get: &Get<'_>,
        (key, hash, ends): (&Key<'_>, KeyHash, bool),
        fetch: Fetch,
        plan: ReadPlan,
    ) -> Served {
        let is_barrier = fetch.touch.is_some() || fetch.vivify.is_some() || fetch.recache_seconds.is_some();
        if is_barrier {
            return self.wait_for_read(ctx, plan);
        }
        let since = self.turn_since.unwrap_or(ctx.instant);
        if !self.claim_get(ctx, plan.bytes()) {
            return Served::Waits;
        }
        let ticket = self.take_ticket();
        self.out.push_waiting(ticket);
        let pending = PendingGet {
            ticket,
            key: key.bytes().into(),
            hash,
            read_bytes: plan.bytes(),
            fetch,
            unless_cas: get.unless_cas,
            value: wants_value(get),
            ends,
            reply: get.reply.to_owned_reply(),
            since,
        };
        self.read_for(ctx, pending, plan);
        Served::Done
    }

    /// Replies to a get that could not change the item for lack of memory.
    fn get_without_memory(&mut self, ctx: &Ctx<'_>, get: &Get<'_>, key: &Key<'_>, ends: bool) -> Served {
        // A classic read ends with END whatever became of its keys: an error line would be a second reply.
        if matches!(get.reply, Reply::Classic { .. }) {
            count_get(ctx, key.bytes(), None, get.touch.is_some(), false);
        } else {
            let item = ItemInfo::default();
            get.reply.outcome(self.out.tail(), key.bytes(), Outcome::OutOfMemory, &item);
        }
        if ends {
            get.reply.end(self.out.tail());
        }
        Served::Done
    }

    /// Completes a plain get whose read is done, in the place that was kept for its reply. Several gets may share a
    /// read; [`read_done`](Self::read_done) is for the last of them.
    pub fn get_done(&mut self, ctx: &mut Ctx<'_>, ticket: u64, plan: &ReadPlan, read: ReadBuffer<'_>) {
        let Some(pending) = self.take_pending(ticket) else { return };
        let reply = pending.reply.reply();
        // Most often no other reply waits, and this one needs no buffer of its own.
        let is_alone = self.out.take_only_waiting(ticket);
        let mut own = Output::default();
        let out = if is_alone { &mut self.out } else { &mut own };
        let hit = match answer_loaded(ctx, out, &pending, &read, plan, is_alone) {
            Step::Done((hit, part)) => {
                answer_part(out, &reply, read.into_own(), part);
                hit
            }
            // Only the header was read, and the item has to change. That is rare, and takes no turn to read.
            Step::Read(plan) if Self::claim_memory(ctx, plan.bytes()) => {
                if is_alone {
                    self.out.push_waiting(ticket);
                }
                let read_bytes = plan.bytes();
                self.read_for(ctx, PendingGet { read_bytes, ..pending }, plan);
                return;
            }
            // Reading the item should have changed it and could not. A cache may forget.
            Step::Read(_) | Step::Again | Step::Busy | Step::NoMemory => {
                reply.miss(out.tail(), &pending.key);
                None
            }
        };
        if pending.ends {
            reply.end(out.tail());
        }
        if ctx.shared.logs(2) {
            echo::reply(ctx.connection, out.tail());
        }
        count_get(ctx, &pending.key, hit, false, is_meta(&reply));
        if is_on_ssd(hit) {
            ctx.latencies.ssd_hits.record(ctx.instant - pending.since);
            ctx.latencies.ssd_hits_apart.up();
        }
        if !is_alone {
            self.out.resolve(ticket, own);
        }
    }

    pub(super) fn touch(&mut self, ctx: &mut Ctx<'_>, touch: &Touch<'_>, hash: KeyHash) -> Served {
        let key = touch.key.bytes();
        let fetch = Fetch { touch: Some(ctx.expiry(touch.exptime)), without_value: true, ..Fetch::default() };
        let step = ctx.shared.store.fetch(&self.call(ctx, key, hash), &fetch, |found| {
            found.map(|found| (info(ctx, found), hit_of(found)))
        });
        self.release_read(&step);
        let outcome = match step {
            Step::Done(found) => {
                ctx.counters.cmd_touch.up();
                ctx.show_get(key, found.as_ref().map(|found| found.1));
                match found {
                    Some((item, _)) => {
                        ctx.shared.note_change(hash);
                        ctx.counters.touch_hits.up();
                        touch.reply.outcome(self.out.tail(), key, Outcome::Touched, &item);
                        return Served::Done;
                    }
                    None => {
                        ctx.counters.touch_misses.up();
                        Outcome::NotFound
                    }
                }
            }
            Step::Read(plan) => return self.wait_for_read(ctx, plan),
            Step::Again => return self.try_again(),
            Step::Busy => return self.wait_for_room(ctx),
            Step::NoMemory => Outcome::OutOfMemory,
        };
        touch.reply.outcome(self.out.tail(), key, outcome, &ItemInfo::default());
        Served::Done
    }

    /// Returns the item that a command is about to find, if that is known without a read from the SSD. The outer
    /// option is whether it is.
    #[cold]
    #[inline(never)]
    fn look_for(&self, ctx: &Ctx<'_>, key: &[u8], hash: KeyHash) -> Option<Option<Hit>> {
        let fetch = Fetch { no_bump: true, without_value: true, ..Fetch::default() };
        match ctx.shared.store.fetch(&self.call(ctx, key, hash), &fetch, |found| found.map(hit_of)) {
            Step::Done(found) => Some(found),
            Step::Read(_) | Step::Again | Step::Busy | Step::NoMemory => None,
        }
    }

    /// Returns what [`look_for`](Self::look_for) does, if any of these classes is watched.
    #[inline]
    pub(in crate::session) fn look(
        &self,
        ctx: &Ctx<'_>,
        classes: WatchClasses,
        key: &[u8],
        hash: KeyHash,
    ) -> Option<Option<Hit>> {
        if ctx.is_watched(classes) { self.look_for(ctx, key, hash) } else { None }
    }

    /// Executes `me`.
    pub(super) fn debug(&mut self, ctx: &mut Ctx<'_>, debug: &Debug<'_>, hash: KeyHash) -> Served {
        let key = debug.key.bytes();
        let fetch = Fetch { no_bump: true, without_value: true, ..Fetch::default() };
        let step = ctx.shared.store.fetch(&self.call(ctx, key, hash), &fetch, |found| {
            found.map(|found| (info(ctx, found), hit_of(found)))
        });
        self.release_read(&step);
        if let Step::Done(found) = &step {
            ctx.show_get(key, found.as_ref().map(|found| found.1));
        }
        match step {
            Step::Done(Some((item, hit))) => {
                let class = class_of(hit.tier);
                let size = (key.len() + item.value_len as usize + RECORD_HEADER_BYTES) as u64;
                debug.reply.debug(self.out.tail(), key, &item, class, size);
            }
            Step::Read(plan) => return self.wait_for_read(ctx, plan),
            Step::Done(None) | Step::Again | Step::Busy | Step::NoMemory => {
                debug.reply.miss(self.out.tail(), key)
            }
        }
        ctx.counters.cmd_meta.up();
        Served::Done
    }
}

/// Bytes of a reply besides key and value, or more.
const REPLY_HEAD_BYTES: usize = 64;
/// Keys of a multi-get that are hashed and prefetched together.
const GROUP: usize = 32;
