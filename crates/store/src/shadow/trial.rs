//! What another option would do: two shadows of the traffic from now on, one of the cache as it is and one of the
//! cache with other options. Both begin cold, so that they differ by the options alone.

use super::pair::Pair;
use super::scale::Scale;
use super::{Counts, Estimate, Real, Rules, Seen, State};
use crate::error::OpenError;
use crate::policy::admission::Admission;
use crate::sample::Event;
use crate::store::{Config, Store};

/// Options to try, each `None` to stay as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The memory limit, in bytes.
    pub memory_bytes: Option<u64>,
    /// All of the SSD, in bytes.
    pub ssd_bytes: Option<u64>,
    /// Which items are written to the SSD.
    pub admission: Option<Admission>,
    /// The expected size of an item, in bytes.
    pub item_bytes: Option<u32>,
    /// The most bytes a second to write to the SSD; 0 for no limit.
    pub ssd_write_limit: Option<u64>,
    /// Seconds after which every item expires at the latest.
    pub ttl_max: Option<u32>,
}

impl Changes {
    /// Returns the options of a cache that is changed so.
    fn applied(&self, config: &Config) -> Config {
        let mut changed = config.clone();
        changed.memory_bytes = self.memory_bytes.unwrap_or(config.memory_bytes);
        changed.ssd_admission = self.admission.unwrap_or(config.ssd_admission);
        changed.item_bytes = self.item_bytes.unwrap_or(config.item_bytes);
        if let Some(limit) = self.ssd_write_limit {
            changed.ssd_write_limit = (limit > 0).then_some(limit);
        }
        if let Some(bytes) = self.ssd_bytes {
            let all: u64 = config.ssd.iter().map(|span| span.bytes).sum();
            let part = bytes as f64 / all.max(1) as f64;
            changed.ssd.iter_mut().for_each(|span| span.bytes = (span.bytes as f64 * part) as u64);
        }
        changed
    }
}

/// What a trial has found.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// What it tells as yet.
    pub state: State,
    /// What is tried.
    pub changes: Changes,
    /// One of so many keys is in the sample.
    pub scale: u32,
    /// Seconds that it is of, and the gets of the real cache in them.
    pub window: Real,
    /// What the cache would miss with the changes; `None` while the sample tells too little.
    pub estimate: Option<Estimate>,
    /// Bytes that would have been written to the SSD as the cache is, and with the changes.
    pub ssd_bytes_written: [u64; 2],
}

/// A trial.
pub(super) struct Trial {
    changes: Changes,
    /// The cache as it is, and as it would be.
    pair: Pair,
    /// What had been done when both shadows had filled, or at first.
    begun: (Real, [Counts; 2]),
    were_full: bool,
}

impl Trial {
    pub(super) fn new(
        config: &Config,
        admission: Admission,
        changes: Changes,
        memory_bytes_max: usize,
        real: Real,
    ) -> Result<Trial, OpenError> {
        let changed = changes.applied(config);
        let scale = Scale::of_caches(config.cache_bytes() + changed.cache_bytes(), memory_bytes_max);
        let own = Rules { admission, ..Rules::of(config) };
        let mut other = Rules { ttl_max: changes.ttl_max, ..Rules::of(&changed) };
        if changes.admission.is_none() && changes.ssd_write_limit.is_none() {
            other.admission = admission;
        }
        let imagined = [(Store::geometry(config)?, own), (Store::geometry(&changed)?, other)];
        let pair = Pair::new(imagined, scale);
        Ok(Trial { changes, pair, begun: (real, Default::default()), were_full: false })
    }

    pub(super) fn scale(&self) -> u32 {
        self.pair.scale()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.pair.memory_bytes()
    }

    pub(super) fn feed(&mut self, event: &Event) {
        self.pair.feed(event);
    }

    pub(super) fn halve(&mut self) {
        self.pair.halve();
    }

    /// Lets the shadow of the cache as it is admit as the cache does, and the other one unless it tries something else.
    pub(super) fn set_admission(&mut self, admission: Admission) {
        let [own, other] = &mut self.pair.shadows;
        own.set_admission(admission);
        if self.changes.admission.is_none() && self.changes.ssd_write_limit.is_none() {
            other.set_admission(admission);
        }
    }

    /// Begins to count once both shadows have filled.
    pub(super) fn note(&mut self, real: Real) {
        let are_full = self.pair.shadows.iter().all(|shadow| shadow.is_full());
        if !std::mem::replace(&mut self.were_full, are_full) && are_full {
            self.begun = (real, self.counts());
        }
    }

    /// Forgets all items and what was found, as a flush does.
    pub(super) fn flush(&mut self) {
        self.pair.flush();
        self.were_full = false;
    }

    fn counts(&self) -> [Counts; 2] {
        self.pair.shadows.each_ref().map(|shadow| shadow.counts())
    }

    /// Returns what it has found.
    pub(super) fn tried(&self, real: Real) -> Tried {
        let (begun, counts_then) = &self.begun;
        let window = real.since(begun);
        let [own, other] = self.counts();
        let seen = [(own, 0), (other, 1)].map(|(counts, nth)| Seen {
            // Only which of them is larger matters.
            bytes: nth as u64 + 1,
            counts: counts.since(&counts_then[nth]),
            doubt: self.pair.shadows[nth].doubt(),
        });
        let estimates = match self.were_full {
            true => Estimate::of_all(&seen, self.scale(), window.gets, window.misses),
            false => vec![],
        };
        let state = match (self.were_full, estimates.is_empty()) {
            (false, _) => State::Filling,
            (true, true) => State::Few,
            (true, false) => State::Ready,
        };
        Tried {
            state,
            changes: self.changes,
            scale: self.scale(),
            window,
            estimate: estimates.get(1).copied(),
            ssd_bytes_written: seen.map(|seen| seen.counts.ssd_bytes_written),
        }
    }
}
