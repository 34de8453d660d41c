//! Finds out when a process could not run although it wanted to, so that the time of a call can be told from the wait
//! that the cache causes. Only what is proven is taken off:
//!
//! - the time for which the caller was ready to run and another thread had its processor, which the kernel counts;
//! - the same of the thread that held the lock meanwhile, for as much of it as must lie inside of the call;
//! - the time for which a processor ran nothing at all: a thread of the highest class, one on each processor, notes
//!   when it is not woken. A process that is pinned to that processor cannot have run either.
//!
//! A holder that sleeps or is stopped is not ready to run, so a wait for it counts in full.

use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use larder_client::L1;
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Pauses of the thread that looks at the lock, and of those that watch the processors.
const LOOK: Duration = Duration::from_micros(500);
const WATCH: Duration = Duration::from_millis(1);
/// A processor that runs its watching thread so much too late stood still.
const STILL_US: u64 = 1_000;
/// A lock that is held for so long is worth a note.
const LONG_US: u64 = 1_000;

pub fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

/// Returns for how long a thread was ready to run and did not, in microseconds, up to the last time that it ran.
pub fn run_delay_us(thread: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    Some(line.split(' ').nth(1)?.parse::<u64>().ok()? / 1_000)
}

/// Pins a thread, or the calling one, to the processor with a number, modulo how many this process may use.
pub fn pin(thread: Option<Pid>, nth: usize) -> usize {
    let all = sched_getaffinity(thread).expect("a thread has processors");
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).collect();
    let cpu = usable[nth % usable.len()];
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(thread, &one).expect("it may use one of its processors");
    cpu
}

/// Returns the processor that a thread is pinned to.
fn pinned_to(thread: u32) -> Option<usize> {
    let set = sched_getaffinity(Pid::from_raw(i32::try_from(thread).ok()?)).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    cpus.next().filter(|_| cpus.next().is_none())
}

/// Lets the calling thread run before all others. Returns false if this user may not.
pub fn run_first(priority: u32) -> bool {
    let thread = gettid().as_raw_nonzero().get().to_string();
    let mut command = Command::new("chrt");
    command.args(["--fifo", "-p", &priority.to_string(), &thread]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A time, from and until, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub u64, pub u64);

impl Span {
    fn us(self) -> u64 {
        self.1.saturating_sub(self.0)
    }

    fn shared_us(self, other: Span) -> u64 {
        Span(self.0.max(other.0), self.1.min(other.1)).us()
    }
}

/// A long hold of the lock. It began and ended in `most`, and lasted at least from the one to the other end of `least`.
#[derive(Clone, Debug)]
pub struct Hold {
    pub least: Span,
    pub most: Span,
    /// For how long the holder was ready to run meanwhile, and did not.
    pub delayed_us: u64,
    pub cpu: Option<usize>,
}

/// What was seen in a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Processors that ran nothing.
    pub still: Vec<(usize, Span)>,
    pub holds: Vec<Hold>,
}

/// A call: when, for how long its own thread was ready to run and did not, and the processor it is pinned to.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub span: Span,
    pub delayed_us: u64,
    pub cpu: usize,
}

impl Seen {
    fn still_us(&self, cpu: Option<usize>, span: Span) -> u64 {
        self.still.iter().filter(|(on, _)| Some(*on) == cpu).map(|(_, still)| still.shared_us(span)).sum()
    }

    /// Returns the time of a call that nothing but the cache explains, in microseconds.
    pub fn waited_us(&self, call: Call) -> u64 {
        // Times of one thread may be the same time: the longer counts.
        let own_us = call.delayed_us.max(self.still_us(Some(call.cpu), call.span));
        let (mut held_us, mut holders_us) = (0, 0);
        for hold in &self.holds {
            let inside = Span(hold.least.0.max(call.span.0), hold.least.1.min(call.span.1));
            // All of the delay may lie outside of the call that can.
            let delayed_us = hold.delayed_us.saturating_sub(hold.most.us() - inside.us().min(hold.most.us()));
            held_us += hold.most.shared_us(call.span);
            holders_us += delayed_us.max(self.still_us(hold.cpu, inside));
        }
        // While another one held the lock, both may have been delayed at once.
        let explained_us = own_us.max(holders_us + own_us.saturating_sub(held_us));
        call.span.us().saturating_sub(explained_us)
    }
}

