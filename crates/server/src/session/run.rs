//! Executes a session's input: parses a few requests ahead, so that their cache misses overlap, then executes them
//! in order.

use arrayvec::ArrayVec;
use larder_protocol::{Limits, Request, Step, Wire, detect, parse};
use larder_store::KeyHash;

use super::commands::Prefetch;
use super::receive::Begun;
use super::{Ctx, Served, Session, Wait, echo};
use crate::budget::LINE_BYTES_MAX;
use crate::config::Protocol;

/// Requests parsed and prefetched before the first of them is executed.
const BATCH: usize = 16;

/// A line that has become longer than this takes the memory of the longest one. Up to here it is input like any other.
const LONG_LINE_BYTES: usize = 16 << 10;
const _: () = assert!(LINE_BYTES_MAX == Limits::MEMCACHED.get_line_bytes_max);

/// The parsed front of the input.
pub(super) struct Batch<'a> {
    /// Requests, each with the hash of its single key and its length.
    pub(super) requests: ArrayVec<(Request<'a>, KeyHash, usize), BATCH>,
    /// The step behind them, if it was parsed and is not a whole request.
    pub(super) stop: Option<Step<'a>>,
}

/// The requests that one turn may still execute.
struct Turn {
    left: u32,
    /// The turn is for one request, whose read is done. Its memory is all that was taken.
    is_single: bool,
}

/// Returns what a connection speaks whose first byte is `first`.
fn spoken(allowed: Protocol, first: u8) -> Wire {
    match (allowed, detect(first)) {
        (Protocol::Binary, _) => Wire::Binary,
        (Protocol::Ascii, Wire::Binary) => Wire::Text,
        (_, wire) => wire,
    }
}

/// Parses up to `batch_max` requests from the front of `input` into an empty batch, and prefetches their items.
/// Returns the bytes of these requests.
#[inline]
fn parse_batch<'a>(
    ctx: &Ctx<'_>,
    wire: Wire,
    input: &'a [u8],
    batch_max: usize,
    batch: &mut Batch<'a>,
) -> usize {
    let mut parsed = 0;
    while batch.requests.len() < batch_max && parsed < input.len() {
        match parse(wire, &input[parsed..]) {
            Step::Request { request, len } => {
                let hash = request.first_key_hash(ctx);
                parsed += len;
                batch.requests.push((request, hash, len));
            }
            other => {
                batch.stop = Some(other);
                break;
            }
        }
    }
    if batch.requests.len() > 1 {
        batch.requests.iter().for_each(|(_, hash, _)| ctx.shared.store.prefetch_item(*hash));
    }
    parsed
}

impl Session {
    /// Executes requests from the front of `input`. Returns the number of bytes consumed.
    pub(super) fn run(&mut self, ctx: &mut Ctx<'_>, input: &[u8]) -> usize {
        let is_single = self.loaded.is_some();
        let left = if is_single { 1 } else { ctx.shared.config.reqs_per_event.max(1) };
        let mut turn = Turn { left, is_single };
        let mut at = 0;
        while self.may_execute(ctx) {
            if self.swallow > 0 {
                at += self.skip(input.len() - at);
            }
            if self.receiving.is_some() {
                at += self.receive_more(ctx, &input[at..]);
                if self.receiving.is_some() {
                    break;
                }
                turn.left -= u32::from(is_single);
                continue;
            }
            let rest = &input[at..];
            let Some(&first) = rest.first() else { break };
            if turn.left == 0 {
                self.yield_turn(ctx, &turn);
                break;
            }
            let wire = *self.wire.get_or_insert_with(|| spoken(self.protocol, first));
            let mut batch = Batch { requests: ArrayVec::new(), stop: None };
            let batch_max = self.batch_max(ctx, &turn);
            let parsed = match &self.guard {
                Some(guard) if !guard.is_open() => guard.parse_login(wire, rest, &mut batch),
                _ => parse_batch(ctx, wire, rest, batch_max, &mut batch),
            };
            let parsed = self.guard.as_ref().map_or(parsed, |guard| guard.restrict(ctx, &mut batch, parsed));
            let (executed, served) = self.execute_batch(ctx, rest, &batch, &mut turn);
            at += executed;
            if served == Served::Waits {
                break;
            }
            if executed < parsed || self.wait != Wait::None || self.closing {
                continue;
            }
            let Some(stop) = &batch.stop else { continue };
            if matches!(stop, Step::Incomplete { .. }) {
                self.expect_line(ctx, input.len() - at, at > 0);
                break;
            }
            match self.execute_stop(ctx, &input[at..], stop) {
                Some(bytes) => at += bytes,
                None => break,
            }
        }
        at
    }

    /// Returns whether more of the input may be executed now.
    fn may_execute(&mut self, ctx: &Ctx<'_>) -> bool {
        if self.wait != Wait::None {
            return false;
        }
        if self.loaded.is_none() && self.is_full(ctx) {
            self.wait = Wait::Drain;
            return false;
        }
        !self.closing
    }

    /// Skips input that belongs to a refused value. Returns the number of bytes, at most `input_bytes`.
    fn skip(&mut self, input_bytes: usize) -> usize {
        let skipped = self.swallow.min(input_bytes as u64);
        self.swallow -= skipped;
        skipped as usize
    }

    /// Continues to receive a large value. Returns the number of bytes consumed.
    fn receive_more(&mut self, ctx: &mut Ctx<'_>, input: &[u8]) -> usize {
        let reply_at = self.out.tail().len();
        let used = self.receive(ctx, input);
        if self.receiving.is_none() && ctx.shared.logs(2) {
            self.echo_reply(ctx, reply_at);
        }
        used
    }

