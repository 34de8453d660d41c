//! Reads back, after the load, the keys of a run whose replies alone do not tell whether the server did what it was
//! asked: of sets without a reply, and of changes of values.

use super::reactor::{Reactor, Wait, broken};
use super::replies::Reader;
use super::tally::Tally;
use super::{DRAIN_NS, Plan};
use crate::wire::Verb;
use std::ops::Range;

/// Gets in flight on a connection.
const PIPELINE: usize = 32;
/// How long new keys are asked for.
const LENGTH_NS: u64 = 2_000_000_000;

/// Whether a plan's keys are read back.
pub(super) fn is_due(plan: &Plan) -> bool {
    plan.workload.quiet_sets > 1 || plan.workload.mix.has(Verb::is_change)
}

/// Reads back those of `keys` that were written and acknowledged, for two seconds at most; returns how many.
///
/// # Errors
/// A connection broke, or the server does not answer; an empty text is a stop.
pub(super) fn read_back(
    reactor: &mut Reactor<'_>,
    keys: Range<u64>,
    reader: &mut Reader<'_>,
    tally: &mut Tally,
) -> Result<u64, String> {
    let begun_ns = reactor.clock.now_ns();
    let mut written = keys.filter(|key| reactor.ledger.is_written(*key)).peekable();
    let mut read = 0;
    for index in 0..reactor.connections.len() {
        read += ask(reactor, index, &mut written)?;
    }
    while reactor.in_flight > 0 {
        let now_ns = reactor.clock.now_ns();
        if reactor.is_stopped() {
            return Err(String::new());
        }
        if now_ns > begun_ns + LENGTH_NS + DRAIN_NS {
            return Err(format!("{} gets after the load were not answered", reactor.in_flight));
        }
        reactor.wait(Wait::ForReplies)?;
        for (index, is_writable) in reactor.ready() {
            if is_writable {
                reactor.flush(index)?;
            }
            receive(reactor, index, reader, tally)?;
            if now_ns < begun_ns + LENGTH_NS {
                read += ask(reactor, index, &mut written)?;
            }
        }
    }
    Ok(read)
}

fn ask(
    reactor: &mut Reactor<'_>,
    index: usize,
    written: &mut impl Iterator<Item = u64>,
) -> Result<u64, String> {
    let mut asked = 0;
    while reactor.in_flight_of(index) < PIPELINE
        && let Some(key) = written.next()
    {
        reactor.ask_back(index, key);
        asked += 1;
    }
    reactor.flush_client(index)?;
    Ok(asked)
}

fn receive(
    reactor: &mut Reactor<'_>,
    index: usize,
    reader: &mut Reader<'_>,
    tally: &mut Tally,
) -> Result<(), String> {
    let now_ns = reactor.clock.now_ns();
    let connection = &mut reactor.connections[index];
    if connection.receive().map_err(|e| broken(reactor.plan, &e, connection))? == 0 {
        return Ok(());
    }
    let answered = reader.read(index, connection, reactor.encoder, tally, now_ns);
    reactor.in_flight -=
        answered.map_err(|garbage| format!("{} answered {garbage}", reactor.plan.address))?;
    // A key that is missed now is not stored any more.
    while reader.next_step().is_some() {}
    Ok(())
}
