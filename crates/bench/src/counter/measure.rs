//! One measurement: this many threads, each with its own connection, increment as often as they can for a
//! while; every answer is kept and judged.

use super::history::{Client, History, Linearizable, Op, Violation};
use super::store::{Error, Failure, Store, Worker};
use crate::engine::certify;
use crate::engine::cpu::{self, Used};
use crate::engine::{Ceiling, Load, Plan};
use crate::latency::Latency;
use crate::result::{self, Check, Generator, Verb, Verdict};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// This many refusals on end, and a client gives up.
const REFUSALS_MAX: u32 = 100;

/// How long a measurement takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// The time, at most.
    pub duration: Duration,
    /// The increments of all threads together, at most; none for no bound but the time.
    pub increments: Option<u64>,
}

impl Length {
    /// Bounded by time alone.
    pub fn of(duration: Duration) -> Self {
        Self { duration, increments: None }
    }

    /// The bound of one of several threads.
    fn share(self, thread: u32, threads: u32) -> Self {
        let (thread, threads) = (u64::from(thread), u64::from(threads.max(1)));
        let part = |all: u64| all / threads + u64::from(thread < all % threads);
        Self { increments: self.increments.map(part), ..self }
    }
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Round {
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Increments that were answered with a value.
    pub answered: u64,
    /// From request to answer.
    pub latency: Latency,
    /// Increments that the store refused.
    pub refused: u64,
    /// Increments whose answer never came.
    pub lost: u64,
    /// The first thing that went wrong, in words: a refusal, a loss, the final read.
    pub problem: Option<String>,
    /// Whether it went on to its end, with a final read. If not, the store is of no use any more.
    pub is_whole: bool,
    /// Whether it was one atomic counter, as far as it went.
    pub verdict: Result<Linearizable, Violation>,
    /// The cost of the threads.
    pub generator: Generator,
}

impl Round {
    /// Increments a second; 0 if nothing was answered.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.answered as f64 / self.seconds } else { 0.0 }
    }

    /// The checks of every load in a closed loop, of `threads` threads whose ceiling is known or not.
    pub fn checks(&self, threads: u32, ceiling: Option<Ceiling>) -> (Generator, Vec<Check>) {
        let generator = Generator {
            ceiling: ceiling.map(|ceiling| ceiling.rate),
            ceiling_spread: ceiling.map_or(0.0, |ceiling| ceiling.spread),
            ..self.generator.clone()
        };
        let increments = Verb {
            name: "incr".to_string(),
            count: self.answered + self.refused,
            errors: self.refused,
            response: self.latency.clone(),
            ..Verb::default()
        };
        let run = result::Run {
            seconds: self.seconds,
            verbs: vec![increments],
            errors_said: self.problem.iter().cloned().collect(),
            cut_short: self.problem.clone().filter(|_| !self.is_whole),
            generator: generator.clone(),
            ..result::Run::default()
        };
        let load = Load::Closed { pipeline: 1 };
        let plan = Plan { threads: threads as usize, connections: threads as usize, load, ..Plan::default() };
        (generator, certify::checks(&plan, &run))
    }

    /// The verdict, as it stands in a result.
    pub fn check(&self) -> Check {
        let (verdict, message) = match &self.verdict {
            Err(violation) => (Verdict::Fail, violation.to_string()),
            Ok(sound) if self.is_whole => (Verdict::Pass, sound.to_string()),
            Ok(sound) => (Verdict::Warn, format!("{sound}; cut short")),
        };
        Check { name: "linearizable".into(), verdict, message }
    }
}

