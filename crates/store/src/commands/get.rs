//! Reads an item. A read may change its expiry, its frequency, and which client recaches it once it is stale.

use super::lookup::{FoundItem, Look, SsdLookup};
use super::{Attempt, Call, write_record};
use crate::clock::{Expiry, Seconds};
use crate::index::entry::{Entry, SsdCopy, State};
use crate::policy::s3fifo::{RamQueue, is_promoted};
use crate::read::{Loaded, Needs};
use crate::record::{FETCHED, HAS_SSD_COPY, HEADER_BYTES, KEY_BINARY, Record, RecordHeader, STALE, WIN_SENT};
use crate::sample::Op;
use crate::shard::Shard;
use crate::shard::evict::OnFull;
use crate::store::{Step, Store};
use crate::tiers::{Tier, Tiers};
use crate::value::Value;

/// How to read an item.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetch {
    /// Set this expiry.
    pub touch: Option<Expiry>,
    /// When absent, create an empty item with this expiry and let the caller win the right to fill it.
    pub vivify: Option<Expiry>,
    /// Let one caller win the right to recache when fewer than this many seconds are left.
    pub recache_seconds: Option<i32>,
    /// These seconds are left of the expiry that [`touch`](Self::touch) sets.
    pub recache_sees_touch: bool,
    /// Whether this reader can win the right to recache a stale or soon expiring item (`mg` can, `get`
    /// cannot).
    pub may_win: bool,
    /// The cas unique of a vivified item.
    pub new_cas: Option<u64>,
    /// Do not count this as an access.
    pub no_bump: bool,
    /// For a vivified item: the key was sent encoded.
    pub key_is_binary: bool,
    /// The value is not wanted. That of a large item on the SSD is not read then, unless the item changes.
    pub without_value: bool,
}

impl Fetch {
    fn needs(&self) -> Needs {
        if self.without_value && self.touch.is_none() { Needs::Header } else { Needs::Value }
    }

    fn is_plain(&self) -> bool {
        self.touch.is_none() && self.vivify.is_none() && self.recache_seconds.is_none()
    }
}

/// An item that was found (or just vivified), as it was before this access.
pub struct Found<'a> {
    /// The value. It may be empty when it is [not wanted](Fetch::without_value).
    pub value: Value<'a>,
    /// Length of the value in bytes.
    pub value_len: u32,
    /// Opaque client flags.
    pub client_flags: u32,
    /// The cas unique.
    pub cas: u64,
    /// Expiry before a touch; never for an item that this access created.
    pub expiry: Expiry,
    /// Expiry after it.
    pub expiry_after: Expiry,
    /// When it was last accessed. For an item on the SSD: when it last was in RAM.
    pub accessed: Seconds,
    /// Whether it had been read since it was stored.
    pub fetched: bool,
    /// Whether it is marked stale.
    pub stale: bool,
    /// Whether a client had been told to recache it before.
    pub win_sent: bool,
    /// Whether this caller is the one to recache it.
    pub won: bool,
    /// Whether this access created it ([`Fetch::vivify`]).
    pub created: bool,
    /// Whether its key was sent encoded.
    pub key_is_binary: bool,
    /// Where it was.
    pub tier: Tier,
}

impl<'a> Found<'a> {
    fn new(header: &RecordHeader, value: Value<'a>, fetched: bool, tier: Tier) -> Self {
        let expiry = Expiry::from_raw(header.expires);
        Found {
            value,
            value_len: header.value_len,
            client_flags: header.client_flags,
            cas: header.cas,
            expiry,
            expiry_after: expiry,
            accessed: Seconds(header.accessed),
            fetched,
            stale: header.item_flags & STALE != 0,
            win_sent: header.item_flags & WIN_SENT != 0,
            won: false,
            created: false,
            key_is_binary: header.item_flags & KEY_BINARY != 0,
            tier,
        }
    }

    /// An item that the read itself has created.
    fn created(header: &RecordHeader) -> Found<'static> {
        let mut found = Found::new(header, Value::Slice(&[]), false, Tier::Ram);
        (found.won, found.created, found.win_sent) = (true, true, false);
        found.expiry = Expiry::Never;
        found
    }
}

