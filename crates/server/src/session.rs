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
//! A plain get that needs the SSD does not hold up the requests behind it: its place in the output is kept, and it
//! is answered when its read is done. Any other request that needs the SSD, or room, waits at the front of the
//! input.
//!
//! The wire (`larder_protocol`) and the store (`larder_store`) meet here and nowhere else: `run` parses and
//! executes, `commands` maps a request to calls of the store and the result to a reply, `receive` takes in large
//! values, `read` bounds the reads from the SSD.

mod commands;
mod echo;
mod input;
mod login;
mod output;
mod read;
mod receive;
mod run;
mod subscribe;
mod watch;

use std::time::Instant;

use larder_protocol::Wire;
use larder_store::{OnFull, ReadPlan, Seconds};

use crate::budget::{Budget, LINE_BYTES_MAX};
use crate::config::{Config, Protocol};
use crate::counters::Counters;
use crate::latency::Latencies;
use crate::shared::Shared;

use input::Input;
use login::Guard;
use read::{LoadedRead, PENDING_BYTES_MAX, PENDING_MAX, PendingGet};
use receive::Receiving;
use subscribe::Subscribed;
use watch::Watching;

pub use commands::{Lines, all_figures, mrc_figures, prefix_figures, settings, statistics};
pub use larder_protocol::text::TOO_MANY_CONNECTIONS;
pub use output::Output;
pub use read::{Memory, ReadBuffer, Ticket};

/// The surroundings of one turn of the event loop, with which a session is driven.
pub struct Ctx<'a> {
    /// The state that all workers share.
    pub shared: &'a Shared,
    /// The descriptor of the connection, which names it in the lines of `-vv`.
    pub connection: i32,
    /// The number of the worker, and of the connection in it.
    pub place: (usize, u64),
    /// This worker's counters.
    pub counters: &'a Counters,
    /// This worker's histograms.
    pub latencies: &'a Latencies,
    /// The current second, for expiry.
    pub now: Seconds,
    /// The current instant, for waits.
    pub instant: Instant,
    /// Reads that the session asks for; the driver submits and removes them.
    pub reads: &'a mut Vec<(Ticket, ReadPlan)>,
    /// The number of reads that the driver can still take now.
    pub read_room: usize,
    /// While this is not 0, another read may be asked for. Each read takes its bytes off.
    pub read_bytes: usize,
    /// While this is not 0, another heavy read may be asked for. Each read takes its bytes off.
    pub heavy_read_bytes: usize,
    /// Set when a read is not asked for only because there is no memory for it.
    pub memory_is_short: bool,
    /// Whether the peer was served less than its share.
    pub is_light: bool,
    /// With more output than this, the session executes nothing further until some of it is sent.
    pub output_bytes_max: usize,
}

/// The reason why no more of the input is executed for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// There is none.
    None,
    /// The read of the request at the front is under way.
    Read,
    /// There is no room in RAM or on the SSD. Call [`Session::resume`] when a write has completed, and after a
    /// while anyway.
    Room,
    /// It waits for a turn to read from the SSD. Call [`Session::resume`] when the turn comes.
    Reads,
    /// It has as many reads under way as one session may have.
    OwnReads,
    /// The peer has not taken its replies.
    Drain,
    /// It waits for memory to receive the rest of a long line: see [`Session::receive_line`].
    Line,
    /// It watches events: nothing that its peer sends is executed any more.
    Watch,
    /// The answer to its login waits. Call [`Session::resume`] now and then.
    Login,
}

/// The outcome of executing one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// It is answered, or its place in the output is kept.
    Done,
    /// It stays at the front of the input; `wait` is the reason.
    Waits,
}

