//! Requests of several keys, gets and sets in a row: with several servers, each of them is sent its part.

use super::super::connection::{QuietSet, Request, SplitPart};
use super::super::ledger::Write;
use super::Reactor;
use crate::wire::{Value, Verb};
use crate::workload::Asked;

impl Reactor<'_> {
    /// Asks for `keys`, each on the connection of the same client to its server.
    pub(super) fn ask_split_get(&mut self, index: usize, asked: Asked, due_ns: u64) {
        let keys = std::mem::take(&mut self.keys);
        let homes: Vec<usize> = keys.iter().map(|key| self.home(index, *key, Verb::Get)).collect();
        let part = self.next_part(index, &homes);
        for home in self.connections_of(index).filter(|home| homes.contains(home)) {
            self.keys.clear();
            self.keys.extend(keys.iter().zip(&homes).filter(|(_, at)| **at == home).map(|(key, _)| *key));
            let Some(key) = self.keys.first().copied() else { continue };
            if self.keys.len() == 1 {
                self.keys.clear();
            }
            self.send_part(home, Asked { key, ..asked }, None, 0, due_ns, part);
        }
        self.keys = keys;
    }

    /// The mark of the parts of a request whose keys are at home there.
    fn next_part(&mut self, index: usize, homes: &[usize]) -> SplitPart {
        let parts = self.connections_of(index).filter(|home| homes.contains(home)).count() as u32;
        self.split = self.split.wrapping_add(1);
        SplitPart { of: self.split, parts }
    }

    /// Asks for sets in a row, of which the last is answered.
    pub(super) fn ask_quiet_sets(&mut self, index: usize, asked: Asked, due_ns: u64) {
        self.sets.clear();
        self.known.clear();
        let mut next = asked;
        for _ in 0..self.shared.workload().quiet_sets {
            let (write, version) = self.begin(next.key, Some(Write::Set));
            let value = Value { bytes: next.size, expiry_s: next.expiry_s, version };
            self.sets.push(QuietSet { key: next.key, value, write });
            let draw = &mut self.connections[index].draw;
            let key = draw.another_key(&mut self.shared, true);
            next = draw.set(&self.shared, key);
        }
        let all = std::mem::take(&mut self.sets);
        let homes: Vec<usize> = all.iter().map(|set| self.home(index, set.key, Verb::Set)).collect();
        let part = self.next_part(index, &homes);
        for home in self.connections_of(index).filter(|home| homes.contains(home)) {
            let mine = all.iter().zip(&homes).filter(|(_, at)| **at == home).map(|(set, _)| *set);
            self.sets.clear();
            self.sets.extend(mine);
            let Some(QuietSet { key, value, write }) = self.sets.first().copied() else { continue };
            let sets = if self.sets.len() == 1 { &[] } else { &self.sets[..] };
            let asked = Asked { key, size: value.bytes, expiry_s: value.expiry_s, ..asked };
            let version = value.version;
            let request =
                Request { asked, keys: &[], sets, known: &[], unique: 0, due_ns, version, write, part };
            self.connections[home].ask(self.encoder, request);
            self.in_flight += 1;
        }
        self.sets = all;
    }
}
