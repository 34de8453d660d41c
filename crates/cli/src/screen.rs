//! What is shown while a verb works: one line that is redrawn on a terminal, and a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Columns where there is no terminal.
const WIDTH: usize = 80;
/// The time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// The longest sleep at a time, so that Ctrl-C ends a verb soon.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// Returns a flag that Ctrl-C and a termination set. A second signal ends the process at once.
pub fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order the first signal finds the flag unset and only sets it.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop));
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// Sleeps until a moment, or until the verb is to stop.
pub fn sleep_until(until: Instant, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(SLEEP_MAX));
    }
}

/// Returns the columns of a stream: those of its terminal, and 80 where there is none.
pub fn width(stream: &(impl IsTerminal + rustix::fd::AsFd)) -> usize {
    if !stream.is_terminal() {
        return WIDTH;
    }
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { WIDTH } else { columns.clamp(20, 500) }
}

/// Joins parts by commas, as many of the first ones as fit into `columns`.
pub fn fit(parts: &[String], columns: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let used = line.chars().count() + if line.is_empty() { 0 } else { 2 };
        if used + part.chars().count() > columns && !line.is_empty() {
            break;
        }
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(part);
    }
    line.chars().take(columns).collect()
}

/// The line on standard error that tells how far a verb is.
#[derive(Debug)]
pub struct Progress {
    is_terminal: bool,
    is_drawn: bool,
    next: Instant,
    /// None shows nothing.
    every: Option<Duration>,
}

impl Progress {
    /// Begins to show progress; with `quiet`, shows nothing.
    pub fn new(quiet: bool) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let every = if is_terminal { Duration::ZERO } else { LINE_EVERY };
        let every = (!quiet).then_some(every);
        Progress { is_terminal, is_drawn: false, next: Instant::now() + every.unwrap_or_default(), every }
    }

    /// Shows parts of a line, the most important first, if it is time.
    pub fn show(&mut self, parts: impl FnOnce() -> Vec<String>) {
        let Some(every) = self.every.filter(|_| Instant::now() >= self.next) else { return };
        self.next = Instant::now() + every;
        let mut out = io::stderr().lock();
        // Progress that cannot be shown is no reason to stop.
        let _ = if self.is_terminal {
            self.is_drawn = true;
            // The last column stays free: a terminal may go to the next line behind it.
            write!(out, "\r{}\x1b[K", fit(&parts(), width(&io::stderr()) - 1)).and_then(|()| out.flush())
        } else {
            writeln!(out, "{}", fit(&parts(), usize::MAX))
        };
    }

    /// Clears the line.
    pub fn end(&mut self) {
        if self.is_drawn {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.is_drawn = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_as_many_parts_as_fit() {
        let parts = ["copied 10 of 20 keys".to_string(), "30 MB/s".to_string(), "12s left".to_string()];
        assert_eq!(fit(&parts, 80), "copied 10 of 20 keys, 30 MB/s, 12s left");
        assert_eq!(fit(&parts, 39), "copied 10 of 20 keys, 30 MB/s, 12s left");
        assert_eq!(fit(&parts, 38), "copied 10 of 20 keys, 30 MB/s");
        assert_eq!(fit(&parts, 25), "copied 10 of 20 keys");
        assert_eq!(fit(&parts, 9), "copied 10");
        assert_eq!(fit(&[], 9), "");
    }
}
