//! `perl-tiers`: the cost of a get and a set of a page in a program's own memory, in a server beside it, in one behind
//! a network, and in two of them one before the other.

mod found;
mod plan;
mod report;
mod row;
mod seed;
mod site;
mod value;
mod worker;

use super::netns::Netns;
use super::server::Make;
use super::{Halt, Scenario, Stage};
use crate::checks::{check, figure};
use crate::result::Verdict;
use found::{Found, Slice};
use plan::Plan;
use row::{Loop, ROWS, Row};
use site::Site;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use worker::{Job, Workers};

/// This scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "perl-tiers",
    about: "What a page costs a program: near, far, and in two tiers",
    question: "What does a cache in two tiers, local before remote, gain a program?",
    runs: "A value of 28,579 bytes, and others of 100 to 9,000, set once and read 50,000 times, then set and \
           read 50,000 times: by real Perl with Cache::Memcached::Fast, Cache::Mmap, Cache::FastMmap and the \
           document's three arrangements of two of them; by Larder's client, its L1 and its Tiered; by \
           Python's diskcache. The remote server is behind loopback, and 0.5 and 2 ms farther away.",
    fixes: "All seven rows are measured, in turns; gets near and far are counted by the client and by the \
            servers. The document's TieredLmc, whose first tier never hits, is measured as it was, and \
            mended.",
    document: seed::tables,
    takes: &["--server", "--near", "--sizes", "--value", "--count", "--distances", "--driver", "--python"],
    weight: 0.10,
    play,
};

/// The same loops against the user's own server, without the document.
pub const TIER: Scenario = Scenario {
    name: "tier",
    about: "What a tier in front of a server gains",
    question: "What does a cache in two tiers, local before remote, gain a program?",
    runs: "The loops of perl-tiers against a server that runs already.",
    fixes: "",
    document: Vec::new,
    takes: &["--near", "--sizes", "--value", "--count", "--distances", "--driver", "--python"],
    weight: 1.0,
    play: measure,
};

/// The shortest loop.
const LEAST: Duration = Duration::from_millis(60);
const DISTANCES: [Duration; 3] = [Duration::ZERO, Duration::from_micros(500), Duration::from_millis(2)];
const SIZES: [u32; 5] = [value::BYTES, 100, 1024, 4096, 9000];

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    stage.part.tables.extend(seed::tables());
    measure(stage)
}

/// Everything that a loop needs.
struct Scene {
    workers: Workers,
    near: Site,
    far: Vec<Site>,
    values: Vec<(u32, PathBuf)>,
    /// After the servers in it, so that they end first.
    netns: Option<Netns>,
}

fn measure(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let scene = Scene::new(stage)?;
    let rows: Vec<usize> = (0..ROWS.len()).filter(|at| scene.can_play(&ROWS[*at])).collect();
    let sizes: Vec<u32> = scene.values.iter().map(|(bytes, _)| *bytes).collect();
    let wanted = &stage.options.wanted;
    let count = wanted.count.unwrap_or(seed::ITERATIONS);
    // What the user chose runs in any case.
    let is_chosen = !wanted.sizes.is_empty() || !wanted.distances.is_empty();
    let plan = Plan::new(&rows, (&sizes, scene.far.len()), count, stage.left(), is_chosen);
    let left_out = sizes.len() * scene.far.len() - plan.groups.len();
    if left_out > 0 {
        stage
            .part
            .note(format!("{left_out} pairs of a size and a distance left out, as the budget was short"));
    }
    let mut found = Found::default();
    let played = loops(stage, &scene, &plan, &mut found);
    report::report(stage, &scene.far, &scene.near, &plan, &found);
    played
}

fn loops(stage: &mut Stage<'_>, scene: &Scene, plan: &Plan, found: &mut Found) -> Result<(), Halt> {
    let mut left = plan.units();
    let mut dropped: BTreeSet<(usize, u32)> = BTreeSet::new();
    let steps: Vec<_> = plan.steps().collect();
    for (at, step) in steps.iter().enumerate() {
        let time = stage.share(step.units, left, LEAST);
        left -= step.units;
        if dropped.contains(&(step.row, step.bytes)) {
            continue;
        }
        let row = &ROWS[step.row];
        let (bytes, far) = (figure(step.bytes.into()), &scene.far[step.site].name);
        let what = format!("{bytes} bytes, {far}, {}, {}", row.name, step.which.name());
        stage.step(at + 1, steps.len(), &what);
        let slice = scene.slice(stage, row, step.which, (step.bytes, step.site), plan.iterations(), time);
        stage.go_on()?;
        match slice {
            Ok(slice) => found.add(step.row, step.which, (step.bytes, step.site), slice),
            Err(why) if why.contains("cannot be set") => {
                stage.part.note(format!(
                    "{} of {} bytes skipped: {why}",
                    row.name,
                    figure(step.bytes.into())
                ));
                dropped.insert((step.row, step.bytes));
            }
            Err(why) => {
                stage.part.check_of(row.name, check("worker", Verdict::Fail, why));
                dropped.extend(plan.groups.iter().map(|(bytes, _)| (step.row, *bytes)));
            }
        }
    }
    Ok(())
}

