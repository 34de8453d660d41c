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

mod input;
mod output;
mod receive;

use std::ops::Range;
use std::time::Instant;

use arrayvec::ArrayVec;
use larder_device::IoBuf;
use larder_protocol::{OwnedReply, Request, Step, Wire, detect, parse};
use larder_store::{Fetch, KeyHash, Loaded, OnFull, ReadPlan, Seconds};

use crate::budget::{Claim, LIGHT_BYTES};
use crate::config::Protocol;
use crate::counters::Counters;
use crate::dispatch::Prefetch;
use crate::echo;
use crate::shared::Shared;

use input::Input;
pub(crate) use output::COPY_BYTES_MAX;
pub use output::Output;
use receive::Receiving;

/// What a session is driven with: the surroundings of one turn of the event loop.
pub struct Ctx<'a> {
    /// What all workers share.
    pub shared: &'a Shared,
    /// The descriptor of the connection, which names it in what `-vv` shows.
    pub connection: i32,
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
    /// While this is not 0, another read may be asked for; each takes its bytes off.
    pub read_bytes: usize,
    /// While this is not 0, another heavy read may be asked for; each takes its bytes off.
    pub heavy_read_bytes: usize,
    /// Set when there is no memory for a read that could else be asked for.
    pub memory_is_short: bool,
    /// Whether the peer was served less than its share.
    pub is_light: bool,
    /// With more than this to send, the session executes nothing further until some of it is sent.
    pub output_bytes_max: usize,
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
    /// For a turn to read from the SSD: call [`Session::resume`] when it comes.
    Reads,
    /// For reads of its own to finish, of which it has as many as one session may have.
    OwnReads,
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
    buffer: ReadBuffer<'static>,
}

impl LoadedRead {
    pub(crate) fn loaded(&self) -> Loaded<'_> {
        Loaded { plan: &self.plan, bytes: self.buffer.bytes() }
    }

    fn memory_bytes(&self) -> usize {
        match &self.buffer.memory {
            Memory::Own(buffer) => buffer.len(),
            Memory::Shared(_) => 0,
        }
    }

    pub(crate) fn buffer(&self) -> &ReadBuffer<'static> {
        &self.buffer
    }

    pub(crate) fn into_own(self) -> Option<IoBuf> {
        self.buffer.into_own()
    }
}

/// The memory of a read.
pub enum Memory<'a> {
    /// A session may keep it, to send a value from where it lies.
    Own(IoBuf),
    /// Other gets were answered from it, or will be.
    Shared(&'a IoBuf),
}

/// What a read brought.
pub struct ReadBuffer<'a> {
    /// Where.
    pub memory: Memory<'a>,
    /// How many bytes of it were read; `None` when the read failed.
    pub bytes: Option<usize>,
}

impl ReadBuffer<'_> {
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        let memory = match &self.memory {
            Memory::Own(buffer) => buffer,
            Memory::Shared(buffer) => *buffer,
        };
        self.bytes.map(|bytes| &memory[..bytes])
    }

    /// Where in it a value lies that is to be sent from here, if it is worth that.
    pub(crate) fn part(&self, value: &[u8]) -> Option<Range<usize>> {
        let is_own = matches!(self.memory, Memory::Own(_));
        let bytes = self.bytes().filter(|_| is_own && value.len() > output::COPY_BYTES_MAX)?;
        let start = value.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
        let end = start.checked_add(value.len())?;
        (end <= bytes.len()).then_some(start..end)
    }

    pub(crate) fn into_own(self) -> Option<IoBuf> {
        match self.memory {
            Memory::Own(buffer) => Some(buffer),
            Memory::Shared(_) => None,
        }
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
    input: Input,
    /// The output to be sent.
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
    /// Bytes of the read that it asked for last.
    wanted_bytes: usize,
    next_ticket: u64,
    pub(crate) loaded: Option<LoadedRead>,
    /// Since when the request at the front waits for room.
    pub(crate) room_since: Option<Instant>,
    /// The length of the request at the front of the input, when that was found out just now.
    expected: usize,
    /// It is its turn to read: others wait for theirs.
    reads_are_scarce: bool,
    closing: bool,
    more: bool,
    /// What some requests executed lately cost besides what every request does, in bytes that cost as much.
    extra_cost: usize,
    /// Requests executed since their cost was taken.
    executed: usize,
}