/// Measures one store. An error means that it did not even begin.
pub fn measure(store: &dyn Store, threads: u32, length: Length, stop: &AtomicBool) -> Result<Round, Error> {
    let mut workers = Vec::new();
    for _ in 0..threads {
        let mut worker = store.connect()?;
        // The first increment of a connection pays for what later ones do not.
        worker.increment()?;
        workers.push(worker);
    }
    store.reset()?;

    let origin = Instant::now();
    let start = Barrier::new(workers.len());
    let runs: Vec<Run> = thread::scope(|scope| {
        let start = &start;
        let running: Vec<_> = workers
            .into_iter()
            .zip(0..)
            .map(|(worker, at)| (worker, length.share(at, threads)))
            .map(|(worker, length)| scope.spawn(move || Run::of(worker, start, origin, length, stop)))
            .collect();
        running.into_iter().map(|run| run.join().expect("a client does not panic")).collect()
    });

    let mut history = History::default();
    let (mut began_ns, mut ended_ns) = (u64::MAX, 0);
    let mut latency = Latency::new();
    let (mut refused, mut problem, mut is_whole) = (0, None, true);
    let mut generator = Generator::default();
    let mut used = Vec::new();
    for run in runs {
        used.push(run.used);
        began_ns = began_ns.min(run.began_ns);
        ended_ns = ended_ns.max(run.client.log.last().map_or(0, |op| op.end_ns));
        latency.add(&run.latency);
        refused += run.refused;
        is_whole &= run.went_to_its_end;
        problem = problem.or(run.problem);
        history.clients.push(run.client);
    }
    let seconds = ended_ns.saturating_sub(began_ns) as f64 / 1e9;
    // A number of increments may be there long before the time is over.
    let window_s = if seconds > 0.0 { seconds } else { length.duration.as_secs_f64() };
    used.into_iter().for_each(|used| cpu::add_thread(&mut generator, used, 0, window_s));
    match store.read() {
        Ok(found) => history.final_read = Some(found),
        Err(error) => {
            is_whole = false;
            problem.get_or_insert_with(|| format!("final read: {error}"));
        }
    }
    Ok(Round {
        seconds,
        answered: history.answered(),
        latency,
        refused,
        lost: history.clients.iter().filter(|client| client.lost_start_ns.is_some()).count() as u64,
        problem,
        is_whole,
        verdict: history.verdict(),
        generator,
    })
}

/// The run of one client.
struct Run {
    client: Client,
    latency: Latency,
    began_ns: u64,
    refused: u64,
    problem: Option<String>,
    went_to_its_end: bool,
    /// What its thread had used when it began and when it ended.
    used: (Used, Used),
}

impl Run {
    /// Increments until its length is over, and keeps what the thread used meanwhile.
    fn of(
        worker: Box<dyn Worker>,
        start: &Barrier,
        origin: Instant,
        length: Length,
        stop: &AtomicBool,
    ) -> Self {
        start.wait();
        let at_begin = Used::now();
        let run = Self::until_the_end(worker, origin, length, stop);
        Self { used: (at_begin, Used::now()), ..run }
    }

