//! Searches of simulated servers, of which queueing theory says the capacity.

use super::*;

/// A server that takes a fixed time for each request, one after the other, with random arrivals; and a host that
/// stands still now and then.
struct Server {
    rng: Random,
    service_s: f64,
    /// How long the host stands still, and how often a second.
    stall: (f64, f64),
    /// The probe that is told to have passed, and the one that is told not to have.
    wrong: [Option<u32>; 2],
}

impl Server {
    fn new(seed: u64, service_s: f64) -> Self {
        Self { rng: Random::new(seed), service_s, stall: (0.0, 0.0), wrong: [None; 2] }
    }

    /// The rate at which p99 of the time in the server is `bound_s`: waits are longer than t in a share of
    /// factor * e^(-theta t), in units of the service time.
    fn capacity(&self, bound_s: f64) -> f64 {
        let root = |mut low: f64, mut high: f64, is_above: &dyn Fn(f64) -> bool| {
            for _ in 0..200 {
                let middle = (low + high) / 2.0;
                if is_above(middle) { high = middle } else { low = middle }
            }
            (low + high) / 2.0
        };
        let p99_s = |rho: f64| {
            let theta = root(1.0 - rho, 50.0, &|theta| rho * theta.exp_m1() > theta);
            let factor = (1.0 - rho) / (rho * theta.exp() - 1.0);
            (1.0 + (factor / 0.01).ln() / theta) * self.service_s
        };
        root(0.5, 1.0 - 1e-9, &|rho| p99_s(rho) > bound_s) / self.service_s
    }

    /// Offers random arrivals to an empty server, half a second before the first that counts.
    fn probe(&mut self, rate: f64, seconds: u32, bound_s: f64) -> Outcome {
        const SETTLE_S: f64 = 0.5;
        let (mut now_s, mut free_s) = (0.0, 0.0);
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); seconds as usize];
        let mut stall_s = self.rng.exponential() / self.stall.1.max(1e-9);
        loop {
            now_s += self.rng.exponential() / rate;
            if now_s >= SETTLE_S + f64::from(seconds) {
                break;
            }
            if now_s > stall_s {
                free_s = f64::max(free_s, stall_s) + self.stall.0;
                stall_s += self.rng.exponential() / self.stall.1;
            }
            free_s = f64::max(free_s, now_s) + self.service_s;
            if now_s >= SETTLE_S {
                times[(now_s - SETTLE_S) as usize].push(free_s - now_s);
            }
        }
        let backlog_s = f64::max(0.0, free_s - now_s);
        let second = |mut times: Vec<f64>| {
            let requests = times.len() as u64;
            let over = times.iter().filter(|time| **time > bound_s).count() as f64;
            let at = times.len() * 99 / 100;
            let figure_s =
                if times.is_empty() { 0.0 } else { *times.select_nth_unstable_by(at, f64::total_cmp).1 };
            Second { figure_ns: (figure_s * 1e9) as u64, requests, over }
        };
        Outcome {
            rate,
            passed: backlog_s < 0.02 * f64::from(seconds),
            seconds: times.into_iter().map(second).collect(),
            elapsed_seconds: 0.0,
        }
    }

    fn search(&mut self, plan: Plan) -> (Found, f64) {
        let bound_s = plan.bound_ns as f64 / 1e9;
        let mut search = Search::new(plan);
        for probes in 0.. {
            match search.step() {
                Step::Done(found) => return (found, search.spent_seconds()),
                Step::Probe { rate, seconds } => {
                    let mut outcome = self.probe(rate, seconds, bound_s);
                    if self.wrong[0] == Some(probes) {
                        outcome.passed = true;
                        outcome
                            .seconds
                            .iter_mut()
                            .for_each(|second| (second.figure_ns, second.over) = (1, 0.0));
                    }
                    outcome.passed &= self.wrong[1] != Some(probes);
                    search.tell(&outcome);
                }
            }
        }
        unreachable!("a search ends with its budget")
    }
}

const BOUND_NS: u64 = 10_000_000;
const BOUND_S: f64 = 0.01;

fn half_width(capacity: Estimate) -> f64 {
    (capacity.most - capacity.least) / 2.0 / capacity.estimate
}

