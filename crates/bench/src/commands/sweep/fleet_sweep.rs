//! A sweep's points on several hosts: each is a run of the whole fleet, and every host reads the arguments of
//! `run` that describe it.

use super::Args;
use crate::commands::{Failure, live::Live, load};
use crate::engine::{Ceiling, Error, Load, Plan};
use crate::fleet::{self, Fleet};
use crate::result::Run;
use std::sync::atomic::AtomicBool;

/// Options of a load that a point sets for itself.
const OF_A_POINT: [&str; 8] =
    ["threads", "connections", "clients_per_thread", "pipeline", "rate", "duration", "seed", "prefill"];

/// The hosts of a sweep.
#[derive(Debug)]
pub(super) struct FleetSweep {
    fleet: Fleet,
    /// The options of the load on our command line.
    given: Vec<String>,
    /// The ceiling of all hosts together, as the first run found it.
    ceiling: Option<Ceiling>,
}

impl FleetSweep {
    /// The fleet that the options name, if they name one; `words` are those of the command line from the
    /// command's name on.
    ///
    /// # Errors
    /// They are wrong.
    pub fn new(args: &Args, words: impl Iterator<Item = String>) -> Result<Option<Self>, Failure> {
        let Some(fleet) = args.hosts.fleet()? else { return Ok(None) };
        Ok(Some(Self { fleet, given: given(words).map_err(Failure::usage)?, ceiling: None }))
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.fleet.hosts.len()
    }

    /// Measures one point. Without a ceiling in the plan the first open loop finds the hosts' own, and the
    /// others go by that.
    ///
    /// # Errors
    /// As of [`fleet::execute`].
    pub fn execute(&mut self, plan: &Plan, live: &Live, stop: &AtomicBool) -> Result<Run, Error> {
        let is_open = matches!(plan.load, Load::Open { .. });
        let plan = Plan { ceiling: self.ceiling.filter(|_| is_open), ..plan.clone() };
        let mut arguments = self.given.clone();
        arguments.extend(of_point(&plan));
        if !is_open || self.ceiling.is_some() {
            arguments.push("--no-calibrate".to_string());
        }
        let run = fleet::execute(&self.fleet, &plan, &arguments, live, stop)?;
        self.ceiling = self.ceiling.or(Ceiling::of(&run.generator));
        Ok(run)
    }
}

/// The options of a load on a command line, but for those that a point sets.
fn given(words: impl Iterator<Item = String>) -> Result<Vec<String>, String> {
    use clap::Args as _;
    let sweep = Args::augment_args(clap::Command::new("sweep"));
    let matches = sweep.try_get_matches_from(words).map_err(|error| error.to_string())?;
    Ok(load::given(&matches, &OF_A_POINT))
}

/// The options of `run` that a point sets.
fn of_point(plan: &Plan) -> Vec<String> {
    let mut options = vec![
        format!("--threads={}", plan.threads),
        format!("--connections={}", plan.connections),
        format!("--duration={}ms", plan.duration.as_millis()),
        format!("--seed={}", plan.workload.seed),
    ];
    options.push(match plan.load {
        Load::Open { rate, .. } => format!("--rate={:.0}", rate.max(1.0)),
        Load::Closed { pipeline } => format!("--pipeline={pipeline}"),
    });
    if plan.prefill {
        options.push("--prefill".to_string());
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::run::plan_of;
    use std::time::Duration;

    fn given_by(words: &str) -> Vec<String> {
        given(words.split(' ').map(str::to_string)).expect("they are understood")
    }

    #[test]
    fn only_what_was_said_of_the_load_is_passed_on() {
        let words =
            "sweep -p 7 -t 2 -c 64 --rates 1k,2k --hosts a,b --arrival const --cpus 1,2 -R 5 --prefill -q";
        assert_eq!(given_by(words), ["--port=7", "--arrival=const", "--cpus=1,2"]);
        assert_eq!(given_by("sweep --rates 1k --mix get=1,set=2 --spin"), ["--spin", "--mix=get=1,set=2"]);
        assert!(given(["sweep", "--nonsense"].map(str::to_string).into_iter()).is_err());
    }

    #[test]
    fn hosts_read_the_plan_that_is_meant() {
        let mut arguments =
            given_by("sweep --rates 1k -k 500 --value-size u1,9 --warmup 2s --clients-per-thread 9");
        let load = Load::Open {
            rate: 1234.0,
            arrival: crate::engine::Arrival::Poisson,
            max_in_flight: 100_000,
            when_full: crate::engine::WhenFull::Wait,
        };
        let duration = Duration::from_millis(1500);
        let workload = crate::workload::Workload { seed: u64::MAX, ..Plan::default().workload };
        let plan =
            Plan { workload, threads: 3, connections: 12, load, duration, prefill: true, ..Plan::default() };
        arguments.extend(of_point(&plan));
        let (read, is_to_calibrate) = plan_of(&arguments).expect("it is one");
        assert_eq!((read.threads, read.connections, read.load, read.duration), (3, 12, load, duration));
        assert!(read.prefill && is_to_calibrate);
        assert_eq!(read.workload.seed, u64::MAX);
        assert_eq!((read.workload.keys, read.warmup), (500, Duration::from_secs(2)));
        let closed = Plan { load: Load::Closed { pipeline: 4 }, prefill: false, ..plan };
        let (read, _) = plan_of(&of_point(&closed)).expect("it is one");
        assert_eq!((read.load, read.prefill), (closed.load, false));
    }
}