    /// Leaves the rest of the input to another turn.
    fn yield_turn(&mut self, ctx: &Ctx<'_>, turn: &Turn) {
        if !turn.is_single {
            ctx.counters.conn_yields.up();
        }
        self.more = true;
    }

    /// Returns the number of requests worth parsing. Those behind a request that has to wait are parsed again.
    fn batch_max(&self, ctx: &Ctx<'_>, turn: &Turn) -> usize {
        let reads_max = if ctx.read_bytes == 0 { 0 } else { ctx.read_room.saturating_sub(ctx.reads.len()) };
        let batch_max = if self.reads_are_scarce { reads_max.clamp(1, BATCH) } else { BATCH };
        batch_max.min(turn.left as usize)
    }

    /// Executes parsed requests, which lie at the front of `input`, as far as possible. Returns the bytes consumed,
    /// and whether the request behind them has to wait.
    #[inline]
    fn execute_batch(
        &mut self,
        ctx: &mut Ctx<'_>,
        input: &[u8],
        batch: &Batch<'_>,
        turn: &mut Turn,
    ) -> (usize, Served) {
        let mut at = 0;
        for (request, hash, len) in &batch.requests {
            if self.wait != Wait::None || self.closing || self.is_full(ctx) && !turn.is_single {
                break;
            }
            turn.left = turn.left.saturating_sub(1);
            let reply_at = self.out.tail().len();
            if self.execute(ctx, request, *hash) == Served::Waits {
                return (at, Served::Waits);
            }
            if ctx.shared.logs(2) {
                echo::request(ctx.connection, &input[at..at + len]);
                self.echo_reply(ctx, reply_at);
            }
            self.progress = 0;
            if self.has_waited {
                self.end_wait(ctx, request);
            }
            self.executed += 1;
            at += len;
            if self.extra_cost > 0 {
                turn.left = 0;
                break;
            }
        }
        (at, Served::Done)
    }

    /// Records how long the request at the front has waited, now that it is executed: for a read, or a store for
    /// room.
    #[cold]
    #[inline(never)]
    fn end_wait(&mut self, ctx: &Ctx<'_>, request: &Request<'_>) {
        let room_since = self.room_since.take();
        (self.has_waited, self.turn_since) = (false, None);
        let is_store = matches!(request, Request::Store(_));
        let (histogram, since) = match (self.read_since.take(), room_since) {
            (Some(since), _) => (&ctx.latencies.ssd_changes, since),
            (None, Some(since)) if is_store => (&ctx.latencies.stores, since),
            _ => return,
        };
        histogram.record(ctx.instant - since);
        if is_store {
            ctx.latencies.stores_apart.up();
        } else if matches!(request, Request::Get(_)) {
            ctx.latencies.ssd_hits_apart.up();
        }
    }

    /// Executes a parsed step that is not a whole request. Returns the bytes consumed; `None` if more input has to
    /// come first, or the connection is closed.
    fn execute_stop(&mut self, ctx: &mut Ctx<'_>, input: &[u8], stop: &Step<'_>) -> Option<usize> {
        match *stop {
            Step::Close => {
                self.close();
                None
            }
            Step::Reject { ref reject, len, swallow, close } => {
                let reply_at = self.out.tail().len();
                reject.encode(self.out.tail());
                if ctx.shared.logs(2) {
                    echo::request(ctx.connection, self.shown(&input[..len]));
                    self.echo_reply(ctx, reply_at);
                }
                self.swallow = swallow;
                if close {
                    self.close();
                }
                Some(len)
            }
            Step::Body { ref request, head, tail } => match self.begin_body(ctx, request, (head, tail)) {
                Begun::Taken => {
                    if ctx.shared.logs(2) {
                        echo::request(ctx.connection, &input[..head]);
                    }
                    Some(head)
                }
                Begun::WaitForAll => None,
            },
            Step::Login { ref login, len, swallow } => {
                if ctx.shared.logs(2) {
                    echo::request(ctx.connection, &input[..len]);
                }
                self.log_in(ctx, login);
                self.swallow = swallow;
                Some(len)
            }
            Step::Request { .. } | Step::Incomplete { .. } => unreachable!("handled by the caller"),
        }
    }

    /// Takes the memory of a whole line once the one that has begun is long, or waits for it. If another one was
    /// served just now (`is_next`), peers that wait for theirs go first.
    fn expect_line(&mut self, ctx: &Ctx<'_>, begun_bytes: usize, is_next: bool) {
        if begun_bytes <= LONG_LINE_BYTES || self.has_line && !is_next {
            return;
        }
        if !self.has_line && ctx.shared.budget.take_line() {
            self.hold_line();
        } else {
            self.wait = Wait::Line;
        }
    }

    /// Returns the part of a refused request that a log may show: before the login, a line may be a password.
    fn shown<'a>(&self, request: &'a [u8]) -> &'a [u8] {
        match &self.guard {
            Some(guard) if !guard.is_open() => {
                let word = request.iter().position(|byte| byte.is_ascii_whitespace());
                &request[..word.unwrap_or(request.len())]
            }
            _ => request,
        }
    }

    /// Shows the reply that begins at `reply_at` of the output's tail.
    #[cold]
    fn echo_reply(&mut self, ctx: &Ctx<'_>, reply_at: usize) {
        echo::reply(ctx.connection, self.out.tail().get(reply_at..).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_one_protocol_speaks_no_other() {
        let (line, packet, hello) = (b'g', 0x80, 0x16);
        for (allowed, wires) in [
            (Protocol::Auto, [Wire::Text, Wire::Binary, Wire::Tls]),
            (Protocol::Ascii, [Wire::Text, Wire::Text, Wire::Tls]),
            (Protocol::Binary, [Wire::Binary; 3]),
        ] {
            assert_eq!([line, packet, hello].map(|first| spoken(allowed, first)), wires, "{allowed:?}");
        }
    }
}
