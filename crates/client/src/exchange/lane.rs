//! One connection's share of a call: what it has to send, the replies it awaits, and how it failed.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;

use super::Bounds;
use crate::clock::now;
use crate::error::{Doing, Error};
use crate::pool::{Connection, FENCES_MAX, Place};
use crate::tls;
use crate::wire::{Malformed, Outbox, Reply, parse};

/// From this size a value is read into its own memory, without a way through the connection's buffer.
const DIRECT_BYTES_MIN: usize = 16 << 10;
/// The most lines that statistics may have.
const STATS_MAX: usize = 20_000;

/// A reply, and the value if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reply's line.
    pub reply: Reply,
    /// The bytes that followed it.
    pub value: Vec<u8>,
    /// When the connection was made that brought it, by the host's clock.
    pub connected_ms: u64,
}

/// The replies that end a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// So many replies to meta requests, in order.
    Meta(usize),
    /// The reply to one classic command: `OK` or `VERSION`.
    Classic,
    /// The lines of `stats` up to `END`.
    Stats,
    /// None: the batch is quiet and ends with a fence, which the connection's next user reads.
    Nothing,
}

/// A value whose head was read.
#[derive(Debug)]
struct Body {
    reply: Reply,
    value: Vec<u8>,
    /// The length of the value and of the CR LF after it.
    wanted: usize,
}

/// A batch on its way over one connection.
#[derive(Debug)]
pub struct Lane<'p, 'r> {
    server: Arc<str>,
    connection: Connection,
    place: Place<'p>,
    outbox: Outbox<'r>,
    expect: Expect,
    first_opaque: u32,
    answers: Vec<Answer>,
    body: Option<Body>,
    is_answered: bool,
    failure: Option<Error>,
    can_send: bool,
    can_receive: bool,
    silent_since: Instant,
    bytes_received: usize,
}

