//! A value that arrives in parts: buffered with its command if it is small, received into the store's memory if it
//! is large, skipped if it is too large.

use std::time::Duration;

use larder_protocol::{ItemInfo, Outcome, OwnedReply, Store as StoreRequest, StoreMode, body_tail_is_valid};
use larder_store::{Call, Incoming, OnFull, Payload, Put, PutMode, Step};

use super::{Ctx, Served, Session, commands};

/// A large value on its way in.
pub(crate) struct Receiving {
    /// `None` once it has been stored.
    incoming: Option<Incoming>,
    key: Box<[u8]>,
    put: Put,
    reply: OwnedReply,
    is_cas: bool,
    /// Bytes that must follow the value, and those that have come.
    tail_len: usize,
    tail: Vec<u8>,
    value_len: u32,
}

impl Receiving {
    pub(super) fn spare(&mut self) -> Option<&mut [u8]> {
        // Before the first byte no memory is taken.
        Some(self.incoming.as_mut()?.spare()).filter(|spare| !spare.is_empty())
    }

    pub(super) fn advance(&mut self, len: usize) {
        if let Some(incoming) = &mut self.incoming {
            incoming.advance(len);
        }
    }
}

/// The time that a large value waits for memory while others on their way in hold half of it. Values that make no
/// progress give way much sooner.
const ARRIVAL_WAIT: Duration = Duration::from_secs(2);

/// The treatment of a set whose value has not come yet.
pub(super) enum Begun {
    /// The head is consumed: the value is received or skipped.
    Taken,
    /// The value is small: parse again when all of it is there.
    WaitForAll,
}

impl Session {
    pub(super) fn begin_body(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &StoreRequest<'_>,
        (head, tail): (usize, usize),
    ) -> Begun {
        let key = request.key.bytes();
        let value_len = request.value_len as usize;
        let hash = ctx.shared.store.hash(key);
        if commands::is_too_large(ctx, key.len(), value_len) {
            self.refuse_too_large(ctx, request, hash);
            self.swallow = value_len as u64 + tail as u64;
            return Begun::Taken;
        }
        if value_len <= ctx.shared.store.large_bytes() {
            self.expected = head + value_len + tail;
            return Begun::WaitForAll;
        }
        let call = Call { key, hash, now: ctx.now, loaded: None, on_full: OnFull::Wait };
        match ctx.shared.store.reserve(&call, value_len) {
            Step::Done(incoming) => {
                self.room_since = None;
                self.receiving = Some(Box::new(Receiving {
                    incoming: Some(incoming),
                    key: key.into(),
                    put: commands::put_of(ctx, request),
                    reply: request.reply.to_owned_reply(),
                    is_cas: request.compare.is_some(),
                    tail_len: tail,
                    tail: Vec::new(),
                    value_len: request.value_len,
                }));
                Begun::Taken
            }
            _ => {
                self.room_since = None;
                if request.mode == StoreMode::Set && request.compare.is_none() {
                    commands::forget(ctx, key, hash);
                }
                ctx.counters.store_no_memory.up();
                let is_cas = request.compare.is_some();
                let put = commands::put_of(ctx, request);
                commands::show_put(ctx, key, &put, is_cas, "no_memory", request.value_len);
                request.reply.outcome(self.out.tail(), key, Outcome::OutOfMemory, &ItemInfo::default());
                self.swallow = value_len as u64 + tail as u64;
                Begun::Taken
            }
        }
    }

    /// Takes the bytes of the value from `input`, and stores the value when it is complete. Returns the number of
    /// bytes taken.
    pub(super) fn receive(&mut self, ctx: &mut Ctx<'_>, input: &[u8]) -> usize {
        let Some(mut receiving) = self.receiving.take() else { return 0 };
        let mut used = 0;
        if let Some(incoming) = &mut receiving.incoming {
            let step;
            (used, step) = self.take_bytes(ctx, &receiving.key, incoming, input);
            let is_whole = incoming.missing() == 0;
            if used > 0 {
                self.room_since = None;
            }
            match step {
                Step::Read(_) | Step::NoMemory => {
                    self.give_up(ctx, &receiving);
                    return used;
                }
                Step::Done(()) => {}
                Step::Again => self.more = true,
                Step::Busy => {
                    self.wait_for_room(ctx);
                }
            }
            if !is_whole {
                self.receiving = Some(receiving);
                return used;
            }
        }
        let tail = (receiving.tail_len - receiving.tail.len()).min(input.len() - used);
        receiving.tail.extend_from_slice(&input[used..used + tail]);
        used += tail;
        if receiving.tail.len() < receiving.tail_len {
            self.receiving = Some(receiving);
            return used;
        }
        let reply = receiving.reply.clone();
        if !body_tail_is_valid(&receiving.tail) {
            reply.reply().outcome(
                self.out.tail(),
                &receiving.key,
                Outcome::BadDataChunk,
                &ItemInfo::default(),
            );
            return used;
        }
        if self.store_received(ctx, &mut receiving) == Served::Waits {
            self.receiving = Some(receiving);
        }
        used
    }

