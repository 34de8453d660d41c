//! Several stores under rising numbers of threads, in turns, so that a disturbance of the host hits all of
//! them.

use super::ceilings::Ceilings;
use super::entry::Entry;
use super::measure::{Length, Round, measure};
use super::store::{Error, Kind, Options, Store};
use crate::engine::Ceiling;
use crate::result::Counter;
use crate::show;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether to measure what the threads can do at most, where there is a null server for the store.
    pub calibrates: bool,
    /// Numbers of threads, in the order to try them.
    pub threads: Vec<u32>,
    /// How long each measurement takes.
    pub length: Length,
    /// How often each is made.
    pub repeat: u32,
    /// How to talk to the stores.
    pub options: Options,
}

/// A store that answered and is ready.
pub struct Contestant {
    /// As it was named.
    pub entry: Entry,
    /// Its version as it reports it.
    pub version: String,
    statement: String,
    store: Box<dyn Store>,
}

impl Contestant {
    /// Connects and prepares. The error names store, address and cause in one line.
    pub fn prepare(entry: Entry, options: Options) -> Result<Self, Error> {
        let named = |error: Error| Error(format!("{} at {}: {error}", entry.label, shown(&entry.address)));
        let store = entry.kind.open(&entry.address, options).map_err(named)?;
        let version = store.version().map_err(named)?;
        store.prepare().map_err(named)?;
        let statement = entry.kind.statement(options.sql);
        Ok(Self { entry, version, statement, store })
    }
}

/// An address without its password.
pub fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.into() };
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:...@{host}{path}")
        }
        _ => address.into(),
    }
}

/// The measurements, and what went wrong.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// A row a measurement, in the order they were made.
    pub counters: Vec<Counter>,
    /// Histories that cannot be: store, threads, and the contradiction, in one line each.
    pub violations: Vec<String>,
    /// Stores that failed on the way, in one line each; they were not measured further.
    pub failures: Vec<String>,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
}

/// Where it is: the number of the measurement from 1, of how many, which store, how many threads.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize, &str, u32);

/// Measures all; `stop` ends it with the results so far.
pub fn run(contestants: Vec<Contestant>, plan: &Plan, stop: &AtomicBool, progress: Progress) -> Outcome {
    let mut outcome = Outcome::default();
    let total = contestants.len() * plan.threads.len() * plan.repeat as usize;
    let mut at = 0;
    let mut able = contestants;
    let mut ceilings = Ceilings::new(plan.calibrates.then_some(plan.options));
    for _ in 0..plan.repeat {
        for &threads in &plan.threads {
            able.retain(|contestant| {
                at += 1;
                if stop.load(Ordering::Relaxed) {
                    outcome.is_stopped = true;
                    return true;
                }
                let label = &contestant.entry.label;
                progress(at, total, label, threads);
                let ceiling = ceilings.of(contestant.entry.kind, threads, stop);
                let failed = match measure(&*contestant.store, threads, plan.length, stop) {
                    Ok(round) => {
                        if let Err(violation) = &round.verdict {
                            let words = format!("{label}, {}: {violation}", show::threads(threads));
                            outcome.violations.push(words);
                        }
                        let failed = (!round.is_whole).then(|| failure(&round));
                        outcome.counters.push(counter(contestant, threads, ceiling, round));
                        failed
                    }
                    Err(error) => Some(error.to_string()),
                };
                let Some(why) = failed else { return true };
                let address = shown(&contestant.entry.address);
                outcome.failures.push(format!("{label} at {address}, {}: {why}", show::threads(threads)));
                false
            });
        }
    }
    outcome.is_stopped |= stop.load(Ordering::Relaxed);
    outcome
}

fn failure(round: &Round) -> String {
    let why = round.problem.as_deref().unwrap_or("unknown");
    format!("failed after {} increments: {}", round.answered, Error(why.into()))
}

fn counter(contestant: &Contestant, threads: u32, ceiling: Option<Ceiling>, round: Round) -> Counter {
    let (generator, checks) = round.checks(threads, ceiling);
    Counter {
        generator,
        checks,
        store: contestant.entry.label.clone(),
        version: contestant.version.clone(),
        statement: contestant.statement.clone(),
        threads,
        seconds: round.seconds,
        count: round.answered,
        rate: round.rate(),
        errors: round.refused + round.lost,
        check: round.check(),
        latency: round.latency,
    }
}

/// One line for each kind of store that one would expect here and that was not given an address.
pub fn skipped(entries: &[Entry]) -> Vec<String> {
    let is_given = |kind: &Kind| entries.iter().any(|entry| entry.kind == *kind);
    let missing = Kind::EXPECTED.into_iter().filter(|kind| !is_given(kind));
    missing.map(|kind| format!("{} skipped: no URL given", kind.name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("mysql://root:s3cret@h:1/?x=y@z"), "mysql://root:...@h:1/?x=y@z");
        assert_eq!(shown("postgres://me:a/b@h/db"), "postgres://me:a/b@h/db");
        assert_eq!(shown("redis://h:1/0"), "redis://h:1/0");
        assert_eq!(shown("127.0.0.1:11211"), "127.0.0.1:11211");
    }
}