impl Store {
    /// Reads an item. `reply` is called once, under the shard's lock, with the item or `None`, when the step
    /// is [`Step::Done`] and carries its answer.
    pub fn fetch<R>(
        &self,
        call: &Call<'_>,
        fetch: &Fetch,
        reply: impl FnOnce(Option<&Found<'_>>) -> R,
    ) -> Step<R> {
        let reply = if fetch.is_plain() && call.loaded.is_none() {
            self.tick(call.now);
            match self.lock(self.shard_of(call.hash)).get_fast(&self.tiers, call, fetch, reply) {
                Ok(answered) => return Step::Done(answered),
                Err(reply) => reply,
            }
        } else {
            reply
        };
        let mut reply = Some(reply);
        let mut answer = |found: Option<&Found<'_>>| (reply.take().expect("answered once"))(found);
        let tiers = &self.tiers;
        // A read that brings the value may promote the item.
        let loaded = call.loaded.as_ref();
        let has_value = loaded.is_some_and(|loaded| loaded.plan.serves(Needs::Value));
        let mut needs = if has_value { Needs::Value } else { fetch.needs() };
        let step = self.attempt(call, |shard, reservation| {
            if let Some(loaded) = call.loaded.as_ref().filter(|_| fetch.is_plain()) {
                let current = shard.index().find(call.hash).is_some_and(|(_, e)| loaded.plan.is_of(tiers, e));
                if !current {
                    return Attempt::Done(shard.answer_as_read(
                        tiers,
                        (call, fetch),
                        loaded,
                        needs,
                        &mut answer,
                    ));
                }
            }
            match shard.look(tiers, call, needs) {
                Look::Read(plan) => Attempt::Read(plan),
                Look::Found(seen) => {
                    let ended = shard.access(tiers, call, fetch, &seen, reservation, &mut answer);
                    if matches!(ended, Attempt::NeedsValue) {
                        needs = Needs::Value;
                    }
                    ended
                }
                Look::Absent(old) => match fetch.vivify {
                    None => {
                        shard.sample_get(Op::Miss, call, fetch, 0, 0);
                        Attempt::Done(answer(None))
                    }
                    Some(expiry) => {
                        let mut header = call.new_header(tiers, fetch.new_cas, expiry, fetch.key_is_binary);
                        // memcached counts the read that creates an item as one of it.
                        header.item_flags |= WIN_SENT | FETCHED;
                        match write_record(shard, tiers, call, old, &header, &[], reservation) {
                            Attempt::Done(()) => {
                                // The set that follows stores the item.
                                shard.sample_get(Op::Miss, call, fetch, 0, 0);
                                Attempt::Done(answer(Some(&Found::created(&header))))
                            }
                            other => other.retry(),
                        }
                    }
                },
            }
        });
        if let Some(loaded) = loaded.filter(|_| has_value) {
            let is_wanted =
                is_promoted(loaded.plan.entry.freq() + 1) && loaded.plan.bytes() > tiers.large_bytes;
            let segments = if is_wanted { tiers.pool.segments_for(loaded.plan.bytes()) } else { 1 };
            self.top_up(self.shard_of(call.hash), segments, call.now);
        }
        step
    }
}

impl Fetch {
    /// Returns whether the reader of an item wins the right to recache it.
    fn wins(&self, header: &RecordHeader, now: Seconds) -> bool {
        let flag = |bit| header.item_flags & bit != 0;
        let wants_recache = self.recache_seconds.is_some_and(|limit| {
            let touched = self.touch.filter(|_| self.recache_sees_touch);
            let seconds_left = touched.unwrap_or(Expiry::from_raw(header.expires)).seconds_left(now);
            seconds_left.is_some_and(|left| i64::from(left) < i64::from(limit))
        });
        self.may_win && !flag(WIN_SENT) && (flag(STALE) || wants_recache)
    }

    /// Returns the header that an item has once it has been read.
    fn header_after(&self, seen: &FoundItem<'_>, won: bool, now: Seconds) -> RecordHeader {
        let mut after = seen.header;
        if let Some(expiry) = self.touch {
            after.expires = expiry.to_raw();
        }
        if won {
            after.item_flags |= WIN_SENT;
        }
        if !self.no_bump {
            after.item_flags |= FETCHED;
            after.accessed = now.0;
        } else if seen.was_fetched() {
            after.item_flags |= FETCHED;
        }
        after
    }
}

impl Shard {
    /// Sends a read, if its key is sampled and it counts as an access.
    #[inline]
    fn sample_get(&mut self, op: Op, call: &Call<'_>, fetch: &Fetch, bytes: usize, expires: u32) {
        if !fetch.no_bump {
            self.sample(op, call.request(), bytes, expires);
        }
    }

