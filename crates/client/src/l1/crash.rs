//! Points at which a test ends a writer as if its process were killed, or lets others run as if it were stopped:
//! before any of its stores to shared memory.
//!
//! Outside of this crate's unit tests a step is no instruction at all.

use crate::simulation;

/// Marks that the next statement stores to shared memory.
#[inline(always)]
pub(super) fn step() {
    #[cfg(test)]
    armed::count_down();
    simulation::store();
}

/// Returns whether this thread is unwinding as if it had been killed, so that it must not release its lock.
#[inline(always)]
pub(super) fn is_killed() -> bool {
    #[cfg(test)]
    if armed::IS_KILLED.get() {
        return true;
    }
    simulation::is_killed()
}

#[cfg(test)]
pub(super) mod armed {
    use std::cell::{Cell, RefCell};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    struct Killed;

    thread_local! {
        static STEPS_LEFT: Cell<u64> = const { Cell::new(0) };
        pub(in super::super) static IS_KILLED: Cell<bool> = const { Cell::new(false) };
        static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    }

    pub(super) fn count_down() {
        let left = STEPS_LEFT.get();
        STEPS_LEFT.set(left.saturating_sub(1));
        if left != 1 {
            return;
        }
        if let Some(meanwhile) = MEANWHILE.take() {
            meanwhile();
        } else {
            IS_KILLED.set(true);
            resume_unwind(Box::new(Killed));
        }
    }

    /// Runs `work` and ends it before its `steps`-th store (1 is the first). Returns `None` if that ended it.
    pub(in super::super) fn kill_at<T>(steps: u64, work: impl FnOnce() -> T) -> Option<T> {
        STEPS_LEFT.set(steps);
        let result = catch_unwind(AssertUnwindSafe(work));
        STEPS_LEFT.set(0);
        IS_KILLED.set(false);
        match result {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Killed>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Runs `work`, and `meanwhile` before its `steps`-th store. Returns what `work` returns, and whether it has so
    /// many.
    pub(in super::super) fn stop_at<T>(
        steps: u64,
        meanwhile: impl FnOnce() + 'static,
        work: impl FnOnce() -> T,
    ) -> (T, bool) {
        MEANWHILE.set(Some(Box::new(meanwhile)));
        STEPS_LEFT.set(steps);
        let result = work();
        STEPS_LEFT.set(0);
        (result, MEANWHILE.take().is_none())
    }
}
