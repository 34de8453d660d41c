//! A table of leases with a fixed capacity: entries in one array, chained by the hash of their key.

/// A lease: a key, the client's number for it, and the subscription that it is announced to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leased {
    pub(super) hash: u64,
    pub(super) token: u64,
    pub(super) tag: u32,
}

/// An entry of the array. Links are places plus one; 0 is the end.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    token: u64,
    tag: u32,
    next: u32,
}

impl Entry {
    fn lease(&self) -> Leased {
        Leased { hash: self.hash, token: self.token, tag: self.tag }
    }
}

const _: () = assert!(size_of::<Entry>() == 24);
/// Bytes that a lease takes: an entry, and up to two heads of chains.
pub(super) const LEASE_BYTES: usize = size_of::<Entry>() + 2 * size_of::<u32>();

/// The table. It takes its memory with the first lease.
pub(super) struct Table {
    capacity: usize,
    heads: Vec<u32>,
    entries: Vec<Entry>,
    /// The chain of entries that are not in use.
    free: u32,
    used: usize,
    /// The entry that makes room next.
    hand: usize,
}

impl Table {
    pub(super) fn new(capacity: usize) -> Table {
        // Links have 32 bits.
        let capacity = capacity.min(1 << 31);
        Table { capacity, heads: Vec::new(), entries: Vec::new(), free: 0, used: 0, hand: 0 }
    }

    /// Forgets all leases and gives the memory back.
    pub(super) fn clear(&mut self) {
        *self = Table::new(self.capacity);
    }

    /// Returns the number of leases, and the most of them.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.used as u64, self.capacity as u64)
    }

    fn head(&self, hash: u64) -> usize {
        (hash >> 16) as usize & (self.heads.len() - 1)
    }

    /// Adds a lease, if it is not there. Returns one whose place it took.
    pub(super) fn insert(&mut self, lease: Leased) -> Option<Leased> {
        if self.capacity == 0 {
            return Some(lease);
        }
        if self.heads.is_empty() {
            self.heads = vec![0; self.capacity.next_power_of_two()];
            self.entries.reserve_exact(self.capacity);
        }
        if self.chain(lease.hash).any(|entry| self.entries[entry].lease() == lease) {
            return None;
        }
        let (place, displaced) = self.place();
        let head = self.head(lease.hash);
        let Leased { hash, token, tag } = lease;
        self.entries[place] = Entry { hash, token, tag, next: self.heads[head] };
        self.heads[head] = place as u32 + 1;
        self.used += 1;
        displaced
    }

    /// Returns the places of a chain's entries.
    fn chain(&self, hash: u64) -> impl Iterator<Item = usize> {
        let first = self.heads.get(self.head(hash)).copied();
        let places = std::iter::successors(first, |link| {
            self.entries.get((*link).checked_sub(1)? as usize).map(|entry| entry.next)
        });
        places.map_while(|link| Some(link.checked_sub(1)? as usize))
    }

    /// Returns a place that is in no chain, and the lease that had to leave it.
    fn place(&mut self) -> (usize, Option<Leased>) {
        if let Some(place) = self.free.checked_sub(1) {
            let place = place as usize;
            self.free = self.entries[place].next;
            return (place, None);
        }
        if self.entries.len() < self.capacity {
            let place = self.entries.len();
            self.entries.push(Entry { hash: 0, token: 0, tag: 0, next: 0 });
            return (place, None);
        }
        let place = self.hand;
        self.hand = (self.hand + 1) % self.capacity;
        let displaced = self.entries[place].lease();
        self.unlink(displaced.hash, |entry, _| entry == place);
        (place, Some(displaced))
    }

    /// Takes entries out of a key's chain, and returns their places.
    fn unlink(&mut self, hash: u64, is_wanted: impl Fn(usize, u64) -> bool) -> Vec<usize> {
        let head = self.head(hash);
        let (mut link, mut before, mut taken) = (self.heads[head], None::<usize>, Vec::new());
        while let Some(place) = link.checked_sub(1).map(|place| place as usize) {
            let Entry { hash, next, .. } = self.entries[place];
            if is_wanted(place, hash) {
                match before {
                    Some(before) => self.entries[before].next = next,
                    None => self.heads[head] = next,
                }
                taken.push(place);
            } else {
                before = Some(place);
            }
            link = next;
        }
        self.used -= taken.len();
        taken
    }

    /// Takes back all leases of a key.
    pub(super) fn take(&mut self, hash: u64) -> Vec<Leased> {
        if self.used == 0 {
            return Vec::new();
        }
        let places = self.unlink(hash, |_, of_entry| of_entry == hash);
        let leases = places.iter().map(|place| self.entries[*place].lease()).collect();
        for place in places {
            self.entries[place].next = self.free;
            self.free = place as u32 + 1;
        }
        leases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn lease(hash: u64, tag: u32) -> Leased {
        Leased { hash, token: hash * 10, tag }
    }

    #[test]
    fn it_holds_what_a_set_of_the_same_leases_holds() {
        // Few hashes, and fewer chains, so that they collide; a small capacity, so that leases are displaced.
        for capacity in [1, 2, 5, 64] {
            let (mut table, mut model) = (Table::new(capacity), HashSet::new());
            let mut random = 7_u64;
            for _ in 0..20_000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (hash, tag) = (((random >> 33) % 20) << 15, (random >> 60) as u32);
                if random >> 32 & 3 == 0 {
                    let taken: HashSet<_> =
                        table.take(hash).into_iter().map(|one| (one.hash, one.tag)).collect();
                    let wanted: HashSet<_> =
                        model.iter().filter(|one: &&(u64, u32)| one.0 == hash).copied().collect();
                    assert_eq!(taken, wanted);
                    model.retain(|one| one.0 != hash);
                } else {
                    let displaced = table.insert(lease(hash, tag));
                    model.insert((hash, tag));
                    if let Some(displaced) = displaced {
                        assert!(model.len() > capacity && model.remove(&(displaced.hash, displaced.tag)));
                    }
                }
                assert_eq!(table.counts(), (model.len() as u64, capacity as u64));
            }
        }
    }

    #[test]
    fn a_table_without_room_gives_every_lease_back() {
        let mut table = Table::new(0);
        assert_eq!(table.insert(lease(1, 1)), Some(lease(1, 1)));
        assert!(table.take(1).is_empty());
    }
}
