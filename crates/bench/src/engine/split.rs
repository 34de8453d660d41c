//! A request whose keys belong to several servers: each of them is sent its part, and the last answer ends the whole.

use super::connection::{Flight, SplitPart};
use super::tally::{Ended, Tally};
use crate::wire::Verb;
use std::collections::HashMap;

/// The split requests of a thread that are answered in part.
#[derive(Debug, Default)]
pub(super) struct Split(HashMap<u32, Whole>);

/// A split request, as far as it is answered.
#[derive(Debug)]
struct Whole {
    parts_left: u32,
    flight: Flight,
    ended: Ended,
}

impl Split {
    /// Counts a request that was answered to its end, or takes it as a part of another one, which is counted with its
    /// last part: due and sent with the first of its parts, and with the hits, misses and bytes of all.
    pub fn ended(&mut self, flight: &Flight, ended: &Ended, tally: &mut Tally, now_ns: u64) {
        let SplitPart { of, parts } = flight.part;
        if parts < 2 {
            return tally.ended(flight, ended, now_ns);
        }
        let mut ended = *ended;
        if flight.verb == Verb::Set && flight.keys == 1 && !ended.is_error {
            // Sets in a row count each set, and this part has one.
            ended.hits = 1;
        }
        let Some(whole) = self.0.get_mut(&of) else {
            self.0.insert(of, Whole { parts_left: parts - 1, flight: *flight, ended });
            return;
        };
        whole.parts_left -= 1;
        whole.flight.due_ns = whole.flight.due_ns.min(flight.due_ns);
        whole.flight.sent_ns = whole.flight.sent_ns.min(flight.sent_ns);
        whole.flight.bytes += flight.bytes;
        whole.ended.hits += ended.hits;
        whole.ended.misses += ended.misses;
        whole.ended.bytes += ended.bytes;
        whole.ended.is_error |= ended.is_error;
        if whole.parts_left == 0
            && let Some(whole) = self.0.remove(&of)
        {
            tally.ended(&whole.flight, &whole.ended, now_ns);
        }
    }
}
