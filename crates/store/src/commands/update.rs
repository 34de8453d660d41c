//! Changing a small value by a function of it, in one step under the shard's lock.

use super::lookup::Look;
use super::{Attempt, Call, write};
use crate::clock::Expiry;
use crate::read::Needs;
use crate::record::RecordHeader;
use crate::store::{Step, Store};
use crate::value::Value;

/// The longest value that an [update](Store::update) changes, in bytes.
pub const UPDATE_BYTES_MAX: usize = 64;

/// What an [update](Store::update) stores.
#[derive(Clone, Copy, Debug)]
pub struct Updated<V> {
    /// The new value.
    pub value: V,
    /// The item's new expiry.
    pub expiry: Expiry,
}

impl Store {
    /// Calls `decide` with the item's value, or none if there is no item, and stores what it returns. Nothing comes
    /// between the two. Without a new value the item stays as it is; one on the SSD moves to RAM, so that the next
    /// update need not read it again. `decide` is called again if the first try finds no room. Returns what its last
    /// call returned beside the new value; none if the item's value has more than [`UPDATE_BYTES_MAX`] bytes, which
    /// changes nothing. `key_is_binary` says of an item that is created that its key was sent encoded.
    pub fn update<V: AsRef<[u8]>, R>(
        &self,
        call: &Call<'_>,
        key_is_binary: bool,
        mut decide: impl FnMut(Option<&[u8]>) -> (Option<Updated<V>>, R),
    ) -> Step<Option<R>> {
        let tiers = &self.tiers;
        let mut needs = Needs::Header;
        self.attempt(call, |shard, reservation| {
            let seen = match shard.look(tiers, call, needs) {
                Look::Read(plan) => return Attempt::Read(plan),
                Look::Absent(old) => {
                    let (new, result) = decide(None);
                    let Some(new) = new else { return Attempt::Done(Some(result)) };
                    let value = new.value.as_ref();
                    let header = call.new_header(tiers, None, new.expiry, key_is_binary);
                    let header = RecordHeader { value_len: value.len() as u32, ..header };
                    return match write(shard, tiers, call, old, &header, &[value], reservation) {
                        Attempt::Done(()) => Attempt::Done(Some(result)),
                        other => other.retry(),
                    };
                }
                Look::Found(seen) => seen,
            };
            if seen.header.value_len as usize > UPDATE_BYTES_MAX {
                return Attempt::Done(None);
            }
            if !seen.has_value() {
                needs = Needs::Value;
                return Attempt::NeedsValue;
            }
            let (new, result) = match seen.value(shard, tiers) {
                Value::Slice(value) => decide(Some(value)),
                value => decide(Some(&value.to_vec())),
            };
            let mut header = seen.header;
            header.accessed = call.now.0;
            let value = match &new {
                Some(new) => {
                    header.value_len = new.value.as_ref().len() as u32;
                    header.cas = tiers.next_cas();
                    header.expires = new.expiry.to_raw();
                    new.value.as_ref()
                }
                None if seen.on_ssd() => seen.ssd_value(),
                None => {
                    shard.bump(seen.slot, seen.entry);
                    return Attempt::Done(Some(result));
                }
            };
            match write(shard, tiers, call, seen.old(), &header, &[value], reservation) {
                Attempt::Done(()) => Attempt::Done(Some(result)),
                other => other.retry(),
            }
        })
    }
}
