//! Looks once a second, on a thread of its own, from the window's begin to its end.

use super::SharedProcReader;
use super::device::Counts;
use super::proc_reader::{Texts, Units};
use super::process;
use crate::clock::Clock;
use crate::result::{DeviceSample, ProcessSample};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const INTERVAL_NS: u64 = 1_000_000_000;
/// A last interval that is shorter is not worth a sample.
const SHORTEST_MS: u64 = 50;

type Samples = (Vec<ProcessSample>, Vec<DeviceSample>);

/// Looks once a second.
#[derive(Debug)]
pub struct Sampler {
    thread: Option<JoinHandle<Samples>>,
    end: Sender<()>,
}

impl Sampler {
    /// Begins at `begin_ns` of the run's clock.
    pub fn start(proc_reader: SharedProcReader, device: Option<String>, clock: Clock, begin_ns: u64) -> Self {
        let (end, ended) = channel::<()>();
        let units = proc_reader.lock().map(|proc_reader| proc_reader.units()).unwrap_or_default();
        let body = move || {
            let mut samples = Samples::default();
            let mut before: Option<(u64, Texts)> = None;
            let mut due_ns = begin_ns;
            loop {
                let left = Duration::from_nanos(due_ns.saturating_sub(clock.now_ns()));
                let is_end = !matches!(ended.recv_timeout(left), Err(RecvTimeoutError::Timeout));
                let now_ns = clock.now_ns();
                if now_ns < begin_ns {
                    return samples;
                }
                // A process that cannot be read now is tried again in a second.
                if let Some(texts) =
                    proc_reader.lock().ok().and_then(|mut proc_reader| proc_reader.look().ok())
                {
                    // From another host the answer takes a while, and is from some time in it.
                    let now_ns = now_ns.midpoint(clock.now_ns());
                    if let Some((before_ns, before)) = &before {
                        let at_ms = (now_ns - begin_ns) / 1_000_000;
                        let interval_ms = (now_ns - before_ns) / 1_000_000;
                        if interval_ms >= SHORTEST_MS {
                            let name = device.as_deref();
                            let span = Span { at_ms, interval_ms };
                            add(&mut samples, before, &texts, name, span, units);
                        }
                    }
                    before = Some((now_ns, texts));
                }
                if is_end {
                    return samples;
                }
                due_ns += INTERVAL_NS;
            }
        };
        let thread = std::thread::Builder::new().name("watch".to_string()).spawn(body).ok();
        Self { thread, end }
    }

    /// Ends, and returns the samples.
    pub fn finish(self) -> Samples {
        let _ = self.end.send(());
        self.thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// An interval, by its end.
#[derive(Clone, Copy)]
struct Span {
    at_ms: u64,
    interval_ms: u64,
}

fn add(
    samples: &mut Samples,
    before: &Texts,
    after: &Texts,
    device: Option<&str>,
    Span { at_ms, interval_ms }: Span,
    units: Units,
) {
    if let (Some(was), Some(is)) = (process::ticks(&before.stat), process::ticks(&after.stat)) {
        let pages = process::resident_pages(&after.stat).unwrap_or(0);
        let switches = process::switches(&after.task_status);
        samples.0.push(ProcessSample {
            at_ms,
            interval_ms,
            cpu_user_us: is.0.saturating_sub(was.0) * units.tick_us,
            cpu_system_us: is.1.saturating_sub(was.1) * units.tick_us,
            resident_bytes: pages * units.page_bytes,
            switches: switches.saturating_sub(process::switches(&before.task_status)),
        });
    }
    let counts = |texts: &Texts| device.and_then(|name| Counts::of(&texts.diskstats, name));
    if let (Some(was), Some(is)) = (counts(before), counts(after)) {
        samples.1.push(is.since(&was, at_ms, interval_ms));
    }
}
