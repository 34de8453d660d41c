//! Stores every key once before the load, and makes sure that every store was confirmed.

use super::ledger::Outcome;
use super::reactor::{Reactor, Wait, broken};
use crate::wire::{Verb, What};
use crate::workload::Asked;
use std::ops::Range;

/// Stores in flight on a connection.
const PIPELINE: usize = 64;
/// The same in TLS: memcached 1.6.18 leaves requests lying that share a record with one before them when they
/// do not fit its buffer of 16 KiB.
const PIPELINE_TLS: usize = 1;
/// Bytes of stores in flight on a connection, unless one alone is larger.
const BYTES: usize = 256 << 10;
/// A server that confirms nothing for so long is given up.
const PATIENCE_NS: u64 = 10_000_000_000;
/// Progress is reported after this many more.
const REPORT_EVERY: u64 = 10_000;

/// The result of a prefill.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// Confirmed.
    pub stored: u64,
    /// Refused.
    pub refused: u64,
    /// The first refusal in the server's words.
    pub said: Option<String>,
}

/// Stores the values of `keys`, and their counters if the workload counts. `report` is called with progress.
/// An
/// `Err` holds the cause of an early end; an empty one is a stop.
pub(super) fn prefill(
    reactor: &mut Reactor<'_>,
    keys: Range<u64>,
    mut report: impl FnMut(u64),
) -> Result<Stored, String> {
    let counts = reactor.plan.workload.mix.weight(Verb::Incr) > 0;
    let has_values = Verb::ALL.into_iter().any(|verb| {
        let is_of_values = verb != Verb::Incr;
        is_of_values && reactor.plan.workload.mix.weight(verb) > 0
    });
    let mut next = Next { key: keys.start, end: keys.end, counter_is_next: !has_values, counts, has_values };
    let mut done = Stored::default();
    let mut reported = 0;
    let mut heard_ns = reactor.clock.now_ns();
    for index in 0..reactor.connections.len() {
        ask(reactor, index, &mut next);
        reactor.flush_client(index)?;
    }
    while reactor.in_flight > 0 {
        if reactor.is_stopped() {
            return Err(String::new());
        }
        let now_ns = reactor.clock.now_ns();
        if now_ns > heard_ns + PATIENCE_NS {
            let in_flight = reactor.in_flight;
            return Err(format!(
                "{} was silent for 10 s with {in_flight} sets in flight",
                reactor.plan.address
            ));
        }
        reactor.wait(Wait::ForReplies)?;
        for (index, is_writable) in reactor.ready() {
            if is_writable {
                reactor.flush(index)?;
            }
            if !receive(reactor, index, &mut done)? {
                continue;
            }
            heard_ns = now_ns;
            ask(reactor, index, &mut next);
            reactor.flush_client(index)?;
        }
        if done.stored - reported >= REPORT_EVERY {
            report(done.stored - reported);
            reported = done.stored;
        }
    }
    report(done.stored - reported);
    Ok(done)
}

/// Reads the confirmations that a connection has; returns whether it had any bytes.
fn receive(reactor: &mut Reactor<'_>, index: usize, done: &mut Stored) -> Result<bool, String> {
    let address = &reactor.plan.address;
    let connection = &mut reactor.connections[index];
    if connection.receive().map_err(|e| broken(reactor.plan, &e, connection))? == 0 {
        return Ok(false);
    }
    let ledger = reactor.ledger;
    let answered = connection.replies(|asking, reply| {
        let is_refused = match reply.what {
            What::Error(words) | What::NotStored(words) => {
                done.refused += 1;
                done.said.get_or_insert_with(|| words.escape_ascii().to_string());
                true
            }
            _ => {
                done.stored += 1;
                false
            }
        };
        let outcome = if is_refused { Outcome::Refused } else { Outcome::Done };
        // Only a cas can be answered as no server may.
        let _ = ledger.end(asking.flight.key, asking.flight.write, outcome);
    });
    let answered = answered.map_err(|garbage| format!("{address} answered {garbage}"))?;
    reactor.in_flight -= answered as usize;
    Ok(true)
}

/// The key to store next, and whether as a counter.
struct Next {
    key: u64,
    end: u64,
    counter_is_next: bool,
    counts: bool,
    has_values: bool,
}

fn ask(reactor: &mut Reactor<'_>, index: usize, next: &mut Next) {
    let pipeline = if reactor.plan.tls.is_some() { PIPELINE_TLS } else { PIPELINE };
    while next.key < next.end {
        let verb = if next.counter_is_next { Verb::Incr } else { Verb::Set };
        let at = reactor.home(index, next.key, verb);
        let connection = &mut reactor.connections[at];
        if connection.in_flight() >= pipeline || connection.output_bytes() >= BYTES {
            break;
        }
        let key = next.key;
        if next.counter_is_next {
            connection.ask_counter(reactor.encoder, key);
            reactor.in_flight += 1;
        } else {
            let asked: Asked = connection.draw.set(&reactor.shared, key);
            reactor.ask_set(at, asked);
        }
        if next.counts && next.has_values && !next.counter_is_next {
            next.counter_is_next = true;
        } else {
            next.counter_is_next = !next.has_values;
            next.key += 1;
        }
    }
}
