//! Shadows: caches of other sizes, imagined. A shadow makes the policy's own decisions about a sample of the
//! requests, and keeps of an item its size, expiry and place only.
//!
//! What a larger cache would miss is estimated from the misses of a shadow, never from its hits: one hot key in
//! the sample or outside of it changes the share of hits by points, and the misses hardly. All gets are counted
//! exactly by the caller, so hits are what is left.
//!
//! ```text
//!   requests --sampled by hash--> event --+--> shadow of half the RAM ---> counts --+
//!                                         +--> shadow of this cache -----> counts --+--> estimate
//!                                         +--> shadow of twice the SSD --> counts --+
//! ```
//! Requests follow from what the real cache has, so a shadow that has more or less must be told: a get that the real
//! cache answered and the shadow misses stores the item in the shadow, as its client would have; a set that follows a
//! miss of the real cache changes nothing in a shadow that had the item.

mod choice;
mod estimate;
mod items;
mod labels;
mod log;
mod pair;
mod prefixes;
mod queue;
mod scale;
mod set;
mod trial;

use crate::clock::{Expiry, Seconds};
use crate::index::hash::KeyHash;
use crate::policy::admission::Admission;
use crate::policy::ghost::Ghost;
use crate::policy::s3fifo::{
    Exit, Leaving, RamQueue, exit_of, freq_on_ssd, is_promotable, is_promoted, kept_freq, queue_of_new,
    spare_segments, victim_order,
};
use crate::policy::write_budget::WriteBudget;
use crate::record::{RAM_ALIGN, SSD_COPY_BYTES};
use crate::sample::{Event, Op, is_sampled};
use crate::ssd::SSD_VALUE_BYTES_MAX;
use crate::ssd::log::stream::SHORT_LIVED_SECONDS;
use crate::store::{Config, Geometry};

pub use choice::{Choice, Chosen};
pub use estimate::{Doubt, Estimate, PARTS, Seen};
pub use prefixes::{Amount, PREFIXES_SHOWN, PrefixAmounts, PrefixReport, Quantity};
pub use set::{Axis, Point, Sample, Shadows};
pub use trial::{Changes, Tried};

pub(crate) use log::bytes_there;

use items::{Item, Items, Place, SsdPlace, spread};
use log::{At, Log};
use queue::{Queue, Record};

/// What a shadow has seen, multiplied by its scale: an estimate of what a cache of its size would have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Gets.
    pub gets: u64,
    /// Of these, how many RAM would have answered.
    pub hits_ram: u64,
    /// And how many the SSD would have.
    pub hits_ssd: u64,
    /// Misses, by part of the sample: the parts differ by keys.
    pub misses: [u64; PARTS],
    /// Bytes of records that would have been written to the SSD, without those written again to be kept.
    pub ssd_bytes_admitted: u64,
    /// Bytes that would have been written to the SSD.
    pub ssd_bytes_written: u64,
}

impl Counts {
    /// Returns what came after an earlier moment.
    fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            gets: self.gets - earlier.gets,
            hits_ram: self.hits_ram - earlier.hits_ram,
            hits_ssd: self.hits_ssd - earlier.hits_ssd,
            misses: std::array::from_fn(|part| self.misses[part] - earlier.misses[part]),
            ssd_bytes_admitted: self.ssd_bytes_admitted - earlier.ssd_bytes_admitted,
            ssd_bytes_written: self.ssd_bytes_written - earlier.ssd_bytes_written,
        }
    }
}

/// What a sample tells as yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The shadow of the cache's own size has not filled since the start or the last flush: a larger cache would miss
    /// no less yet.
    Filling,
    /// It has too few items in RAM, or has missed too little.
    Few,
    /// It tells enough.
    Ready,
}

impl State {
    /// Returns a word for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Filling => "filling",
            State::Few => "few",
            State::Ready => "ready",
        }
    }
}

/// What the real cache has done until some moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real {
    /// Gets.
    pub gets: u64,
    /// Those of them that missed.
    pub misses: u64,
    /// When.
    pub at: Seconds,
}

impl Real {
    /// Returns what came after an earlier moment, with the seconds since then.
    fn since(&self, earlier: &Real) -> Real {
        Real {
            gets: self.gets - earlier.gets,
            misses: self.misses - earlier.misses,
            at: Seconds(self.at.0.saturating_sub(earlier.at.0)),
        }
    }
}

