//! What became of the items that a verb moves, counted by several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::exit::{Outcome, Verdict, print, print_json};
use crate::units::{show_bytes, show_whole};

/// The most reasons that are told apart.
const REASONS_MAX: usize = 16;

/// The counts so far.
#[derive(Debug)]
pub struct Counts {
    began: Instant,
    moved: AtomicU64,
    bytes: AtomicU64,
    kept: AtomicU64,
    gone: AtomicU64,
    stale: AtomicU64,
    refused: Mutex<BTreeMap<String, u64>>,
}

/// The counts at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Items that arrived.
    pub moved: u64,
    /// The bytes of their keys and values.
    pub bytes: u64,
    /// Items that were left as they are at the destination.
    pub kept: u64,
    /// Items that expired or were deleted meanwhile.
    pub gone: u64,
    /// Items that were left out because they are marked stale, or wait for their value.
    pub stale: u64,
    /// Items that were refused, by the reason.
    pub refused: BTreeMap<String, u64>,
    /// The time that it took.
    pub seconds: f64,
}

impl Counts {
    /// Begins to count.
    pub fn new() -> Counts {
        Counts {
            began: Instant::now(),
            moved: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            gone: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            refused: Mutex::new(BTreeMap::new()),
        }
    }

    /// Counts an item of so many bytes that arrived.
    pub fn moved(&self, bytes: u64) {
        self.moved.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts an item that was there already.
    pub fn kept(&self) {
        self.kept.fetch_add(1, Relaxed);
    }

    /// Counts items that are gone.
    pub fn gone(&self, count: u64) {
        self.gone.fetch_add(count, Relaxed);
    }

    /// Counts an item that is stale.
    pub fn stale(&self) {
        self.stale.fetch_add(1, Relaxed);
    }

    /// Counts an item that was refused.
    pub fn refused(&self, reason: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = refused.contains_key(&reason) || refused.len() < REASONS_MAX;
        *refused.entry(if is_known { reason } else { "other reasons".to_string() }).or_default() += 1;
    }

    /// Returns the counts so far.
    pub fn tally(&self) -> Tally {
        Tally {
            moved: self.moved.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            kept: self.kept.load(Relaxed),
            gone: self.gone.load(Relaxed),
            stale: self.stale.load(Relaxed),
            refused: self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            seconds: self.began.elapsed().as_secs_f64(),
        }
    }
}

impl Tally {
    /// Returns the number of items whose fate is known.
    pub fn done(&self) -> u64 {
        self.moved + self.kept + self.gone + self.stale + self.refused.values().sum::<u64>()
    }

    /// Returns whether something needs attention.
    pub fn verdict(&self) -> Verdict {
        if self.refused.is_empty() { Verdict::Fine } else { Verdict::Findings }
    }

    /// Returns the parts of a line of progress. `verb` is what happens to items, such as `copied`.
    pub fn progress(&self, verb: &str, total: Option<u64>) -> Vec<String> {
        let done = self.done();
        let mut parts = Vec::new();
        match total.filter(|total| *total > 0) {
            Some(total) => {
                let percent = done as f64 / total as f64 * 100.0;
                parts.push(format!("{verb} {} of {} keys", show_whole(done), show_whole(total)));
                parts.push(format!("{percent:.0} %"));
            }
            None => parts.push(format!("{verb} {} keys", show_whole(done))),
        }
        parts.push(format!("{}/s", show_bytes((self.bytes as f64 / self.seconds.max(0.001)) as u64)));
        if let Some(total) = total.filter(|total| done > 0 && *total > done) {
            let left_s = self.seconds / done as f64 * (total - done) as f64;
            let left = Duration::from_secs_f64(left_s.min(1e9)).as_secs();
            parts.push(format!("{} left", crate::units::show_seconds(left)));
        }
        parts
    }

    /// Prints the lines that end a verb, or all numbers as JSON.
    ///
    /// # Errors
    /// The output is closed.
    pub fn print(&self, verb: &str, json: bool) -> Outcome<()> {
        if json { print_json(self) } else { print(&self.lines(verb)) }
    }

    /// Returns the lines that end a verb.
    pub fn lines(&self, verb: &str) -> String {
        let rate = show_bytes((self.bytes as f64 / self.seconds.max(0.001)) as u64);
        let about = format!("{} in {:.1} s, {rate}/s", show_bytes(self.bytes), self.seconds);
        let mut lines = line(verb, self.moved, &about);
        for (name, count, about) in [
            ("kept", self.kept, "there already"),
            ("gone", self.gone, "expired or deleted meanwhile"),
            ("stale", self.stale, "left out: marked stale, or waiting for a value"),
        ] {
            if count > 0 {
                lines.push_str(&line(name, count, about));
            }
        }
        for (reason, count) in &self.refused {
            lines.push_str(&line("refused", *count, reason));
        }
        lines
    }
}

/// Returns one line of a result.
pub fn line(name: &str, count: u64, about: &str) -> String {
    format!("{name:<9} {:>13}  {about}\n", show_whole(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_counted_once_and_reasons_are_bounded() {
        let counts = Counts::new();
        counts.moved(100);
        counts.kept();
        counts.gone(2);
        counts.stale();
        assert_eq!(counts.tally().verdict(), Verdict::Fine);
        for number in 0..100 {
            counts.refused(format!("SERVER_ERROR {number}"));
        }
        let tally = counts.tally();
        assert_eq!((tally.done(), tally.verdict()), (105, Verdict::Findings));
        assert!(tally.refused.len() <= REASONS_MAX + 1);
        assert_eq!(tally.refused.values().sum::<u64>(), 100);
    }

    #[test]
    fn progress_begins_with_what_matters() {
        let tally = Tally { moved: 5_000, bytes: 1_000_000, seconds: 1.0, ..Tally::default() };
        assert_eq!(
            tally.progress("copied", Some(20_000)),
            ["copied 5,000 of 20,000 keys", "25 %", "1.00 MB/s", "3s left"]
        );
        assert_eq!(tally.progress("copied", None), ["copied 5,000 keys", "1.00 MB/s"]);
    }
}