/// One client's connection, without its socket.
pub struct Session {
    /// What its listener lets it speak.
    protocol: Protocol,
    /// What it speaks, since its first byte.
    wire: Option<Wire>,
    /// Decides what is executed, if the peer has to authenticate.
    guard: Option<Box<Guard>>,
    /// Bytes received and not consumed yet.
    input: Input,
    /// The output to be sent.
    pub out: Output,
    wait: Wait,
    receiving: Option<Box<Receiving>>,
    /// Bytes of input to skip before the next request.
    swallow: u64,
    /// Keys of the request at the front that are answered already.
    progress: usize,
    pending: Vec<PendingGet>,
    /// Bytes of the reads of `pending`.
    pending_bytes: usize,
    /// Bytes of the read that it asked for last.
    wanted_bytes: usize,
    next_ticket: u64,
    loaded: Option<LoadedRead>,
    /// Since when the request at the front waits for room.
    room_since: Option<Instant>,
    /// Whether the request at the front has waited for room, a turn or a read.
    has_waited: bool,
    /// Since when a request waits for its turn to read.
    turn_since: Option<Instant>,
    /// Since when the request at the front has needed a read.
    read_since: Option<Instant>,
    /// The length of the request at the front of the input, if it was parsed just now; else 0.
    expected: usize,
    /// Other connections wait for a turn to read.
    reads_are_scarce: bool,
    closing: bool,
    /// Input is left to execute in another turn.
    more: bool,
    /// The extra cost of the requests executed lately, in bytes of a value that costs as much to send.
    extra_cost: usize,
    /// Requests executed since [`take_cost`](Self::take_cost).
    executed: usize,
    /// Memory for a whole line is taken for the request at the front.
    has_line: bool,
    /// The subscription to changes of leased keys.
    subscribed: Option<Box<Subscribed>>,
    /// The listing of connections that the request at the front asked for.
    connection_listing: Option<Box<commands::ConnectionListing>>,
    /// The watching of events.
    watching: Option<Box<Watching>>,
    /// The listing of keys that the request at the front asked for.
    listing: Option<Box<commands::KeyListing>>,
    /// Bytes taken from the budget since [`take_claimed`](Self::take_claimed).
    claimed: usize,
}

/// The memory taken for the key of a pending get, about.
const KEY_BYTES: usize = 64;
/// The cost of a request besides the bytes that it moves. By this, a turn of as many small requests as one may
/// execute (`-R`, 20 by default) is heavy.
const REQUEST_COST_BYTES: usize = 4096;

impl Session {
    /// Returns the session of a new connection.
    pub fn new(config: &Config) -> Session {
        Session::speaking(config, config.protocol)
    }

    /// Returns the session of a new connection that speaks `protocol`.
    pub fn speaking(config: &Config, protocol: Protocol) -> Session {
        Session {
            guard: config.auth_file.is_some().then(Box::default),
            protocol,
            wire: None,
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
            has_waited: false,
            turn_since: None,
            read_since: None,
            expected: 0,
            reads_are_scarce: false,
            closing: false,
            more: false,
            extra_cost: 0,
            executed: 0,
            has_line: false,
            claimed: 0,
            listing: None,
            connection_listing: None,
            subscribed: None,
            watching: None,
        }
    }

    /// Returns the reason why it executes nothing for now.
    pub fn wait(&self) -> Wait {
        self.wait
    }

    /// Returns the bytes of the read for which it waits for a turn.
    pub fn wanted_bytes(&self) -> usize {
        self.wanted_bytes
    }

    /// Returns the number of gets whose reads are not done.
    pub fn gets_pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether bytes from the peer are wanted now.
    pub fn wants_input(&self) -> bool {
        !self.closing && !self.more && matches!(self.wait, Wait::None | Wait::Watch)
    }

    /// Returns whether there is input to execute in another turn.
    pub fn wants_turn(&self) -> bool {
        self.more && self.wait == Wait::None && !self.closing
    }

    /// Returns whether the connection is to be closed and all replies have been sent.
    pub fn is_over(&self) -> bool {
        self.closing && self.pending.is_empty() && self.out.is_empty() && self.wait != Wait::Read
    }

    /// Ends the turn after the present request, which cost as much as sending `bytes` more.
    fn add_cost(&mut self, bytes: usize) {
        self.extra_cost += bytes;
    }