/// The rules that a shadow's items live by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Which items are written to the SSD.
    pub admission: Admission,
    /// The most bytes a second to write to the SSD.
    pub ssd_write_limit: Option<u64>,
    /// Seconds after which every item expires at the latest.
    pub ttl_max: Option<u32>,
    /// Live items that are all kept on the SSD, in percent of its bytes.
    pub ssd_live_percent: u32,
}

impl Rules {
    /// Returns the rules of a cache with these options.
    pub fn of(config: &Config) -> Rules {
        Rules {
            admission: config.first_admission(),
            ssd_live_percent: config.ssd_live_percent,
            ssd_write_limit: config.ssd_write_limit,
            ttl_max: None,
        }
    }
}

/// What a shadow divides by when the index grows and when it shrinks: entries of eight bytes, of which so many percent
/// are in use.
const ENTRY_BYTES: u64 = 8;
const INDEX_FILL_PERCENT: u64 = 88;
const INDEX_FILL_PERCENT_MIN: u64 = 70;

/// The variance of a sample's bytes, as a multiple of what one item of the mean size would have: more if sizes differ
/// more, and less since the shadow of the cache's own size is off alike.
const ROOM_VARIANCE: f64 = 0.3;
/// What of a segment of the SSD a shadow may count too much or too little.
const SEGMENT_DOUBT: f64 = 0.1;
/// The part of the difference between two sizes by which a shadow may be wrong about it, without an SSD and with one.
const RAM_MODEL: f64 = 0.02;
const SSD_MODEL: f64 = 0.1;

/// A cache of another size, imagined.
pub struct Shadow {
    geometry: Geometry,
    rules: Rules,
    /// One of so many keys is in the sample: a power of two; and was at first.
    scale: u32,
    first_scale: u32,
    items: Items,
    queues: [Queue; 2],
    log: Log,
    ghost: Ghost<Vec<u8>>,
    /// Items in RAM, the bytes of their records, and what these take there.
    ram_items: u64,
    record_bytes: u64,
    ram_bytes: u64,
    /// The index that a cache of this size would have now, in bytes.
    index_bytes: u64,
    has_evicted: bool,
    /// In bytes of all keys, not of the sample.
    budget: WriteBudget,
    /// Bytes of the records that were stored in RAM, as parts of all that there is room for.
    turns: f64,
    counts: Counts,
}

