//! One connection without its socket: bytes in, bytes out, and the SSD reads it waits for. Sans-IO.
//!
//! ```text
//!           advance(bytes)                     +--> Output (in request order)
//!   Ready ------------------> parse, execute --+
//!     ^                                        +--> reads to perform (ctx.reads)
//!     |                                        |
//!     |   read_done(Barrier) / room_made       +--> Waits: the request at the front of the input is executed again
//!     +----------------------------------------+
//! ```
//! A plain get that needs the SSD does not hold up what follows it: its place in the output is kept, and it
//! is answered when its read is done. Everything else that needs the SSD, or room, waits at the front of the
//! input.

mod output;
mod receive;

use std::time::Instant;

use arrayvec::ArrayVec;
use larder_protocol::{OwnedReply, Request, Step, Wire, detect, parse};
use larder_store::device::IoBuf;
use larder_store::{Fetch, KeyHash, Loaded, Patience, ReadPlan, Seconds};

use crate::config::Protocol;
use crate::counters::Counters;
use crate::dispatch::Prefetch;
use crate::shared::Shared;

pub use output::Output;
use receive::Receiving;

/// What a session is driven with: the surroundings of one turn of the event loop.
pub struct Ctx<'a> {
    /// What all workers share.
    pub shared: &'a Shared,
    /// This worker's counters.
    pub counters: &'a Counters,
    /// The second.
    pub now: Seconds,
    /// The instant, for waits.
    pub instant: Instant,
    /// Reads that the session wants performed; the driver empties it.
    pub reads: &'a mut Vec<(Ticket, ReadPlan)>,
    /// How many more reads the driver can take now.
    pub read_room: usize,
}

/// Which of a session's waits a read belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticket {
    /// A plain get with its place in the output.
    Get(u64),
    /// The request at the front of the input.
    Barrier,
}

/// Why nothing more of the input is executed for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing stands in the way.
    None,
    /// For the read of the request at the front.
    Read,
    /// For room in RAM or on the SSD: call [`Session::resume`] when a write has completed, and after a while
    /// anyway.
    Room,
    /// For reads of this or other sessions to finish: call [`Session::resume`] when some have.
    Reads,
    /// For the peer to take what it asked for.
    Drain,
}

/// A plain get on its way to the SSD.
pub(crate) struct PendingGet {
    pub ticket: u64,
    pub key: Box<[u8]>,
    pub hash: KeyHash,
    /// Bytes of its read, and at most of its reply.
    pub read_bytes: usize,
    pub fetch: Fetch,
    pub unless_cas: Option<u64>,
    pub value: bool,
    /// It is the request's only key, so the request's end belongs to its answer.
    pub ends: bool,
    pub reply: OwnedReply,
}

/// What a barrier's read brought.
pub(crate) struct LoadedRead {
    plan: ReadPlan,
    buffer: Option<IoBuf>,
    bytes: usize,
}

impl LoadedRead {
    pub(crate) fn loaded(&self) -> Loaded<'_> {
        Loaded { plan: &self.plan, bytes: self.buffer.as_ref().map(|buffer| &buffer[..self.bytes]) }
    }
}

/// How the execution of one request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// Answered (or its place in the output is kept).
    Done,
    /// It stays at the front of the input; `wait` says why.
    Waits,
}

/// One client.
pub struct Session {
    wire: Option<Wire>,
    /// Bytes that have come and are not consumed.
    input: Vec<u8>,
    /// What is to be sent.
    pub out: Output,
    pub(crate) wait: Wait,
    receiving: Option<Box<Receiving>>,
    /// Bytes to throw away before the next request.
    swallow: u64,
    /// Keys of the request at the front that are answered already.
    pub(crate) progress: usize,
    pub(crate) pending: Vec<PendingGet>,
    /// Bytes of the reads of `pending`.
    pub(crate) pending_bytes: usize,
    next_ticket: u64,
    pub(crate) loaded: Option<LoadedRead>,
    /// Since when the request at the front waits for room.
    pub(crate) room_since: Option<Instant>,
    closing: bool,
    more: bool,
}

/// Requests parsed and prefetched before the first of them is executed.
const BATCH: usize = 16;
/// A session with this much to send executes nothing more until the peer has taken some.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Plain gets of one session on their way to the SSD.
const PENDING_MAX: usize = 256;
/// Bytes of these reads; one that is larger goes alone.
const PENDING_BYTES_MAX: usize = 4 << 20;

