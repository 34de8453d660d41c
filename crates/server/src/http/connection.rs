//! One connection without its socket: bytes in, bytes out, and the time by which it has to progress.
//!
//! ```text
//!   waits for a request  -- a byte -->  receives it  -- its end -->  is answered  -- all sent --> waits, or ends
//!      KEEP_TIME                        REQUEST_TIME                 SEND_TIME
//! ```

use std::time::{Duration, Instant};

use super::State;
use super::answer::answer;
use super::request::{Method, Parsed, REQUEST_BYTES_MAX, parse};
use super::response::{Response, Status};

/// The most requests of one connection.
const REQUESTS_MAX: u32 = 1000;
/// The time that a connection may be open without a request: longer than the usual interval of scrapes.
const KEEP_TIME: Duration = Duration::from_secs(75);
/// The time for a request to arrive, from its first byte, and for the first one from the connection's beginning.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// The time for an answer to be taken.
const SEND_TIME: Duration = Duration::from_secs(10);

/// One connection.
pub struct Connection {
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of the output that are sent.
    sent: usize,
    requests: u32,
    /// No further request is answered.
    is_last: bool,
    deadline: Instant,
    waits_since: Instant,
}

impl Connection {
    /// Returns a connection that began just now.
    pub fn new(now: Instant) -> Connection {
        Connection {
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            requests: 0,
            is_last: false,
            deadline: now + REQUEST_TIME,
            waits_since: now,
        }
    }

    /// Takes bytes of the peer, and answers a request that is complete with them.
    pub fn receive(&mut self, state: &State, bytes: &[u8], now: Instant) {
        if self.input.is_empty() && self.requests > 0 && self.output().is_empty() {
            self.deadline = now + REQUEST_TIME;
        }
        self.input.extend_from_slice(bytes);
        self.answer_next(state, now);
    }

    /// Returns the most bytes that it takes now; none while an answer is being sent.
    pub fn room(&self) -> usize {
        if self.is_last || !self.output().is_empty() {
            return 0;
        }
        REQUEST_BYTES_MAX.saturating_sub(self.input.len())
    }

    /// Returns the bytes to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Notes that the first bytes of the output were sent.
    pub fn note_sent(&mut self, state: &State, bytes: usize, now: Instant) {
        self.sent += bytes;
        if self.output().is_empty() {
            (self.output, self.sent) = (Vec::new(), 0);
            self.waits_since = now;
            self.deadline = now + if self.input.is_empty() { KEEP_TIME } else { REQUEST_TIME };
            self.answer_next(state, now);
        }
    }

    /// Returns whether it has ended: no answer is left to send, and none will follow.
    pub fn is_over(&self) -> bool {
        self.is_last && self.output().is_empty()
    }

    /// Returns when it began to wait for a request to be complete: at its beginning, or after the last answer.
    pub fn waits_since(&self) -> Instant {
        self.waits_since
    }

    /// Returns the time at which it has to be [ended](Self::expire).
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Ends it at its deadline. Returns whether there is an answer to send first.
    pub fn expire(&mut self, now: Instant) -> bool {
        let is_late_request = !self.input.is_empty() && self.output().is_empty();
        if is_late_request {
            self.put(&Response::refusal(Status::RequestTimeout), false, false, now);
        }
        is_late_request
    }

    /// Answers the request at the front of the input, if it is complete and no answer is under way.
    fn answer_next(&mut self, state: &State, now: Instant) {
        if self.is_last || !self.output().is_empty() || self.input.is_empty() {
            return;
        }
        match parse(&self.input) {
            Parsed::Incomplete => {}
            Parsed::Refused(status) => self.put(&Response::refusal(status), false, false, now),
            Parsed::Request { request, len } => {
                self.input.drain(..len);
                self.requests += 1;
                let response = answer(state, &request);
                // A token that is wrong costs a guesser a connection.
                let keeps_alive = request.keeps_alive
                    && self.requests < REQUESTS_MAX
                    && response.status != Status::Unauthorized;
                self.put(&response, request.method == Method::Head, keeps_alive, now);
            }
        }
    }

    fn put(&mut self, response: &Response, head_alone: bool, keeps_alive: bool, now: Instant) {
        response.encode(&mut self.output, head_alone, keeps_alive);
        self.deadline = now + SEND_TIME;
        if !keeps_alive {
            self.is_last = true;
            self.input = Vec::new();
        }
    }
}
