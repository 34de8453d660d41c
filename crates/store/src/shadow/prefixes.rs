//! What each prefix of keys costs and gives, by a sample: the bytes that its items have in RAM and on the SSD, the
//! bytes written, the reads of the device, hits and misses.
//!
//! Hits, misses and reads are those of the real cache. Bytes held and written are those of the shadow of the cache's
//! own size, of which each item knows its prefix's slot.
//!
//! ```text
//!   event: prefix's number --> slot --+--> hits, misses, reads of that slot
//!                                     +--> label of the shadow's item --> bytes held, bytes written
//! ```
//! Slots are few. A prefix that finds none free is counted under slot 0 (others), and takes the slot of the prefix that
//! is least asked for once it is asked for clearly more. The table of those without a slot is bounded, too: in each of
//! its cells the prefix that comes most often stays (the majority vote of Boyer and Moore).

use std::collections::HashMap;
use std::sync::Arc;

use super::estimate::QUANTILE;
use super::{PARTS, Shadow, State};
use crate::sample::{Event, Op, PrefixNames, PrefixNumber};

/// Prefixes that are reported by name. All others are reported together.
pub const PREFIXES_SHOWN: usize = 32;
/// The slot of all prefixes without one.
const OTHERS: u16 = 0;
/// Slots: as many as are shown at least, and some to choose from.
const SLOTS_MIN: usize = PREFIXES_SHOWN + 4;
const SLOTS_MAX: usize = 1024;
/// The bytes that the longest prefix takes.
const NAME_BYTES_MAX: usize = 250;
/// Cells for prefixes without a slot.
const CELLS: usize = 256;
/// What of its weight a prefix keeps from one settlement to the next.
const FADE: f64 = 0.9;
/// How much more a prefix must be asked for than the one whose slot it takes.
const CLEARLY_MORE: f64 = 2.0;
/// The most slots that change their prefix in one settlement.
const CHANGES_MAX: usize = 4;
/// By how much the bytes of a shadow may be off that are held in a tier, and those written, as a part of them.
const HELD_DOUBT: f64 = 0.05;
const WRITTEN_DOUBT: f64 = 0.1;
/// How many segments' worth of a prefix's items the shadow may have dropped sooner or later than the store.
const SEGMENTS_DOUBT: f64 = 2.0;

/// What is accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes of the records of items in RAM now.
    RamBytes,
    /// Bytes of the records of items that are on the SSD, and not in RAM, now.
    SsdBytes,
    /// Bytes written to the SSD in the window.
    SsdBytesWritten,
    /// Requests for which the device was read, in the window.
    DeviceReads,
    /// Gets that found an item, in the window.
    Hits,
    /// Gets that found none, in the window.
    Misses,
}

const QUANTITIES: usize = 6;

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; QUANTITIES] = [
        Quantity::RamBytes,
        Quantity::SsdBytes,
        Quantity::SsdBytesWritten,
        Quantity::DeviceReads,
        Quantity::Hits,
        Quantity::Misses,
    ];

    /// Returns its name in lists of figures.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::RamBytes => "ram_bytes",
            Quantity::SsdBytes => "ssd_bytes",
            Quantity::SsdBytesWritten => "ssd_bytes_written",
            Quantity::DeviceReads => "device_reads",
            Quantity::Hits => "hits",
            Quantity::Misses => "misses",
        }
    }

    /// Returns whether it is of the window, and not of now.
    fn is_flow(self) -> bool {
        !matches!(self, Quantity::RamBytes | Quantity::SsdBytes)
    }

    /// Returns by how much the shadow may be off that an amount comes from.
    fn doubt(self, value: f64, shadow: &Shadow) -> f64 {
        match self {
            // What is emptied at once may be gone here, and still there.
            Quantity::RamBytes => (value * HELD_DOUBT).hypot(value.min(shadow.emptied_bytes())),
            Quantity::SsdBytes => {
                value * HELD_DOUBT.hypot(SEGMENTS_DOUBT / shadow.ssd_segments().max(1) as f64)
            }
            Quantity::SsdBytesWritten => value * WRITTEN_DOUBT,
            Quantity::DeviceReads | Quantity::Hits | Quantity::Misses => 0.0,
        }
    }
}

/// An amount of all keys, estimated by those of the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    /// The estimate.
    pub value: f64,
    /// By how much it may be too large or too small: half the interval of 95 %.
    pub error: f64,
}