impl Session {
    /// A new client.
    pub fn new(protocol: Protocol) -> Session {
        Session {
            wire: match protocol {
                Protocol::Auto => None,
                Protocol::Ascii => Some(Wire::Text),
                Protocol::Binary => Some(Wire::Binary),
            },
            input: Vec::new(),
            out: Output::default(),
            wait: Wait::None,
            receiving: None,
            swallow: 0,
            progress: 0,
            pending: Vec::new(),
            pending_bytes: 0,
            next_ticket: 0,
            loaded: None,
            room_since: None,
            closing: false,
            more: false,
        }
    }

    /// What it waits for.
    pub fn wait(&self) -> Wait {
        self.wait
    }

    /// Gets whose reads are not done.
    pub fn gets_pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether bytes from the peer are wanted now.
    pub fn wants_input(&self) -> bool {
        !self.closing && !self.more && self.wait == Wait::None
    }

    /// Whether there is unexecuted input and nothing to wait for: it wants another turn.
    pub fn wants_turn(&self) -> bool {
        self.more && self.wait == Wait::None && !self.closing
    }

    /// Whether the connection can be closed: it is to be, and everything due has been sent.
    pub fn is_over(&self) -> bool {
        self.closing && self.pending.is_empty() && self.out.is_empty() && self.wait != Wait::Read
    }

    /// Executes nothing further; what is under way is still answered.
    pub fn close(&mut self) {
        self.closing = true;
        self.receiving = None;
    }

    /// Whether nothing is under way: no partial request, no waiting reply.
    pub fn is_idle(&self) -> bool {
        self.input.is_empty() && self.pending.is_empty() && self.out.is_empty() && self.receiving.is_none()
    }

    /// Whether only the peer can bring it on.
    pub fn awaits_peer(&self) -> bool {
        self.wants_input() && self.pending.is_empty() && self.out.is_empty()
    }

    /// Bytes of buffers it holds.
    pub fn memory_bytes(&self) -> usize {
        self.input.capacity() + self.out.capacity() + self.pending.capacity() * size_of::<PendingGet>()
    }

    /// Where the next bytes should be received, when they belong to a large value; else into a buffer for
    /// [`advance`](Self::advance).
    pub fn receive_into(&mut self) -> Option<&mut [u8]> {
        self.receiving.as_mut().and_then(|receiving| receiving.spare())
    }

    /// `len` bytes have been put where [`receive_into`](Self::receive_into) said.
    pub fn received(&mut self, ctx: &mut Ctx<'_>, len: usize) {
        if let Some(receiving) = &mut self.receiving {
            receiving.advance(len);
        }
        self.advance(ctx, &[]);
    }

    /// The peer sent `fresh`; executes what is complete.
    pub fn advance(&mut self, ctx: &mut Ctx<'_>, fresh: &[u8]) {
        self.more = false;
        if self.input.is_empty() {
            let used = self.run(ctx, fresh);
            if used < fresh.len() {
                self.input.extend_from_slice(&fresh[used..]);
            }
        } else {
            self.input.extend_from_slice(fresh);
            let mut input = std::mem::take(&mut self.input);
            let used = self.run(ctx, &input);
            if used == input.len() {
                // An idle connection holds no buffer.
                input = Vec::new();
            } else {
                input.drain(..used);
            }
            self.input = input;
        }
        if self.closing {
            self.input = Vec::new();
            self.more = false;
        }
    }