    fn until_the_end(
        mut worker: Box<dyn Worker>,
        origin: Instant,
        length: Length,
        stop: &AtomicBool,
    ) -> Self {
        let now_ns = || origin.elapsed().as_nanos() as u64;
        let began_ns = now_ns();
        let end_ns = began_ns + length.duration.as_nanos() as u64;
        let mut run = Self {
            client: Client::default(),
            latency: Latency::new(),
            began_ns,
            refused: 0,
            problem: None,
            went_to_its_end: true,
            used: (Used::default(), Used::default()),
        };
        let mut refusals = 0;
        loop {
            let start_ns = now_ns();
            let is_done = length.increments.is_some_and(|most| run.latency.count() >= most);
            if is_done || start_ns >= end_ns || stop.load(Ordering::Relaxed) {
                return run;
            }
            match worker.increment() {
                Ok(value) => {
                    let end_ns = now_ns();
                    run.client.log.push(Op { start_ns, end_ns, value });
                    run.latency.record(end_ns - start_ns);
                    refusals = 0;
                }
                Err(Failure::Refused(why)) => {
                    run.refused += 1;
                    refusals += 1;
                    run.problem.get_or_insert(why);
                    if refusals == REFUSALS_MAX {
                        run.went_to_its_end = false;
                        return run;
                    }
                }
                Err(Failure::Lost(why)) => {
                    run.client.lose(start_ns);
                    run.problem.get_or_insert(why);
                    run.went_to_its_end = false;
                    return run;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    /// A counter in this process; it fails in one of several ways after this many increments.
    struct Fake {
        counter: Arc<AtomicU64>,
        fail_at: u64,
        failure: Failure,
    }

    struct FakeWorker(Arc<AtomicU64>, u64, Failure);

    impl Store for Fake {
        fn version(&self) -> Result<String, Error> {
            Ok("1".into())
        }

        fn prepare(&self) -> Result<(), Error> {
            Ok(())
        }

        fn reset(&self) -> Result<(), Error> {
            self.counter.store(0, Ordering::SeqCst);
            Ok(())
        }

        fn connect(&self) -> Result<Box<dyn Worker>, Error> {
            Ok(Box::new(FakeWorker(self.counter.clone(), self.fail_at, self.failure.clone())))
        }

        fn read(&self) -> Result<u64, Error> {
            Ok(self.counter.load(Ordering::SeqCst))
        }
    }

    impl Worker for FakeWorker {
        fn increment(&mut self) -> Result<u64, Failure> {
            if self.0.load(Ordering::SeqCst) >= self.1 {
                return Err(self.2.clone());
            }
            Ok(self.0.fetch_add(1, Ordering::SeqCst) + 1)
        }
    }

    fn round(fail_at: u64, failure: Failure) -> Round {
        let store = Fake { counter: Arc::default(), fail_at, failure };
        measure(&store, 3, Length::of(Duration::from_millis(50)), &AtomicBool::new(false)).expect("it begins")
    }

    #[test]
    fn a_sound_counter_passes_and_every_answer_counts() {
        let round = round(u64::MAX, Failure::Refused(String::new()));
        assert_eq!(round.check().verdict, Verdict::Pass, "{round:?}");
        let (_, checks) = round.checks(1, None);
        assert!(checks.iter().all(|check| check.name != "errors"), "{checks:?}");
        assert_eq!(round.latency.count(), round.answered);
        assert!(round.rate() > 0.0 && round.seconds < 30.0);
    }

    fn verdict(round: &Round, name: &str) -> Option<Verdict> {
        let (_, checks) = round.checks(3, None);
        checks.into_iter().find(|check| check.name == name).map(|check| check.verdict)
    }

    #[test]
    fn threads_that_are_the_limit_themselves_certify_nothing() {
        // Nothing but the threads takes time.
        let round = round(u64::MAX, Failure::Refused(String::new()));
        assert_eq!(verdict(&round, "generator"), Some(Verdict::Fail), "{round:?}");
    }

    #[test]
    fn refused_increments_certify_nothing() {
        let round = round(1000, Failure::Refused("full".into()));
        assert_eq!(verdict(&round, "errors"), Some(Verdict::Fail), "{round:?}");
    }

    #[test]
    fn refusals_end_a_run_that_does_nothing_else() {
        let round = round(1000, Failure::Refused("full".into()));
        assert_eq!(round.check().verdict, Verdict::Warn, "{round:?}");
        assert!(round.refused >= u64::from(REFUSALS_MAX));
        assert_eq!((round.is_whole, round.problem.as_deref()), (false, Some("full")));
    }

    #[test]
    fn a_loss_ends_its_client() {
        let round = round(1000, Failure::Lost("gone".into()));
        assert_eq!((round.lost, round.is_whole, round.refused), (3, false, 0), "{round:?}");
        assert!(round.verdict.is_ok());
    }

    #[test]
    fn increments_of_a_given_number_are_shared_and_end_the_round() {
        let failure = Failure::Lost(String::new());
        for (threads, count) in [(3, 100), (4, 2), (1, 7)] {
            let store = Fake { counter: Arc::default(), fail_at: u64::MAX, failure: failure.clone() };
            let length = Length { duration: Duration::from_secs(60), increments: Some(count) };
            let round = measure(&store, threads, length, &AtomicBool::new(false)).expect("it begins");
            assert_eq!((round.answered, round.is_whole), (count, true), "{threads} threads");
            assert!(round.seconds < 30.0 && round.check().verdict == Verdict::Pass, "{round:?}");
        }
    }

    #[test]
    fn a_stop_ends_it_at_once() {
        let store =
            Fake { counter: Arc::default(), fail_at: u64::MAX, failure: Failure::Lost(String::new()) };
        let began = Instant::now();
        let length = Length::of(Duration::from_secs(60));
        let round = measure(&store, 1, length, &AtomicBool::new(true)).expect("it begins");
        assert!(began.elapsed() < Duration::from_secs(10) && round.is_whole);
    }
}