/// What a prefix costs and gives.
#[derive(Clone, Debug)]
pub struct PrefixAmounts {
    /// The prefix; `None` for all that are not reported by name.
    pub name: Option<Box<[u8]>>,
    /// The sampled items that the amounts rest on.
    pub items: u64,
    /// The amounts, in the order of [`Quantity::ALL`].
    pub amounts: [Amount; QUANTITIES],
}

impl PrefixAmounts {
    /// Returns an amount.
    pub fn of(&self, quantity: Quantity) -> Amount {
        self.amounts[quantity as usize]
    }
}

/// What all prefixes cost and give.
#[derive(Clone, Debug)]
pub struct PrefixReport {
    /// Those with the largest share of anything, the largest first; at last, all others together.
    pub rows: Vec<PrefixAmounts>,
    /// The byte that ends a prefix.
    pub delimiter: u8,
    /// One key of so many is in the sample.
    pub scale: u32,
    /// Whether the shadow of the cache's own size has filled: before, it holds less than the cache after a warm
    /// restart.
    pub state: State,
}

impl PrefixReport {
    /// Returns how much of all prefixes' amount one has, from 0 to 1.
    pub fn share(&self, row: &PrefixAmounts, quantity: Quantity) -> f64 {
        share(row.of(quantity).value, self.rows.iter().map(|row| row.of(quantity).value).sum())
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// An amount, by part of the sample: the parts differ by keys.
pub(super) type Parts = [f64; PARTS];

/// A prefix that is accounted for.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// `None` if it is free, and of the others.
    number: Option<PrefixNumber>,
    name: Option<Box<[u8]>>,
    /// How much it was asked for of late.
    weight: f64,
    items: u64,
    /// What was counted in the last two windows, the earlier one first. What is held now is in the latter.
    windows: [[Parts; QUANTITIES]; 2],
}

impl Slot {
    fn parts(&self, quantity: Quantity) -> Parts {
        let [before, now] = [0, 1].map(|window| self.windows[window][quantity as usize]);
        std::array::from_fn(|part| before[part] + now[part])
    }

    fn sum(&self, quantity: Quantity) -> f64 {
        self.parts(quantity).iter().sum()
    }

    /// Adds what another one was counted.
    fn add(&mut self, other: &Slot) {
        self.items += other.items;
        for (to, from) in self.windows.as_flattened_mut().iter_mut().zip(other.windows.as_flattened()) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }

    fn amount(&self, quantity: Quantity, shadow: &Shadow) -> Amount {
        let parts = self.parts(quantity);
        let value: f64 = parts.iter().sum();
        let (count, mean) = (PARTS as f64, value / PARTS as f64);
        let spread: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
        // A sample of all keys has nothing by chance.
        let by_chance = 1.0 - 1.0 / f64::from(shadow.scale());
        let of_sample = QUANTILE * (spread * count / (count - 1.0) * by_chance).sqrt();
        Amount { value, error: of_sample.hypot(quantity.doubt(value, shadow)) }
    }
}

/// A prefix without a slot, and how much it was asked for of late.
type Cell = Option<(PrefixNumber, f64)>;

/// The prefixes, and what they cost and give.
pub(super) struct Prefixes {
    names: Arc<PrefixNames>,
    /// The first is that of all others.
    slots: Vec<Slot>,
    by_number: HashMap<PrefixNumber, u16>,
    free: Vec<u16>,
    cells: Vec<Cell>,
    /// Sets and the bytes of what they stored.
    sets: f64,
    set_bytes: f64,
}

impl Prefixes {
    /// None yet, in at most `memory_bytes_max` bytes, if that is enough for those that are shown.
    pub(super) fn new(names: Arc<PrefixNames>, memory_bytes_max: usize) -> Prefixes {
        let for_slots = memory_bytes_max.saturating_sub(CELLS * size_of::<Cell>());
        let count = (for_slots / Prefixes::slot_bytes()).clamp(SLOTS_MIN, SLOTS_MAX);
        Prefixes {
            names,
            slots: vec![Slot::default(); count],
            by_number: HashMap::with_capacity(count),
            free: (1..count as u16).rev().collect(),
            cells: vec![None; CELLS],
            sets: 0.0,
            set_bytes: 0.0,
        }
    }

    /// Returns what a slot takes, in bytes: with a long name, its place in the map, and the bytes written for it.
    const fn slot_bytes() -> usize {
        size_of::<Slot>() + NAME_BYTES_MAX + 4 * size_of::<(PrefixNumber, u16)>() + size_of::<Parts>()
    }

