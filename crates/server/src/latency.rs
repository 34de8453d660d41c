//! The times that each worker measures: of requests by class, of the SSD, and of its own loop.
//!
//! ```text
//!   woken by epoll --> requests executed, replies sent --> ... --> sleeps again
//!        |<-------- loop; RAM hits and stores of this round ------->|
//!
//!   request needs the SSD --> its turn comes --> submitted --> taken back --> reply encoded
//!        |<------- queue ------->|                  |<- device ->|                 |
//!        |<-------------------- SSD hit, or change on the SSD ------------------->|
//! ```
//! A round of the loop reads the clock once, when it ends. So the time of a RAM hit or a store is that of the round
//! that served it: an upper bound, which is exact while a round serves one request.

use std::time::{Duration, Instant};

use crate::counters::{Counter, Counters};
use crate::histogram::{Histogram, Times};

macro_rules! latencies {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// One worker's histograms.
        #[derive(Default)]
        pub struct Latencies {
            $($(#[$doc])* pub $name: Histogram,)*
            /// Stores whose times were recorded apart from their round, because they waited.
            pub stores_apart: Counter,
            /// Gets of items on the SSD whose times were recorded apart from their round, because they were read. All
            /// others were found in a write buffer.
            pub ssd_hits_apart: Counter,
        }

        /// The times of all workers.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct AllTimes { $($(#[$doc])* pub $name: Times,)* }

        impl AllTimes {
            /// Returns the times that were added since they were `earlier`.
            pub fn since(&self, earlier: &AllTimes) -> AllTimes {
                AllTimes { $($name: self.$name.since(&earlier.$name),)* }
            }
        }

        impl Latencies {
            /// Adds this worker's times to `all`.
            pub fn add_to(&self, all: &mut AllTimes) {
                $(self.$name.add_to(&mut all.$name);)*
            }
        }
    };
}

latencies! {
    /// Gets of items in RAM.
    ram_hits
    /// Gets of items on the SSD.
    ssd_hits
    /// Stores.
    stores
    /// Changes of items on the SSD, which read them first.
    ssd_changes
    /// From the need of a read to its turn; nothing for a read that may be made at once.
    ssd_queue
    /// Reads of the SSD, from their submission until the worker took them back.
    ssd_reads
    /// The same of writes.
    ssd_writes
    /// Rounds of the event loop.
    loops
}

/// The counts at the end of a round, of which the next round takes the difference.
pub struct Round {
    began: Instant,
    hits: u64,
    stores: u64,
    stores_apart: u64,
    ssd_hits: u64,
    ssd_hits_apart: u64,
}

impl Round {
    /// Returns the state of a worker that has served nothing.
    pub fn new(now: Instant) -> Round {
        Round { began: now, hits: 0, stores: 0, stores_apart: 0, ssd_hits: 0, ssd_hits_apart: 0 }
    }

    /// Begins a round.
    #[inline]
    pub fn begin(&mut self, now: Instant) {
        self.began = now;
    }

    /// Ends a round: records its time, and that of the requests that it served.
    #[inline]
    pub fn end(&mut self, counters: &Counters, latencies: &Latencies) {
        let time = self.began.elapsed();
        latencies.loops.record(time);
        let now = Round {
            began: self.began,
            hits: counters.get_hits_ram.get(),
            stores: counters.cmd_set.get(),
            stores_apart: latencies.stores_apart.get(),
            ssd_hits: counters.get_hits_ssd.get(),
            ssd_hits_apart: latencies.ssd_hits_apart.get(),
        };
        record(&latencies.ram_hits, time, now.hits - self.hits);
        let apart = now.ssd_hits_apart - self.ssd_hits_apart;
        record(&latencies.ssd_hits, time, (now.ssd_hits - self.ssd_hits).saturating_sub(apart));
        let apart = now.stores_apart - self.stores_apart;
        record(&latencies.stores, time, (now.stores - self.stores).saturating_sub(apart));
        *self = now;
    }
}

#[inline]
fn record(histogram: &Histogram, time: Duration, count: u64) {
    if count > 0 {
        histogram.record_times(time, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_counts_what_it_served_and_not_what_was_recorded_apart() {
        let (counters, latencies) = (Counters::default(), Latencies::default());
        let mut round = Round::new(Instant::now());
        counters.get_hits_ram.add(3);
        counters.cmd_set.add(2);
        latencies.stores_apart.up();
        round.end(&counters, &latencies);
        round.end(&counters, &latencies);
        counters.get_hits_ram.up();
        round.end(&counters, &latencies);
        let mut all = AllTimes::default();
        latencies.add_to(&mut all);
        assert_eq!((all.ram_hits.count(), all.stores.count(), all.loops.count()), (4, 1, 3));
    }
}
