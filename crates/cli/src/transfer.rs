//! Batches of work on several threads, with the progress shown by the one that waits for them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::exit::{Failure, Outcome};

/// The time between two looks at the progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs `work` on each batch, on so many threads, until there are no more, one fails, or `stop` is set. Calls `look`
/// meanwhile. Batches that began are finished.
///
/// # Errors
/// The first failure, and [`Failure::Interrupted`] if `stop` was set.
pub fn run<B: Send>(
    threads: usize,
    batches: impl Iterator<Item = Outcome<B>> + Send,
    work: impl Fn(B) -> Outcome<()> + Sync,
    stop: &AtomicBool,
    mut look: impl FnMut(),
) -> Outcome<()> {
    let batches = Mutex::new(batches);
    let failure = Mutex::new(None);
    let has_failed = AtomicBool::new(false);
    let next = || {
        let mut batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
        if stop.load(Relaxed) || has_failed.load(Relaxed) { None } else { batches.next() }
    };
    let work_all = || {
        while let Some(batch) = next() {
            if let Err(problem) = batch.and_then(&work) {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
                has_failed.store(true, Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        let (ends, ended) = mpsc::channel::<()>();
        for _ in 0..threads.max(1) {
            let (end, work_all) = (ends.clone(), &work_all);
            scope.spawn(move || {
                let _end = end;
                work_all();
            });
        }
        drop(ends);
        while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            look();
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None if stop.load(Relaxed) => Err(Failure::Interrupted),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn each_batch_is_worked_on_once() {
        for threads in [1, 2, 4, 64] {
            let (sum, stop) = (AtomicU64::new(0), AtomicBool::new(false));
            let work = |number| {
                sum.fetch_add(number, Relaxed);
                Ok(())
            };
            assert_eq!(run(threads, (1..=1000).map(Ok), work, &stop, || {}), Ok(()));
            assert_eq!(sum.load(Relaxed), 500_500);
        }
    }

    #[test]
    fn a_failure_and_a_signal_end_the_work() {
        let stop = AtomicBool::new(false);
        let fail = |number: u64| if number == 5 { Err(Failure::Failed("five".into())) } else { Ok(()) };
        let end = run(4, (0..).map(Ok), fail, &stop, || {});
        assert_eq!(end, Err(Failure::Failed("five".into())));
        let end = run(
            2,
            [Ok(1), Err(Failure::Failed("no batch".into())), Ok(2)].into_iter(),
            |_| Ok(()),
            &stop,
            || {},
        );
        assert_eq!(end, Err(Failure::Failed("no batch".into())));
        let interrupt = |number: u64| {
            stop.store(number >= 5, Relaxed);
            Ok(())
        };
        assert_eq!(run(1, (0..).map(Ok), interrupt, &stop, || {}), Err(Failure::Interrupted));
    }
}