    /// Sends a read that found an item and gave it another header.
    fn sample_access(
        &mut self,
        call: &Call<'_>,
        fetch: &Fetch,
        header: &RecordHeader,
        touched: Option<&RecordHeader>,
    ) {
        self.sample_get(Op::Hit, call, fetch, header.bytes(), header.expires);
        if let Some(after) = touched {
            self.sample(Op::Touch, call.request(), after.bytes(), after.expires);
        }
    }

    /// Most of what a cache does: a plain read of a small item in RAM, or of a key without an entry. Gives
    /// the reply back when there is more to it. It changes bytes that are each valid by
    /// themselves and one word of the index, so a later process finds nothing half done: it is no
    /// change of the shard.
    #[inline]
    fn get_fast<R, F: FnOnce(Option<&Found<'_>>) -> R>(
        &mut self,
        tiers: &Tiers,
        call: &Call<'_>,
        fetch: &Fetch,
        reply: F,
    ) -> Result<R, F> {
        let Some((slot, entry)) = self.index().find(call.hash) else {
            self.sample_get(Op::Miss, call, fetch, 0, 0);
            return Ok(reply(None));
        };
        if entry.state() != State::Ram {
            return Err(reply);
        }
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        let Some(record) = Record::parse(&self.segment(tiers, id)[at..]) else {
            // It lies over the end of its segment.
            return Err(reply);
        };
        let header = record.header;
        let may_win = fetch.may_win && header.item_flags & STALE != 0;
        if record.key != call.key || may_win || header.is_gone(call.now, tiers.epoch()) {
            return Err(reply);
        }
        let fetched = header.item_flags & FETCHED != 0;
        let answered = reply(Some(&Found::new(&header, Value::Slice(record.value), fetched, Tier::Ram)));
        if !fetch.no_bump {
            if !fetched || header.accessed != call.now.0 {
                self.mark_read_at(tiers, (id, at), call.now);
            }
            self.bump(slot, entry);
            self.sample(Op::Hit, call.request(), header.bytes(), header.expires);
        }
        Ok(answered)
    }

