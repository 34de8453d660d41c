//! Whether a shard's counts and entries agree with its records: for tests.

use super::*;

impl Shard {
    /// Recounts items, bytes and entries from the index, and segments from the queues.
    pub(crate) fn check(&self, tiers: &Tiers) -> Result<(), String> {
        let (mut items, mut bytes, mut entries) = (0, 0, 0);
        let mut tally = Tally::default();
        let (mut demotion, mut log_bytes) = (0, 0);
        for entry in self.index.entries() {
            entries += 1;
            if matches!(entry.state(), State::Ram | State::RamLarge) {
                let record = self.ram_record(tiers, entry);
                let hash = tiers.hasher.hash(record.key());
                if hash.tag() != entry.tag() || self.index.find_place(hash, entry).is_none() {
                    return Err(format!("{entry:?} is not where its key {:?} is looked for", record.key()));
                }
                items += 1;
                bytes += record.header().bytes() as u64;
                tally.add(self.queue_with(tiers, entry), record.header(), tiers.epoch());
                if entry.state() == State::Ram {
                    log_bytes += record.header().ram_bytes() as u64;
                }
                if let RamRecord::Large { head, .. } = record {
                    demotion += if tiers.pool.queue_of(head) == 0 { tiers.pool.chain_len(head) } else { 0 };
                }
            }
        }
        let queued = self.head().queues.iter().flat_map(|queue| tiers.pool.queued(queue));
        let queued: u32 = queued.map(|id| tiers.pool.size_of(id)).sum();
        let open = self.open_segments();
        let (held, _) = tiers.pool.recount(&self.owner);
        if held != queued + open + demotion {
            return Err(format!("holds {held} segments; {queued} queued, {open} open, {demotion} demotion"));
        }
        if self.log_bytes != log_bytes {
            return Err(format!("counts {} bytes in log segments, has {log_bytes}", self.log_bytes));
        }
        let (counted, found) = (self.tally.at(tiers.epoch()), tally.at(tiers.epoch()));
        if counted != found {
            return Err(format!("counts {counted:?}, has {found:?}"));
        }
        let head = self.head();
        let counted = (head.ram_items, head.ram_bytes, head.index_entries);
        if counted != (items, bytes, entries) {
            return Err(format!(
                "counts {counted:?} (items, bytes, entries), has {:?}",
                (items, bytes, entries)
            ));
        }
        Ok(())
    }
}
