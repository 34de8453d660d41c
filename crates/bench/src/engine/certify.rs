//! Whether a run's figures may be quoted: the generator's own effect on them, and whether they hold
//! together.
//!
//! - `generator` fails when the busiest thread ran for 90 % of the window or more (idle spinning
//!   under `--spin` is not counted); in an open loop also when more than 70 % of the ceiling was
//!   achieved, or when p99 of the slip is 10 % of p99 of the response or more and shows in it: the response's
//!   p99 is over the service's by as much. It warns when a thread could have run and waited for a CPU for
//!   more than 10 % of the window.
//! - `rate`, of an open loop, fails when less than 95 % of the rate was achieved, and warns below 99 % and
//!   when requests were never sent.
//! - `little`, of a closed loop, fails when rate times mean response time is off the requests in flight by 5
//!   %.
//! - `hits` fails when gets found less than 1 % of their keys, unless that is expected.
//! - `values` fails when a value differs from the one stored under its key.
//! - `errors` fails when more than 1 % of the requests were refused, and warns of any.
//!
//! In an open loop the generator's room is the ceiling: its rate against a null server with the same
//! shape. In a closed loop there is no such bound, since the generator always asks for more as soon as it
//! may: there it has to have waited for the server. A thread that ran for less than 90 % of the
//! window slept for the rest of it because nothing had been answered, so the server and not the generator set
//! the rate. The ceiling is still reported.
//!
//! With TLS the ceiling is still the one without it, and the check notes it: the null server speaks no TLS.
//! The room it shows is then too large by the cost of encryption, and it is the busiest thread and the slip
//! that tell a generator with too much to do.

use super::plan::{Load, Plan};
use crate::result::{Check, Run, Verdict};
use crate::show;

/// The share of the window that the busiest thread may run.
pub const THREAD_MAX: f64 = 0.90;
/// The share of the window that a thread may wait for a CPU before the check warns.
const WAITING_MAX: f64 = 0.10;
/// The share of the ceiling that an open loop may reach.
pub const CEILING_MAX: f64 = 0.70;
/// The share of p99 of the response that p99 of the slip may be. A larger slip counts only if the response's
/// p99 is over the service's by this share too: else the requests that slipped are not those that took long.
pub const SLIP_MAX: f64 = 0.10;
/// The shares of an open loop's rate below which the check fails and warns.
const RATE_MIN: (f64, f64) = (0.95, 0.99);
/// How far rate times time may be from the requests in flight, as a share of these.
pub const LITTLE_MAX: f64 = 0.05;
/// Rounds of a closed loop with fewer of which the edges of the window weigh more than [`LITTLE_MAX`].
const ROUNDS_MIN: f64 = 100.0;
/// The share of gets that have to find something.
pub const HITS_MIN: f64 = 0.01;
/// The share of requests that may be refused.
const ERRORS_MAX: f64 = 0.01;

/// The checks of a run.
pub fn checks(plan: &Plan, run: &Run) -> Vec<Check> {
    if run.count() == 0 {
        return vec![check("generator", Verdict::Fail, "nothing was answered in the window".to_string())];
    }
    let checks =
        [generator(plan, run), rate(plan, run), little(plan, run), hits(plan, run), values(run), errors(run)];
    checks.into_iter().flatten().collect()
}

