//! Which share of a plan one host of a fleet does.

use crate::engine::plan::Part;
use crate::engine::{Load, Plan};
use crate::watch::{Process, Targets};

/// Host `index`'s share of a plan that `of` hosts do together: connections, rate and requests are totals and
/// divided, the threads are each host's own. A remainder goes to the first hosts, one each.
///
/// # Errors
/// There is too little for every host to get something.
pub fn of(plan: &Plan, index: u32, of: u32) -> Result<Plan, String> {
    let (at, hosts) = (index as usize, of as usize);
    if plan.connections < hosts * plan.threads {
        return Err(format!(
            "-c {}: it is the total, and {hosts} hosts with {} threads each need at least {}",
            plan.connections,
            plan.threads,
            hosts * plan.threads
        ));
    }
    let mut share = plan.clone();
    share.connections = plan.connections / hosts + usize::from(at < plan.connections % hosts);
    if let Some(requests) = plan.requests {
        if requests < u64::from(of) {
            return Err(format!("-n {requests}: there are more hosts ({hosts}) than requests"));
        }
        share.requests =
            Some(requests / u64::from(of) + u64::from(u64::from(index) < requests % u64::from(of)));
    }
    if let Load::Open { rate, .. } = &mut share.load {
        *rate /= f64::from(of);
    }
    let first_connection = plan.connections / hosts * at + at.min(plan.connections % hosts);
    share.part = Part { index: at, of: hosts, first_connection };
    // The coordinator watches the server; and it knows the whole fleet's ceiling.
    share.watch = Targets { process: Process::None, ..Targets::default() };
    share.ceiling = None;
    Ok(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Arrival, WhenFull};

    #[test]
    fn shares_add_up_and_no_two_connections_have_one_stream() {
        let load = Load::Open {
            rate: 1000.0,
            arrival: Arrival::Poisson,
            max_in_flight: 100,
            when_full: WhenFull::Wait,
        };
        let plan = Plan { connections: 24, threads: 3, requests: Some(100), load, ..Plan::default() };
        let shares: Vec<Plan> = (0..7).map(|index| of(&plan, index, 7).expect("enough for all")).collect();
        let connections: Vec<usize> = shares.iter().map(|share| share.connections).collect();
        assert_eq!(connections, [4, 4, 4, 3, 3, 3, 3]);
        assert_eq!(shares.iter().map(|share| share.requests.expect("given")).sum::<u64>(), 100);
        let mut next = 0;
        let mut rate = 0.0;
        for share in &shares {
            assert_eq!(share.part.first_connection, next);
            next += share.connections;
            let Load::Open { rate: part, .. } = share.load else { panic!("it was open") };
            rate += part;
        }
        assert_eq!(next, 24);
        assert!((rate - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn too_little_for_all_is_refused() {
        let plan = Plan { connections: 13, threads: 2, ..Plan::default() };
        assert!(of(&plan, 0, 7).expect_err("14 are needed").contains("at least 14"));
        let plan = Plan { connections: 14, threads: 2, requests: Some(6), ..Plan::default() };
        assert!(of(&plan, 0, 7).is_err());
    }
}
