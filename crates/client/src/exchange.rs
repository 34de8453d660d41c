//! Batches of requests on several connections at once: written and read interleaved, so that neither side waits for
//! the other with full buffers.

mod lane;

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsRawFd;
use rustix::io::Errno;

use crate::{clock, simulation};

pub use lane::{Answer, Expect, Lane};

/// The bounds of what may come in, and when.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The longest silence of a server, while something is to be sent or awaited.
    pub timeout: Duration,
    /// When all must be over, and how long that is after the beginning.
    pub deadline: (Instant, Duration),
    /// The largest value that is accepted, in bytes.
    pub value_bytes_max: usize,
    /// The most bytes that one batch may bring.
    pub batch_bytes_max: usize,
}

/// Sends and receives on all lanes until each has its answers or has failed.
pub fn drive(lanes: &mut [Lane<'_, '_>], bounds: &Bounds) {
    loop {
        let now = clock::now();
        for lane in lanes.iter_mut().filter(|lane| !lane.is_over()) {
            lane.step(now, bounds);
        }
        let mut open = lanes.iter_mut().filter(|lane| !lane.is_over());
        let waits = bounds.deadline.0.saturating_duration_since(now) > bounds.timeout;
        match (open.next(), open.next()) {
            (None, _) => return,
            // Of all calls most are this one: a small request on one connection. The read itself waits.
            (Some(lane), None) if waits && lane.is_sent() => {
                simulation::wait_for_reply(lane.fd().as_raw_fd());
                lane.wait(bounds);
            }
            _ => wait_for_any(lanes, now, bounds),
        }
    }
}

/// Waits until a socket is ready, or until the first lane has been silent for too long.
fn wait_for_any(lanes: &mut [Lane<'_, '_>], now: Instant, bounds: &Bounds) {
    let mut lanes: Vec<&mut Lane<'_, '_>> = lanes.iter_mut().filter(|lane| !lane.is_over()).collect();
    let first = lanes.iter().map(|lane| lane.silent_since() + bounds.timeout).min();
    let until = first.unwrap_or(now).min(bounds.deadline.0);
    // A wait of nothing would spin up to the limit.
    let wait = until.saturating_duration_since(now).max(Duration::from_millis(1));
    let wait = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    let events: Vec<PollFlags> = {
        let mut fds: Vec<PollFd<'_>> =
            lanes.iter().map(|lane| PollFd::from_borrowed_fd(lane.fd(), lane.interest())).collect();
        match poll(&mut fds, Some(&wait)) {
            Ok(_) => fds.iter().map(PollFd::revents).collect(),
            Err(Errno::INTR) => Vec::new(),
            // Out of memory, at worst: every socket is tried again, within the limits.
            Err(_) => vec![PollFlags::IN | PollFlags::OUT; lanes.len()],
        }
    };
    for (lane, events) in lanes.iter_mut().zip(events) {
        lane.ready(events);
    }
    let now = clock::now();
    for lane in lanes {
        lane.expire(now, bounds);
    }
}
