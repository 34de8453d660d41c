//! The counts and times of one thread in the window.

use super::connection::Flight;
use super::ledger::Miss;
use super::plan::Verify;
use crate::latency::Latency;
use crate::result::{Interval, Verb as Row, Verified};
use crate::wire::Verb;

/// Seconds, in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;
/// Wrong values that are described.
const EXAMPLES: usize = 5;
/// With [`Verify::Sample`] one value in this many is verified.
const SAMPLE: u32 = 64;

/// The window on the run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// When the load begins (the warm-up, if there is one).
    pub load_ns: u64,
    /// When it is measured from.
    pub begin_ns: u64,
    /// When nothing becomes due any more.
    pub end_ns: u64,
}

impl Window {
    /// Whether a request that was due at `due_ns` is measured.
    fn holds(&self, due_ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&due_ns)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    /// Keys found.
    pub hits: u32,
    /// Keys not found.
    pub misses: u32,
    /// Whether it was refused.
    pub is_error: bool,
    /// Bytes of the reply.
    pub bytes: u64,
}

/// The counts and times of one thread in the window.
#[derive(Debug)]
pub struct Tally {
    window: Window,
    is_open: bool,
    rows: Vec<Timed>,
    /// How much later than due requests were sent; only of an open loop.
    pub slip: Latency,
    /// Requests that were due and never sent.
    pub dropped: u64,
    /// The last reply that counts.
    pub last_ns: u64,
    /// What verification found.
    pub verified: Verified,
    sample: u32,
    verify: Verify,
    second_end_ns: u64,
    second: Interval,
}

#[derive(Debug, Default)]
struct Timed {
    row: Row,
    /// Response times of the current second; they go to the row when it ends.
    second: Latency,
}

impl Tally {
    /// Nothing yet.
    pub fn new(window: Window, is_open: bool, verify: Verify) -> Self {
        let rows = Verb::ALL.map(|verb| Timed {
            row: Row { name: verb.name().to_string(), ..Row::default() },
            second: Latency::new(),
        });
        Self {
            window,
            is_open,
            rows: rows.into_iter().collect(),
            slip: Latency::new(),
            dropped: 0,
            last_ns: window.begin_ns,
            verified: Verified { mode: verify.name().to_string(), ..Verified::default() },
            sample: 0,
            verify,
            second_end_ns: window.begin_ns + SECOND_NS,
            second: Interval::default(),
        }
    }

    /// Whether the next value is one to verify.
    pub fn is_to_verify(&mut self) -> bool {
        let is_turn = match self.verify {
            Verify::Off => false,
            Verify::Full => true,
            Verify::Sample => {
                self.sample += 1;
                self.sample.is_multiple_of(SAMPLE)
            }
        };
        self.verified.checked += u64::from(is_turn);
        is_turn
    }

    /// Counts a value that differs from the stored one. Every wrong value counts, those of the warm-up too.
    pub fn wrong(&mut self, message: impl FnOnce() -> String) {
        self.verified.wrong += 1;
        if self.verified.examples.len() < EXAMPLES {
            self.verified.examples.push(message());
        }
    }

    /// Counts a value that a later one had replaced before it was asked for.
    pub fn stale(&mut self, message: impl FnOnce() -> String) {
        self.verified.stale += 1;
        self.wrong(message);
    }

    /// Counts a key that was not found. Stored keys count in the warm-up too, as the evictions beside them do.
    pub fn missed(&mut self, flight: &Flight, miss: Miss) {
        let verified = &mut self.verified;
        match miss {
            Miss::Lost => verified.lost += 1,
            Miss::Cold if self.window.holds(flight.due_ns) => verified.cold += 1,
            Miss::Cold | Miss::Expected | Miss::Again => {}
        }
    }

    /// A request was answered to its end at `now_ns`.
    pub fn ended(&mut self, flight: &Flight, ended: &Ended, now_ns: u64) {
        if !self.window.holds(flight.due_ns) {
            return;
        }
        let timed = &mut self.rows[flight.verb as usize];
        timed.second.record(now_ns.saturating_sub(flight.due_ns));
        let row = &mut timed.row;
        if self.is_open {
            row.service.record(now_ns.saturating_sub(flight.sent_ns));
            self.slip.record(flight.sent_ns.saturating_sub(flight.due_ns));
        }
        row.count += 1;
        row.hits += u64::from(ended.hits);
        row.misses += u64::from(ended.misses);
        row.errors += u64::from(ended.is_error);
        row.bytes_out += u64::from(flight.bytes);
        row.bytes_in += ended.bytes;
        self.second.count += 1;
        self.second.hits += u64::from(ended.hits);
        self.second.misses += u64::from(ended.misses);
        self.second.errors += u64::from(ended.is_error);
        self.last_ns = now_ns;
    }

    /// The seconds that are over at `now_ns`, one a call.
    pub fn roll(&mut self, now_ns: u64) -> Option<Interval> {
        (now_ns >= self.second_end_ns).then(|| self.close_second())
    }

    fn close_second(&mut self) -> Interval {
        let mut second = std::mem::take(&mut self.second);
        second.at_ms = (self.second_end_ns - SECOND_NS - self.window.begin_ns) / 1_000_000;
        for timed in self.rows.iter_mut().filter(|timed| timed.second.count() > 0) {
            second.response.add(&timed.second);
            timed.row.response.add(&timed.second);
            timed.second.clear();
        }
        self.second_end_ns += SECOND_NS;
        second
    }

    /// The last second, which may be a part of one, and the rows of the verbs that came up.
    pub fn finish(mut self) -> (Option<Interval>, Finished) {
        let last = (self.second.count > 0).then(|| self.close_second());
        let mut rows: Vec<Row> = self.rows.into_iter().map(|timed| timed.row).collect();
        if !self.is_open {
            rows.iter_mut().for_each(|row| row.service = row.response.clone());
        }
        let finished = Finished {
            rows,
            slip: self.slip,
            dropped: self.dropped,
            last_ns: self.last_ns,
            verified: self.verified,
        };
        (last, finished)
    }
}

/// A thread's counts at its end.
#[derive(Debug)]
pub struct Finished {
    /// In the order of [`Verb::ALL`].
    pub rows: Vec<Row>,
    /// See [`Tally::slip`].
    pub slip: Latency,
    /// See [`Tally::dropped`].
    pub dropped: u64,
    /// See [`Tally::last_ns`].
    pub last_ns: u64,
    /// See [`Tally::verified`].
    pub verified: Verified,
}
