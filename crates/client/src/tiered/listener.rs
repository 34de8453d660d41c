//! A thread that listens to what one server announces, for all processes of the host: one of them has the turn, and
//! its thread forgets what has changed. The others wait for the turn.

use std::collections::VecDeque;
use std::sync::Weak;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsRawFd;

use crate::client::Client;
use crate::clock::{now, sleep};
use crate::l1::{Feed, FeedId, L1, Turn, now_ms, now_us, run_soon};
use crate::pool::Connection;
use crate::simulation::{self, Fault, is_broken};
use crate::wire::{Outbox, Reply, Request, parse};

/// How often a thread that waits looks whether the turn is free.
const STANDBY: Duration = Duration::from_millis(200);
/// Pauses between two tries to connect.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// Questions whether the server is there, in the time after which it is taken for silent.
const BEATS: u32 = 4;
/// A connection on which one of them is unanswered for so long is given up, in multiples of that time.
const UNANSWERED_MAX: u32 = 4;
/// While readers want exact values, so many questions are asked in the time within which they want them.
const EXACT_BEATS: u64 = 8;
const EXACT_BEAT_MIN: Duration = Duration::from_micros(100);
/// So many of them may be unanswered: then they are asked no more often than without such readers.
const EXACT_UNANSWERED_MAX: usize = 64;
/// How often a thread looks whether readers want exact values, once there have been such readers.
const EXACT_LOOK: Duration = Duration::from_millis(20);

/// What a thread needs to listen to one server.
pub(super) struct Listener<T> {
    pub(super) l1: L1,
    pub(super) client: Client,
    /// The server's number.
    pub(super) server: usize,
    /// The feed lasts for so long after a question that the server has answered.
    pub(super) silence: Duration,
    /// The feed's entries are fresh for so long.
    pub(super) keep: Duration,
    /// The thread ends when this does.
    pub(super) user: Weak<T>,
}

/// A connection that listens.
struct Line {
    connection: Connection,
    feed: Option<FeedId>,
    /// The questions that are not answered yet.
    asked: VecDeque<Asked>,
}

/// When a question was asked, before it was sent: what the server announces behind its answer is from after this time.
#[derive(Clone, Copy)]
struct Asked {
    /// By the clock by which readers judge whether the feed lasts.
    ms: u64,
    /// By the precise clock.
    us: u64,
    at: Instant,
}

impl<T> Listener<T> {
    fn is_over(&self) -> bool {
        self.user.strong_count() == 0 || simulation::is_over()
    }

    /// Runs until the cache is not used any more.
    pub(super) fn run(self) {
        // Beyond the number of servers that have feeds.
        let Some(feed) = self.l1.feed(self.server) else { return };
        // Until this thread runs, all processes of the host read what has changed meanwhile.
        run_soon();
        while !self.is_over() {
            match feed.take_turn(now_ms()) {
                Some(turn) => {
                    self.listen(feed, turn);
                    feed.give_turn(turn);
                }
                None => sleep(STANDBY),
            }
        }
    }

    /// Listens, on one connection after another, until the turn is lost.
    fn listen(&self, feed: Feed<'_>, turn: Turn) {
        let mut retry = RETRY_MIN;
        while !self.is_over() && feed.keep_turn(turn, now_ms()) {
            let wait_ms = feed.wait_ms(now_ms());
            if wait_ms > 0 {
                sleep(Duration::from_millis(wait_ms).min(STANDBY));
                continue;
            }
            if let Ok(connection) = self.client.connect_apart(self.server) {
                let mut line = Line { connection, feed: None, asked: VecDeque::new() };
                if self.follow(feed, turn, &mut line).is_some() {
                    retry = RETRY_MIN;
                }
                if let Some(id) = line.feed {
                    feed.end(id, now_ms());
                }
            }
            sleep(retry);
            retry = (retry * 2).min(RETRY_MAX);
        }
    }

