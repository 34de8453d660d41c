//! The checks of a server's answers: `hits`, `values` and `lost`.
//!
//! A miss is answered sooner than a value, so a run of misses measures no gets. How many keys have to be found follows
//! from the stored keys:
//!
//! | the run | keys that have to be found |
//! |---|---|
//! | `--prefill`, nothing deleted, expired or evicted | 99 % |
//! | else | half of them, and all but 1 % of those that the run itself never stored |
//! | `--look-aside`, or a trace: misses are expected there | 1 % |
//! | `--expect-misses` | none |

use super::check;
use crate::engine::plan::Plan;
use crate::result::{Check, Run, Verdict, Verified};
use crate::show;
use crate::workload::verb::Verb;

/// The share of keys to be found where nothing explains a miss.
const HITS_MIN: f64 = 0.99;
/// The same where evictions, deletes or expiry may explain it.
const HITS_MIN_EXPLAINED: f64 = 0.5;
/// The same where misses are looked for.
const HITS_MIN_SOUGHT: f64 = 0.01;
/// The share of keys that may be missed since the run never stored them.
const COLD_MAX: f64 = 0.01;
/// The share of keys that may be lost without an eviction: with more, a quantile that is quoted could be of misses.
const LOST_MAX: f64 = 0.001;

/// Returns the check of hits; none without a get.
pub(super) fn hits(plan: &Plan, run: &Run) -> Option<Check> {
    let names = Verb::ALL.into_iter().filter(|verb| verb.is_read()).map(Verb::name);
    let reads: Vec<_> = names.flat_map(|name| run.verbs.iter().filter(move |row| row.name == name)).collect();
    if reads.is_empty() {
        return None;
    }
    let found: u64 = reads.iter().map(|row| row.hits).sum();
    let asked = found + reads.iter().map(|row| row.misses).sum::<u64>();
    let share = found as f64 / (asked as f64).max(1.0);
    let mut message = format!("{:.1} % of the keys were found", share * 100.0);
    if plan.expect_misses || asked == 0 {
        return Some(check("hits", Verdict::Pass, message));
    }
    let cold = run.verified.cold as f64 / asked as f64;
    let least = hits_min(plan, &run.verified);
    let is_sought = least == HITS_MIN_SOUGHT;
    let verdict = if !is_sought && cold > COLD_MAX {
        message += &format!(", {:.1} % were never stored by this run", cold * 100.0);
        Verdict::Fail
    } else if share < least {
        message += &format!(", where {:.0} % have to be", least * 100.0);
        Verdict::Fail
    } else {
        Verdict::Pass
    };
    if verdict == Verdict::Fail {
        message += ": a run of misses measures no gets; use --prefill, or say --expect-misses";
    }
    Some(check("hits", verdict, message))
}

fn hits_min(plan: &Plan, verified: &Verified) -> f64 {
    let workload = &plan.workload;
    if plan.trace.is_some() || workload.look_aside {
        return HITS_MIN_SOUGHT;
    }
    let is_removed = workload.mix.weight(Verb::Delete) > 0 || workload.expiry_s.1 > 0;
    let stays = plan.prefill && !is_removed && verified.evicted == Some(0);
    if stays { HITS_MIN } else { HITS_MIN_EXPLAINED }
}

/// Returns the check of values; none where there was nothing to look at.
pub(super) fn values(run: &Run) -> Option<Check> {
    let Verified { checked, wrong, stale, mode, .. } = &run.verified;
    if *checked == 0 {
        let message = format!("none was looked at (--verify {mode})");
        return (*wrong > 0).then(|| check("values", Verdict::Fail, message));
    }
    let mut message = format!("{wrong} wrong of {checked} verified");
    if run.verified.read_back > 0 {
        message += &format!(", {} keys read back after the load", show::count(run.verified.read_back));
    }
    if *stale > 0 {
        message += &format!(", {stale} of them stale");
    }
    Some(check("values", if *wrong > 0 { Verdict::Fail } else { Verdict::Pass }, message))
}

