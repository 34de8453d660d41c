//! A session's reads from the SSD: the memory they bring, the bounds on them, and the gets that wait for them.

use std::ops::Range;
use std::time::{Duration, Instant};

use larder_device::IoBuf;
use larder_protocol::OwnedReply;
use larder_store::{Fetch, KeyHash, Loaded, ReadPlan, Step};

use super::output::COPY_BYTES_MAX;
use super::{Ctx, Served, Session, Wait};
use crate::budget::{Claim, LIGHT_BYTES};

/// Names the request of a session that a read belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticket {
    /// A plain get with its place in the output.
    Get(u64),
    /// The request at the front of the input.
    Barrier,
}

/// A plain get whose read is under way.
pub(super) struct PendingGet {
    pub ticket: u64,
    pub key: Box<[u8]>,
    pub hash: KeyHash,
    /// Bytes of its read; its reply has no more.
    pub read_bytes: usize,
    pub fetch: Fetch,
    pub unless_cas: Option<u64>,
    pub value: bool,
    /// Whether it is the request's only key, so that the request's end belongs to its reply.
    pub ends: bool,
    pub reply: OwnedReply,
    /// When the read was first needed.
    pub since: Instant,
}

/// The finished read of a [`Ticket::Barrier`].
pub(super) struct LoadedRead {
    plan: ReadPlan,
    buffer: ReadBuffer<'static>,
}

impl LoadedRead {
    pub(super) fn loaded(&self) -> Loaded<'_> {
        Loaded { plan: &self.plan, bytes: self.buffer.bytes() }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match &self.buffer.memory {
            Memory::Own(buffer) => buffer.len(),
            Memory::Shared(_) => 0,
        }
    }

    pub(super) fn buffer(&self) -> &ReadBuffer<'static> {
        &self.buffer
    }

    pub(super) fn into_own(self) -> Option<IoBuf> {
        self.buffer.into_own()
    }
}

/// The memory of a read.
pub enum Memory<'a> {
    /// The session may keep it, to send a value from it without a copy.
    Own(IoBuf),
    /// Other gets are answered from it too.
    Shared(&'a IoBuf),
}

/// A finished read.
pub struct ReadBuffer<'a> {
    /// The memory it was read into.
    pub memory: Memory<'a>,
    /// Bytes read; `None` if the read failed.
    pub bytes: Option<usize>,
}

impl ReadBuffer<'_> {
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        let memory = match &self.memory {
            Memory::Own(buffer) => buffer,
            Memory::Shared(buffer) => *buffer,
        };
        self.bytes.map(|bytes| &memory[..bytes])
    }

    /// Returns the place of `value` in this memory, if it is large enough to be sent from here without a copy.
    pub(super) fn part(&self, value: &[u8]) -> Option<Range<usize>> {
        let is_own = matches!(self.memory, Memory::Own(_));
        let bytes = self.bytes().filter(|_| is_own && value.len() > COPY_BYTES_MAX)?;
        let start = value.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
        let end = start.checked_add(value.len())?;
        (end <= bytes.len()).then_some(start..end)
    }

    pub(super) fn into_own(self) -> Option<IoBuf> {
        match self.memory {
            Memory::Own(buffer) => Some(buffer),
            Memory::Shared(_) => None,
        }
    }
}

/// The most plain gets of one session with a read under way.
pub(super) const PENDING_MAX: usize = 256;
/// The most bytes of these reads together; a larger read is made alone.
pub(super) const PENDING_BYTES_MAX: usize = 4 << 20;

impl Session {
    /// Drops the read that an operation was called with, unless the operation needs it again.
    pub(super) fn release_read<T>(&mut self, step: &Step<T>) {
        if !matches!(step, Step::Again) {
            self.loaded = None;
        }
    }

    /// Asks for the read of the request at the front of the input, or waits for a turn to ask for it.
    pub(super) fn wait_for_read(&mut self, ctx: &mut Ctx<'_>, plan: ReadPlan) -> Served {
        self.loaded = None;
        self.wait = Wait::Reads;
        self.read_since.get_or_insert(ctx.instant);
        self.has_waited = true;
        if self.claim_read(ctx, plan.bytes()) {
            self.wait = Wait::Read;
            ctx.reads.push((Ticket::Barrier, plan));
        }
        Served::Waits
    }

    /// Takes the bytes of a plain get's read from the budget. Returns false, and the session waits, if the read
    /// may not be made now.
    pub(super) fn claim_get(&mut self, ctx: &mut Ctx<'_>, bytes: usize) -> bool {
        let fits = self.pending.is_empty() || self.pending_bytes + bytes <= PENDING_BYTES_MAX;
        if !fits || self.pending.len() >= PENDING_MAX {
            self.wait = Wait::OwnReads;
            self.wait_for_turn(ctx);
            return false;
        }
        let claimed = self.claim_read(ctx, bytes);
        if !claimed {
            self.wait = Wait::Reads;
        }
        claimed
    }

    /// Notes that the request at the front waits for its turn to read.
    fn wait_for_turn(&mut self, ctx: &Ctx<'_>) {
        self.turn_since.get_or_insert(ctx.instant);
        self.has_waited = true;
    }

    /// Takes the bytes of a read from the budget and from this turn's share. Returns false if there is no room.
    fn claim_read(&mut self, ctx: &mut Ctx<'_>, bytes: usize) -> bool {
        self.wanted_bytes = bytes;
        let is_heavy = bytes as u64 > LIGHT_BYTES;
        let has_room = ctx.reads.len() < ctx.read_room && ctx.read_bytes > 0;
        if !has_room || is_heavy && ctx.heavy_read_bytes == 0 {
            self.wait_for_turn(ctx);
            return false;
        }
        let claimed = Self::claim_memory(ctx, bytes);
        if claimed {
            let waited = self.turn_since.take().map_or(Duration::ZERO, |since| ctx.instant - since);
            ctx.latencies.ssd_queue.record(waited);
            ctx.read_bytes = ctx.read_bytes.saturating_sub(bytes);
            ctx.heavy_read_bytes = ctx.heavy_read_bytes.saturating_sub(if is_heavy { bytes } else { 0 });
        }
        if !claimed {
            ctx.memory_is_short = true;
            self.wait_for_turn(ctx);
        }
        claimed
    }

    /// Takes the bytes of a read from the budget. Returns false if there is no room.
    pub(super) fn claim_memory(ctx: &Ctx<'_>, bytes: usize) -> bool {
        let light = ctx.is_light && bytes as u64 <= LIGHT_BYTES;
        ctx.shared.budget.take(bytes as u64, Claim::Finish { light })
    }

    /// Returns a ticket that no other get of this session has.
    pub(super) fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Asks for the read of a plain get, which waits for it apart from the input.
    pub(super) fn read_for(&mut self, ctx: &mut Ctx<'_>, get: PendingGet, plan: ReadPlan) {
        self.pending_bytes += plan.bytes();
        ctx.reads.push((Ticket::Get(get.ticket), plan));
        self.pending.push(get);
    }

    /// Takes the plain get of a ticket out of those that wait for their reads.
    pub(super) fn take_pending(&mut self, ticket: u64) -> Option<PendingGet> {
        let at = self.pending.iter().position(|pending| pending.ticket == ticket)?;
        let pending = self.pending.swap_remove(at);
        self.pending_bytes -= pending.read_bytes;
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        Some(pending)
    }

    /// Continues after a read: `bytes` of `buffer` were read, or it failed.
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
