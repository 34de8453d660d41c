//! The form of a log line: `key=value` pairs, time and level first, a value in quotes where it must be.

use std::fmt::{self, Debug, Write};
use std::time::SystemTime;

use tracing::Event;
use tracing::field::{Field, Visit};

/// The most bytes of a line; a longer one is cut.
pub(super) const BYTES_MAX: usize = 2048;

/// Returns the line of an event. `left_out` is how many lines of its place were not written before it.
pub(super) fn encode(event: &Event<'_>, time: SystemTime, left_out: u64) -> String {
    let mut line = Line(String::with_capacity(256));
    let _ = write!(line.0, "time={}", humantime::format_rfc3339_millis(time));
    line.pair("level", &event.metadata().level().as_str().to_ascii_lowercase());
    event.record(&mut line);
    if left_out > 0 {
        let _ = write!(line.0, " left_out={left_out}");
    }
    line.finish()
}

struct Line(String);

impl Line {
    fn pair(&mut self, key: &str, value: &str) {
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\');
        let _ = match !value.is_empty() && value.chars().all(is_plain) {
            true => write!(self.0, " {key}={value}"),
            // With the escapes of Rust's strings, a line stays one line whatever a value holds.
            false => write!(self.0, " {key}={value:?}"),
        };
    }

    fn finish(mut self) -> String {
        if self.0.len() > BYTES_MAX {
            let end = (0..=BYTES_MAX).rev().find(|&end| self.0.is_char_boundary(end));
            self.0.truncate(end.unwrap_or(0));
            self.0.push_str("...");
        }
        self.0.push('\n');
        self.0
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.pair(key_of(field), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // A value that cannot be shown is left out: a log line is no reason to fail.
        if fmt::write(&mut text, format_args!("{value:?}")).is_ok() {
            self.pair(key_of(field), &text);
        }
    }
}

fn key_of(field: &Field) -> &'static str {
    match field.name() {
        "message" => "msg",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::time::{Duration, UNIX_EPOCH};
    use tracing::span;

    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

    struct Encoder;

    impl tracing::Subscriber for Encoder {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn event(&self, event: &Event<'_>) {
            let time = UNIX_EPOCH + Duration::from_millis(1_795_318_862_123);
            let mut lines = LINES.lock().expect("no test panicked with it");
            let left_out = lines.len() as u64;
            lines.push(encode(event, time, left_out));
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn an_event_is_one_line_of_pairs_whatever_its_values_hold() {
        tracing::subscriber::with_default(Encoder, || {
            let error = std::io::Error::other("gone");
            tracing::warn!(device = 3, op = ?Some(1), %error, empty = "", "a read failed");
            tracing::info!(key = "a\nlevel=error \"b\"", "{}", "two\r\nlines");
            tracing::error!("{}", "\u{e9}".repeat(BYTES_MAX));
        });
        let lines = LINES.lock().expect("no test panicked with it");
        assert_eq!(
            lines[0],
            "time=2026-11-22T03:41:02.123Z level=warn msg=\"a read failed\" device=3 op=Some(1) error=gone \
             empty=\"\"\n"
        );
        assert_eq!(
            lines[1],
            "time=2026-11-22T03:41:02.123Z level=info msg=\"two\\r\\nlines\" \
             key=\"a\\nlevel=error \\\"b\\\"\" left_out=1\n"
        );
        assert!(lines[2].len() <= BYTES_MAX + 4 && lines[2].ends_with("...\n"));
    }
}