/// Returns a hash that the sample's keys do not have in common.
fn mixed(hash: KeyHash) -> u64 {
    let bits = hash.bits();
    let mixed = (bits ^ bits >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

/// Bits of a tag by which a sample becomes smaller: those of the hash that follow the ones which chose the first
/// sample.
const PART_BITS: u32 = 16;
const PART_SHIFT: u32 = 8;

/// Returns the hash by which an item is known in a sample that began as one key of `first_scale`; not 0.
fn tag_of(hash: KeyHash, mixed: u64, first_scale: u32) -> u32 {
    let part = (hash.bits() >> first_scale.trailing_zeros()) as u32 & ((1 << PART_BITS) - 1);
    let others = (mixed >> 32) as u32 & !(((1 << PART_BITS) - 1) << PART_SHIFT);
    (others | part << PART_SHIFT).max(1)
}

/// Returns the hash by which the table of remembered keys knows an item: a place and a fingerprint.
fn ghost_hash(tag: u32) -> KeyHash {
    KeyHash(u64::from(spread(tag)) << 16 | u64::from(tag & 0xFF))
}

/// Returns whether an item stays in a sample that has become one part of `parts`, a power of two.
fn is_in_part(tag: u32, parts: u32) -> bool {
    tag >> PART_SHIFT & (parts - 1) == 0
}

/// Returns what a record takes in RAM.
fn bytes_in_ram(geometry: &Geometry, bytes: u32, has_copy: bool) -> u32 {
    if bytes as usize > geometry.large_bytes {
        return bytes.div_ceil(geometry.segment_bytes).saturating_mul(geometry.segment_bytes);
    }
    (bytes + if has_copy { SSD_COPY_BYTES as u32 } else { 0 }).next_multiple_of(RAM_ALIGN as u32)
}

impl Shadow {
    /// A cold shadow of a cache divided as `geometry` tells, of one key of `scale`, a power of two.
    ///
    /// # Panics
    /// If the scale is no power of two.
    pub fn new(geometry: Geometry, rules: Rules, scale: u32) -> Shadow {
        assert!(scale.is_power_of_two(), "keys are sampled by bits of their hash");
        let ghosts = (geometry.ghosts / u64::from(scale)).max(16) as usize;
        Shadow {
            rules,
            scale,
            first_scale: scale,
            items: Items::new(),
            queues: Default::default(),
            log: Log::new(&geometry, rules.ssd_live_percent),
            ghost: Ghost::new(vec![0; ghosts]),
            ram_items: 0,
            record_bytes: 0,
            ram_bytes: 0,
            index_bytes: geometry.index_bytes,
            has_evicted: false,
            budget: WriteBudget::new(rules.ssd_write_limit),
            turns: 0.0,
            counts: Counts::default(),
            geometry,
        }
    }

    /// Returns what it has seen.
    pub fn counts(&self) -> Counts {
        let scaled = |bytes: f64| (bytes * f64::from(self.scale)) as u64;
        let written = self.log.written;
        Counts {
            ssd_bytes_admitted: scaled(written.admitted_bytes),
            ssd_bytes_written: scaled(written.device_bytes),
            ..self.counts
        }
    }

    /// Returns one key of how many it looks at.
    pub fn scale(&self) -> u32 {
        self.scale
    }

    /// Returns how many items it holds.
    pub fn items(&self) -> u64 {
        self.items.count() as u64
    }

    /// Returns how many of these would be in RAM.
    pub fn items_in_ram(&self) -> u64 {
        self.ram_items
    }

    /// Whether it has filled: before, it misses no item that it ever had, so a cache that large may still be
    /// better than it shows.
    pub fn is_full(&self) -> bool {
        self.has_evicted && self.log.has_wrapped()
    }

    /// Returns what makes its counts unsure besides its choice of keys.
    pub fn doubt(&self) -> Doubt {
        let model = if self.geometry.ssd_segments == 0 { RAM_MODEL } else { SSD_MODEL };
        Doubt { room: self.room_doubt(), is_on_edge: self.log.is_on_edge(), model }
    }

    /// Returns by how much its room may be too large or too small for its sample, as a part of it.
    fn room_doubt(&self) -> f64 {
        // A sample of all keys has nothing by chance.
        let by_chance = 1.0 - 1.0 / f64::from(self.scale);
        let of_sample = by_chance * ROOM_VARIANCE / self.items().max(1) as f64;
        let of_segments = match self.geometry.ssd_segments {
            0 => 0.0,
            segments => SEGMENT_DOUBT / f64::from(segments),
        };
        of_sample.sqrt().hypot(of_segments)
    }

    /// Returns the memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let queues: usize = self.queues.iter().map(Queue::memory_bytes).sum();
        let ghosts = (self.geometry.ghosts / u64::from(self.scale)) as usize;
        self.items.memory_bytes() + queues + self.log.memory_bytes() + ghosts
    }

    /// Forgets all items, as a flush does.
    pub fn flush(&mut self) {
        let fresh = Shadow::new(self.geometry, self.rules, self.scale);
        let written = (self.log.written, std::mem::take(&mut self.log.written_by_label));
        let (counts, turns) = (self.counts, self.turns);
        *self = Shadow { counts, turns, first_scale: self.first_scale, ..fresh };
        (self.log.written, self.log.written_by_label) = written;
    }

    /// Writes other items to the SSD from now on.
    pub fn set_admission(&mut self, admission: Admission) {
        self.rules.admission = admission;
    }

    /// Returns how often as much was stored as fits RAM, so that RAM has been turned over.
    pub fn turns(&self) -> f64 {
        self.turns
    }

    /// Takes a request into account, if its key is in the sample. Returns whether it is a get that misses here.
    pub fn feed(&mut self, event: &Event) -> bool {
        if !is_sampled(event.hash, self.scale) {
            return false;
        }
        let event = &self.capped(event);
        let (mixed, now) = (mixed(event.hash), event.now.0);
        let tag = tag_of(event.hash, mixed, self.first_scale);
        if self.items.get(tag).is_some_and(|item| item.has_expired(now)) {
            self.remove(tag);
        }
        match event.op {
            Op::Hit | Op::Miss => return self.get(event, tag, mixed),
            Op::Set => {
                let is_refill = self.items.get_mut(tag).is_some_and(|item| item.take_expected_set(now));
                if !is_refill {
                    self.store(event, tag);
                }
            }
            Op::Touch => self.touch(event, tag),
            Op::Delete => {
                self.remove(tag);
            }
        }
        false
    }

    /// Returns a request whose item expires as the rules tell.
    fn capped(&self, event: &Event) -> Event {
        let Some(ttl_max) = self.rules.ttl_max else { return *event };
        let last = event.now.0.saturating_add(ttl_max);
        let expires = match event.expiry.to_raw() {
            0 => last,
            expires => expires.min(last),
        };
        Event { expiry: Expiry::from_raw(expires), ..*event }
    }

    /// Gives an item another expiry. One on the SSD moves to RAM with it.
    fn touch(&mut self, event: &Event, tag: u32) {
        let Some(item) = self.items.get_mut(tag) else { return };
        item.expires = event.expiry.to_raw();
        let bytes = item.bytes;
        if let Place::Ssd(_) = item.place() {
            self.store(&Event { bytes, ..*event }, tag);
        }
    }

    /// Reads an item, and returns whether it is missed.
    fn get(&mut self, event: &Event, tag: u32, mixed: u64) -> bool {
        let weight = u64::from(self.scale);
        self.counts.gets += weight;
        let Some(item) = self.items.get_mut(tag) else {
            self.counts.misses[mixed as usize % PARTS] += weight;
            if event.op == Op::Hit {
                // Its client would have stored it now.
                self.store(event, tag);
            }
            return true;
        };
        if event.op == Op::Miss {
            item.expect_set(event.now.0);
        }
        let freq = item.freq() + 1;
        item.set_freq(freq);
        item.set_fetched(true);
        let has_changed = event.op == Op::Hit && item.bytes != event.bytes;
        match item.place() {
            Place::Ram { .. } => self.counts.hits_ram += weight,
            Place::Ssd(place) => {
                self.counts.hits_ssd += weight;
                if item.take_first_read() {
                    self.log.mark_hot(place);
                }
                self.log.count_hit(place);
                if is_promoted(freq) {
                    self.promote(tag, place, event.now.0);
                }
            }
        }
        if has_changed {
            // As by an append, of which only the real cache knows how long the item became.
            self.store(event, tag);
        }
        false
    }

    fn promote(&mut self, tag: u32, from: SsdPlace, now: u32) {
        let Some(bytes) = self.items.get(tag).map(|item| item.bytes) else { return };
        let segments = bytes.div_ceil(self.geometry.segment_bytes);
        if !is_promotable(segments, self.segments()) {
            return;
        }
        self.log.unlink(from, bytes);
        self.append(tag, RamQueue::Main, bytes, true);
        if let Some(item) = self.items.get_mut(tag) {
            item.set_copy(Some(from));
            item.set_freq(0);
        }
        self.make_room(now);
    }

    /// Stores an item in place of the one of its key.
    fn store(&mut self, event: &Event, tag: u32) {
        let (bytes, expires) = (event.bytes, event.expiry.to_raw());
        let in_ram = bytes_in_ram(&self.geometry, bytes, false);
        let old = self.items.get(tag).copied();
        if let Some(old) = old
            && let Place::Ram { .. } = old.place()
            && old.bytes as usize <= self.geometry.large_bytes
            && bytes_in_ram(&self.geometry, old.bytes, old.copy().is_some()) == in_ram
        {
            // It is overwritten where it lies.
            self.record_bytes = self.record_bytes + u64::from(bytes) - u64::from(old.bytes);
            let mut new = Item::new(tag, bytes, expires, old.place());
            new.set_freq(old.freq() + 1);
            self.items.put(new);
            return;
        }
        let came_back = old.is_none() && self.ghost.recall(ghost_hash(tag));
        let freq = self.remove(tag).map_or(0, |old| old.freq());
        let mut new = Item::new(tag, bytes, expires, Place::Ram { queue: 0, position: 0 });
        new.set_freq(freq);
        new.set_stored_again(old.is_some());
        self.items.put(new);
        self.turns += f64::from(in_ram) / self.room().max(1) as f64;
        self.append(tag, queue_of_new(came_back), bytes, false);
        self.make_room(event.now.0);
    }

    /// Appends the record of an item to a queue.
    fn append(&mut self, tag: u32, queue: RamQueue, bytes: u32, has_copy: bool) {
        let in_ram = bytes_in_ram(&self.geometry, bytes, has_copy);
        let position = self.queues[queue as usize].push(Record { tag, bytes: in_ram });
        if let Some(item) = self.items.get_mut(tag) {
            item.set_place(Place::Ram { queue: queue as usize, position });
            self.ram_items += 1;
            self.record_bytes += u64::from(bytes);
            self.ram_bytes += u64::from(in_ram);
        }
    }

    /// Removes an item.
    fn remove(&mut self, tag: u32) -> Option<Item> {
        let item = self.items.remove(tag)?;
        self.leave(&item);
        Some(item)
    }

    /// Discounts an item where it is.
    fn leave(&mut self, item: &Item) {
        match item.place() {
            Place::Ssd(place) => self.log.unlink(place, item.bytes),
            Place::Ram { .. } => {
                self.ram_items -= 1;
                self.record_bytes -= u64::from(item.bytes);
                self.ram_bytes -= u64::from(bytes_in_ram(&self.geometry, item.bytes, item.copy().is_some()));
            }
        }
    }

    /// Returns how many RAM segments the cache would have beside its index.
    fn segments(&self) -> u32 {
        let grown = self.index_bytes.saturating_sub(self.geometry.index_bytes);
        let lent = grown.div_ceil(self.geometry.segment_bytes.into()) as u32;
        self.geometry.ram_segments.saturating_sub(lent).max(1)
    }

    /// Lets the index follow the items.
    fn resize_index(&mut self) {
        let geometry = &self.geometry;
        let entries = (self.ram_items + self.log.live()) * u64::from(self.scale) * ENTRY_BYTES;
        let (least, most) = (entries * 100 / INDEX_FILL_PERCENT, entries * 100 / INDEX_FILL_PERCENT_MIN);
        let bounds = geometry.index_bytes..=geometry.index_bytes_max.max(geometry.index_bytes);
        self.index_bytes =
            self.index_bytes.clamp(least, most.max(least)).clamp(*bounds.start(), *bounds.end());
    }

    /// Returns the bytes that records may take in the sample's RAM: what is left beside the free segments and those
    /// that are being filled.
    fn room(&self) -> u64 {
        let geometry = &self.geometry;
        let segments = self.segments();
        let spare = spare_segments(segments, geometry.large_bytes, geometry.segment_bytes as usize);
        let usable = segments.saturating_sub(spare + geometry.shards).max(1);
        u64::from(usable) * u64::from(geometry.segment_bytes) / u64::from(self.scale)
    }

    /// Returns the part of the sample's RAM that is emptied at once, in bytes: as large a part as a segment is of a
    /// shard.
    fn segment_bytes(&self) -> u64 {
        let bytes = u64::from(self.geometry.segment_bytes) * u64::from(self.geometry.shards);
        (bytes / u64::from(self.scale)).max(1)
    }

    fn used(&self) -> u64 {
        self.queues.iter().map(Queue::bytes).sum()
    }

    fn make_room(&mut self, now: u32) {
        self.resize_index();
        let room = self.room();
        // An item is kept as often as it was read, and its frequency goes up to three.
        let rounds = (self.used() / self.segment_bytes() + 1) * 5;
        for _ in 0..rounds {
            if self.used() <= room {
                return;
            }
            self.has_evicted = true;
            self.evict(now);
        }
    }

    /// Empties a segment.
    fn evict(&mut self, now: u32) {
        let segment_bytes = self.segment_bytes();
        let segments = |bytes: u64| (bytes / segment_bytes) as u32;
        let small = segments(self.queues[RamQueue::Small as usize].bytes());
        let front = self.queues[RamQueue::Main as usize].front();
        let is_spent = front
            .is_some_and(|(record, _)| self.items.get(record.tag).is_some_and(|item| item.has_expired(now)));
        let order = victim_order(small, segments(self.used()) + 1, is_spent);
        let Some(queue) = order.into_iter().find(|queue| self.queues[*queue as usize].front().is_some())
        else {
            return;
        };
        let mut emptied = 0;
        while emptied < segment_bytes {
            let Some((record, position)) = self.queues[queue as usize].pop() else { return };
            emptied += u64::from(record.bytes);
            let here = Place::Ram { queue: queue as usize, position };
            let item = self.items.get(record.tag).filter(|item| item.place() == here).copied();
            if let Some(item) = item {
                self.retire(queue, item, now);
            }
        }
    }

    /// Keeps, demotes or drops an item whose record goes.
    fn retire(&mut self, queue: RamQueue, item: Item, now: u32) {
        let tag = item.tag();
        if item.has_expired(now) {
            self.remove(tag);
            return;
        }
        let mean_bytes = self.record_bytes / self.ram_items.max(1);
        let freq_there = freq_on_ssd(item.freq(), item.is_fetched());
        if let Some(freq) = kept_freq(queue, item.freq(), item.bytes.into(), mean_bytes) {
            return self.keep(&item, freq);
        }
        if let Some(copy) = item.copy().filter(|copy| self.log.is_live(*copy, now)) {
            self.leave(&item);
            self.log.link(copy, item.bytes);
            if let Some(item) = self.items.get_mut(tag) {
                item.set_place(Place::Ssd(copy));
                item.set_copy(None);
                item.set_freq(freq_there);
            }
            return;
        }
        match exit_of(&self.leaving(queue, &item, now)) {
            Exit::Demote => self.demote(item, freq_there, now),
            Exit::Stay => self.keep(&item, item.freq()),
            Exit::Drop(_) => {
                self.remove(tag);
                self.ghost.remember(ghost_hash(tag));
            }
        }
    }

    fn leaving(&self, queue: RamQueue, item: &Item, now: u32) -> Leaving {
        let is_sparse = self.ram_bytes * 2 < self.used().saturating_sub(2 * self.segment_bytes());
        Leaving {
            queue,
            is_stored_again: item.is_stored_again(),
            seconds_left: Expiry::from_raw(item.expires).seconds_left(Seconds(now)),
            fits_ssd: self.geometry.ssd_segments > 0 && item.bytes as usize <= SSD_VALUE_BYTES_MAX,
            is_rationed: self.rules.admission.is_rationing(self.budget.is_limited(), || self.log.is_full()),
            may_write: self.budget.allows(Seconds(now)),
            must_stay: is_sparse && item.bytes as usize <= self.geometry.large_bytes,
        }
    }

    /// Moves an item on to the main queue.
    fn keep(&mut self, item: &Item, freq: u8) {
        self.leave(item);
        self.append(item.tag(), RamQueue::Main, item.bytes, item.copy().is_some());
        if let Some(item) = self.items.get_mut(item.tag()) {
            item.set_freq(freq);
        }
    }

    fn demote(&mut self, item: Item, freq: u8, now: u32) {
        let segments = self.geometry.ssd_segments;
        let bytes = self.log.segment_bytes(segments, crate::ssd::SEGMENT_BYTES);
        let at = At { now, segment_bytes: bytes / f64::from(self.scale), doubt: self.room_doubt() };
        let left = item.expires.wrapping_sub(now);
        let is_short_lived = item.expires != 0 && left < SHORT_LIVED_SECONDS;
        let record = Record { tag: item.tag(), bytes: item.bytes };
        self.leave(&item);
        let before = self.log.written.device_bytes;
        let place = self.log.append(&mut self.items, record, is_short_lived, &at);
        self.budget.charge(((self.log.written.device_bytes - before) * f64::from(self.scale)) as usize);
        match (place, self.items.get_mut(item.tag())) {
            (Some(place), Some(item)) => item.set_written(place, freq),
            _ => {
                self.items.remove(item.tag());
            }
        }
    }

    /// Looks at every second key of its sample from now on, and forgets the others: so its memory halves.
    pub fn halve(&mut self) {
        self.scale *= 2;
        // What it has seen is multiplied by the scale.
        self.log.written.admitted_bytes /= 2.0;
        self.log.written.device_bytes /= 2.0;
        self.log.written_by_label.as_flattened_mut().iter_mut().for_each(|bytes| *bytes /= 2.0);
        let parts = self.scale / self.first_scale;
        self.items.retain(|item| is_in_part(item.tag(), parts));
        for queue in 0..self.queues.len() {
            let mut kept = Queue::default();
            while let Some((record, position)) = self.queues[queue].pop() {
                if is_in_part(record.tag, parts) {
                    let here = Place::Ram { queue, position };
                    let position = kept.push(record);
                    if let Some(item) = self.items.get_mut(record.tag).filter(|item| item.place() == here) {
                        item.set_place(Place::Ram { queue, position });
                    }
                }
            }
            self.queues[queue] = kept;
        }
        self.log.retain(|tag| is_in_part(tag, parts), &self.items);
        let ghosts = (self.geometry.ghosts / u64::from(self.scale)).max(16) as usize;
        self.ghost = Ghost::new(vec![0; ghosts]);
        self.count_again();
    }

    /// Counts the items in RAM.
    fn count_again(&mut self) {
        (self.ram_items, self.record_bytes, self.ram_bytes) = (0, 0, 0);
        for item in self.items.iter().filter(|item| matches!(item.place(), Place::Ram { .. })) {
            let has_copy = item.copy().is_some();
            self.ram_items += 1;
            self.record_bytes += u64::from(item.bytes);
            self.ram_bytes += u64::from(bytes_in_ram(&self.geometry, item.bytes, has_copy));
        }
    }
}