/// Searches of a server of `service_us`: how many of the intervals hold the truth, how many are as narrow as asked,
/// and the mean of the capacities in units of the truth.
fn searches(service_us: f64, trials: u64) -> (usize, usize, f64) {
    let (mut held, mut narrow, mut sum) = (0, 0, 0.0);
    for seed in 0..trials {
        let mut server = Server::new(seed * 7 + 100, service_us / 1e6);
        let truth = server.capacity(BOUND_S);
        let plan = Plan { seed, ..Plan::new(BOUND_NS, truth / 20.0, truth * 20.0) };
        let (found, spent) = server.search(plan);
        let Found::At { capacity, narrow: is_narrow } = found else { panic!("seed {seed}: {found:?}") };
        assert_eq!(is_narrow, half_width(capacity) <= 0.03, "seed {seed}: {capacity:?}");
        assert!(spent <= 120.0, "seed {seed}: {spent} s");
        held += usize::from(capacity.least <= truth && truth <= capacity.most);
        narrow += usize::from(is_narrow);
        sum += capacity.estimate / truth;
    }
    (held, narrow, sum / trials as f64)
}

#[test]
fn theory_is_what_is_known_of_two_servers() {
    for (service_us, want) in [(20.0, 49_770.0), (200.0, 4_770.0)] {
        let found = Server::new(1, service_us / 1e6).capacity(BOUND_S);
        assert!((found / want - 1.0).abs() < 1e-3, "{service_us} us: {found}");
    }
}

#[test]
fn eighteen_of_twenty_intervals_hold_the_capacity_and_it_is_not_biased() {
    for service_us in [20.0, 200.0] {
        let (held, narrow, mean) = searches(service_us, 20);
        assert!(held >= 18 && narrow >= 18, "{service_us} us: {held} of 20, {narrow} narrow");
        assert!((mean - 1.0).abs() < 0.005, "{service_us} us: {mean}");
    }
}

#[test]
fn repeats_agree_as_often_as_eighteen_of_twenty() {
    let (held, _, mean) = searches(200.0, 200);
    assert!(held >= 180 && (mean - 1.0).abs() < 0.003, "{held} of 200, mean {mean}");
}

#[test]
fn one_wrong_probe_does_not_lead_it_astray() {
    for (right, wrong) in [(None, Some(0)), (None, Some(3)), (Some(8), None)] {
        let mut server = Server::new(5, 200e-6);
        server.wrong = [right, wrong];
        let truth = server.capacity(BOUND_S);
        let (found, _) = server.search(Plan::new(BOUND_NS, truth / 20.0, 1e6));
        let Found::At { capacity, .. } = found else { panic!("{right:?}, {wrong:?}: {found:?}") };
        assert!((capacity.estimate / truth - 1.0).abs() < 0.03, "{right:?}, {wrong:?}: {capacity:?}");
    }
}

#[test]
fn a_climb_that_the_time_ends_has_not_found_the_capacity() {
    let found = |budget_seconds| {
        let mut server = Server::new(1, 200e-6);
        server.search(Plan { budget_seconds, ..Plan::new(BOUND_NS, 500.0, 1e6) }).0
    };
    assert_eq!(found(0.0), Found::Between(0.0, f64::INFINITY));
    assert_eq!(found(3.0), Found::Between(500.0, f64::INFINITY));
    let mut server = Server::new(1, 200e-6);
    let short = Plan { budget_seconds: 3.0, ..Plan::new(BOUND_NS, 100_000.0, 1e6) };
    assert_eq!(server.search(short).0, Found::Between(0.0, 100_000.0));
}

#[test]
fn a_capacity_out_of_reach_is_said_to_be() {
    let mut server = Server::new(1, 200e-6);
    assert_eq!(server.search(Plan::new(BOUND_NS, 500.0, 3_000.0)).0, Found::Above(3_000.0));
    let (found, spent) = server.search(Plan::new(100_000, 1_000.0, 3_000.0));
    assert!(matches!(found, Found::Below(rate) if rate < 1_000.0), "{found:?}");
    assert!(spent <= 120.0);
}

#[test]
fn a_short_budget_ends_with_a_bracket() {
    let mut server = Server::new(1, 200e-6);
    let plan = Plan { budget_seconds: 18.0, ..Plan::new(BOUND_NS, 500.0, 1e6) };
    let (found, spent) = server.search(plan);
    let truth = server.capacity(BOUND_S);
    assert!(
        matches!(found, Found::Between(low, high) if low < truth * 1.05 && high > truth * 0.95),
        "{found:?}"
    );
    assert!(spent <= 18.0);
}

#[test]
fn a_host_that_stands_still_lowers_the_capacity_and_is_admitted() {
    let mut server = Server::new(5, 200e-6);
    server.stall = (0.015, 1.0);
    let truth = server.capacity(BOUND_S);
    let (found, spent) = server.search(Plan::new(BOUND_NS, 500.0, 1e6));
    assert!(spent <= 120.0);
    if let Found::At { capacity, narrow } = found {
        assert!(capacity.estimate < truth, "{capacity:?}");
        assert_eq!(narrow, half_width(capacity) <= 0.03, "{found:?}");
    }
}
