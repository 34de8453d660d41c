//! Keeps the bytes written to each SSD path over its life, on the path itself, and tells how long the path lasts.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use larder_device::FileDevice;

use crate::shared::Shared;

/// The interval at which they are saved: a daemon that is killed forgets what it wrote since.
const EVERY: Duration = Duration::from_secs(60);
/// The time that the last save may take. A device that does not answer keeps no daemon from ending.
const LAST: Duration = Duration::from_secs(1);

const DAY_S: f64 = 86_400.0;

/// The thread that saves them. It is not a worker's or the main thread, since it waits for the device.
pub struct Wear {
    /// Disconnected to end the thread.
    run: mpsc::Sender<()>,
    /// Disconnected once the thread has ended.
    ended: mpsc::Receiver<()>,
}

impl Wear {
    /// Takes the bytes written before, and begins to save them with those that are written from now on.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(shared: &Arc<Shared>, files: Vec<Arc<FileDevice>>) -> Result<Wear, String> {
        for (number, file) in files.iter().enumerate() {
            shared.note_written(number, file.lifetime_written_bytes());
        }
        let ((run, runs), (end, ended)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
        let wear = Wear { run, ended };
        if files.is_empty() {
            return Ok(wear);
        }
        let shared = shared.clone();
        let work = move || {
            let _end = end;
            let mut saved: Vec<u64> = files.iter().map(|file| file.lifetime_written_bytes()).collect();
            loop {
                let is_last = runs.recv_timeout(EVERY) == Err(RecvTimeoutError::Disconnected);
                save(&shared, &files, &mut saved);
                if is_last {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("larder-wear".into()).spawn(work);
        thread.map(|_| wear).map_err(|error| format!("cannot start a thread: {error}"))
    }

    /// Saves the figures for the last time, after the workers have ended.
    pub fn end(self) {
        drop(self.run);
        let _ = self.ended.recv_timeout(LAST);
    }
}

/// Returns the days until the most worn SSD path has taken the bytes that it may take over its life, if writes go on as
/// since the daemon's start. `None` if that life is not known, or nothing was written since.
pub fn days_left(shared: &Shared, ssd_bytes_written: u64) -> Option<u64> {
    let endurance = shared.config.ssd_endurance_bytes?;
    let most_worn = shared.lifetime_written.iter().map(|written| written.load(Relaxed)).max()?;
    // Segments are dealt out evenly.
    let written = ssd_bytes_written / shared.lifetime_written.len() as u64;
    days(endurance.saturating_sub(most_worn), written, shared.started.elapsed())
}

/// Returns the days that bytes last at a rate: `written` bytes in a time.
fn days(left_bytes: u64, written: u64, time: Duration) -> Option<u64> {
    let per_day = written as f64 / time.as_secs_f64().max(1.0) * DAY_S;
    (written > 0).then(|| (left_bytes as f64 / per_day) as u64)
}

/// Saves the figures that have changed.
fn save(shared: &Shared, files: &[Arc<FileDevice>], saved: &mut [u64]) {
    for ((file, written), saved) in files.iter().zip(&shared.lifetime_written).zip(saved) {
        let bytes = written.load(Relaxed);
        if bytes == *saved {
            continue;
        }
        match file.save_lifetime(bytes) {
            Ok(()) => *saved = bytes,
            Err(error) => {
                tracing::warn!(%error, "{}: the bytes written so far are not saved", file.path().display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_last_as_long_as_the_rate_says() {
        let hour = Duration::from_secs(3_600);
        assert_eq!(days(600_000_000_000_000, 36_000_000_000, hour), Some(694));
        assert_eq!(days(0, 1, hour), Some(0));
        assert_eq!(days(1 << 40, 0, hour), None);
    }
}