    /// Moves the received bytes of a value to the store's memory, and takes memory for the next ones. Returns the
    /// number of bytes moved.
    fn take_bytes(
        &self,
        ctx: &Ctx<'_>,
        key: &[u8],
        incoming: &mut Incoming,
        input: &[u8],
    ) -> (usize, Step<()>) {
        let store = &ctx.shared.store;
        // Values on their way in have been promised all memory that they may have: those without progress give way.
        let on_full = if incoming.waits() {
            ctx.shared.note_crowd();
            let is_late = self.room_since.is_some_and(|since| ctx.instant - since >= ARRIVAL_WAIT);
            if is_late { OnFull::Drop } else { OnFull::Wait }
        } else {
            self.on_full(ctx)
        };
        let call = Call { key, hash: store.hash(key), now: ctx.now, loaded: None, on_full };
        let missing = incoming.missing();
        let step = match store.receive(&call, incoming, &input[..missing.min(input.len())]) {
            Step::Done(()) if incoming.has_begun() => store.extend(&call, incoming),
            other => other,
        };
        (missing - incoming.missing(), step)
    }

    /// Refuses a value for which there is no memory, and skips the rest of it.
    fn give_up(&mut self, ctx: &Ctx<'_>, receiving: &Receiving) {
        let missing = receiving.incoming.as_ref().map_or(0, Incoming::missing);
        self.swallow = (missing + receiving.tail_len - receiving.tail.len()) as u64;
        self.answer_no_memory(ctx, receiving);
    }

    fn answer_no_memory(&mut self, ctx: &Ctx<'_>, receiving: &Receiving) {
        self.room_since = None;
        if receiving.put.mode == PutMode::Set && receiving.put.compare.is_none() {
            commands::forget(ctx, &receiving.key, ctx.shared.store.hash(&receiving.key));
        }
        ctx.counters.store_no_memory.up();
        let Receiving { key, put, is_cas, value_len, .. } = receiving;
        commands::show_put(ctx, key, put, *is_cas, "no_memory", *value_len);
        let reply = receiving.reply.reply();
        reply.outcome(self.out.tail(), &receiving.key, Outcome::OutOfMemory, &ItemInfo::default());
    }

    fn store_received(&mut self, ctx: &mut Ctx<'_>, receiving: &mut Receiving) -> Served {
        let Some(incoming) = receiving.incoming.take() else { return Served::Done };
        let store = &ctx.shared.store;
        let hash = store.hash(&receiving.key);
        let loaded = self.loaded.take();
        let call = Call {
            key: &receiving.key,
            hash,
            now: ctx.now,
            loaded: loaded.as_ref().map(|read| read.loaded()),
            on_full: self.on_full(ctx),
        };
        let looked = self.look(ctx, commands::STORES, &receiving.key, hash);
        let mut payload = Payload::Incoming(incoming);
        let step = store.put(&call, &receiving.put, &mut payload);
        let value_len = match payload {
            Payload::Joined(bytes) => bytes as u32,
            Payload::Incoming(incoming) if matches!(step, Step::Read(_) | Step::Again | Step::Busy) => {
                receiving.incoming = Some(incoming);
                receiving.value_len
            }
            _ => receiving.value_len,
        };
        match step {
            Step::Read(plan) => self.wait_for_read(ctx, plan),
            Step::Again => {
                self.loaded = loaded;
                self.try_again()
            }
            Step::Busy => self.wait_for_room(ctx),
            Step::Done(result) => {
                self.room_since = None;
                let reply = receiving.reply.reply();
                let (put, is_cas) = (&receiving.put, receiving.is_cas);
                let stored = commands::Stored { result, is_cas, value_len };
                if ctx.is_watched(commands::STORES) {
                    commands::show_stored(ctx, &receiving.key, put, looked, &stored);
                }
                commands::answer_put(ctx, self.out.tail(), &reply, (&receiving.key, hash), stored);
                Served::Done
            }
            Step::NoMemory => {
                self.answer_no_memory(ctx, receiving);
                Served::Done
            }
        }
    }
}