/// Watches the processors and the lock of a cache of one shard, until it is asked what it saw.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    pub fn start(l1: &L1) -> Watch {
        let mut watch = Watch { is_over: Arc::default(), seen: Arc::default(), threads: Vec::new() };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        for nth in 0..cpus {
            let (is_over, seen) = (watch.is_over.clone(), watch.seen.clone());
            watch.threads.push(spawn(move || watch_processor(nth, &is_over, &seen)));
        }
        let (is_over, seen, l1) = (watch.is_over.clone(), watch.seen.clone(), l1.clone());
        watch.threads.push(spawn(move || watch_lock(&l1, &is_over, &seen)));
        watch
    }

    pub fn end(self) -> Seen {
        self.is_over.store(true, Release);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it only watches"));
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

fn watch_processor(nth: usize, is_over: &AtomicBool, seen: &Mutex<Seen>) {
    let cpu = pin(None, nth);
    if !run_first(50) {
        println!("processors are not watched: this user may not run anything before others");
        return;
    }
    while !is_over.load(Acquire) {
        let due_us = now_us() + WATCH.as_micros() as u64;
        sleep(WATCH);
        let now_us = now_us();
        if now_us > due_us + STILL_US {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.still.push((cpu, Span(due_us, now_us)));
        }
    }
}

/// A hold of the lock that has not ended.
struct Holding {
    thread: u32,
    times: u32,
    /// The last look before it, the first look at it, and the last.
    before_us: u64,
    first_us: u64,
    last_us: u64,
    /// The holder's delay when the hold was found to be long.
    delay_us: Option<u64>,
}

fn watch_lock(l1: &L1, is_over: &AtomicBool, seen: &Mutex<Seen>) {
    // Without the right to it, holds are seen less exactly, and less is proven.
    run_first(40);
    let mut holding: Option<Holding> = None;
    let mut last_us = now_us();
    while !is_over.load(Acquire) {
        sleep(LOOK);
        let now_us = now_us();
        let holder = l1.writers().first().copied();
        match &mut holding {
            Some(same) if holder == Some((same.thread, same.times)) => {
                same.last_us = now_us;
                if same.delay_us.is_none() && now_us - same.first_us > LONG_US {
                    same.delay_us = run_delay_us(same.thread);
                }
            }
            _ => {
                if let Some(hold) = holding.take().and_then(|ended| ended.ended(now_us)) {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).holds.push(hold);
                }
                let begun = |(thread, times)| Holding {
                    thread,
                    times,
                    before_us: last_us,
                    first_us: now_us,
                    last_us: now_us,
                    delay_us: None,
                };
                holding = holder.map(begun);
            }
        }
        last_us = now_us;
    }
}

impl Holding {
    fn ended(self, now_us: u64) -> Option<Hold> {
        let delayed_us =
            run_delay_us(self.thread).zip(self.delay_us).map(|(now, then)| now.saturating_sub(then));
        let (least, most) = (Span(self.first_us, self.last_us), Span(self.before_us, now_us));
        let cpu = pinned_to(self.thread);
        (most.us() > LONG_US).then(|| Hold { least, most, delayed_us: delayed_us.unwrap_or(0), cpu })
    }
}

#[test]
fn only_what_must_lie_inside_of_a_call_is_taken_off() {
    let call = Call { span: Span(100_000, 120_000), delayed_us: 0, cpu: 1 };
    let waited_us = |seen: &Seen, call| seen.waited_us(call);
    let hold = |least, most, delayed_us| Seen {
        holds: vec![Hold { least, most, delayed_us, cpu: Some(2) }],
        ..Seen::default()
    };
    assert_eq!(waited_us(&Seen::default(), call), 20_000, "nothing explains it");
    assert_eq!(waited_us(&Seen::default(), Call { delayed_us: 15_000, ..call }), 5_000);
    let asleep = hold(Span(99_500, 119_500), Span(99_000, 120_000), 0);
    assert_eq!(waited_us(&asleep, call), 20_000, "the holder did not want to run");
    let starved = hold(Span(100_500, 119_500), Span(100_000, 120_000), 18_000);
    assert_eq!(waited_us(&starved, call), 20_000 - 17_000, "a millisecond may lie outside of what was seen");
    let before = hold(Span(90_500, 109_500), Span(90_000, 110_000), 12_000);
    assert_eq!(waited_us(&before, call), 20_000 - 1_500, "10.5 ms of it may have been before");
    assert_eq!(waited_us(&starved, Call { delayed_us: 15_000, ..call }), 3_000, "both at the same time");
    let still = |cpu| Seen { still: vec![(cpu, Span(90_000, 112_000))], ..starved.clone() };
    assert_eq!(
        waited_us(&Seen { holds: Vec::new(), ..still(1) }, call),
        8_000,
        "its own processor stood still"
    );
    assert_eq!(waited_us(&Seen { holds: Vec::new(), ..still(3) }, call), 20_000, "another one did");
}