/// About what the key of a pending get takes.
const KEY_BYTES: usize = 64;
/// What a request costs besides the bytes that it moves. A turn of as many small requests as one may execute
/// (20, unless `-R` says otherwise) is heavy by this.
const REQUEST_COST_BYTES: usize = 4096;
/// Requests parsed and prefetched before the first of them is executed.
const BATCH: usize = 16;
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
            input: Input::default(),
            out: Output::default(),
            wait: Wait::None,
            receiving: None,
            swallow: 0,
            progress: 0,
            pending: Vec::new(),
            pending_bytes: 0,
            wanted_bytes: 0,
            next_ticket: 0,
            loaded: None,
            room_since: None,
            expected: 0,
            reads_are_scarce: false,
            closing: false,
            more: false,
            extra_cost: 0,
            executed: 0,
        }
    }

    /// What it waits for.
    pub fn wait(&self) -> Wait {
        self.wait
    }

    /// Bytes of the read that it waits for a turn to make.
    pub fn wanted_bytes(&self) -> usize {
        self.wanted_bytes
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

    /// Ends the turn after the present request, which cost as much as so many bytes besides those it sends.
    pub(crate) fn add_cost(&mut self, bytes: usize) {
        self.extra_cost += bytes;
    }

    /// Takes the cost of the requests executed since the last call, besides the bytes they read and sent.
    pub fn take_cost(&mut self) -> usize {
        std::mem::take(&mut self.extra_cost) + std::mem::take(&mut self.executed) * REQUEST_COST_BYTES
    }

    /// Executes nothing further; requests in progress are still answered.
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
        let keys: usize = self.pending.len() * KEY_BYTES;
        let pending = self.pending.capacity() * size_of::<PendingGet>() + keys;
        let loaded = self.loaded.as_ref().map_or(0, LoadedRead::memory_bytes);
        self.input.capacity() + self.out.capacity() + pending + loaded
    }

    /// Whether a large value is on its way in.
    pub fn is_receiving(&self) -> bool {
        self.receiving.is_some()
    }

    /// Bytes still to come of a request whose memory it holds already; 0 for none.
    pub fn input_missing(&self) -> usize {
        if self.receiving.is_some() { 0 } else { self.input.missing() }
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

    /// The peer sent `fresh`; executes all complete requests.
    pub fn advance(&mut self, ctx: &mut Ctx<'_>, fresh: &[u8]) {
        self.more = false;
        if self.input.is_empty() {
            let used = self.run(ctx, fresh);
            if used < fresh.len() {
                self.input.expect(std::mem::take(&mut self.expected));
                self.input.push(&fresh[used..]);
            }
        } else {
            if !fresh.is_empty() {
                self.input.push(fresh);
            }
            let input = std::mem::take(&mut self.input);
            let used = self.run(ctx, input.rest());
            self.input = input;
            self.input.consume(used);
        }
        if self.closing {
            self.input = Input::default();
            self.more = false;
        } else {
            self.input.expect(std::mem::take(&mut self.expected));
        }
    }

    /// Executes requests from the front of `input`; answers how many bytes are done with.
    fn run(&mut self, ctx: &mut Ctx<'_>, input: &[u8]) -> usize {
        let mut at = 0;
        // What a read was made for is executed, and nothing behind it: its memory is all that was taken.
        let is_single = self.loaded.is_some();
        let mut turns_left = if is_single { 1 } else { ctx.shared.config.reqs_per_event.max(1) };
        loop {
            if self.is_full(ctx) && self.wait == Wait::None && self.loaded.is_none() {
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
                let said = self.out.tail().len();
                at += self.receive(ctx, &input[at..]);
                if self.receiving.is_some() {
                    return at;
                }
                if ctx.shared.logs(2) {
                    echo::reply(ctx.connection, self.out.tail().get(said..).unwrap_or_default());
                }
                turns_left -= u32::from(is_single);
                continue;
            }
            let rest = &input[at..];
            let Some(&first) = rest.first() else { return at };
            if turns_left == 0 {
                if !is_single {
                    ctx.counters.conn_yields.up();
                }
                self.more = true;
                return at;
            }
            let wire = *self.wire.get_or_insert_with(|| detect(first));
            let mut batch = ArrayVec::<(Request<'_>, KeyHash, usize), BATCH>::new();
            let mut parsed = 0;
            // What is parsed beyond a request that has to wait is parsed again.
            let reads_max =
                if ctx.read_bytes == 0 { 0 } else { ctx.read_room.saturating_sub(ctx.reads.len()) };
            let batch_max = if self.reads_are_scarce { reads_max.clamp(1, BATCH) } else { BATCH };
            let batch_max = batch_max.min(turns_left as usize);
            let stop = loop {
                if batch.len() >= batch_max || parsed == rest.len() {
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
                if self.wait != Wait::None || self.closing || self.is_full(ctx) && !is_single {
                    break;
                }
                turns_left = turns_left.saturating_sub(1);
                let said = self.out.tail().len();
                if self.execute(ctx, request, *hash) == Served::Waits {
                    return at;
                }
                if ctx.shared.logs(2) {
                    echo::request(ctx.connection, &input[at..at + len]);
                    echo::reply(ctx.connection, self.out.tail().get(said..).unwrap_or_default());
                }
                self.progress = 0;
                self.room_since = None;
                self.executed += 1;
                at += len;
                if self.extra_cost > 0 {
                    turns_left = 0;
                    break;
                }
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
                    let said = self.out.tail().len();
                    reject.encode(self.out.tail());
                    if ctx.shared.logs(2) {
                        echo::request(ctx.connection, &input[at..at + len]);
                        echo::reply(ctx.connection, &self.out.tail()[said..]);
                    }
                    at += len;
                    self.swallow = swallow;
                    if close {
                        self.close();
                    }
                }
                Some(Step::Body { request, head, tail }) => {
                    let from = at;
                    match self.begin_body(ctx, &request, (head, tail)) {
                        receive::Begun::Taken => {
                            if ctx.shared.logs(2) {
                                echo::request(ctx.connection, &input[from..from + head]);
                            }
                            at = from + head;
                        }
                        receive::Begun::WaitForAll => return at,
                    }
                }
                Some(Step::Request { .. }) => unreachable!("requests are batched"),
            }
        }
    }

    /// What to do when there is no room: wait for as long as configured, then drop what does not fit.
    pub(crate) fn on_full(&self, ctx: &Ctx<'_>) -> OnFull {
        match self.room_since {
            Some(since) if ctx.instant.duration_since(since) >= ctx.shared.config.ssd_write_wait => {
                OnFull::Drop
            }
            _ => OnFull::Wait,
        }
    }

    pub(crate) fn wait_for_room(&mut self, ctx: &Ctx<'_>) -> Served {
        if self.room_since.is_none() {
            ctx.counters.ssd_waits.up();
        }
        self.room_since.get_or_insert(ctx.instant);
        self.loaded = None;
        self.wait = Wait::Room;
        Served::Waits
    }

    /// Tries the request at the front of the input again, after others had their turn.
    pub(crate) fn try_again(&mut self) -> Served {
        self.more = true;
        Served::Waits
    }

    /// Drops the read that an operation was called with, unless it is to be called with it again.
    pub(crate) fn release_read<T>(&mut self, step: &larder_store::Step<T>) {
        if !matches!(step, larder_store::Step::Again) {
            self.loaded = None;
        }
    }

    /// Asks for a read for the request at the front of the input, or for a turn to ask for it.
    pub(crate) fn wait_for_read(&mut self, ctx: &mut Ctx<'_>, plan: ReadPlan) -> Served {
        self.loaded = None;
        self.wait = Wait::Reads;
        if self.claim_read(ctx, plan.bytes()) {
            self.wait = Wait::Read;
            ctx.reads.push((Ticket::Barrier, plan));
        }
        Served::Waits
    }

    /// Whether another plain get may go to the SSD now; then the bytes of its read are taken from the budget.
    /// If not, the session waits.
    pub(crate) fn claim_get(&mut self, ctx: &mut Ctx<'_>, bytes: usize) -> bool {
        let fits = self.pending.is_empty() || self.pending_bytes + bytes <= PENDING_BYTES_MAX;
        if !fits || self.pending.len() >= PENDING_MAX {
            self.wait = Wait::OwnReads;
            return false;
        }
        let claimed = self.claim_read(ctx, bytes);
        if !claimed {
            self.wait = Wait::Reads;
        }
        claimed
    }

    fn claim_read(&mut self, ctx: &mut Ctx<'_>, bytes: usize) -> bool {
        self.wanted_bytes = bytes;
        let is_heavy = bytes as u64 > LIGHT_BYTES;
        let has_room = ctx.reads.len() < ctx.read_room && ctx.read_bytes > 0;
        if !has_room || is_heavy && ctx.heavy_read_bytes == 0 {
            return false;
        }
        let claimed = Self::claim_memory(ctx, bytes);
        if claimed {
            ctx.read_bytes = ctx.read_bytes.saturating_sub(bytes);
            ctx.heavy_read_bytes = ctx.heavy_read_bytes.saturating_sub(if is_heavy { bytes } else { 0 });
        }
        ctx.memory_is_short |= !claimed;
        claimed
    }

    /// Takes the bytes of a read from the budget, if they can be had.
    pub(crate) fn claim_memory(ctx: &Ctx<'_>, bytes: usize) -> bool {
        let light = ctx.is_light && bytes as u64 <= LIGHT_BYTES;
        ctx.shared.budget.take(bytes as u64, Claim::Finish { light })
    }

    pub(crate) fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Whether so much is to be sent already that a multi-get should pause.
    pub(crate) fn is_full(&self, ctx: &Ctx<'_>) -> bool {
        self.out.bytes() > ctx.output_bytes_max
    }

    /// Whether it could go on at once: its reads have finished, or the peer has taken what it had to.
    pub fn can_resume(&self, output_bytes_max: usize) -> bool {
        match self.wait {
            // A long multi-get is parsed again each time it goes on, so it goes on for many keys at once.
            Wait::OwnReads => {
                self.pending.len() <= PENDING_MAX / 2 && self.pending_bytes <= PENDING_BYTES_MAX / 2
            }
            Wait::Drain => self.out.bytes() <= output_bytes_max / 2,
            Wait::None => self.wants_turn(),
            Wait::Room | Wait::Reads | Wait::Read => false,
        }
    }

    /// Goes on with its input, whatever it waited for except a [`Wait::Read`].
    pub fn resume(&mut self, ctx: &mut Ctx<'_>) {
        if self.wait != Wait::Read {
            self.reads_are_scarce = self.wait == Wait::Reads;
            self.wait = Wait::None;
            self.advance(ctx, &[]);
            self.reads_are_scarce = false;
        }
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
                self.loaded =
                    Some(LoadedRead { plan, buffer: ReadBuffer { memory: Memory::Own(buffer), bytes } });
                self.wait = Wait::None;
                self.advance(ctx, &[]);
            }
            Ticket::Get(ticket) => {
                self.get_done(ctx, ticket, &plan, ReadBuffer { memory: Memory::Own(buffer), bytes });
            }
        }
    }
}
