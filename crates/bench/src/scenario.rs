//! Five published benchmarks of caches, made again against servers that are started here: each with the
//! document's own figures beside ours, checks, and the differences.
//!
//! ```text
//!   ALL -> run -> Stage (budget, servers, CPUs) -> one file a scenario -> Part (runs, curves, tables, checks, notes)
//!                                                                          |
//!                                                     result::Document <---+
//! ```

pub mod cgroup;
pub mod child;
pub mod counter_shootout;
pub mod fatcache_ssd;
pub mod folder;
pub mod host;
pub mod memtier_sweep;
pub mod netns;
pub mod part;
pub mod perl_tiers;
pub mod php_loop;
pub mod relay;
pub mod server;
pub mod stage;
pub mod target;
pub mod text;
pub mod trace;
pub mod wanted;

pub use host::Host;
pub use part::Part;
pub use stage::{GivenPeer, Halt, Options, Stage};
pub use target::Target;
pub use wanted::Wanted;

use crate::checks::check;
use crate::fleet::PlanOf;
use crate::result::{Table, Verdict};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// One published benchmark, and how it is made again.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The question of the document.
    pub question: &'static str,
    /// The load and servers of this version.
    pub runs: &'static str,
    /// Corrections of the document's method, left out with `--as-seed`.
    pub fixes: &'static str,
    /// The document's own figures.
    pub document: fn() -> Vec<Table>,
    /// The options of the user's choice that it takes.
    pub takes: &'static [&'static str],
    /// Its share of a budget for all.
    weight: f64,
    play: fn(&mut Stage<'_>) -> Result<(), Halt>,
}

/// All of them, in the order to run them.
pub const ALL: &[Scenario] = &[
    php_loop::SCENARIO,
    memtier_sweep::SCENARIO,
    fatcache_ssd::SCENARIO,
    perl_tiers::SCENARIO,
    counter_shootout::SCENARIO,
];

/// The scenario of that name.
pub fn named(name: &str) -> Option<Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// The inputs of a run of several scenarios.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The options.
    pub options: &'a Options,
    /// This machine.
    pub host: &'a Host,
    /// Where servers may keep their files; it exists and is ours.
    pub folder: &'a Path,
    /// Ends it early.
    pub stop: &'a AtomicBool,
    /// Called with each step.
    pub tell: &'a dyn Fn(&str),
    /// Reads the arguments that the hosts of a fleet are given.
    pub plan_of: PlanOf,
}

impl Run<'_> {
    /// Runs scenarios within a budget for all of them. `ended` gets the part of each as soon as it is there;
    /// the results so far of one that ended early, too. Returns whether all went to their end.
    pub fn all(
        &self,
        scenarios: &[Scenario],
        budget: Duration,
        ended: &mut dyn FnMut(&Scenario, Part),
    ) -> bool {
        let until = Instant::now() + budget;
        let mut is_whole = true;
        for (at, scenario) in scenarios.iter().enumerate() {
            let weights: f64 = scenarios[at..].iter().map(|scenario| scenario.weight).sum();
            let left = until.saturating_duration_since(Instant::now());
            let tell = |what: &str| match scenarios.len() {
                1 => (self.tell)(what),
                all => (self.tell)(&format!("scenario {} of {all}, {what}", at + 1)),
            };
            let run = Run { tell: &tell, ..*self };
            let mut stage = Stage::new(scenario.name, run, left.mul_f64(scenario.weight / weights));
            let played = (scenario.play)(&mut stage);
            let mut part = stage.part;
            match &played {
                Ok(()) => {}
                Err(Halt::Stopped) => part.note("stopped before its end: these are the results so far"),
                Err(Halt::Failed(why)) => part.check(check("scenario", Verdict::Fail, why.as_str())),
            }
            is_whole &= played.is_ok();
            ended(scenario, part);
            if played == Err(Halt::Stopped) {
                return false;
            }
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_shows_its_document() {
        for scenario in ALL {
            assert!(named(scenario.name).is_some());
            let tables = (scenario.document)();
            assert!(!tables.is_empty(), "{}", scenario.name);
            for table in tables {
                assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.title);
            }
            assert!(scenario.about.len() <= 62, "{} in `list`", scenario.name);
        }
        assert!(named("none").is_none());
    }
}
