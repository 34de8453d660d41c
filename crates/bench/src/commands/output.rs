//! Where results go: the terminal's width, files, and the effect of signals.

use super::Failure;
use crate::net::without_secret;
use crate::result::{self, Document};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// Columns when the output is no terminal.
const WIDTH: usize = 80;

/// Columns to write for: the terminal's, and 80 where there is none.
pub fn width() -> usize {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return WIDTH;
    }
    rustix::termios::tcgetwinsize(&stdout).map_or(WIDTH, |size| usize::from(size.ws_col)).clamp(20, 200)
}

/// A flag that Ctrl-C and a termination set; a second one ends the process at once.
pub fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order the first signal finds the flag unset and only sets it.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop));
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// Returns a document with its command, time and host, and nothing else yet.
pub fn document() -> Document {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Document {
        schema: result::SCHEMA,
        command: std::env::args().map(|word| without_secret(&word)).collect(),
        started_unix_ms: now.as_millis() as u64,
        environment: crate::environment::here(),
        ..Document::default()
    }
}

/// Writes a result to a file.
///
/// # Errors
/// The file cannot be written. A part that was written is removed.
pub fn write_json(path: &Path, document: &Document) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::error(format!("the result could not be written to {}: {error}", path.display()))
    };
    let json = document.to_json().map_err(|e| failed(&e))?;
    let written = File::create(path).and_then(|mut file| file.write_all(&json));
    written.map_err(|e| {
        // A device such as /dev/full must not be removed.
        if path.is_file() {
            let _ = std::fs::remove_file(path);
        }
        failed(&e)
    })
}