impl Scene {
    fn new(stage: &mut Stage<'_>) -> Result<Self, Halt> {
        let wanted = stage.options.wanted.clone();
        let values = values(stage)?;
        let workers = Workers::find(stage).map_err(Halt::Failed)?;
        let is_tier = stage.part.name == TIER.name;
        let started = if is_tier { Vec::new() } else { stage.makes(&[Make::Memcached]) };
        let distances = if wanted.distances.is_empty() { DISTANCES.to_vec() } else { wanted.distances };
        let is_any_far = distances.iter().any(|distance| !distance.is_zero());
        let netns = is_any_far.then(|| network(stage)).flatten();
        let near = Site::near(stage, &started)?;
        let mut far = Vec::new();
        for added in distances {
            far.push(Site::far(stage, &started, netns.as_ref(), added)?);
        }
        Ok(Self { workers, netns, near, far, values })
    }

    fn can_play(&self, row: &Row) -> bool {
        let has_far = self.far.iter().all(|site| site.has(row.make));
        self.workers.can_run(row) && (!row.far || has_far) && (!row.near || self.near.has(row.make))
    }

    fn slice(
        &self,
        stage: &Stage<'_>,
        row: &Row,
        which: Loop,
        (bytes, site): (u32, usize),
        iterations: u64,
        time: Duration,
    ) -> Result<Slice, String> {
        let site = &self.far[site];
        let (_, value) = self.values.iter().find(|(other, _)| *other == bytes).ok_or("there is no value")?;
        let place = |site: &Site, is_used| if is_used { site.place(row.make) } else { String::new() };
        let inside = self.netns.as_ref().filter(|_| row.far && site.is_farther());
        let job = Job {
            iterations,
            time,
            value,
            near: place(&self.near, row.near),
            far: place(site, row.far),
            before: inside.map(Netns::words).unwrap_or_default(),
        };
        let gets = |site: &Site, is_used: bool| is_used.then(|| site.gets(row.make)).flatten();
        let before = (gets(&self.near, row.near), gets(site, row.far));
        let mut ran = self.workers.run(stage, row, which, &job)?;
        let counted = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let near_gets = counted(before.0, gets(&self.near, row.near));
        let far_gets = counted(before.1, gets(site, row.far));
        if let (false, Some(far_gets)) = (row.counts_far, far_gets) {
            // A get that found the value near and then asked whether it is current counts as a remote one.
            (ran.near, ran.far) = (ran.near.saturating_sub(far_gets), far_gets);
        }
        Ok(Slice { ran, near_gets, far_gets })
    }
}

/// The values as files, the one to report in full first.
fn values(stage: &Stage<'_>) -> Result<Vec<(u32, PathBuf)>, Halt> {
    let failed = |path: &PathBuf, e: std::io::Error| Halt::Failed(format!("{}: {e}", path.display()));
    if let Some(path) = stage.options.wanted.value.clone() {
        let bytes = path.metadata().map_err(|e| failed(&path, e))?.len();
        return Ok(vec![(u32::try_from(bytes).unwrap_or(u32::MAX), path)]);
    }
    let wanted = &stage.options.wanted.sizes;
    let sizes = if wanted.is_empty() { &SIZES[..] } else { wanted };
    let made = sizes.iter().map(|bytes| {
        let path = stage.folder().join(format!("page-{bytes}.html"));
        std::fs::write(&path, value::page(*bytes)).map_err(|e| failed(&path, e))?;
        Ok((*bytes, path))
    });
    made.collect()
}

/// A network to remote servers, if there can be one.
fn network(stage: &mut Stage<'_>) -> Option<Netns> {
    match Netns::new(stage.host, 1) {
        Ok(netns) => {
            stage.part.note(
                "what is farther away is reached from another network namespace, over a virtual cable and a \
                 relay that holds every byte back; it limits no bandwidth",
            );
            Some(netns)
        }
        Err(why) => {
            stage.part.note(format!(
                "what is farther away is reached over loopback and a relay that holds every byte back, \
                 without a network namespace ({why}); it limits no bandwidth"
            ));
            None
        }
    }
}