    /// Returns the cost of the requests executed since the last call, besides the bytes they read and sent.
    pub fn take_cost(&mut self) -> usize {
        std::mem::take(&mut self.extra_cost) + std::mem::take(&mut self.executed) * REQUEST_COST_BYTES
    }

    /// Stops executing requests. Those in progress are still answered.
    pub fn close(&mut self) {
        self.closing = true;
        self.receiving = None;
        self.listing = None;
        self.connection_listing = None;
        self.watching = None;
    }

    /// Returns whether there is no partial request and no waiting reply.
    pub fn is_idle(&self) -> bool {
        self.input.is_empty() && self.pending.is_empty() && self.out.is_empty() && self.receiving.is_none()
    }

    /// Returns whether it can continue only when the peer sends more. One that watches wants nothing from its peer.
    pub fn awaits_peer(&self) -> bool {
        self.watching.is_none() && self.wants_input() && self.pending.is_empty() && self.out.is_empty()
    }

    /// Returns the bytes of memory it holds.
    pub fn memory_bytes(&self) -> usize {
        let keys: usize = self.pending.len() * KEY_BYTES;
        let pending = self.pending.capacity() * size_of::<PendingGet>() + keys;
        let loaded = self.loaded.as_ref().map_or(0, LoadedRead::memory_bytes);
        let listing = self.listing.as_ref().map_or(0, |listing| listing.memory_bytes());
        let connections = self.connection_listing.as_ref().map_or(0, |listing| listing.memory_bytes());
        let listing = listing + connections;
        let watching = self.watching.as_ref().map_or(0, |watching| watching.memory_bytes());
        self.input.capacity() + self.out.capacity() + pending + loaded + listing + watching
    }

