//! Where a test may end a store as if its process had been killed: between any two changes of the arena.
//!
//! What a killed process leaves is what it had stored up to some instruction. So every place that changes the
//! arena calls `step`; a test arms a countdown, looks at the arena when it has run down, and the thread
//! unwinds out of the store, of which nothing is used any more. Without debug assertions a step
//! is no instruction at all.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

/// What a thread unwinds with when its countdown has run down.
#[derive(Debug)]
pub struct Killed;

type AtDeath = Box<dyn FnOnce()>;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(0) };
    static AT_DEATH: RefCell<Option<AtDeath>> = const { RefCell::new(None) };
}

/// Whether [`arm`] has any effect in this build.
pub const CAN_KILL: bool = cfg!(debug_assertions);

/// Ends this thread's work in a store before its `steps`-th change of the arena from now (1 is the next):
/// calls `at_death`, then unwinds with [`Killed`].
pub fn arm(steps: u64, at_death: impl FnOnce() + 'static) {
    STEPS_LEFT.set(steps);
    AT_DEATH.set(Some(Box::new(at_death)));
}

/// Ends the countdown; returns whether it was still running.
pub fn disarm() -> bool {
    AT_DEATH.set(None);
    STEPS_LEFT.replace(0) > 0
}

/// Something of the arena is about to change, after which it may look half done. All stores before this instant
/// come before all behind it: one thread's stores reach memory in the order they are made in, or look so to
/// the process that maps it next, so only the compiler must be kept from moving them.
#[inline(always)]
pub(crate) fn step() {
    compiler_fence(SeqCst);
    #[cfg(debug_assertions)]
    count_down();
}

#[cfg(debug_assertions)]
fn count_down() {
    let left = STEPS_LEFT.get();
    if left == 0 {
        return;
    }
    STEPS_LEFT.set(left - 1);
    if left == 1 {
        if let Some(at_death) = AT_DEATH.take() {
            at_death();
        }
        std::panic::resume_unwind(Box::new(Killed));
    }
}
