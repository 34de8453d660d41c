//! Deleting an item, or only marking it stale or emptying it.

use super::lookup::Look;
use super::{Attempt, Call, write};
use crate::clock::Expiry;
use crate::index::entry::State;
use crate::read::Needs;
use crate::record::{STALE, WIN_SENT};
use crate::sample::Op;
use crate::store::{Step, Store};

/// How to remove.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remove {
    /// Only if the item has this cas unique.
    pub compare: Option<u64>,
    /// Keep the item, mark it stale, let the next reader win the right to recache it.
    pub invalidate: bool,
    /// Keep the item with an empty value and client flags 0.
    pub empty: bool,
    /// For an item that is kept: its new expiry. Without it an emptied item never expires.
    pub touch: Option<Expiry>,
    /// For an item that is kept: its new cas unique, if not the store's choice.
    pub new_cas: Option<u64>,
}

/// How removing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveResult {
    /// Removed.
    Removed,
    /// Marked or emptied, and now has this cas unique.
    Kept(u64),
    /// There was nothing.
    NotFound,
    /// The cas unique differs.
    Exists,
}

impl Store {
    /// Makes sure that the key has no item, without finding out whether it had one. On the SSD another key's item
    /// with the same tag may go too.
    pub fn forget(&self, call: &Call<'_>) {
        let mut shard = self.change(self.shard_of(call.hash));
        if let Some((slot, entry)) = shard.index().find(call.hash)
            && (entry.state() == State::Ssd || shard.ram_record(&self.tiers, entry).key() == call.key)
        {
            shard.remove(&self.tiers, slot, entry);
        }
        shard.sample(Op::Delete, call.request(), 0, 0);
    }

    /// Removes an item. When the device cannot tell whether the item was there, it is gone all the same.
    pub fn remove(&self, call: &Call<'_>, remove: &Remove) -> Step<RemoveResult> {
        let tiers = &self.tiers;
        let keeps_value = remove.invalidate && !remove.empty;
        let mut needs = if keeps_value && remove.compare.is_none() { Needs::Value } else { Needs::Header };
        self.attempt(call, |shard, reservation| {
            let seen = match shard.look(tiers, call, needs) {
                Look::Read(plan) => return Attempt::Read(plan),
                Look::Absent(_) => {
                    // A cache of another size may have it.
                    shard.sample(Op::Delete, call.request(), 0, 0);
                    return Attempt::Done(RemoveResult::NotFound);
                }
                Look::Found(seen) => seen,
            };
            if remove.compare.is_some_and(|compare| compare != seen.header.cas) {
                return Attempt::Done(RemoveResult::Exists);
            }
            if !remove.invalidate && !remove.empty {
                shard.remove(tiers, seen.slot, seen.entry);
                shard.sample(Op::Delete, call.request(), 0, 0);
                return Attempt::Done(RemoveResult::Removed);
            }
            if keeps_value && !seen.has_value() {
                needs = Needs::Value;
                return Attempt::NeedsValue;
            }
            let mut header = seen.header;
            header.cas = remove.new_cas.unwrap_or_else(|| tiers.next_cas());
            if remove.invalidate {
                header.item_flags = header.item_flags & !WIN_SENT | STALE;
            }
            if let Some(expiry) = remove.touch.or(remove.empty.then_some(Expiry::Never)) {
                header.expires = expiry.to_raw();
            }
            let written = if remove.empty {
                (header.value_len, header.client_flags) = (0, 0);
                write(shard, tiers, call, seen.old(), &header, &[], reservation)
            } else if seen.on_ssd() {
                write(shard, tiers, call, seen.old(), &header, &[seen.ssd_value()], reservation)
            } else if shard.rewrite_header(tiers, seen.entry, |present| *present = header) {
                shard.make_dirty(tiers, seen.entry);
                Attempt::Done(())
            } else {
                Attempt::Demoting
            };
            match written {
                Attempt::Done(()) => Attempt::Done(RemoveResult::Kept(header.cas)),
                other => other.retry(),
            }
        })
    }
}