    /// Answers a plain read from its pages, although the item has changed since: the read took effect when it was
    /// planned.
    fn answer_as_read<R>(
        &mut self,
        tiers: &Tiers,
        (call, fetch): (&Call<'_>, &Fetch),
        loaded: &Loaded<'_>,
        needs: Needs,
        answer: &mut impl FnMut(Option<&Found<'_>>) -> R,
    ) -> R {
        let record = self.find_loaded(tiers, loaded, call, needs, loaded.plan.epoch);
        let Ok(SsdLookup::Item(header, value)) = record else {
            self.sample_get(Op::Miss, call, fetch, 0, 0);
            return answer(None);
        };
        self.sample_get(Op::Hit, call, fetch, header.bytes(), header.expires);
        let fetched = header.item_flags & FETCHED != 0 || loaded.plan.entry.freq() > 0;
        let value = Value::Slice(value.as_deref().unwrap_or_default());
        let mut found = Found::new(&header, value, fetched, Tier::Ssd);
        // Another client has changed the item meanwhile.
        found.win_sent |= found.stale;
        answer(Some(&found))
    }

    /// Reads an item that is there: answers, counts the access, changes the header as the read asks, and promotes
    /// the item if it is due.
    fn access<R>(
        &mut self,
        tiers: &Tiers,
        call: &Call<'_>,
        fetch: &Fetch,
        seen: &FoundItem<'_>,
        reservation: &mut Option<crate::ram::pool::Reservation>,
        answer: &mut impl FnMut(Option<&Found<'_>>) -> R,
    ) -> Attempt<R> {
        let header = seen.header;
        let won = fetch.wins(&header, call.now);
        let changes = won || fetch.touch.is_some();
        if changes && !seen.has_value() {
            return Attempt::NeedsValue;
        }
        let after = fetch.header_after(seen, won, call.now);
        let expiry_after = Expiry::from_raw(after.expires);
        let entry = if fetch.no_bump { seen.entry } else { seen.entry.bumped() };

        // Answer first: the value is lent from where it lies now. What must not fail after that is tried
        // before.
        if changes && seen.on_ssd() {
            let value = seen.ssd_value();
            match write_record(self, tiers, call, seen.old(), &after, &[value], reservation) {
                Attempt::Done(()) => {}
                other => return other.retry(),
            }
            self.index_warm(call, fetch);
            self.sample_access(call, fetch, &header, Some(&after));
            let mut found = Found::new(&header, Value::Slice(value), seen.was_fetched(), Tier::Ssd);
            (found.won, found.expiry_after) = (won, expiry_after);
            return Attempt::Done(answer(Some(&found)));
        }
        if !seen.on_ssd() && !self.access_in_ram(tiers, call, fetch, seen, changes.then_some(after)) {
            return Attempt::Demoting;
        }
        self.sample_access(call, fetch, &header, fetch.touch.is_some().then_some(&after));
        let value = seen.value(self, tiers);
        let tier = if seen.on_ssd() { Tier::Ssd } else { Tier::Ram };
        let mut found = Found::new(&header, value, seen.was_fetched(), tier);
        (found.won, found.expiry_after) = (won, expiry_after);
        let answered = answer(Some(&found));
        drop(found);
        if seen.on_ssd() && !fetch.no_bump {
            self.bump(seen.slot, seen.entry);
            let place = tiers.log.table.place_of(entry);
            tiers.log.table.mark_hot(place);
            tiers.log.table.count_hit(place);
            if is_promoted(entry.freq()) && seen.has_value() {
                self.promote(tiers, call, seen, &after, entry);
            }
        }
        Attempt::Done(answered)
    }

    /// Counts an access to an item in RAM, and changes its header if there is a new one. Returns false, and does
    /// nothing, if the header must not change because the item is being written to the SSD.
    fn access_in_ram(
        &mut self,
        tiers: &Tiers,
        call: &Call<'_>,
        fetch: &Fetch,
        seen: &FoundItem<'_>,
        changed: Option<RecordHeader>,
    ) -> bool {
        if let Some(changed) = changed {
            if !self.rewrite_header(tiers, seen.entry, |header| *header = changed) {
                return false;
            }
            self.make_dirty(tiers, seen.entry);
        } else if !fetch.no_bump {
            self.mark_read(tiers, seen.entry, call.now);
        }
        if !fetch.no_bump {
            self.bump(seen.slot, seen.entry);
        }
        true
    }

    fn index_warm(&mut self, call: &Call<'_>, fetch: &Fetch) {
        if let Some((slot, entry)) = self.index().find(call.hash).filter(|_| !fetch.no_bump) {
            self.bump(slot, entry);
        }
    }

    /// Copies an item from the SSD to RAM, if a segment can be had without evicting; the SSD copy stays.
    fn promote(
        &mut self,
        tiers: &Tiers,
        call: &Call<'_>,
        seen: &FoundItem<'_>,
        header: &RecordHeader,
        entry: Entry,
    ) {
        let is_large = header.bytes() > tiers.large_bytes;
        let segments = match is_large {
            true => tiers.pool.segments_for(header.bytes()),
            false => {
                let header = RecordHeader { item_flags: header.item_flags | HAS_SSD_COPY, ..*header };
                self.segments_wanted(RamQueue::Main, &header)
            }
        };
        if segments > 0 && !tiers.has_room_to_promote(segments) {
            return;
        }
        let Value::Slice(value) = seen.value(self, tiers) else {
            return;
        };
        let value = value.to_vec();
        let place = tiers.log.table.place_of(entry);
        let Some(generation) = tiers.log.table.current_generation(place) else { return };
        let ssd_copy = SsdCopy { place, generation };
        if is_large {
            let Some(mut record) = tiers.pool.reserve(header.bytes()) else { return };
            record.push(&[0; HEADER_BYTES]);
            record.push(call.key);
            record.push(&value);
            let offset = self.adopt(tiers, RamQueue::Main, header, record, Some(ssd_copy));
            let promoted = Entry::ram(call.hash, 0, State::RamLarge, offset);
            self.place(tiers, call.now, call.hash, Some((seen.slot, entry)), promoted);
        } else if let Some(offset) =
            self.append(tiers, RamQueue::Main, header, call.key, &[&value], Some(ssd_copy))
        {
            let promoted = Entry::ram(call.hash, 0, State::Ram, offset);
            self.place(tiers, call.now, call.hash, Some((seen.slot, entry)), promoted);
        }
    }
}

impl Store {
    /// Whether the key has an item, without counting an access; for tests and tools.
    pub fn contains(&self, key: &[u8], now: Seconds) -> Step<bool> {
        let call = Call { key, hash: self.hash(key), now, loaded: None, on_full: OnFull::Drop };
        self.fetch(&call, &Fetch { no_bump: true, ..Fetch::default() }, |found| found.is_some())
    }
}