/// Returns the check of stored keys that were missed; none where none was.
pub(super) fn lost(run: &Run) -> Option<Check> {
    let Verified { lost, evicted, .. } = run.verified;
    if lost == 0 {
        return None;
    }
    let keys: u64 = run.verbs.iter().map(|verb| verb.hits + verb.misses).sum();
    let mut message = format!("{} stored keys were missed", show::count(lost));
    let verdict = match lost.saturating_sub(evicted.unwrap_or(0)) {
        0 => Verdict::Pass,
        unexplained if unexplained as f64 <= LOST_MAX * keys as f64 => Verdict::Warn,
        _ => Verdict::Fail,
    };
    message += &match evicted {
        Some(evicted) => format!(", and the server counts {} evictions", show::count(evicted)),
        None => ", and the server does not count evictions".to_string(),
    };
    Some(check("lost", verdict, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verb as Row;
    use crate::workload::Mix;

    fn run(hits: u64, misses: u64, verified: Verified) -> Run {
        let row = Row { name: "get".to_string(), count: hits + misses, hits, misses, ..Row::default() };
        Run { verbs: vec![row], verified, ..Run::default() }
    }

    #[test]
    fn the_bar_follows_from_what_was_stored() {
        let (plain, filled) = (Plan::default(), Plan { prefill: true, ..Plan::default() });
        let expecting = Plan { expect_misses: true, ..Plan::default() };
        let mut aside = Plan::default();
        aside.workload.look_aside = true;
        let mut deleting = filled.clone();
        deleting.workload.mix = "get=8,set=1,delete=1".parse::<Mix>().expect("it is one");
        let of = |evicted, cold| Verified { evicted, cold, ..Verified::default() };
        for (plan, hits, verified, want) in [
            (&plain, 18, of(Some(0), 982), Verdict::Fail),
            (&plain, 900, of(Some(0), 100), Verdict::Fail),
            (&plain, 995, of(Some(0), 5), Verdict::Pass),
            // Other processes store too: what they do not explain is half.
            (&plain, 400, of(None, 0), Verdict::Fail),
            (&filled, 980, of(Some(0), 0), Verdict::Fail),
            (&filled, 995, of(Some(0), 0), Verdict::Pass),
            (&filled, 800, of(Some(500), 0), Verdict::Pass),
            (&filled, 300, of(Some(500), 0), Verdict::Fail),
            (&deleting, 800, of(Some(0), 0), Verdict::Pass),
            (&aside, 200, of(Some(0), 800), Verdict::Pass),
            (&aside, 5, of(Some(0), 995), Verdict::Fail),
            (&expecting, 5, of(Some(0), 995), Verdict::Pass),
        ] {
            let found = hits_of(plan, hits, verified);
            assert_eq!(found.verdict, want, "{hits}: {}", found.message);
        }
    }

    fn hits_of(plan: &Plan, hits: u64, verified: Verified) -> Check {
        super::hits(plan, &run(hits, 1000 - hits, verified)).expect("there are gets")
    }

    #[test]
    fn lost_keys_need_as_many_evictions() {
        let of = |lost, evicted| {
            lost_of(Verified { lost, evicted, ..Verified::default() }).map(|check| check.verdict)
        };
        assert_eq!(of(0, None), None);
        assert_eq!(of(5, Some(5)), Some(Verdict::Pass));
        assert_eq!(of(6, Some(5)), Some(Verdict::Warn));
        assert_eq!(of(7, Some(5)), Some(Verdict::Fail));
        assert_eq!(of(1, None), Some(Verdict::Warn));
        assert_eq!(of(60, None), Some(Verdict::Fail));
    }

    fn lost_of(verified: Verified) -> Option<Check> {
        super::lost(&run(990, 10, verified))
    }
}
