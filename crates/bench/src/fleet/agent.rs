//! An agent: one host's part of a fleet's run, led over its standard input and told about on its standard
//! output.
//!
//! It ends when its input ends or falls silent, so a coordinator that is killed leaves nothing behind.

use super::message::{FromAgent, ToAgent};
use super::offset::{instant_at, monotonic_ns};
use super::{PlanOf, proof, share};
use crate::calibrate;
use crate::engine::{self, Observer, Phase, Plan, cpu};
use crate::latency::Latency;
use crate::result::{Interval, SCHEMA};
use crate::transport::VERSION;
use crate::transport::frame::{self, Frames, MAGIC};
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A coordinator that is silent for so long is gone, however the network hides it.
const SILENCE_NS: i64 = 60_000_000_000;

/// The status of an agent whose coordinator went away.
const LEFT_ALONE: i32 = 1;

/// Serves a coordinator on the standard input and output until it goes away.
///
/// # Errors
/// The input is malformed, or the output is closed.
pub fn serve(plan_of: PlanOf) -> io::Result<()> {
    let voice = Arc::new(Voice(Mutex::new(io::stdout())));
    {
        let mut out = io::stdout().lock();
        out.write_all(MAGIC)?;
        out.flush()?;
    }
    voice.say(&FromAgent::Hello {
        version: VERSION.to_string(),
        schema: SCHEMA,
        cores: cpu::allowed().len() as u32,
    })?;
    let heard = Arc::new(AtomicI64::new(monotonic_ns()));
    let last = Arc::clone(&heard);
    thread::spawn(move || {
        while monotonic_ns() - last.load(Ordering::Relaxed) < SILENCE_NS {
            thread::sleep(Duration::from_secs(1));
        }
        process::exit(LEFT_ALONE);
    });
    let stop = Arc::new(AtomicBool::new(false));
    let mut starter: Option<Sender<i64>> = None;
    let mut frames = Frames::new(io::stdin());
    while let Some(message) = frames.message()? {
        heard.store(monotonic_ns(), Ordering::Relaxed);
        match message {
            ToAgent::Ping { number } => voice.pong(number)?,
            ToAgent::Prepare { arguments, index, of } => {
                let (send, start) = channel();
                starter = Some(send);
                let (voice, stop) = (Arc::clone(&voice), Arc::clone(&stop));
                thread::spawn(move || run(plan_of(&arguments), index, of, voice, &stop, start));
            }
            ToAgent::Start { at_ns } => {
                if let Some(starter) = &starter {
                    let _ = starter.send(at_ns);
                }
            }
            ToAgent::Stop => stop.store(true, Ordering::Relaxed),
            ToAgent::Record { index, count } => {
                let mut latency = Latency::new();
                proof::record(&mut latency, index, count);
                voice.say(&FromAgent::Recorded { latency })?;
            }
        }
    }
    // Threads of a run may still be at it; the process's end is theirs.
    Ok(())
}

/// One output of several threads, a whole message at a time.
#[derive(Debug)]
struct Voice(Mutex<io::Stdout>);

impl Voice {
    fn say(&self, message: &FromAgent) -> io::Result<()> {
        frame::write(&mut *self.0.lock().map_err(|_| io::Error::other("a thread failed"))?, message)
    }

    /// Answers a ping; the clock is read when nothing stands between it and the answer any more.
    fn pong(&self, number: u64) -> io::Result<()> {
        let mut out = self.0.lock().map_err(|_| io::Error::other("a thread failed"))?;
        frame::write(&mut *out, &FromAgent::Pong { number, at_ns: monotonic_ns() })
    }

    /// Sends it, or ends the process: without a coordinator there is no work left.
    fn say_or_end(&self, message: &FromAgent) {
        if self.say(message).is_err() {
            process::exit(LEFT_ALONE);
        }
    }
}

/// Does the agent's share of a plan.
fn run(
    plan: Result<(Plan, bool), String>,
    index: u32,
    of: u32,
    voice: Arc<Voice>,
    stop: &AtomicBool,
    start: Receiver<i64>,
) {
    let gate =
        Gate { voice: Arc::clone(&voice), stop, start: Mutex::new(start), began_ns: AtomicI64::new(0) };
    let ended = plan.and_then(|(plan, is_to_calibrate)| {
        let mut plan = share::of(&plan, index, of)?;
        let in_words = |error: engine::Error| error.to_string();
        if is_to_calibrate {
            // An absent server is reported before a calibration, not after it.
            engine::reach(&plan).map_err(in_words)?;
            plan.ceiling = Some(calibrate::ceiling(&plan, stop).map_err(in_words)?);
        }
        engine::execute(&plan, &gate, stop).map_err(in_words)
    });
    voice.say_or_end(&match ended {
        Ok(run) => FromAgent::Done { run: Box::new(run), began_ns: gate.began_ns.load(Ordering::Relaxed) },
        Err(message) => FromAgent::Failed { message },
    });
}

/// Passes on the phases of a run, and holds its load back until the coordinator's start.
struct Gate<'a> {
    voice: Arc<Voice>,
    stop: &'a AtomicBool,
    start: Mutex<Receiver<i64>>,
    began_ns: AtomicI64,
}

impl Observer for Gate<'_> {
    fn phase(&self, phase: Phase) {
        match phase {
            Phase::Prefill { stored, keys } => self.voice.say_or_end(&FromAgent::Prefill { stored, keys }),
            Phase::WarmUp => {}
            Phase::Window => self.voice.say_or_end(&FromAgent::Window),
        }
    }

    fn second(&self, interval: &Interval, left: Option<Duration>) {
        let left_ms = left.map(|left| left.as_millis() as u64);
        self.voice.say_or_end(&FromAgent::Second { interval: interval.clone(), left_ms });
    }

    fn start(&self) -> Option<Instant> {
        self.voice.say_or_end(&FromAgent::Ready);
        let start = self.start.lock().ok()?;
        while !self.stop.load(Ordering::Relaxed) {
            match start.recv_timeout(Duration::from_millis(20)) {
                Ok(at_ns) => {
                    // When the word came too late, the load begins now and a whole window follows: where it
                    // lies is reported, and whether that is good enough is not for this host
                    // to judge.
                    let began_ns = at_ns.max(monotonic_ns());
                    self.began_ns.store(began_ns, Ordering::Relaxed);
                    return Some(instant_at(began_ns));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }
}
