//! One of several runs of a plan: its label, its keys' order, and which of two exit statuses counts.

use super::Exit;
use crate::engine::Plan;
use crate::random::mix;

/// Returns the plan of the run with this number, the first of which is 1. Its keys come in an order of their own:
/// those of the run before would be found where that one left them. Only the first one stores every key before.
pub fn plan_of(plan: &Plan, label: &str, number: u32) -> Plan {
    let mut plan = Plan { label: format!("{label} #{number}"), ..plan.clone() };
    plan.prefill &= number == 1;
    plan.workload.seed = mix(plan.workload.seed ^ u64::from(number - 1));
    plan
}

/// Returns the exit status that says more: a wrong value before an error, that before a run that is not certified.
pub fn worse(one: Exit, other: Exit) -> Exit {
    let order = [Exit::Wrong, Exit::Error, Exit::Usage, Exit::Missed, Exit::NotCertified];
    order.into_iter().find(|exit| [one, other].contains(exit)).unwrap_or(Exit::Ok)
}