    /// Returns the memory that they take, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * Prefixes::slot_bytes() + size_of_val(self.cells.as_slice())
    }

    /// Takes a request into account that a shadow has been fed with: of the cache's own size, and with its key in the
    /// sample.
    pub(super) fn feed(&mut self, event: &Event, shadow: &mut Shadow) {
        let tag = shadow.tag(event.hash);
        let slot = event.prefix.map_or(OTHERS, |number| self.slot_of(number, self.weight_of(event)));
        shadow.label(tag, slot);
        if event.op == Op::Set {
            (self.sets, self.set_bytes) = (self.sets + 1.0, self.set_bytes + f64::from(event.bytes));
        }
        let counted = match event.op {
            Op::Hit => Some(Quantity::Hits),
            Op::Miss => Some(Quantity::Misses),
            Op::Set | Op::Touch | Op::Delete => None,
        };
        // A touch follows the hit that it is part of.
        let read = (event.has_read && event.op != Op::Touch).then_some(Quantity::DeviceReads);
        for quantity in [counted, read].into_iter().flatten() {
            let parts = &mut self.slots[usize::from(slot)].windows[1][quantity as usize];
            parts[part_of(tag)] += f64::from(shadow.scale());
        }
    }

    /// Returns how much a request counts when prefixes compete for slots: one, and more for a set of more than the
    /// mean.
    fn weight_of(&self, event: &Event) -> f64 {
        match event.op {
            Op::Set if self.set_bytes > 0.0 => 1.0 + f64::from(event.bytes) * self.sets / self.set_bytes,
            _ => 1.0,
        }
    }

    /// Returns the slot of a prefix, a free one if it has none yet.
    fn slot_of(&mut self, number: PrefixNumber, weight: f64) -> u16 {
        if let Some(&slot) = self.by_number.get(&number) {
            self.slots[usize::from(slot)].weight += weight;
            return slot;
        }
        if let Some(slot) = self.free.pop() {
            self.give(slot, number, weight);
            return slot;
        }
        let cell = &mut self.cells[number.hash() % CELLS];
        match cell {
            Some((found, sum)) if *found == number => *sum += weight,
            Some((_, sum)) if *sum >= weight => *sum -= weight,
            _ => *cell = Some((number, weight)),
        }
        OTHERS
    }

    fn give(&mut self, slot: u16, number: PrefixNumber, weight: f64) {
        self.by_number.insert(number, slot);
        self.slots[usize::from(slot)] = Slot { number: Some(number), weight, ..Slot::default() };
        self.names.ask(number);
    }

    /// Brings the amounts up to date with the shadow, takes names that have come, and gives slots to prefixes that are
    /// asked for more than others. To be called now and then.
    pub(super) fn settle(&mut self, shadow: &mut Shadow) {
        for (number, name) in self.names.take() {
            if let Some(slot) = self.by_number.get(&number) {
                self.slots[usize::from(*slot)].name.get_or_insert(name);
            }
        }
        self.draw_written(shadow);
        let is_lost = self.change_slots();
        if is_lost.iter().any(|is_lost| *is_lost) {
            shadow.relabel(|slot| if is_lost[usize::from(slot)] { OTHERS } else { slot });
        }
        self.weigh_held(shadow);
        let unnamed = self.slots.iter().filter(|slot| slot.name.is_none());
        unnamed.filter_map(|slot| slot.number).for_each(|number| self.names.ask(number));
    }

