//! The history of one counter's clients, and whether it can be that of one atomic counter.
//!
//! An increment adds 1 to a counter that begins at 0 and returns the new value. A history is linearizable if
//! one can choose for each increment a moment between its request and its answer so that, done one at a time
//! in the order of those moments, each returns the value that it did return. An increment whose answer never
//! came (*lost*) may have happened at any moment after its request, or never.
//!
//! For this kind of operation that can be decided exactly and fast. Done one at a time, the k-th increment
//! returns k; so the order needs no search, it is the order of the values, and these rules are left to check:
//!
//! 1. *Distinct*: no value was answered twice, and none is below 1.
//! 2. *Complete*: a value below the highest one that was never answered belongs to a lost increment, each to
//!    another one. Lost increment L can have got the value v only if v is above the value of each increment
//!    that preceded L.
//! 3. *Real time*: if A preceded B, A's value is below B's. A precedes B if A's answer came before B's
//!    request (`A.end < B.start`), or if one client did A and later B.
//! 4. *Final read*: a read after everything finds a value not below the highest one answered, and again each
//!    value that was never answered, up to the one read, belongs to a lost increment of its own.
//!
//! *Necessary*: in a linearization the k-th increment has the value k, so values are distinct and without a
//! gap; gaps in the answers are where lost increments stand; and precedence is kept because moments lie
//! between request and answer. *Sufficient*: give the values never answered to lost increments as rule 2
//! allows, and put all increments in the order of their values. Each returns its place in that order. No
//! increment stands before one that preceded it: among answered ones by rule 3, a lost one behind an answered
//! one by rule 2; and nothing is preceded by a lost one, for it has no answer and is its client's last. An
//! order that keeps precedence of intervals has such moments: give each increment the latest request among
//! itself and those before it in the order; that is not after its own answer, for else the one with that
//! later request would have been preceded by it, and stand behind. The final read is last.
//!
//! Rule 2 needs no search either: the values never answered, sorted, are v1 < v2 < ...; each lost
//! increment can take all of them from some index on; so all find one if and only if, with these indexes
//! sorted, the k-th is at most k (Hall's theorem for nested sets).
//!
//! The increments are read once, in the order of their values, by merging the clients' logs, each of which
//! rises if rule 3 holds: O(n log c) for n increments and c clients, and no memory besides the logs.

pub mod log;

use log::{Iter, Log};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

/// One answered increment. Times are nanoseconds of one monotonic clock for all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Op {
    /// Not after the request was sent.
    pub start_ns: u64,
    /// Not before its answer was there.
    pub end_ns: u64,
    /// The new value in the answer.
    pub value: u64,
}

/// The increments of one client. After an increment whose answer never came it does nothing more.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// Its answered increments.
    pub log: Log,
    /// When it sent the one whose answer never came, if there is one.
    pub lost_start_ns: Option<u64>,
}

/// The increments of all clients of one counter, from the moment it was reset.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// One entry a client.
    pub clients: Vec<Client>,
    /// The counter, read after all clients were done; none if it could not be read.
    pub final_read: Option<u64>,
}

/// An answered increment and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Index of the client.
    pub client: usize,
    /// Its increment.
    pub op: Op,
}

/// Why a history cannot be that of one atomic counter, with the increments that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two increments were answered the same value: an update was lost.
    Twice(Seen, Seen),
    /// An increment was answered 0, as if it had not been done.
    Zero(Seen),
    /// The first had its answer before the second was sent, but has the higher value.
    Backwards(Seen, Seen),
    /// Values between these two were never answered, more than there are lost increments. The first is
    /// missing if the gap begins at 1.
    Gap(Option<Seen>, Seen),
    /// The value was never answered, and each lost increment that could have taken it was sent only after
    /// a higher value had been answered; the highest answer is named.
    GapBeforeLost(u64, Option<Seen>),
    /// The final read is below a value that had been answered.
    FinalBelow(u64, Seen),
    /// The final read is higher than all increments together can have made it.
    FinalAbove(u64, u64),
}

