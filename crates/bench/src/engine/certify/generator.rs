//! The check `generator`: whether the server, and not the generator, set the figures.
//!
//! It fails when a thread ran, or could have run and waited for a CPU, for 90 % of the window or more (idle
//! spinning under `--spin` is not counted): a thread that others keep from its CPU is as little able to ask for
//! more as one that is busy. It fails also when a thread waited for a CPU for more than 25 % of the window, and
//! warns from 10 % on, since replies that wait to be read look like a slow server.
//!
//! In an open loop it fails besides when more than 70 % of the ceiling was achieved, when there is a ceiling
//! that is none, and when p99 of the slip is 10 % of p99 of the response or more and shows in it: the
//! response's p99 is over the service's by as much.
//!
//! The ceiling is the generator's rate against a null server with the same shape. It is none when its repeats
//! differ by more than 25 %, or when the run exceeded it: something other than the generator's speed set it. In
//! a closed loop there is no such bound, since the generator always asks for more as soon as it may; there the
//! ceiling is reported only. A thread that neither ran nor waited for a CPU slept because nothing had been
//! answered, so the server and not the generator set the rate.
//!
//! With TLS the ceiling is still the one without it, and the check notes it: the null server speaks no TLS.
//! The room it shows is then too large by the cost of encryption, and it is the busiest thread and the slip
//! that tell a generator with too much to do.

use super::check;
use crate::engine::plan::{Load, Plan};
use crate::result::{Check, Generator, Run, Verdict};
use crate::show;

/// The share of the window that a thread may run or wait for a CPU.
pub const OCCUPIED_MAX: f64 = 0.90;
/// The shares of the window that a thread may wait for a CPU before the check warns and fails.
const WAITING_MAX: (f64, f64) = (0.10, 0.25);
/// The share of the ceiling that an open loop may reach.
pub const CEILING_MAX: f64 = 0.70;
/// How far apart the repeats of a ceiling may be, as a share of it.
pub const CEILING_SPREAD_MAX: f64 = 0.25;
/// The share of a ceiling that a run may reach before the ceiling is taken for none.
const EXCEEDED: f64 = 1.05;
/// The share of p99 of the response that p99 of the slip may be. A larger slip counts only if the response's
/// p99 is over the service's by this share too: else the requests that slipped are not those that took long.
pub const SLIP_MAX: f64 = 0.10;

/// Returns the check of a run in which something was answered.
pub(super) fn generator(plan: &Plan, run: &Run) -> Check {
    let is_open = matches!(plan.load, Load::Open { .. });
    let mut finding = Finding { verdict: Verdict::Pass, message: String::new() };
    finding.thread(&run.generator);
    finding.ceiling(plan, run, is_open);
    if is_open {
        finding.slip(run);
    }
    check("generator", finding.verdict, finding.message)
}

/// Whether the generator could have set the side of `bound_ns` on which a run's latency is: it had no room, or what
/// it sent late is a part of the bound.
pub fn is_limited(plan: &Plan, run: &Run, bound_ns: u64) -> bool {
    let mut finding = Finding { verdict: Verdict::Pass, message: String::new() };
    finding.thread(&run.generator);
    finding.ceiling(plan, run, matches!(plan.load, Load::Open { .. }));
    let slip_ns = run.slip.quantile_ns(0.99) as f64;
    finding.verdict == Verdict::Fail || slip_ns > SLIP_MAX * bound_ns as f64
}

/// A verdict under way: the worst so far, and its figures.
struct Finding {
    verdict: Verdict,
    message: String,
}

impl Finding {
    fn fail(&mut self) {
        self.verdict = Verdict::Fail;
    }

    fn warn(&mut self) {
        if self.verdict == Verdict::Pass {
            self.verdict = Verdict::Warn;
        }
    }

    /// Every thread has to have slept for want of anything to do, and to have run as soon as it could.
    fn thread(&mut self, generator: &Generator) {
        let Generator { busiest_thread, most_waiting_thread, most_occupied_thread, .. } = *generator;
        self.message += &format!("busiest thread {:.0} % of a CPU", busiest_thread * 100.0);
        let is_starved = most_waiting_thread > WAITING_MAX.0;
        if is_starved {
            self.message += &format!(", waited for a CPU {:.0} % of the time", most_waiting_thread * 100.0);
        }
        let is_occupied = busiest_thread.max(most_occupied_thread) >= OCCUPIED_MAX;
        match (is_occupied || most_waiting_thread > WAITING_MAX.1, is_starved) {
            (true, true) => {
                self.fail();
                self.message +=
                    ", which others took: give it CPUs of its own (--cpus), or use fewer threads (-t)";
            }
            (true, false) => {
                self.fail();
                self.message += ", no room: use more threads (-t) or fewer requests";
            }
            (false, true) => {
                self.warn();
                self.message += ": pin it (--cpus)";
            }
            (false, false) => {}
        }
    }