    /// Adds the bytes that the shadow has written since the last time.
    fn draw_written(&mut self, shadow: &mut Shadow) {
        let scale = f64::from(shadow.scale());
        let written = shadow.written_by_label(self.slots.len());
        for (slot, from) in self.slots.iter_mut().zip(written) {
            let to = &mut slot.windows[1][Quantity::SsdBytesWritten as usize];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += std::mem::take(from) * scale);
        }
    }

    /// Gives slots of prefixes that are hardly asked for, and hold little, to others. Returns which slots have changed.
    fn change_slots(&mut self) -> Vec<bool> {
        let mut is_lost = vec![false; self.slots.len()];
        for slot in &mut self.slots {
            slot.weight *= FADE;
        }
        for cell in self.cells.iter_mut().flatten() {
            cell.1 *= FADE;
        }
        for _ in 0..CHANGES_MAX {
            let weight_of = |cell: &Cell| cell.map_or(0.0, |(_, weight)| weight);
            let best = (0..CELLS)
                .max_by(|one, next| weight_of(&self.cells[*one]).total_cmp(&weight_of(&self.cells[*next])));
            let (Some(best), Some((nth, least))) = (best, self.least()) else { break };
            let Some((number, weight)) = self.cells[best] else { break };
            if !self.free.is_empty() || weight < 1.0 + CLEARLY_MORE * least {
                break;
            }
            self.cells[best] = None;
            let lost = std::mem::take(&mut self.slots[nth]);
            if let Some(number) = lost.number {
                self.by_number.remove(&number);
            }
            self.slots[usize::from(OTHERS)].add(&lost);
            self.give(nth as u16, number, weight);
            is_lost[nth] = true;
        }
        is_lost
    }

    /// Returns the slot whose prefix matters least, and how much: a share of the bytes held counts as the same share of
    /// what is asked for.
    fn least(&self) -> Option<(usize, f64)> {
        let held = |slot: &Slot| slot.sum(Quantity::RamBytes) + slot.sum(Quantity::SsdBytes);
        let asked: f64 = self.slots.iter().map(|slot| slot.weight).sum();
        let all_held: f64 = self.slots.iter().map(held).sum();
        let tracked = self.slots.iter().enumerate().filter(|(_, slot)| slot.number.is_some());
        let weights = tracked.map(|(nth, slot)| (nth, slot.weight + asked * share(held(slot), all_held)));
        weights.min_by(|one, next| one.1.total_cmp(&next.1))
    }

    /// Counts the bytes that the shadow holds.
    fn weigh_held(&mut self, shadow: &Shadow) {
        for slot in &mut self.slots {
            slot.items = 0;
            for quantity in Quantity::ALL.into_iter().filter(|quantity| !quantity.is_flow()) {
                slot.windows[1][quantity as usize] = Parts::default();
            }
        }
        let scale = f64::from(shadow.scale());
        for held in shadow.held() {
            let slot = &mut self.slots[usize::from(held.label)];
            let quantity = if held.is_in_ram { Quantity::RamBytes } else { Quantity::SsdBytes };
            slot.items += 1;
            slot.windows[1][quantity as usize][part_of(held.tag)] += f64::from(held.bytes) * scale;
        }
    }

    /// Begins another window.
    pub(super) fn turn(&mut self, shadow: &mut Shadow) {
        self.draw_written(shadow);
        for slot in &mut self.slots {
            let [before, now] = &mut slot.windows;
            for quantity in Quantity::ALL.into_iter().filter(|quantity| quantity.is_flow()) {
                before[quantity as usize] = std::mem::take(&mut now[quantity as usize]);
            }
        }
    }

    /// Returns what they cost and give, as of the last settlement.
    pub(super) fn report(&self, shadow: &Shadow, state: State) -> PrefixReport {
        let all = Quantity::ALL.map(|quantity| self.slots.iter().map(|slot| slot.sum(quantity)).sum::<f64>());
        let largest_share = |slot: &Slot| {
            let shares = Quantity::ALL.map(|quantity| share(slot.sum(quantity), all[quantity as usize]));
            shares.into_iter().fold(0.0, f64::max)
        };
        let mut named: Vec<(f64, &Slot)> = self
            .slots
            .iter()
            .filter(|slot| slot.name.is_some())
            .map(|slot| (largest_share(slot), slot))
            .collect();
        named.retain(|(share, _)| *share > 0.0);
        // Equal ones are in the order of their names, so that they do not change places.
        named.sort_by(|(one, a), (next, b)| next.total_cmp(one).then_with(|| a.name.cmp(&b.name)));
        let hidden = named.split_off(named.len().min(PREFIXES_SHOWN));
        let mut others = Slot::default();
        let unnamed = self.slots.iter().filter(|slot| slot.name.is_none());
        unnamed.chain(hidden.into_iter().map(|(_, slot)| slot)).for_each(|slot| others.add(slot));
        let row = |slot: &Slot| PrefixAmounts {
            name: slot.name.clone(),
            items: slot.items,
            amounts: Quantity::ALL.map(|quantity| slot.amount(quantity, shadow)),
        };
        let rows = named.into_iter().map(|(_, slot)| row(slot)).chain([row(&others)]).collect();
        PrefixReport { rows, delimiter: self.names.delimiter(), scale: shadow.scale(), state }
    }
}

/// Returns the part of the sample that an item is in: by other bits than those that halve it.
pub(super) fn part_of(tag: u32) -> usize {
    tag as usize % PARTS
}