    /// Executes requests from the front of `input`; answers how many bytes are done with.
    fn run(&mut self, ctx: &mut Ctx<'_>, input: &[u8]) -> usize {
        let mut at = 0;
        let mut turns_left = ctx.shared.config.reqs_per_event.max(1);
        loop {
            if self.out.bytes() > OUTPUT_BYTES_MAX && self.wait == Wait::None {
                self.wait = Wait::Drain;
            }
            if self.wait != Wait::None || self.closing {
                return at;
            }
            if self.swallow > 0 {
                let skipped = self.swallow.min((input.len() - at) as u64);
                self.swallow -= skipped;
                at += skipped as usize;
            }
            if self.receiving.is_some() {
                at += self.receive(ctx, &input[at..]);
                if self.receiving.is_some() {
                    return at;
                }
                continue;
            }
            let rest = &input[at..];
            let Some(&first) = rest.first() else { return at };
            if turns_left == 0 {
                ctx.counters.conn_yields.up();
                self.more = true;
                return at;
            }
            let wire = *self.wire.get_or_insert_with(|| detect(first));
            let mut batch = ArrayVec::<(Request<'_>, KeyHash, usize), BATCH>::new();
            let mut parsed = 0;
            let stop = loop {
                if batch.is_full() || batch.len() as u32 >= turns_left || parsed == rest.len() {
                    break None;
                }
                match parse(wire, &rest[parsed..]) {
                    Step::Request { request, len } => {
                        let hash = request.first_key_hash(ctx);
                        parsed += len;
                        batch.push((request, hash, len));
                    }
                    other => break Some(other),
                }
            };
            if batch.len() > 1 {
                batch.iter().for_each(|(_, hash, _)| ctx.shared.store.prefetch_item(*hash));
            }
            for (request, hash, len) in &batch {
                if self.wait != Wait::None || self.closing || self.out.bytes() > OUTPUT_BYTES_MAX {
                    break;
                }
                turns_left = turns_left.saturating_sub(1);
                if self.execute(ctx, request, *hash) == Served::Waits {
                    return at;
                }
                self.progress = 0;
                self.room_since = None;
                at += len;
            }
            if at < input.len() - rest.len() + parsed || self.wait != Wait::None || self.closing {
                continue;
            }
            match stop {
                None => {}
                Some(Step::Incomplete { .. }) => return at,
                Some(Step::Close) => {
                    self.close();
                    return at;
                }
                Some(Step::Reject { reject, len, swallow, close }) => {
                    reject.encode(self.out.tail());
                    at += len;
                    self.swallow = swallow;
                    if close {
                        self.close();
                    }
                }
                Some(Step::Body { request, head, tail }) => {
                    let from = at;
                    match self.begin_body(ctx, &request, tail) {
                        receive::Begun::Taken => at = from + head,
                        receive::Begun::WaitForAll => return at,
                        receive::Begun::Later => return at,
                    }
                }
                Some(Step::Request { .. }) => unreachable!("requests are batched"),
            }
        }
    }

    /// What to do when there is no room: wait for as long as configured, then drop what does not fit.
    pub(crate) fn patience(&self, ctx: &Ctx<'_>) -> Patience {
        match self.room_since {
            Some(since) if ctx.instant.duration_since(since) >= ctx.shared.config.ssd_write_wait => {
                Patience::Drop
            }
            _ => Patience::Wait,
        }
    }

    pub(crate) fn wait_for_room(&mut self, ctx: &Ctx<'_>) -> Served {
        if self.room_since.is_none() {
            ctx.counters.ssd_waits.up();
        }
        self.room_since.get_or_insert(ctx.instant);
        self.wait = Wait::Room;
        Served::Waits
    }

    pub(crate) fn wait_for_read(&mut self, ctx: &mut Ctx<'_>, plan: ReadPlan) -> Served {
        self.wait = Wait::Read;
        ctx.reads.push((Ticket::Barrier, plan));
        Served::Waits
    }

    /// Whether another plain get, with a read of so many bytes, may go to the SSD now.
    pub(crate) fn may_read(&self, ctx: &Ctx<'_>, bytes: usize) -> bool {
        let fits = self.pending.is_empty() || self.pending_bytes + bytes <= PENDING_BYTES_MAX;
        fits && self.pending.len() < PENDING_MAX && ctx.reads.len() < ctx.read_room
    }

    pub(crate) fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Whether so much is to be sent already that a multi-get should pause.
    pub(crate) fn is_full(&self) -> bool {
        self.out.bytes() > OUTPUT_BYTES_MAX
    }

    /// Room may have been made, reads may have finished, or the peer has taken something: tries again.
    pub fn resume(&mut self, ctx: &mut Ctx<'_>) {
        match self.wait {
            // A long multi-get is parsed again each time it goes on, so it goes on for many keys at once.
            Wait::Reads
                if self.pending.len() > PENDING_MAX / 2 || self.pending_bytes > PENDING_BYTES_MAX / 2 =>
            {
                return;
            }
            Wait::Room | Wait::Reads => {}
            Wait::Drain if self.out.bytes() <= OUTPUT_BYTES_MAX / 2 => {}
            Wait::Drain | Wait::Read | Wait::None => return,
        }
        self.wait = Wait::None;
        self.advance(ctx, &[]);
    }

    /// A read is done: `bytes` of `buffer` were read, or it failed.
    pub fn read_done(
        &mut self,
        ctx: &mut Ctx<'_>,
        ticket: Ticket,
        plan: ReadPlan,
        buffer: IoBuf,
        bytes: Option<usize>,
    ) {
        match ticket {
            Ticket::Barrier => {
                let buffer = bytes.is_some().then_some(buffer);
                self.loaded = Some(LoadedRead { plan, buffer, bytes: bytes.unwrap_or(0) });
                self.wait = Wait::None;
                self.advance(ctx, &[]);
                self.loaded = None;
            }
            Ticket::Get(ticket) => {
                let bytes = bytes.map(|bytes| &buffer[..bytes]);
                self.get_done(ctx, ticket, Loaded { plan: &plan, bytes });
            }
        }
    }
}
