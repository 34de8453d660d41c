//! Whether a run's figures may be quoted: the generator's own effect on them, and whether they hold
//! together.
//!
//! - `generator`, see its module.
//! - `rate`, of an open loop, fails when less than 95 % of the rate was achieved or when more than 0.1 % of the
//!   requests were never sent, and warns below 99 %.
//! - `dropped`, of an open loop that drops what finds no room, fails when more than 0.1 % were dropped: those
//!   would have been the slowest.
//! - `little`, of a closed loop, fails when rate times mean response time is off the requests in flight by 5
//!   %.
//! - `hits`, see the module `answers`.
//! - `values` fails when a value differs from the one stored under its key, or was replaced before it was asked for.
//! - `lost` warns when more stored keys were missed than the server counts evictions, and fails when more than 0.1 % of
//!   all keys that were asked for.
//! - `errors` fails when more than 0.1 % of the requests were refused, and warns of any: an error is answered
//!   sooner than a value, so a server that refuses looks fast.

mod answers;
mod generator;

use super::plan::{Load, Plan, WhenFull};
use crate::result::{Check, Run, Verdict};
use crate::show;

pub use generator::{CEILING_MAX, is_limited};

/// The shares of an open loop's rate below which the check fails and warns.
const RATE_MIN: (f64, f64) = (0.95, 0.99);
/// How far rate times time may be from the requests in flight, as a share of these.
pub const LITTLE_MAX: f64 = 0.05;
/// Rounds of a closed loop with fewer of which the edges of the window weigh more than [`LITTLE_MAX`].
const ROUNDS_MIN: f64 = 100.0;
/// The share of requests that may be refused.
const ERRORS_MAX: f64 = 0.001;
/// The share of requests of an open loop that may not have been sent.
const DROPPED_MAX: f64 = 0.001;

/// The checks of a run.
pub fn checks(plan: &Plan, run: &Run) -> Vec<Check> {
    if run.count() == 0 {
        return vec![check("answers", Verdict::Fail, "nothing was answered in the window".to_string())];
    }
    let checks = [
        Some(generator::generator(plan, run)),
        rate(plan, run),
        dropped(plan, run),
        little(plan, run),
        answers::hits(plan, run),
        answers::values(run),
        answers::lost(run),
        errors(run),
    ];
    checks.into_iter().flatten().collect()
}

fn check(name: &str, verdict: Verdict, message: String) -> Check {
    Check { name: name.to_string(), verdict, message }
}

fn rate(plan: &Plan, run: &Run) -> Option<Check> {
    let Load::Open { rate, when_full, .. } = plan.load else { return None };
    run.load.rate?;
    let share = run.rate() / rate;
    let mut message = format!("{:.2} % of {} were answered", share * 100.0, show::rate(rate));
    let never_sent = if when_full == WhenFull::Wait { run.dropped } else { 0 };
    if never_sent > 0 {
        message += &format!(", {} were never sent", show::count(never_sent));
    }
    // Of few requests, Poisson's own spread is more than a percent.
    let noise = 4.0 / (run.count() as f64).sqrt();
    let verdict = match share {
        _ if run.cut_short.is_some() => Verdict::Skipped,
        share if share < RATE_MIN.0 - noise || is_beyond(never_sent, run, DROPPED_MAX) => Verdict::Fail,
        share if share < RATE_MIN.1 - noise || never_sent > 0 => Verdict::Warn,
        _ => Verdict::Pass,
    };
    Some(check("rate", verdict, message))
}

fn dropped(plan: &Plan, run: &Run) -> Option<Check> {
    let is_to_drop = matches!(plan.load, Load::Open { when_full: WhenFull::Drop, .. });
    if !is_to_drop || run.dropped == 0 {
        return None;
    }
    let message = format!(
        "{} of {} were dropped since too many were in flight: the slowest are not in the latencies",
        show::count(run.dropped),
        show::count(run.count() + run.dropped)
    );
    let verdict = if is_beyond(run.dropped, run, DROPPED_MAX) { Verdict::Fail } else { Verdict::Warn };
    Some(check("dropped", verdict, message))
}

/// Whether `count` is more than `share` of the requests of a run.
fn is_beyond(count: u64, run: &Run, share: f64) -> bool {
    count as f64 > share * run.count() as f64
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
        // A connection is replaced when none of its requests is in flight.
        _ if plan.reconnect.is_some() && pipeline > 1 => Verdict::Skipped,
        off if off > LITTLE_MAX => Verdict::Fail,
        _ => Verdict::Pass,
    };
    Some(check("little", verdict, message))
}

fn errors(run: &Run) -> Option<Check> {
    let errors: u64 = run.verbs.iter().map(|verb| verb.errors).sum();
    if errors == 0 {
        return None;
    }
    let said = run.errors_said.first().map_or("", String::as_str);
    let message = format!("{} of {} were refused: {said}", show::count(errors), show::count(run.count()));
    let verdict = if is_beyond(errors, run, ERRORS_MAX) { Verdict::Fail } else { Verdict::Warn };
    Some(check("errors", verdict, message))
}
