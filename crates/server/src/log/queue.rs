//! Lines on their way to standard error: a bounded queue, and the one thread that may have to wait there.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The lines in the queue.
enum LogEntry {
    Line(Vec<u8>),
    /// Answered once everything before it is written.
    Flush(SyncSender<()>),
}

/// The front of the queue.
pub(super) struct LogQueue {
    entries: SyncSender<LogEntry>,
    /// Lines that found the queue full since that was last reported.
    lost: &'static AtomicU64,
}

impl LogQueue {
    /// Returns a queue of `lines` at most, which a new thread empties into `write`. Without a thread its lines are
    /// lost.
    pub(super) fn start(
        lines: usize,
        write: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static,
    ) -> LogQueue {
        let (entries, received) = sync_channel(lines);
        // For the process's life, as the thread is.
        let lost: &'static AtomicU64 = Box::leak(Box::default());
        let run = move || empty(&received, lost, write);
        let _ = thread::Builder::new().name("larder-log".into()).spawn(run);
        LogQueue { entries, lost }
    }

    /// Takes a line with its end. Never waits: a full queue loses it.
    pub(super) fn put(&self, line: Vec<u8>) {
        if self.entries.try_send(LogEntry::Line(line)).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Waits until the lines so far are written, at most for `on_full`.
    pub(super) fn flush(&self, on_full: Duration) {
        let until = Instant::now() + on_full;
        let (done, when_done) = sync_channel(1);
        while self.entries.try_send(LogEntry::Flush(done.clone())).is_err() {
            if Instant::now() >= until {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = when_done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

fn empty(entries: &Receiver<LogEntry>, lost: &AtomicU64, mut write: impl FnMut(&[u8]) -> io::Result<usize>) {
    for entry in entries {
        match entry {
            LogEntry::Line(line) => {
                let lost = lost.swap(0, Relaxed);
                if lost > 0 {
                    let text = format!("larder: {lost} log lines are lost: standard error was full\n");
                    write_all(text.as_bytes(), &mut write);
                }
                write_all(&line, &mut write);
            }
            LogEntry::Flush(done) => drop(done.try_send(())),
        }
    }
}

/// Writes all of it, or loses the rest of a line that cannot be written.
fn write_all(mut bytes: &[u8], write: &mut impl FnMut(&[u8]) -> io::Result<usize>) {
    while !bytes.is_empty() {
        match write(bytes) {
            Ok(0) => return,
            Ok(written) => bytes = &bytes[written.min(bytes.len())..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Writes to the descriptor itself: the standard library's handle has a lock, which a panic's message would
/// wait for while a write here waits for a full pipe.
pub(super) fn standard_error(bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(rustix::stdio::stderr(), bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_writer_that_never_returns_delays_nobody_for_long() {
        let (entered, has_entered) = sync_channel(100);
        let (release, held) = sync_channel::<()>(0);
        let queue = LogQueue::start(4, move |bytes| {
            let _ = entered.try_send(());
            let _ = held.recv();
            Ok(bytes.len())
        });
        queue.put(b"x\n".to_vec());
        has_entered.recv().expect("the thread takes it");
        let began = Instant::now();
        for _ in 0..10_000 {
            queue.put(b"x\n".to_vec());
        }
        queue.flush(Duration::from_millis(50));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(queue.lost.load(Relaxed), 10_000 - 4);
        drop(release);
    }

    #[test]
    fn what_was_lost_is_counted_in_the_log_and_a_failed_write_loses_one_line_only() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = written.clone();
        let (entered, has_entered) = sync_channel(100);
        let (go, wait) = sync_channel::<()>(0);
        let mut calls = 0;
        let queue = LogQueue::start(2, move |bytes| {
            let _ = entered.try_send(());
            let _ = wait.recv();
            calls += 1;
            if calls == 1 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // Piece by piece, as a pipe that is nearly full takes it.
            let len = bytes.len().min(7);
            sink.lock().expect("no panic").extend_from_slice(&bytes[..len]);
            Ok(len)
        });
        queue.put(b"the first one\n".to_vec());
        has_entered.recv().expect("the thread takes it");
        queue.put(b"the second one\n".to_vec());
        while queue.lost.load(Relaxed) == 0 {
            queue.put(b"the third one, or one that is lost\n".to_vec());
        }
        drop(go);
        queue.flush(Duration::from_secs(10));
        let text = String::from_utf8(written.lock().expect("no panic").clone()).expect("text");
        assert!(!text.contains("the first one"), "{text}");
        assert!(text.contains("the second one\n") && text.contains("log lines are lost"), "{text}");
    }
}
