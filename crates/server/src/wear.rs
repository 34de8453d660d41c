//! Keeps the bytes written to each SSD path over its life, on the path itself, and tells how long the path lasts.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

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
                shared.write_rate.note(Instant::now(), shared.store.stats().ssd_bytes_written);
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

/// Returns the bytes a day that were written to all SSD paths together in the last day, or since the daemon's start.
/// `ssd_bytes_written` are those since its start.
pub fn bytes_per_day(shared: &Shared, ssd_bytes_written: u64) -> f64 {
    shared.write_rate.per_day(Instant::now(), ssd_bytes_written)
}

/// Returns the days until the most worn SSD path has taken the bytes that it may take over its life, if writes go on as
/// in the last day. `None` if that life is not known, or nothing was written.
pub fn days_left(shared: &Shared, ssd_bytes_written: u64) -> Option<u64> {
    let per_day = bytes_per_day(shared, ssd_bytes_written);
    (per_day > 0.0).then(|| Some((left_bytes(shared)? / per_day) as u64))?
}

/// Returns the write limit, in bytes a second, with which the most worn SSD path lasts so many days at least. `None` if
/// its life is not known.
pub fn limit_to_last(shared: &Shared, days: f64) -> Option<f64> {
    Some(left_bytes(shared)? / days / DAY_S)
}

/// Returns the bytes that all SSD paths together may take until the most worn one has taken its share: segments are
/// dealt out evenly.
fn left_bytes(shared: &Shared) -> Option<f64> {
    let endurance = shared.config.ssd_endurance_bytes?;
    let most_worn = shared.lifetime_written.iter().map(|written| written.load(Relaxed)).max()?;
    Some(endurance.saturating_sub(most_worn) as f64 * shared.lifetime_written.len() as f64)
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
    use crate::clock::Clock;
    use crate::config::Config;
    use crate::startup::memory;
    use larder_store::Store;

    #[test]
    fn the_most_worn_path_decides_how_long_they_last() {
        let args = ["larder", "-m", "16", "--ssd", "/a:128m", "--ssd", "/b:128m", "--ssd-endurance", "600T"];
        let config = Config::from_args(args).expect("valid options");
        let store = Store::open(&memory::store_config(&config, Vec::new(), 1)).expect("it fits");
        let shared = Shared::new(store, Clock::new(), config, "threads");
        assert_eq!(days_left(&shared, 0), None, "nothing was written");
        shared.note_written(0, 100_000_000_000_000);
        shared.note_written(1, 400_000_000_000_000);
        // 200 TB are left of the second path, and each path takes half of what is written.
        assert_eq!(limit_to_last(&shared, 400.0).map(|limit| (limit * DAY_S / 1e9).round()), Some(1_000.0));
        let later = Instant::now() + Duration::from_secs(86_400);
        shared.write_rate.note(later - Duration::from_secs(3_600), 1);
        let per_day = shared.write_rate.per_day(later, 1_000_000_000_000);
        assert!((per_day / 1e12 - 1.0).abs() < 1e-3, "{per_day}");
        assert_eq!(days_left(&shared, u64::MAX), Some(0));
    }
}