fn check(name: &str, verdict: Verdict, message: String) -> Check {
    Check { name: name.to_string(), verdict, message }
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

    /// The busiest thread has to have room.
    fn thread(&mut self, busiest: f64) {
        self.message += &format!("busiest thread {:.0} % of a CPU", busiest * 100.0);
        if busiest >= THREAD_MAX {
            self.fail();
            self.message += ", no room: use more threads (-t) or fewer requests";
        }
    }

    /// An open loop has to stay away from the ceiling.
    fn ceiling(&mut self, plan: &Plan, run: &Run, is_open: bool) {
        let Some(ceiling) = run.generator.ceiling.filter(|ceiling| *ceiling > 0.0) else {
            self.message += if is_open { ", not calibrated" } else { "" };
            return;
        };
        let share = run.rate() / ceiling;
        let how = if plan.tls.is_some() { " without TLS" } else { "" };
        self.message += &format!(", {:.0} % of its ceiling{how} {}", share * 100.0, show::rate(ceiling));
        if is_open && share > CEILING_MAX {
            self.fail();
            self.message += &format!(" ({:.0} % is the most)", CEILING_MAX * 100.0);
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

    /// A thread that can run should run.
    fn waiting(&mut self, waited: f64) {
        if waited > WAITING_MAX {
            self.warn();
            let percent = waited * 100.0;
            self.message += &format!(", waited for a CPU {percent:.0} % of the time: pin it (--cpus)");
        }
    }
}

fn generator(plan: &Plan, run: &Run) -> Option<Check> {
    let is_open = matches!(plan.load, Load::Open { .. });
    let mut finding = Finding { verdict: Verdict::Pass, message: String::new() };
    finding.thread(run.generator.busiest_thread);
    finding.ceiling(plan, run, is_open);
    if is_open {
        finding.slip(run);
    }
    finding.waiting(run.generator.most_waiting_thread);
    Some(check("generator", finding.verdict, finding.message))
}

fn rate(plan: &Plan, run: &Run) -> Option<Check> {
    let Load::Open { rate, .. } = plan.load else { return None };
    run.load.rate?;
    let share = run.rate() / rate;
    let mut message = format!("{:.2} % of {} were answered", share * 100.0, show::rate(rate));
    if run.dropped > 0 {
        message += &format!(", {} were never sent", show::count(run.dropped));
    }
    // Of few requests, Poisson's own spread is more than a percent.
    let noise = 4.0 / (run.count() as f64).sqrt();
    let verdict = match share {
        _ if run.cut_short.is_some() => Verdict::Skipped,
        share if share < RATE_MIN.0 - noise => Verdict::Fail,
        share if share < RATE_MIN.1 - noise || run.dropped > 0 => Verdict::Warn,
        _ => Verdict::Pass,
    };
    Some(check("rate", verdict, message))
}

fn little(plan: &Plan, run: &Run) -> Option<Check> {
    let Load::Closed { pipeline } = plan.load else { return None };
    let in_flight = plan.connections as f64 * f64::from(pipeline);
    let product = run.rate() * run.response().mean_ns() / 1e9;
    let message = format!("X*R {product:.2} against {in_flight:.0} in flight");
    // With so few rounds, the edges of the window weigh more than the check is fine.
    let is_short = (run.count() as f64) < ROUNDS_MIN * in_flight;
    let verdict = match (product / in_flight - 1.0).abs() {
        _ if run.cut_short.is_some() || is_short || plan.requests.is_some() => Verdict::Skipped,
        off if off > LITTLE_MAX => Verdict::Fail,
        _ => Verdict::Pass,
    };
    Some(check("little", verdict, message))
}

fn hits(plan: &Plan, run: &Run) -> Option<Check> {
    let gets = run.verbs.iter().find(|verb| verb.name == "get")?;
    let share = gets.hits as f64 / ((gets.hits + gets.misses) as f64).max(1.0);
    let mut message = format!("{:.1} % of the keys were found", share * 100.0);
    let is_miss = share < HITS_MIN && gets.hits + gets.misses > 0;
    if is_miss && !plan.expect_misses {
        message += ": a run of misses measures no gets; use --prefill, or say --expect-misses";
    }
    let is_wrong = is_miss && !plan.expect_misses;
    Some(check("hits", if is_wrong { Verdict::Fail } else { Verdict::Pass }, message))
}

fn values(run: &Run) -> Option<Check> {
    let verified = &run.verified;
    if verified.checked == 0 {
        let message = format!("none was looked at (--verify {})", verified.mode);
        return verified.wrong.gt(&0).then(|| check("values", Verdict::Fail, message));
    }
    let message = format!("{} wrong of {} verified", verified.wrong, verified.checked);
    let verdict = if verified.wrong > 0 { Verdict::Fail } else { Verdict::Pass };
    Some(check("values", verdict, message))
}

fn errors(run: &Run) -> Option<Check> {
    let errors: u64 = run.verbs.iter().map(|verb| verb.errors).sum();
    if errors == 0 {
        return None;
    }
    let said = run.errors_said.first().map_or("", String::as_str);
    let is_many = errors as f64 > ERRORS_MAX * run.count() as f64;
    let verdict = if is_many { Verdict::Fail } else { Verdict::Warn };
    Some(check("errors", verdict, format!("{} were refused: {said}", show::count(errors))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Arrival, WhenFull};
    use crate::latency::Latency;
    use crate::result::Verb;

    /// The verdict of the generator's check on an open loop in which the slowest 2 % took `late_us` from when
    /// they were due, and the 2 % that were sent late, by 30 us, are those or others.
    fn judged(late_us: u64, are_the_slow_ones: bool) -> Verdict {
        let arrival = Arrival::Constant;
        let load = Load::Open { rate: 1000.0, arrival, max_in_flight: 100, when_full: WhenFull::Wait };
        let plan = Plan { load, ..Plan::default() };
        let [mut response, mut service, mut slip] = [(); 3].map(|()| Latency::new());
        let slow_us = if are_the_slow_ones { late_us - 30 } else { late_us };
        response.record_n(50_000, 980);
        response.record_n(late_us * 1000, 20);
        service.record_n(50_000, 980);
        service.record_n(slow_us * 1000, 20);
        slip.record_n(0, 980);
        slip.record_n(30_000, 20);
        let row = Verb { count: 1000, response, service, ..Verb::default() };
        let run = Run { verbs: vec![row], slip, seconds: 1.0, ..Run::default() };
        generator(&plan, &run).expect("it is always looked at").verdict
    }

    #[test]
    fn slip_is_held_against_a_run_when_it_shows_in_the_tail() {
        assert_eq!(judged(100, true), Verdict::Fail);
        assert_eq!(judged(100, false), Verdict::Pass);
        // Of a long tail 30 us are nothing.
        assert_eq!(judged(1000, true), Verdict::Pass);
    }
}