impl<'p, 'r> Lane<'p, 'r> {
    /// Makes the lane of a batch that is encoded in `outbox`, its opaque numbers from `first_opaque`.
    pub fn new(
        server: Arc<str>,
        (mut connection, place): (Connection, Place<'p>),
        mut outbox: Outbox<'r>,
        expect: Expect,
        first_opaque: u32,
        now: Instant,
    ) -> Self {
        outbox.close_lines();
        connection.set_clean(false);
        let has_leftovers = connection.fences_owed() > 0;
        if expect == Expect::Nothing {
            connection.owe_fence();
        }
        Lane {
            server,
            connection,
            place,
            outbox,
            expect,
            first_opaque,
            answers: Vec::new(),
            body: None,
            is_answered: matches!(expect, Expect::Nothing | Expect::Meta(0)),
            failure: None,
            can_send: true,
            can_receive: has_leftovers,
            silent_since: now,
            bytes_received: 0,
        }
    }

    /// Returns whether the lane has failed, or has sent everything and has its answers.
    pub fn is_over(&self) -> bool {
        let fences = match self.expect {
            // Enough is unread to be read now, before it fills buffers.
            Expect::Nothing => self.connection.fences_owed() < FENCES_MAX,
            _ => true,
        };
        self.failure.is_some() || self.is_sent() && self.is_answered && fences
    }

    /// Gives the connection back, and returns the answers and, if the lane failed, why.
    pub fn finish(mut self) -> (Vec<Answer>, Option<Error>) {
        let is_clean = self.failure.is_none() && self.is_over();
        self.connection.set_clean(is_clean);
        self.place.give_back(self.connection);
        (self.answers, self.failure)
    }

    /// Returns whether all is sent, and only replies are to come.
    pub(super) fn is_sent(&self) -> bool {
        self.connection.has_sent(&self.outbox)
    }

    pub(super) fn silent_since(&self) -> Instant {
        self.silent_since
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.connection.fd()
    }

    pub(super) fn interest(&self) -> PollFlags {
        if self.is_sent() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    }

    pub(super) fn ready(&mut self, events: PollFlags) {
        let broken = events.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        self.can_send |= broken || events.contains(PollFlags::OUT);
        self.can_receive |= broken || events.contains(PollFlags::IN);
    }

    /// Fails the lane if it was silent for too long, or if the whole call takes too long.
    pub(super) fn expire(&mut self, now: Instant, bounds: &Bounds) {
        let (deadline, whole) = bounds.deadline;
        // A socket that has become ready is read first.
        if self.is_over() || (self.can_receive && now < deadline) {
            return;
        }
        let limit = if now >= deadline {
            whole
        } else if now.duration_since(self.silent_since) >= bounds.timeout {
            bounds.timeout
        } else {
            return;
        };
        self.time_out(limit.as_millis() as u64);
    }

    fn time_out(&mut self, limit_ms: u64) {
        let doing = self.doing();
        self.failure = Some(Error::Timeout { server: self.server.clone(), doing, limit_ms });
    }

    fn doing(&self) -> Doing {
        if self.is_sent() { Doing::Receiving } else { Doing::Sending }
    }

    fn lose(&mut self, source: io::Error) {
        let (server, doing) = (self.server.clone(), self.doing());
        self.failure = Some(match tls::refusal(&source) {
            Some(reason) => Error::Tls { server, reason },
            None => Error::Lost { server, doing, source: Arc::new(source) },
        });
    }

    /// Sends and receives as much as is possible without waiting.
    pub(super) fn step(&mut self, now: Instant, bounds: &Bounds) {
        if now >= bounds.deadline.0 {
            return self.time_out(bounds.deadline.1.as_millis() as u64);
        }
        while self.can_send && !self.is_sent() && self.failure.is_none() {
            match self.connection.send(&mut self.outbox) {
                Ok(_) => self.silent_since = now,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.can_send = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A server may answer, close and leave what it has not read: what it said comes first.
                Err(error) => match self.connection.receive(false) {
                    Ok(came) if came > 0 => {
                        self.take(bounds);
                        if self.failure.is_none() {
                            self.lose(error);
                        }
                    }
                    _ => self.lose(error),
                },
            }
        }
        // One turn, so that one fast server does not keep the others waiting.
        if self.can_receive && !self.is_over() {
            self.receive(false, now, bounds);
        }
    }

    /// Waits for bytes, as long as the connection's reads wait.
    pub(super) fn wait(&mut self, bounds: &Bounds) {
        self.receive(true, now(), bounds);
    }

    fn receive(&mut self, waits: bool, now: Instant, bounds: &Bounds) {
        let came = match &mut self.body {
            Some(body) if body.wanted - body.value.len() >= DIRECT_BYTES_MIN => {
                self.connection.receive_into(&mut body.value, body.wanted, waits)
            }
            _ => self.connection.receive(waits),
        };
        match came {
            Ok(0) => self.lose(io::ErrorKind::UnexpectedEof.into()),
            Ok(came) => {
                self.silent_since = now;
                self.bytes_received = self.bytes_received.saturating_add(came);
                self.take(bounds);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && waits => {
                self.time_out(bounds.timeout.as_millis() as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.can_receive = false,
            Err(error) => self.lose(error),
        }
    }

    /// Uses what has come.
    fn take(&mut self, bounds: &Bounds) {
        if let Err(source) = self.take_replies(bounds) {
            self.failure = Some(Error::Protocol { server: self.server.clone(), source });
        }
    }

    fn take_replies(&mut self, bounds: &Bounds) -> Result<(), Malformed> {
        if self.bytes_received > bounds.batch_bytes_max {
            return Err(Malformed::TooMuch { max: bounds.batch_bytes_max, unit: "bytes" });
        }
        while self.failure.is_none() {
            if self.body.is_some() {
                if !self.take_body()? {
                    return Ok(());
                }
                continue;
            }
            if self.is_answered && self.connection.fences_owed() == 0 {
                return match self.connection.unused() {
                    [] => Ok(()),
                    _ => Err(Malformed::Unfitting("more than was asked for".into())),
                };
            }
            let Some((reply, used)) = parse(self.connection.unused())? else { return Ok(()) };
            self.connection.consume(used);
            self.accept(reply, bounds)?;
        }
        Ok(())
    }

    /// Moves bytes into the value that is under way. Returns whether it is whole.
    fn take_body(&mut self) -> Result<bool, Malformed> {
        let Some(body) = &mut self.body else { return Ok(true) };
        let missing = body.wanted - body.value.len();
        let unused = self.connection.unused();
        let part = unused.get(..missing).unwrap_or(unused);
        body.value.extend_from_slice(part);
        let taken = part.len();
        self.connection.consume(taken);
        if taken < missing {
            return Ok(false);
        }
        if let Some(Body { reply, mut value, .. }) = self.body.take() {
            if !value.ends_with(b"\r\n") {
                return Err(Malformed::ValueEnd);
            }
            value.truncate(value.len() - 2);
            self.push(reply, value);
        }
        Ok(true)
    }

    /// Judges a reply's line.
    fn accept(&mut self, reply: Reply, bounds: &Bounds) -> Result<(), Malformed> {
        if self.has_leftover() {
            return self.pass_over(&reply);
        }
        // After a line of this kind a server may close, or take a value for commands.
        if let Reply::Refused(line) = &reply
            && (line == "ERROR" || line.starts_with("ERROR "))
        {
            self.failure = Some(Error::Refused { server: self.server.clone(), line: line.clone() });
            return Ok(());
        }
        if !self.fits(&reply) {
            return Err(Malformed::Unfitting(format!("{reply:?}")));
        }
        // Its own number is never larger than 32 bits, and answers are fewer.
        let opaque = self.first_opaque.wrapping_add(self.answers.len() as u32);
        if reply.facts().and_then(|facts| facts.opaque).is_some_and(|said| said != opaque) {
            return Err(Malformed::OutOfOrder);
        }
        match reply {
            Reply::Value { len, .. } if len > bounds.value_bytes_max => {
                Err(Malformed::ValueTooLarge { len, max: bounds.value_bytes_max })
            }
            Reply::Value { len, .. } => {
                let wanted = len + 2;
                self.body = Some(Body { reply, value: Vec::with_capacity(wanted), wanted });
                Ok(())
            }
            reply => {
                if self.expect == Expect::Stats && self.answers.len() >= STATS_MAX {
                    return Err(Malformed::TooMuch { max: STATS_MAX, unit: "statistics" });
                }
                self.push(reply, Vec::new());
                Ok(())
            }
        }
    }

    /// Returns whether the next reply belongs to an earlier quiet batch, or to this one if it is quiet.
    fn has_leftover(&self) -> bool {
        self.connection.fences_owed() > 0
    }

    /// Passes over the replies of a quiet batch before its fence. No caller waits for them any more.
    fn pass_over(&mut self, reply: &Reply) -> Result<(), Malformed> {
        match reply {
            Reply::Noop => self.connection.fence_read(),
            // A quiet `mg` still tells that it has found something.
            Reply::Done(_) | Reply::Miss(_) => {}
            Reply::Refused(_) | Reply::NotStored(_) | Reply::Exists(_) | Reply::NotFound(_) => {}
            other => return Err(Malformed::Unfitting(format!("{other:?}"))),
        }
        Ok(())
    }

    fn fits(&self, reply: &Reply) -> bool {
        match self.expect {
            Expect::Meta(_) => {
                reply.facts().is_some() || matches!(reply, Reply::Refused(_) | Reply::Debug(_))
            }
            Expect::Classic => matches!(reply, Reply::Refused(_) | Reply::Ok | Reply::Version(_)),
            Expect::Stats => {
                matches!(reply, Reply::Refused(_) | Reply::Stat(..) | Reply::End | Reply::Reset | Reply::Ok)
            }
            Expect::Nothing => false,
        }
    }

    fn push(&mut self, reply: Reply, value: Vec<u8>) {
        self.is_answered = match self.expect {
            Expect::Meta(count) => self.answers.len() + 1 >= count,
            Expect::Stats => !matches!(reply, Reply::Stat(..)),
            Expect::Classic | Expect::Nothing => true,
        };
        let connected_ms = self.connection.connected_ms();
        self.answers.push(Answer { reply, value, connected_ms });
    }
}