    /// An open loop has to stay away from the ceiling.
    fn ceiling(&mut self, plan: &Plan, run: &Run, is_open: bool) {
        let Generator { ceiling, ceiling_spread, .. } = run.generator;
        let Some(ceiling) = ceiling.filter(|ceiling| *ceiling > 0.0) else {
            if is_open {
                self.warn();
                self.message += ", not calibrated: its ceiling is not known";
            }
            return;
        };
        let share = run.rate() / ceiling;
        let how = if plan.tls.is_some() { " without TLS" } else { "" };
        self.message += &format!(", {:.0} % of its ceiling{how} {}", share * 100.0, show::rate(ceiling));
        let why = if ceiling_spread > CEILING_SPREAD_MAX {
            format!(
                ", which varies by {:.0} % and so is none: keep others off its CPUs",
                ceiling_spread * 100.0
            )
        } else if share > EXCEEDED {
            ", which was exceeded and so is none: keep others off its CPUs".to_string()
        } else if is_open && share > CEILING_MAX {
            format!(" ({:.0} % is the most)", CEILING_MAX * 100.0)
        } else {
            return;
        };
        self.message += &why;
        if is_open {
            self.fail();
        } else {
            self.warn();
        }
    }

    /// Requests of an open loop have to be sent when they are due.
    fn slip(&mut self, run: &Run) {
        let slip = run.slip.quantile_ns(0.99) as f64;
        let [response, service] = [run.response(), run.service()].map(|times| times.quantile_ns(0.99) as f64);
        self.message += &format!(", slip p99 {}", show::time(slip));
        if slip < SLIP_MAX * response || slip <= 0.0 {
            return;
        }
        let percent = SLIP_MAX * 100.0;
        let how = if response - service >= SLIP_MAX * response {
            self.fail();
            format!("{percent:.0} % is the most")
        } else {
            format!("it shows in less than {percent:.0} % of it")
        };
        self.message += &format!(" of {} ({how})", show::time(response));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Arrival, WhenFull};
    use crate::latency::Latency;
    use crate::result::Verb;

    fn open() -> Plan {
        let arrival = Arrival::Constant;
        let load = Load::Open { rate: 1000.0, arrival, max_in_flight: 100, when_full: WhenFull::Wait };
        Plan { load, ..Plan::default() }
    }

    /// An open loop in which the slowest 2 % took `late_us` from when they were due, and the 2 % that were sent
    /// late, by 30 us, are those or others.
    fn late(late_us: u64, are_the_slow_ones: bool) -> Run {
        let [mut response, mut service, mut slip] = [(); 3].map(|()| Latency::new());
        let slow_us = if are_the_slow_ones { late_us - 30 } else { late_us };
        response.record_n(50_000, 980);
        response.record_n(late_us * 1000, 20);
        service.record_n(50_000, 980);
        service.record_n(slow_us * 1000, 20);
        slip.record_n(0, 980);
        slip.record_n(30_000, 20);
        let row = Verb { count: 1000, response, service, ..Verb::default() };
        let generator = Generator { ceiling: Some(10_000.0), ..Generator::default() };
        Run { verbs: vec![row], slip, seconds: 1.0, generator, ..Run::default() }
    }

    #[test]
    fn slip_is_held_against_a_run_when_it_shows_in_the_tail() {
        let judged =
            |late_us, are_the_slow_ones| generator(&open(), &late(late_us, are_the_slow_ones)).verdict;
        assert_eq!(judged(100, true), Verdict::Fail);
        assert_eq!(judged(100, false), Verdict::Pass);
        // Of a long tail 30 us are nothing.
        assert_eq!(judged(1000, true), Verdict::Pass);
    }

    #[test]
    fn a_thread_that_others_keep_from_its_cpu_certifies_nothing() {
        for (ran, waited, want) in [
            (0.41, 0.59, Verdict::Fail),
            (0.92, 0.0, Verdict::Fail),
            (0.88, 0.05, Verdict::Fail),
            (0.30, 0.30, Verdict::Fail),
            (0.60, 0.15, Verdict::Warn),
            (0.80, 0.05, Verdict::Pass),
        ] {
            let mut run = late(1000, false);
            run.generator.busiest_thread = ran;
            run.generator.most_waiting_thread = waited;
            run.generator.most_occupied_thread = ran + waited;
            for plan in [Plan::default(), open()] {
                let found = generator(&plan, &run);
                assert_eq!(found.verdict, want, "ran {ran}, waited {waited}: {}", found.message);
            }
        }
    }

    #[test]
    fn a_ceiling_that_varies_or_is_exceeded_is_none() {
        for (ceiling, spread, want) in [
            (Some(10_000.0), 0.1, [Verdict::Pass, Verdict::Pass]),
            (Some(10_000.0), 0.5, [Verdict::Fail, Verdict::Warn]),
            (Some(900.0), 0.0, [Verdict::Fail, Verdict::Warn]),
            (Some(1200.0), 0.0, [Verdict::Fail, Verdict::Pass]),
            (None, 0.0, [Verdict::Warn, Verdict::Pass]),
        ] {
            let mut run = late(1000, false);
            (run.generator.ceiling, run.generator.ceiling_spread) = (ceiling, spread);
            let found = [open(), Plan::default()].map(|plan| generator(&plan, &run).verdict);
            assert_eq!(found, want, "{ceiling:?}, {spread}");
        }
    }
}