    /// Returns memcached's word for what it does.
    pub fn state(&self) -> &'static str {
        if self.closing {
            "conn_closing"
        } else if self.watching.is_some() {
            "conn_watch"
        } else if self.wait == Wait::Read || !self.pending.is_empty() {
            "conn_io_queue"
        } else if !self.out.is_empty() {
            "conn_mwrite"
        } else if self.swallow > 0 {
            "conn_swallow"
        } else if self.receiving.is_some() || self.input.missing() > 0 {
            "conn_nread"
        } else if self.wire.is_none() {
            "conn_new_cmd"
        } else {
            "conn_read"
        }
    }

    /// Returns whether a large value is being received.
    pub fn is_receiving(&self) -> bool {
        self.receiving.is_some()
    }

    /// Returns the bytes still to come of a request whose memory it holds already; 0 for none.
    pub fn input_missing(&self) -> usize {
        if self.receiving.is_some() { 0 } else { self.input.missing() }
    }

    /// Returns the memory to receive the next bytes into, if they belong to a large value. Else they are for
    /// [`advance`](Self::advance).
    pub fn receive_into(&mut self) -> Option<&mut [u8]> {
        self.receiving.as_mut().and_then(|receiving| receiving.spare())
    }

    /// Takes `len` bytes that were put into the memory of [`receive_into`](Self::receive_into).
    pub fn received(&mut self, ctx: &mut Ctx<'_>, len: usize) {
        if let Some(receiving) = &mut self.receiving {
            receiving.advance(len);
        }
        self.advance(ctx, &[]);
    }

    /// Takes `fresh` bytes from the peer, and executes all complete requests.
    pub fn advance(&mut self, ctx: &mut Ctx<'_>, fresh: &[u8]) {
        self.more = false;
        let had_line = self.has_line;
        let used;
        if self.input.is_empty() {
            used = self.run(ctx, fresh);
            if used < fresh.len() {
                self.input.expect(std::mem::take(&mut self.expected));
                self.input.push(&fresh[used..]);
            }
        } else {
            if !fresh.is_empty() {
                self.input.push(fresh);
            }
            let input = std::mem::take(&mut self.input);
            used = self.run(ctx, input.rest());
            self.input = input;
            self.input.consume(used);
        }
        if had_line && used > 0 {
            self.end_line(&ctx.shared.budget);
        }
        if self.closing || self.wait == Wait::Watch {
            self.input = Input::default();
            self.more = false;
        } else {
            self.input.expect(std::mem::take(&mut self.expected));
        }
    }

    /// Takes `fresh` bytes from the peer, and executes nothing that must wait or is of another turn.
    pub fn take_in(&mut self, ctx: &mut Ctx<'_>, fresh: &[u8]) {
        if self.wants_input() {
            self.advance(ctx, fresh);
        } else if !self.closing {
            self.input.push(fresh);
        }
    }

    /// Receives the rest of a long line at the front of the input, for which `LINE_BYTES_MAX` were taken from the
    /// budget.
    pub fn receive_line(&mut self) {
        self.wait = Wait::None;
        self.hold_line();
        self.input.expect(std::mem::take(&mut self.expected));
    }

    /// Notes that the memory of a whole line is taken for the request at the front.
    fn hold_line(&mut self) {
        self.has_line = true;
        self.claimed += LINE_BYTES_MAX;
        self.expected = LINE_BYTES_MAX;
    }

    /// Returns whether the memory of a whole line is taken for it.
    pub fn has_line(&self) -> bool {
        self.has_line
    }

    /// Lets another line have its turn, if this session has one.
    pub fn end_line(&mut self, budget: &Budget) {
        if std::mem::take(&mut self.has_line) {
            budget.end_line();
        }
    }

    /// Returns the bytes that it took from the budget since the last call, to hold them.
    pub fn take_claimed(&mut self) -> usize {
        std::mem::take(&mut self.claimed)
    }

    /// Returns how the store treats a lack of room: it waits for as long as configured, then drops items.
    fn on_full(&self, ctx: &Ctx<'_>) -> OnFull {
        match self.room_since {
            Some(since) if ctx.instant.duration_since(since) >= ctx.shared.config.ssd_write_wait => {
                OnFull::Drop
            }
            _ => OnFull::Wait,
        }
    }

    /// Leaves the request at the front of the input to be tried again when there is room.
    fn wait_for_room(&mut self, ctx: &Ctx<'_>) -> Served {
        if self.room_since.is_none() {
            ctx.counters.ssd_waits.up();
        }
        self.room_since.get_or_insert(ctx.instant);
        self.has_waited = true;
        self.loaded = None;
        self.wait = Wait::Room;
        Served::Waits
    }

    /// Leaves the request at the front of the input to be tried again, after other connections had a turn.
    fn try_again(&mut self) -> Served {
        self.more = true;
        Served::Waits
    }

    /// Returns whether there is so much output that execution pauses.
    fn is_full(&self, ctx: &Ctx<'_>) -> bool {
        self.out.bytes() > ctx.output_bytes_max
    }

    /// Returns whether it can continue at once: its reads have finished, or the peer has taken its replies.
    pub fn can_resume(&self, output_bytes_max: usize) -> bool {
        match self.wait {
            // A long multi-get is parsed again each time it continues, so it continues for many keys at once.
            Wait::OwnReads => {
                self.pending.len() <= PENDING_MAX / 2 && self.pending_bytes <= PENDING_BYTES_MAX / 2
            }
            Wait::Drain => self.out.bytes() <= output_bytes_max / 2,
            Wait::None => self.wants_turn(),
            Wait::Room | Wait::Reads | Wait::Read | Wait::Line | Wait::Login | Wait::Watch => false,
        }
    }

    /// Continues with its input, unless it waits for a [`Wait::Read`].
    pub fn resume(&mut self, ctx: &mut Ctx<'_>) {
        if self.wait == Wait::Login && !self.finish_login(ctx) {
            return;
        }
        if !matches!(self.wait, Wait::Read | Wait::Watch) {
            self.reads_are_scarce = self.wait == Wait::Reads;
            self.wait = Wait::None;
            self.advance(ctx, &[]);
            self.reads_are_scarce = false;
        }
    }
}
