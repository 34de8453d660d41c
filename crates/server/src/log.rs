//! The daemon's log: structured lines on standard error. A slow or closed standard error neither stops nor delays
//! the daemon.
//!
//! Events are reported with the macros of `tracing`, the text first and the varying values as fields:
//!
//! ```
//! tracing::warn!(device = 0, error = %std::io::Error::other("gone"), "a read failed");
//! ```
//!
//! becomes `time=2026-11-22T03:01:02.123Z level=warn msg="a read failed" device=0 error=gone`.
//!
//! ```text
//!   event --> limit (10 a second from one place) --> line --> bounded queue --> thread --> standard error
//! ```
//!
//! The thread that reports an event never writes and never waits. A line is left out, and counted, when its
//! place in the code reports too often or when standard error takes no more. A failed write loses its lines
//! and nothing else.

mod limit;
mod line;
mod queue;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tracing::level_filters::LevelFilter;
use tracing::span;
use tracing::{Event, Metadata, Subscriber};

use limit::Limit;
use queue::LogQueue;

/// Lines that wait for standard error to take them.
const QUEUE_LINES: usize = 1024;
/// The time that the daemon's end waits for standard error to take the last lines.
const FLUSH: Duration = Duration::from_millis(500);

static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// Returns the queue to standard error, whose thread starts with the first line.
fn queue() -> &'static LogQueue {
    QUEUE.get_or_init(|| LogQueue::start(QUEUE_LINES, queue::standard_error))
}

/// Sends the events of the whole process to the log. Called once, after the daemon has forked.
pub fn start() {
    // A second call finds the first one's subscriber in place, which is the same.
    let _ = tracing::subscriber::set_global_default(LogSubscriber { limit: Mutex::new(Limit::default()) });
}

/// Writes `larder: TEXT` for the operator: why it cannot start, or ended badly.
pub fn complain(text: &str) {
    queue().put(format!("larder: {text}\n").into_bytes());
}

/// Writes a line as it is, without time and limit, for the requests that a verbosity of 2 shows. Adds the line's
/// end, and replaces control characters.
pub fn echo(text: &[u8]) {
    let mut line: Vec<u8> = text.iter().take(line::BYTES_MAX).copied().collect();
    line.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b'.');
    line.push(b'\n');
    queue().put(line);
}

/// Waits until all lines are written, or for half a second where standard error does not take them.
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH);
    }
}

/// The subscriber of the process's events. There are no spans: each event is complete by itself.
struct LogSubscriber {
    limit: Mutex<Limit>,
}

impl Subscriber for LogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= LevelFilter::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        let place = event.metadata().callsite();
        let admitted = self.limit.lock().unwrap_or_else(PoisonError::into_inner).admit(place, Instant::now());
        if let Some(left_out) = admitted {
            queue().put(line::encode(event, SystemTime::now(), left_out).into_bytes());
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