/// A history that can be that of one atomic counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Linearizable {
    /// Increments that were answered.
    pub answered: u64,
    /// Increments whose answer never came.
    pub lost: u64,
    /// How many of the lost ones must have happened.
    pub lost_but_done: u64,
    /// The final read, if there was one.
    pub final_read: Option<u64>,
}

impl Client {
    /// Records that the increment sent at `start_ns` was never answered.
    pub fn lose(&mut self, start_ns: u64) {
        self.lost_start_ns = Some(start_ns);
    }
}

impl History {
    /// Increments that were answered.
    pub fn answered(&self) -> u64 {
        self.clients.iter().map(|client| client.log.len()).sum()
    }

    /// How much memory the answers take.
    pub fn size_bytes(&self) -> usize {
        self.clients.iter().map(|client| client.log.size_bytes()).sum()
    }

    /// Whether this is linearizable: never a false alarm, and no violation is missed.
    pub fn verdict(&self) -> Result<Linearizable, Violation> {
        let mut lost: Vec<Lost> = self.clients.iter().filter_map(Lost::of).collect();
        let mut gaps: Vec<Gap> = Vec::new();
        let mut last: Option<Seen> = None;
        let mut latest_start: Option<Seen> = None;

        for seen in Rising::over(&self.clients) {
            let seen = seen?;
            if seen.op.value == 0 {
                return Err(Violation::Zero(seen));
            }
            if let Some(last) = last.filter(|last| last.op.value == seen.op.value) {
                return Err(Violation::Twice(last, seen));
            }
            if let Some(lower) = latest_start.filter(|lower| seen.op.end_ns < lower.op.start_ns) {
                return Err(Violation::Backwards(seen, lower));
            }
            let below = last.map_or(0, |last| last.op.value);
            let room = (lost.len() - gaps.len()) as u64;
            if seen.op.value - below - 1 > room {
                return Err(Violation::Gap(last, seen));
            }
            gaps.extend((below + 1..seen.op.value).map(Gap::at));
            if let Some(gap) = gaps.last_mut() {
                gap.deadline_ns = gap.deadline_ns.min(seen.op.end_ns);
            }
            if latest_start.is_none_or(|lower| lower.op.start_ns < seen.op.start_ns) {
                latest_start = Some(seen);
            }
            last = Some(seen);
        }

        if let Some(found) = self.final_read {
            if let Some(last) = last.filter(|last| found < last.op.value) {
                return Err(Violation::FinalBelow(found, last));
            }
            let highest = last.map_or(0, |last| last.op.value);
            if found - highest > (lost.len() - gaps.len()) as u64 {
                return Err(Violation::FinalAbove(found, self.answered() + lost.len() as u64));
            }
            gaps.extend((highest + 1..=found).map(Gap::at));
        }
        // An increment behind a later gap is behind this one too.
        for at in (1..gaps.len()).rev() {
            gaps[at - 1].deadline_ns = gaps[at - 1].deadline_ns.min(gaps[at].deadline_ns);
        }
        lost.sort_by_key(|lost| lost.first_gap(&gaps));
        for (at, gap) in gaps.iter().enumerate() {
            if lost[at].first_gap(&gaps) > at {
                return Err(Violation::GapBeforeLost(gap.value, last));
            }
        }
        Ok(Linearizable {
            answered: self.answered(),
            lost: lost.len() as u64,
            lost_but_done: gaps.len() as u64,
            final_read: self.final_read,
        })
    }
}

/// An increment whose answer never came.
struct Lost {
    start_ns: u64,
    /// The last value its client was answered.
    above: u64,
}

impl Lost {
    fn of(client: &Client) -> Option<Self> {
        let start_ns = client.lost_start_ns?;
        Some(Self { start_ns, above: client.log.last().map_or(0, |op| op.value) })
    }

