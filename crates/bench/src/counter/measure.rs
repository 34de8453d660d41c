//! One measurement: this many threads, each with its own connection, increment as often as they can for a
//! while; every answer is kept and judged.

use super::history::{Client, History, Linearizable, Op, Violation};
use super::store::{Error, Failure, Store, Worker};
use crate::latency::Latency;
use crate::result::{Check, Verdict};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// This many refusals on end, and a client gives up.
const REFUSALS_MAX: u32 = 100;

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
}

impl Round {
    /// Increments a second; 0 if nothing was answered.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.answered as f64 / self.seconds } else { 0.0 }
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
pub fn measure(
    store: &dyn Store,
    threads: u32,
    duration: Duration,
    stop: &AtomicBool,
) -> Result<Round, Error> {
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
            .map(|worker| scope.spawn(move || Run::of(worker, start, origin, duration, stop)))
            .collect();
        running.into_iter().map(|run| run.join().expect("a client does not panic")).collect()
    });

    let mut history = History::default();
    let (mut began_ns, mut ended_ns) = (u64::MAX, 0);
    let mut latency = Latency::new();
    let (mut refused, mut problem, mut is_whole) = (0, None, true);
    for run in runs {
        began_ns = began_ns.min(run.began_ns);
        ended_ns = ended_ns.max(run.client.log.last().map_or(0, |op| op.end_ns));
        latency.add(&run.latency);
        refused += run.refused;
        is_whole &= run.went_to_its_end;
        problem = problem.or(run.problem);
        history.clients.push(run.client);
    }
    match store.read() {
        Ok(found) => history.final_read = Some(found),
        Err(error) => {
            is_whole = false;
            problem.get_or_insert_with(|| format!("final read: {error}"));
        }
    }
    Ok(Round {
        seconds: ended_ns.saturating_sub(began_ns) as f64 / 1e9,
        answered: history.answered(),
        latency,
        refused,
        lost: history.clients.iter().filter(|client| client.lost_start_ns.is_some()).count() as u64,
        problem,
        is_whole,
        verdict: history.verdict(),
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
}

impl Run {
    fn of(
        mut worker: Box<dyn Worker>,
        start: &Barrier,
        origin: Instant,
        duration: Duration,
        stop: &AtomicBool,
    ) -> Self {
        let now_ns = || origin.elapsed().as_nanos() as u64;
        start.wait();
        let began_ns = now_ns();
        let end_ns = began_ns + duration.as_nanos() as u64;
        let mut run = Self {
            client: Client::default(),
            latency: Latency::new(),
            began_ns,
            refused: 0,
            problem: None,
            went_to_its_end: true,
        };
        let mut refusals = 0;
        loop {
            let start_ns = now_ns();
            if start_ns >= end_ns || stop.load(Ordering::Relaxed) {
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
        measure(&store, 3, Duration::from_millis(50), &AtomicBool::new(false)).expect("it begins")
    }

    #[test]
    fn a_sound_counter_passes_and_every_answer_counts() {
        let round = round(u64::MAX, Failure::Refused(String::new()));
        assert_eq!(round.check().verdict, Verdict::Pass, "{round:?}");
        assert_eq!(round.latency.count(), round.answered);
        assert!(round.rate() > 0.0 && round.seconds < 30.0);
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
    fn a_stop_ends_it_at_once() {
        let store =
            Fake { counter: Arc::default(), fail_at: u64::MAX, failure: Failure::Lost(String::new()) };
        let began = Instant::now();
        let round = measure(&store, 1, Duration::from_secs(60), &AtomicBool::new(true)).expect("it begins");
        assert!(began.elapsed() < Duration::from_secs(10) && round.is_whole);
    }
}
