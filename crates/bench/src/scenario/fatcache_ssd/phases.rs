//! The phases of one arrangement: storing the keys, sets at a rate, as many gets as it can, gets at a rate.

use super::servers::Servers;
use super::{Arrangement, CONNECTIONS, Found, together};
use crate::checks::figure;
use crate::engine::{Arrival, Load, Plan, Verify, WhenFull};
use crate::result::Run;
use crate::scenario::server::Make;
use crate::scenario::trace::Walk;
use crate::scenario::{Halt, Stage};
use crate::workload::{Mix, Pattern, Sizes, Workload};
use std::sync::Arc;
use std::time::Duration;

const PREFIX: &str = "mcp:";
/// A second, of each connection.
const SET_RATE: f64 = 1000.0;
const GET_RATE: f64 = 40.0;
/// The share of its highest rate that a server is asked for.
const ROOM: f64 = 0.6;
const KEY_BYTES: usize = 12;
/// Sets a second that extstore moves to its SSD. When they come faster, values take the RAM that the headers
/// of items on the SSD need, and do not give it back: from then on most items are dropped.
pub(super) const EXTSTORE_KEEPS_RATE: f64 = 50_000.0;
/// How long storing the keys may take.
const STORE_MOST: Duration = Duration::from_secs(60);

/// No phase is shorter.
const PHASE_LEAST: Duration = Duration::from_millis(500);
/// The share of an arrangement's time that each phase gets; the rest is for starts and settling.
const STORE_SHARE: f64 = 0.25;
const SETS_SHARE: f64 = 0.2;
const PROBE_SHARE: f64 = 0.1;
const GETS_SHARE: f64 = 0.35;

/// Measures one arrangement and adds it to `found`, as far as it went.
///
/// # Errors
/// A server does not start, a phase measured nothing, or a stop was asked for.
pub(super) fn measure(
    stage: &mut Stage<'_>,
    one: Arrangement,
    time: Duration,
    found: &mut Vec<Found>,
) -> Result<(), Halt> {
    let servers = Servers::start(stage, one)?;
    let mut phases = Phases { one, servers: &servers, time, found: Found::new(one) };
    let ended = phases.all(stage);
    found.push(phases.found);
    ended
}

/// An arrangement under measurement.
struct Phases<'a> {
    one: Arrangement,
    servers: &'a Servers,
    time: Duration,
    found: Found,
}

