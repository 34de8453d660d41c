//! A thread that listens to what one server announces, for all processes of the host: one of them has the turn, and
//! its thread forgets what has changed. The others wait for the turn.

use std::collections::VecDeque;
use std::sync::Weak;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsRawFd;

use crate::client::Client;
use crate::clock::{now, sleep};
use crate::l1::{Feed, FeedId, L1, Turn, now_ms, run_soon};
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
/// A connection on which so many of them are unanswered is given up.
const UNANSWERED_MAX: usize = 16;

/// What a thread needs to listen to one server.
pub(super) struct Listener<T> {
    pub(super) l1: L1,
    pub(super) client: Client,
    /// The server's number.
    pub(super) server: usize,
    /// The feed lasts for so long after a question that the server has answered.
    pub(super) silence: Duration,
    /// The thread ends when this does.
    pub(super) user: Weak<T>,
}

/// A connection that listens.
struct Line {
    connection: Connection,
    feed: Option<FeedId>,
    /// When the questions were asked that are not answered yet.
    asked_ms: VecDeque<u64>,
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
                let mut line = Line { connection, feed: None, asked_ms: VecDeque::new() };
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
        let beat = self.silence / BEATS;
        let mut next_beat = now();
        let mut use_of_it = None;
        while !self.is_over() && feed.keep_turn(turn, now_ms()) {
            let now = now();
            if now >= next_beat {
                next_beat = now + beat;
                // Before it is sent: what the server announces before it answers is from after this time.
                line.asked_ms.push_back(now_ms());
                let is_sent = line.send(&Request::Noop).is_some();
                if !is_sent || line.asked_ms.len() > UNANSWERED_MAX {
                    return use_of_it;
                }
            }
            if !line.receive(next_beat.saturating_duration_since(now)) {
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

    /// Does what a line from the server says. Returns `None` if the connection is of no more use.
    fn heed(&self, feed: Feed<'_>, line: &mut Line, reply: Result<Reply, ()>) -> Option<()> {
        match reply.ok()? {
            Reply::Changed(tokens) => tokens.into_iter().for_each(|token| self.l1.forget(token)),
            Reply::AllChanged => self.l1.revalidate_all(),
            Reply::Subscribed(number) => line.feed = Some(feed.begin(number, now_ms())),
            // The server announces nothing. The connection stays, since the next server there may.
            Reply::Refused(_) if line.feed.is_none() => {}
            Reply::Noop => {
                let mut asked_ms = line.asked_ms.pop_front()?;
                if is_broken(Fault::FeedFromAnswer) {
                    asked_ms = now_ms();
                }
                let silence_ms = u64::try_from(self.silence.as_millis()).unwrap_or(u64::MAX);
                let is_mine = line.feed.is_none_or(|id| feed.extend(id, asked_ms.saturating_add(silence_ms)));
                return is_mine.then_some(());
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
