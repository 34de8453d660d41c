//! The most increments a second that the threads of this host can ask for, against a server that does nothing.

use super::measure::{Length, measure};
use super::store::{Kind, Options};
use crate::calibrate::NullProcess;
use crate::engine::{self, Ceiling};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How often, and how long each time.
const REPEATS: usize = 3;
const REPEAT: Duration = Duration::from_millis(150);

/// The ceilings that were measured, by kind of store and threads. A database has none: there is no server for its
/// driver that does nothing.
pub(super) struct Ceilings {
    /// How to talk to the stores; none if nothing is to be measured.
    options: Option<Options>,
    known: HashMap<(&'static str, u32), Option<Ceiling>>,
}

impl Ceilings {
    pub fn new(options: Option<Options>) -> Self {
        Self { options, known: HashMap::new() }
    }

    /// The ceiling of so many threads that ask a store of this kind; none if it cannot be measured.
    pub fn of(&mut self, kind: Kind, threads: u32, stop: &AtomicBool) -> Option<Ceiling> {
        let options = self.options?;
        *self.known.entry((kind.name(), threads)).or_insert_with(|| find(options, kind, threads, stop))
    }
}

fn find(options: Options, kind: Kind, threads: u32, stop: &AtomicBool) -> Option<Ceiling> {
    let protocol = kind.null_protocol()?;
    let shape = engine::Plan { protocol, ..engine::Plan::default() };
    let server = NullProcess::start(&std::env::current_exe().ok()?, &shape).ok()?;
    let store = kind.open(&server.address.to_string(), options).ok()?;
    // The null server does not count, so only the rate is used, not the verdict on its answers.
    let rate = |_| measure(&*store, threads, Length::of(REPEAT), stop).ok().map(|round| round.rate());
    let mut rates: Vec<f64> = (0..REPEATS).map_while(rate).collect();
    rates.sort_by(f64::total_cmp);
    Ceiling::of_repeats(&rates)
}