impl Phases<'_> {
    fn all(&mut self, stage: &mut Stage<'_>) -> Result<(), Halt> {
        self.store(stage)?;
        let newest = self.sets(stage)?;
        self.servers.settle(stage);
        self.servers.forget();
        self.gets(stage, newest)
    }

    fn part(&self, share: f64) -> Duration {
        self.time.mul_f64(share).max(PHASE_LEAST)
    }

    /// The rate to offer all servers: the document's, or the share [`ROOM`] of `most` where that is less.
    fn offered(&self, stage: &Stage<'_>, of_connection: f64, most: f64) -> f64 {
        let document = of_connection * CONNECTIONS as f64 * f64::from(self.one.servers);
        if stage.options.as_seed { document } else { document.min(most * ROOM) }
    }

    /// Stores the keys that are read later; in a closed loop that shows the highest rate of sets too.
    fn store(&mut self, stage: &mut Stage<'_>) -> Result<(), Halt> {
        let one = self.one;
        stage.tell(&format!("{}: storing", one.name));
        let mut fill = self.plans(stage, "fill");
        for plan in &mut fill {
            (plan.load, plan.duration) = match one.make {
                Some(Make::Extstore) => (open(EXTSTORE_KEEPS_RATE), STORE_MOST),
                _ => (Load::Closed { pipeline: 1 }, self.part(STORE_SHARE)),
            };
            plan.requests = Some(one.keys.1);
        }
        let mut run = together::measure(stage, &fill)?;
        if fewest(&run) < one.keys.0 {
            // Too few to leave RAM: the rest has to be stored, whatever the budget.
            for plan in &mut fill {
                plan.requests = Some(one.keys.0);
                plan.duration = STORE_MOST;
            }
            run = together::measure(stage, &fill)?;
        }
        self.found.keys = fewest(&run);
        self.found.set_most = run.rate();
        self.found.is_set_most_certified = run.is_certified();
        Ok(())
    }

    /// Sets at a rate. Returns how many each server took.
    fn sets(&mut self, stage: &mut Stage<'_>) -> Result<u64, Halt> {
        let rate = self.offered(stage, SET_RATE, self.found.set_most);
        stage.tell(&format!("{}: sets at {}/s", self.one.name, figure(rate)));
        let mut sets = self.plans(stage, "set");
        for plan in &mut sets {
            plan.load = open(rate / f64::from(self.one.servers));
            plan.duration = self.part(SETS_SHARE);
            plan.workload.keys = self.found.keys.max(1);
        }
        sets[0].watch.device = self.servers.device();
        let set = together::measure(stage, &sets)?;
        let each = set.hosts.iter().map(|host| host.count).max().unwrap_or(set.count());
        self.found.set = Some(set);
        Ok(each)
    }

    /// Gets as fast as they go, then at a rate. The keys after the `newest`, which were set last, are the
    /// oldest and have left RAM; each is read once.
    fn gets(&mut self, stage: &mut Stage<'_>, newest: u64) -> Result<(), Halt> {
        let keys = self.found.keys.max(8);
        let oldest = newest % keys;
        let (probed, readable) = (keys / 8, keys / 2);
        stage.tell(&format!("{}: gets", self.one.name));
        let mut most = self.walks(
            stage,
            "get most",
            Walk { from: oldest, count: probed, keys, size: self.one.value_bytes },
        );
        for plan in &mut most {
            plan.load = Load::Closed { pipeline: 1 };
            plan.duration = self.part(PROBE_SHARE);
        }
        self.found.get_most = together::measure(stage, &most)?.rate();
        let rate = self.offered(stage, GET_RATE, self.found.get_most);
        stage.tell(&format!("{}: gets at {}/s", self.one.name, figure(rate)));
        let rest = Walk { from: oldest + probed, count: readable - probed, keys, size: self.one.value_bytes };
        let mut rated = self.walks(stage, "get", rest);
        for plan in &mut rated {
            plan.load = open(rate / f64::from(self.one.servers));
            plan.duration = self.part(GETS_SHARE);
        }
        rated[0].watch.device = self.servers.device();
        let before = self.servers.hits();
        let run = together::measure(stage, &rated);
        let after = self.servers.hits();
        self.found.hits = before.zip(after).map(|(before, after)| (after.0 - before.0, after.1 - before.1));
        self.found.get = Some(run?);
        Ok(())
    }

    /// Plans that read keys in the order of `walk`, and verify their values.
    fn walks(&self, stage: &Stage<'_>, name: &str, walk: Walk) -> Vec<Plan> {
        let mut gets = self.plans(stage, name);
        for plan in &mut gets {
            plan.trace = Some(Arc::new(walk.clone()));
            plan.verify = Verify::Full;
        }
        gets
    }

    /// A plan for each server, to run at the same time.
    fn plans(&self, stage: &Stage<'_>, name: &str) -> Vec<Plan> {
        let mut plans = self.servers.plans(stage, &format!("{} {name}", self.one.name));
        for plan in &mut plans {
            plan.connections = CONNECTIONS;
            plan.workload = Workload {
                keys: self.one.keys.1,
                pattern: Pattern::Sequential,
                prefix: PREFIX.to_string(),
                key_bytes: Some(KEY_BYTES),
                sizes: Sizes::Fixed(self.one.value_bytes),
                mix: Mix::ratio(1, 0),
                ..Workload::default()
            };
        }
        plans
    }
}

/// Returns the answers of the server with the fewest.
fn fewest(run: &Run) -> u64 {
    run.hosts.iter().map(|host| host.count).min().unwrap_or(run.count())
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrival: Arrival::Constant, max_in_flight: 100_000, when_full: WhenFull::Wait }
}