    /// The index of the first gap it can have filled; it can have filled all behind, too.
    fn first_gap(&self, gaps: &[Gap]) -> usize {
        gaps.partition_point(|gap| gap.deadline_ns < self.start_ns || gap.value < self.above)
    }
}

/// A value that was never answered.
struct Gap {
    value: u64,
    /// The earliest answer with a higher value: the increment that filled this was sent by then.
    deadline_ns: u64,
}

impl Gap {
    fn at(value: u64) -> Self {
        Self { value, deadline_ns: u64::MAX }
    }
}

/// All clients' increments in the order of their values; an error where a client's own values do not rise.
struct Rising<'a> {
    /// Each client's increments behind its entry in `next`.
    rest: Vec<Iter<'a>>,
    /// Each client's next increment, the lowest value on top.
    next: BinaryHeap<Reverse<(u64, usize, u64, u64)>>,
}

impl<'a> Rising<'a> {
    fn over(clients: &'a [Client]) -> Self {
        let mut rest: Vec<_> = clients.iter().map(|client| client.log.iter()).collect();
        let firsts =
            rest.iter_mut().enumerate().filter_map(|(client, ops)| ops.next().map(|op| (client, op)));
        let next = firsts.map(|(client, op)| Self::entry(client, op)).collect();
        Self { rest, next }
    }

    fn entry(client: usize, op: Op) -> Reverse<(u64, usize, u64, u64)> {
        Reverse((op.value, client, op.start_ns, op.end_ns))
    }
}

impl Iterator for Rising<'_> {
    type Item = Result<Seen, Violation>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut top = self.next.peek_mut()?;
        let Reverse((value, client, start_ns, end_ns)) = *top;
        let seen = Seen { client, op: Op { start_ns, end_ns, value } };
        match self.rest[client].next() {
            Some(op) if op.value == value => Some(Err(Violation::Twice(seen, Seen { client, op }))),
            Some(op) if op.value < value => Some(Err(Violation::Backwards(seen, Seen { client, op }))),
            Some(op) => {
                *top = Self::entry(client, op);
                Some(Ok(seen))
            }
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
                Some(Ok(seen))
            }
        }
    }
}

impl fmt::Display for Seen {
    /// `client 3: 17 (1.500000 to 1.500180 ms)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        let Op { start_ns, end_ns, value } = self.op;
        write!(f, "client {}: {value} ({:.6} to {:.6} ms)", self.client + 1, ms(start_ns), ms(end_ns))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(a, b) => write!(f, "one value answered twice, so an update is lost: {a}; {b}"),
            Self::Zero(a) => write!(f, "an increment answered 0: {a}"),
            Self::Backwards(a, b) => write!(f, "answered, then sent later and yet answered less: {a}; {b}"),
            Self::Gap(Some(a), b) => write!(f, "values that were never answered, between {a} and {b}"),
            Self::Gap(None, b) => write!(f, "values that were never answered, below the lowest: {b}"),
            Self::GapBeforeLost(value, highest) => {
                write!(
                    f,
                    "{value} was never answered, and each increment without an answer was sent too late"
                )?;
                highest.map_or(Ok(()), |seen| write!(f, "; the highest: {seen}"))
            }
            Self::FinalBelow(found, a) => write!(f, "the final read found {found}, below {a}"),
            Self::FinalAbove(found, sent) => {
                write!(f, "the final read found {found}, but only {sent} increments were sent")
            }
        }
    }
}

impl fmt::Display for Linearizable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers, distinct, complete and in the order of time", self.answered)?;
        if self.lost > 0 {
            write!(f, "; {} without an answer, of which {} happened", self.lost, self.lost_but_done)?;
        }
        match self.final_read {
            Some(found) => write!(f, "; final read {found}"),
            None => write!(f, "; no final read"),
        }
    }
}
