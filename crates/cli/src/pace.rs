//! A limit of bytes a second that several threads share.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest pause at a time, so that a thread soon sees that it is to stop.
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// The pace: what has been moved delays what is moved next.
#[derive(Debug)]
pub struct Pace {
    bytes_per_s: Option<u64>,
    /// When the next bytes may be moved.
    next: Mutex<Instant>,
}

impl Pace {
    /// Makes a pace that begins now; without a limit it never delays.
    pub fn new(bytes_per_s: Option<u64>) -> Pace {
        Pace { bytes_per_s, next: Mutex::new(Instant::now()) }
    }

    /// Waits until bytes may be moved, or until `is_over` says to stop.
    pub fn wait(&self, is_over: impl Fn() -> bool) {
        while self.bytes_per_s.is_some() && !is_over() {
            let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(PAUSE_MAX));
        }
    }

    /// Counts bytes that were moved.
    pub fn moved(&self, bytes: u64) {
        if let Some(bytes_per_s) = self.bytes_per_s {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next = (*next).max(Instant::now()) + Duration::from_secs_f64(bytes as f64 / bytes_per_s as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        let pace = Pace::new(Some(1_000_000));
        let began = Instant::now();
        for _ in 0..5 {
            pace.wait(|| false);
            pace.moved(20_000);
        }
        assert!(began.elapsed() >= Duration::from_millis(80), "{:?}", began.elapsed());
        pace.moved(1_000_000_000);
        pace.wait(|| true);
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}
