//! A trace as a cache sees it: which item, of how many bytes, and whether it is read, stored or deleted.
//!
//! - `get` and `gets` read, and so do `incr` and `decr`, which need the item as a get does. A read that
//!   misses stores the item (look-aside), so after a read the item is there if the cache wants it.
//! - Storing of any kind stores; nothing is missed by it.
//! - An item's bytes are those of its key and value, without a server's overhead. A read that
//!   tells no value's length has the length last told of the item.
//! - Expiry is left out: an item that expires can only be missed more often.

use super::{Op, Record};
use std::collections::HashMap;
use std::io;

/// An operation on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// It is asked for, and afterwards may be kept.
    Read,
    /// It is brought, and may be kept.
    Store,
    /// It is gone.
    Delete,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which item, numbered from 0 by first appearance.
    pub item: u32,
    /// The operation.
    pub does: Does,
    /// Its bytes afterwards; of a delete those it had.
    pub bytes: u64,
}

/// The accesses of a trace, in order.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// Every request.
    pub all: Vec<Access>,
    /// How many items there are.
    pub items: u64,
    /// Bytes of all items together, each as large as it was last.
    pub footprint_bytes: u64,
}

impl Accesses {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// The first of the records that is one, or there are more items than a number of 32 bits has room for.
    pub fn read(records: impl Iterator<Item = io::Result<Record>>) -> io::Result<Self> {
        let mut known: HashMap<u64, (u32, u64)> = HashMap::new();
        let mut all = Vec::new();
        for record in records {
            let record = record?;
            let next = u32::try_from(known.len()).map_err(|_| io::Error::other("more than 2^32 items"))?;
            let (item, bytes) = known.entry(record.key).or_insert((next, 0));
            let does = match record.op {
                Op::Get | Op::Gets | Op::Incr | Op::Decr => Does::Read,
                Op::Delete => Does::Delete,
                _ => Does::Store,
            };
            let told = u64::from(record.key_bytes) + u64::from(record.value_bytes);
            if does == Does::Store || record.value_bytes > 0 || *bytes == 0 {
                *bytes = told;
            }
            all.push(Access { item: *item, does, bytes: *bytes });
        }
        let footprint_bytes = known.values().map(|(_, bytes)| bytes).sum();
        Ok(Self { all, items: known.len() as u64, footprint_bytes })
    }

    /// How many read.
    pub fn reads(&self) -> u64 {
        self.all.iter().filter(|access| access.does == Does::Read).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_keeps_the_length_that_was_last_told() {
        let record =
            |op, key, value_bytes| Ok(Record { key, op, key_bytes: 3, value_bytes, ..Record::default() });
        let records =
            [(Op::Set, 7, 10), (Op::Get, 7, 0), (Op::Get, 8, 5), (Op::Delete, 7, 0), (Op::Set, 8, 0)];
        let accesses = Accesses::read(records.into_iter().map(|(op, key, bytes)| record(op, key, bytes)));
        let accesses = accesses.expect("nothing is wrong");
        let seen: Vec<(u32, Does, u64)> = accesses.all.iter().map(|a| (a.item, a.does, a.bytes)).collect();
        let want = [
            (0, Does::Store, 13),
            (0, Does::Read, 13),
            (1, Does::Read, 8),
            (0, Does::Delete, 13),
            (1, Does::Store, 3),
        ];
        assert_eq!(seen, want);
        assert_eq!((accesses.items, accesses.footprint_bytes, accesses.reads()), (2, 16, 2));
    }
}