    /// Listens on a connection until it breaks. Returns `None` if it was never of use.
    fn follow(&self, feed: Feed<'_>, turn: Turn, line: &mut Line) -> Option<()> {
        line.send(&Request::Subscribe)?;
        let mut last_beat: Option<Instant> = None;
        let mut use_of_it = None;
        while !self.is_over() && feed.keep_turn(turn, now_ms()) {
            let now = now();
            let (pace, look) = self.pace(feed, line);
            if last_beat.is_none_or(|last| now >= last + pace) {
                last_beat = Some(now);
                line.asked.push_back(Asked { ms: now_ms(), us: now_us(), at: now });
                let oldest = line.asked.front().map_or(now, |asked| asked.at);
                let is_sent = line.send(&Request::Noop).is_some();
                if !is_sent || now.saturating_duration_since(oldest) > self.silence * UNANSWERED_MAX {
                    return use_of_it;
                }
            }
            let next_beat = last_beat.unwrap_or(now) + pace;
            if !line.receive(next_beat.saturating_duration_since(now).min(look)) {
                return use_of_it;
            }
            while let Some(reply) = line.next() {
                match self.heed(feed, line, reply) {
                    Some(()) => use_of_it = Some(()),
                    None => return use_of_it,
                }
            }
        }
        use_of_it
    }

    /// Returns the time between two questions, and that between two looks at what readers want.
    fn pace(&self, feed: Feed<'_>, line: &Line) -> (Duration, Duration) {
        let ordinary = self.silence / BEATS;
        let (within_us, was_wanted) = feed.wanted_within_us(now_ms());
        let look = if was_wanted { EXACT_LOOK } else { ordinary };
        let within_us = within_us.filter(|_| line.asked.len() < EXACT_UNANSWERED_MAX);
        let exact = within_us.map(|us| Duration::from_micros(us / EXACT_BEATS).max(EXACT_BEAT_MIN));
        (exact.map_or(ordinary, |exact| exact.min(ordinary)), look)
    }

    /// Does what a line from the server says. Returns `None` if the connection is of no more use.
    fn heed(&self, feed: Feed<'_>, line: &mut Line, reply: Result<Reply, ()>) -> Option<()> {
        match reply.ok()? {
            Reply::Changed(tokens) => tokens.into_iter().for_each(|token| self.l1.forget(token)),
            Reply::AllChanged => self.l1.revalidate_all(),
            Reply::Subscribed(number) => {
                let keep_ms = u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX);
                line.feed = Some(feed.begin(number, keep_ms, now_ms()));
            }
            // The server announces nothing. The connection stays, since the next server there may.
            Reply::Refused(_) if line.feed.is_none() => {}
            Reply::Noop => {
                let mut asked = line.asked.pop_front()?;
                if is_broken(Fault::FeedFromAnswer) {
                    asked.ms = now_ms();
                }
                if is_broken(Fault::BeatFromAnswer) {
                    asked.us = now_us();
                }
                // Without a feed, the server announces nothing.
                let Some(id) = line.feed else { return Some(()) };
                let silence_ms = u64::try_from(self.silence.as_millis()).unwrap_or(u64::MAX);
                if !feed.extend(id, asked.ms.saturating_add(silence_ms)) {
                    return None;
                }
                feed.beat(id, asked.us);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The server would keep the subscription for as long as a forked child has the socket.
        self.connection.shut_down();
    }
}

impl Line {
    fn send(&mut self, request: &Request<'static>) -> Option<()> {
        let mut outbox = Outbox::default();
        request.encode(None, &mut outbox);
        outbox.close_lines();
        while !self.connection.has_sent(&outbox) {
            // A socket that has no room for a line is that of a server which takes nothing.
            self.connection.send(&mut outbox).ok()?;
        }
        Some(())
    }

    /// Waits for bytes, for so long. Returns false when the connection is broken.
    fn receive(&mut self, wait: Duration) -> bool {
        let is_simulated = simulation::listen(self.connection.fd().as_raw_fd(), wait);
        let wait = if is_simulated { Duration::ZERO } else { wait };
        let wait = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut fds = [PollFd::from_borrowed_fd(self.connection.fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => true,
            Ok(_) => self.connection.receive(false).is_ok_and(|came| came > 0),
            Err(_) => false,
        }
    }

    /// Takes the next line that has come; an error if it is none of a server's.
    fn next(&mut self) -> Option<Result<Reply, ()>> {
        match parse(self.connection.unused()) {
            Ok(None) => None,
            Ok(Some((reply, bytes))) => {
                self.connection.consume(bytes);
                Some(Ok(reply))
            }
            Err(_) => Some(Err(())),
        }
    }
}
