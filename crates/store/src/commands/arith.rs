//! Counting up and down in decimal values, as memcached does.

use super::lookup::Look;
use super::{Attempt, Call, write};
use crate::clock::Expiry;
use crate::index::Slot;
use crate::index::entry::Entry;
use crate::ram::pool::Reservation;
use crate::read::Needs;
use crate::record::{FETCHED, RecordHeader};
use crate::shard::Shard;
use crate::store::{Step, Store};
use crate::tiers::Tiers;
use crate::value::Value;

/// How to count.
#[derive(Clone, Copy, Debug)]
pub struct Arith {
    /// By how much.
    pub delta: u64,
    /// Down, stopping at 0, rather than up, wrapping at 2^64.
    pub decrement: bool,
    /// When absent: create with this value and expiry.
    pub initial: Option<(u64, Expiry)>,
    /// Only if the item has this cas unique.
    pub compare: Option<u64>,
    /// The new cas unique, if not the store's choice.
    pub new_cas: Option<u64>,
    /// Set this expiry.
    pub touch: Option<Expiry>,
    /// For an item that is created: the key was sent encoded.
    pub key_is_binary: bool,
}

/// How counting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithResult {
    /// The new value, and the item's cas unique and expiry.
    Value {
        /// The number.
        value: u64,
        /// The item's new cas unique.
        cas: u64,
        /// The item's expiry before this call; never for one that it created.
        expiry_before: Expiry,
        /// The item's expiry after it.
        expiry: Expiry,
        /// Whether this call created the item.
        created: bool,
    },
    /// There was nothing.
    NotFound,
    /// The cas unique differs.
    Exists,
    /// The value is not a decimal number below 2^64.
    NonNumeric,
}

/// The most digits a counter can have.
const DIGITS_MAX: usize = 20;

/// A value as a number: blanks, digits, then nothing or a blank and whatever follows, at most 20 bytes in
/// all.
fn number(value: &[u8]) -> Option<u64> {
    if value.len() > DIGITS_MAX {
        return None;
    }
    let digits = value.trim_ascii_start();
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    let end = digits.iter().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 || digits.get(end).is_some_and(|b| !b.is_ascii_whitespace()) {
        return None;
    }
    digits[..end].iter().try_fold(0_u64, |n, b| n.checked_mul(10)?.checked_add(u64::from(b - b'0')))
}

impl Arith {
    /// Creates the item with the initial value, if there is one.
    fn create(
        &self,
        shard: &mut Shard,
        tiers: &Tiers,
        call: &Call<'_>,
        old: Option<(Slot, Entry)>,
        reservation: &mut Option<Reservation>,
    ) -> Attempt<ArithResult> {
        let Some((value, expiry)) = self.initial else {
            return Attempt::Done(ArithResult::NotFound);
        };
        let text = value.to_string();
        let header = RecordHeader {
            value_len: text.len() as u32,
            ..call.new_header(tiers, self.new_cas, expiry, self.key_is_binary)
        };
        let cas = header.cas;
        match write(shard, tiers, call, old, &header, &[text.as_bytes()], reservation) {
            Attempt::Done(()) => {
                let expiry_before = Expiry::Never;
                Attempt::Done(ArithResult::Value { value, cas, expiry_before, expiry, created: true })
            }
            other => other.retry(),
        }
    }
}

impl Store {
    /// Counts. The new value keeps the old one's length where it is shorter, padded with blanks, as memcached
    /// stores it.
    pub fn arith(&self, call: &Call<'_>, arith: &Arith) -> Step<ArithResult> {
        let tiers = &self.tiers;
        let mut needs = Needs::Header;
        self.attempt(call, |shard, reservation| {
            let seen = match shard.look(tiers, call, needs) {
                Look::Read(plan) => return Attempt::Read(plan),
                Look::Absent(old) => return arith.create(shard, tiers, call, old, reservation),
                Look::Found(seen) => seen,
            };
            // As in memcached, an empty value is told from a number before the cas uniques are compared.
            if seen.header.value_len == 0 {
                return Attempt::Done(ArithResult::NonNumeric);
            }
            if arith.compare.is_some_and(|compare| compare != seen.header.cas) {
                return Attempt::Done(ArithResult::Exists);
            }
            if seen.header.value_len as usize > DIGITS_MAX {
                return Attempt::Done(ArithResult::NonNumeric);
            }
            if !seen.has_value() {
                needs = Needs::Value;
                return Attempt::NeedsValue;
            }
            let present = match seen.value(shard, tiers) {
                Value::Slice(value) => number(value),
                value => number(&value.to_vec()),
            };
            let Some(present) = present else {
                return Attempt::Done(ArithResult::NonNumeric);
            };
            let value = match arith.decrement {
                false => present.wrapping_add(arith.delta),
                true => present.saturating_sub(arith.delta),
            };
            let width = seen.header.value_len as usize;
            let text = format!("{value:<width$}");
            let mut header = seen.header;
            header.value_len = text.len() as u32;
            header.cas = arith.new_cas.unwrap_or_else(|| tiers.next_cas());
            if text.len() > width {
                // As in memcached, a value that needs more room is a new item, which was not read yet.
                header.item_flags &= !FETCHED;
            }
            let expiry_before = Expiry::from_raw(header.expires);
            let expiry = arith.touch.unwrap_or(expiry_before);
            header.expires = expiry.to_raw();
            header.accessed = call.now.0;
            match write(shard, tiers, call, seen.old(), &header, &[text.as_bytes()], reservation) {
                Attempt::Done(()) => {
                    let cas = header.cas;
                    Attempt::Done(ArithResult::Value { value, cas, expiry_before, expiry, created: false })
                }
                other => other.retry(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn reads_numbers_as_memcached_does() {
        for (text, value) in
            [("5", 5), ("5  ", 5), ("  5", 5), ("007", 7), ("18446744073709551615", u64::MAX)]
        {
            assert_eq!(number(text.as_bytes()), Some(value), "{text:?}");
        }
        for text in ["", " ", "x", "5x", "-1", "18446744073709551616", "123456789012345678901", "+", "0x1"] {
            assert_eq!(number(text.as_bytes()), None, "{text:?}");
        }
    }
}
