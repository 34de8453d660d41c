//! `fatcache-ssd`: eight servers that share one SSD, and one alone on it; sets and gets at a rate of each
//! connection.

mod device;
mod mcperf;
mod seed;
mod together;

use super::cgroup::Cgroup;
use super::folder::Folder;
use super::part::row;
use super::server::{Make, Server, Setup, Ssd};
use super::trace::Walk;
use super::{Halt, Scenario, Stage};
use crate::checks::{check, figure, hosts, labels, queueing};
use crate::engine::{Arrival, Load, Plan, Verify, WhenFull};
use crate::result::{Run, Verdict};
use crate::workload::{Mix, Pattern, Sizes, Workload};
use std::sync::Arc;
use std::time::Duration;

/// This scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "fatcache-ssd",
    about: "8 servers that share one SSD, and one alone on it",
    question: "How many sets and gets of 100 bytes a second does a cache on SSD answer, one server and \
               eight?",
    runs: "8 Larder servers with --ssd-share 1/8 to 8/8 of one file, then one alone, then memcached with its \
           SSD tier: 100 connections each that set at 1000/s and get at 40/s, 100-byte values, keys in the \
           order they were stored; RAM so small that gets come from the SSD; the device watched as by \
           iostat.",
    fixes: "Where this host is slower than the rate of the document, the rate is 60 % of what it can do, so \
            that latency is service and not a queue; gets read what has left RAM, and a row in which RAM \
            served more than 5 % is not called SSD; percentiles carry their right names.",
    document: seed::tables,
    weight: 0.25,
    play,
};

const CONNECTIONS: usize = 100;
const VALUE_BYTES: u32 = 100;
const KEY_BYTES: usize = 12;
const PREFIX: &str = "mcp:";
/// A second, of each connection.
const SET_RATE: f64 = 1000.0;
const GET_RATE: f64 = 40.0;
/// The share of what it can do that a server is asked for.
const ROOM: f64 = 0.6;
/// More than this share from RAM is no test of an SSD.
const RAM_MAX: f64 = 0.05;
/// Fewer reads of the device for each get than this, and most gets did not reach it. Neighbours share a page,
/// so that one read can serve two gets at once.
const READS_MIN: f64 = 0.5;
/// Bytes of an item with what Larder keeps beside it, roughly.
const ITEM_BYTES: u32 = 150;
const MIB: u64 = 1 << 20;
/// The document's number of keys, of each server.
const KEYS_MAX: u64 = 1_000_000;

/// Servers that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrangement {
    name: &'static str,
    make: Make,
    servers: u32,
    /// The least and the most keys of each server: enough to leave RAM, and to fit the SSD.
    keys: (u64, u64),
    /// RAM of each server, and the SSD's whole size.
    memory_mib: u64,
    ssd_mib: u64,
}

const ARRANGEMENTS: [Arrangement; 3] = [
    Arrangement {
        name: "larder x8",
        make: Make::Larder,
        servers: 8,
        keys: (30_000, 250_000),
        memory_mib: 7,
        ssd_mib: 640,
    },
    Arrangement {
        name: "larder alone",
        make: Make::Larder,
        servers: 1,
        keys: (40_000, KEYS_MAX),
        memory_mib: 17,
        ssd_mib: 256,
    },
    Arrangement {
        name: "extstore alone",
        make: Make::Extstore,
        servers: 1,
        // It keeps the key and header of each item in RAM, some 150 bytes with all that goes with it: more keys would
        // push the oldest out, fewer would all stay in RAM.
        keys: (380_000, 400_000),
        memory_mib: 60,
        ssd_mib: 512,
    },
];

/// Sets a second that extstore moves to its SSD. When they come faster, values take the RAM that the headers of
/// what is on the SSD need, and do not give it back: from then on most items are dropped.
const EXTSTORE_KEEPS_RATE: f64 = 50_000.0;

/// How long storing the keys may take.
const STORE_MOST: Duration = Duration::from_secs(60);

/// What an arrangement came to.
#[derive(Clone, Debug)]
struct Found {
    arrangement: Arrangement,
    keys: u64,
    /// What it can do in a closed loop, all servers.
    set_most: f64,
    get_most: f64,
    set: Option<Run>,
    get: Option<Run>,
    /// Gets answered from RAM and from the SSD, while gets were measured.
    hits: (f64, f64),
}

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let makes = stage.makes(&[Make::Extstore]);
    let todo: Vec<Arrangement> = ARRANGEMENTS.into_iter().filter(|one| makes.contains(&one.make)).collect();
    let mut found: Vec<Found> = Vec::new();
    let mut played = Ok(());
    for (at, one) in todo.iter().enumerate() {
        let time = stage.share(1.0, (todo.len() - at) as f64, Duration::from_secs(2));
        match arrange(stage, *one, time, &mut found) {
            Ok(()) => {}
            Err(Halt::Failed(why)) if one.make != Make::Larder => {
                stage.part.note(format!("{} skipped: {why}", one.name));
            }
            Err(halt) => {
                played = Err(halt);
                break;
            }
        }
    }
    report(stage, &mut found);
    played
}

/// Servers that share a file. They end before the file and the limit of their memory do.
struct Servers {
    servers: Vec<Server>,
    _limits: Vec<Cgroup>,
    folder: Folder,
}

fn start(stage: &mut Stage<'_>, one: Arrangement) -> Result<Servers, Halt> {
    let folder = stage.new_folder()?;
    let mut all = Servers { servers: Vec::new(), _limits: Vec::new(), folder };
    let path = all.folder.path().join("ssd");
    for share in 1..=one.servers {
        let mut setup = Setup::new(one.make);
        setup.memory_mib = one.memory_mib;
        setup.threads = 1;
        setup.item_bytes = Some(ITEM_BYTES);
        setup.ssd = Some(Ssd { path: path.clone(), bytes: one.ssd_mib * MIB, share: (share, one.servers) });
        let server = Server::start(stage, setup)?;
        if one.make == Make::Extstore {
            // It reads its file through the page cache, which has to count as RAM.
            match Cgroup::limit(server.pid(), (one.memory_mib * 2 + 32) * MIB) {
                Ok(limit) => all._limits.push(limit),
                Err(why) => stage.part.note(format!(
                    "{}: the page cache is not limited ({why}), so that its reads may come from RAM",
                    one.name
                )),
            }
        }
        all.servers.push(server);
    }
    Ok(all)
}

/// Measures one arrangement: as many sets as there are keys, sets at the rate, as many gets as it can, and
/// gets at the rate.
fn arrange(
    stage: &mut Stage<'_>,
    one: Arrangement,
    time: Duration,
    found: &mut Vec<Found>,
) -> Result<(), Halt> {
    stage.tell(&format!("{}: starting", one.name));
    let all = start(stage, one)?;
    let servers = f64::from(one.servers);
    let part = |share: f64| time.mul_f64(share).max(Duration::from_millis(500));
    found.push(Found {
        arrangement: one,
        keys: 0,
        set_most: 0.0,
        get_most: 0.0,
        set: None,
        get: None,
        hits: (0.0, 0.0),
    });
    let mine = found.len() - 1;

    // The keys that are read later, and, in a closed loop, what it can do.
    stage.tell(&format!("{}: storing", one.name));
    let mut fill = plans(stage, &all, one, "fill");
    for plan in &mut fill {
        (plan.load, plan.duration) = match one.make {
            Make::Extstore => (open(EXTSTORE_KEEPS_RATE), STORE_MOST),
            _ => (Load::Closed { pipeline: 1 }, part(0.25)),
        };
        plan.requests = Some(one.keys.1);
    }
    let mut run = together::measure(stage, &fill)?;
    let least = fewest(&run);
    let mut keys = least;
    if least < one.keys.0 {
        // Too few to leave RAM: the rest has to be stored, whatever the budget says.
        for plan in &mut fill {
            plan.requests = Some(one.keys.0);
            plan.duration = STORE_MOST;
        }
        run = together::measure(stage, &fill)?;
        keys = fewest(&run);
    }
    found[mine].keys = keys;
    found[mine].set_most = run.rate();

    let as_seed = stage.options.as_seed;
    let offered = |document: f64, most: f64| match as_seed {
        true => document * servers,
        false => (document * servers).min(most * ROOM),
    };
    let set_rate = offered(SET_RATE * CONNECTIONS as f64, found[mine].set_most);
    stage.tell(&format!("{}: sets at {}/s", one.name, figure(set_rate)));
    let mut sets = plans(stage, &all, one, "set");
    for plan in &mut sets {
        plan.load = open(set_rate / servers);
        plan.duration = part(0.2);
        plan.workload.keys = keys.max(1);
    }
    sets[0].watch.device = Some(all.folder.path().join("ssd").display().to_string());
    let set = together::measure(stage, &sets)?;
    let each = set.hosts.iter().map(|host| host.count).max().unwrap_or(set.count());
    found[mine].set = Some(set);
    settle(stage, &all);
    forget(&all);

    // The keys after those that were set last are the oldest: they have left RAM. Each is read once.
    let keys = keys.max(8);
    let oldest = each % keys;
    let (probed, readable) = (keys / 8, keys / 2);
    let gets = |stage: &Stage<'_>, name: &str, from: u64, count: u64| {
        let mut gets = plans(stage, &all, one, name);
        for plan in &mut gets {
            plan.trace = Some(Arc::new(Walk { from, count, keys, size: VALUE_BYTES }));
            plan.verify = Verify::Full;
        }
        gets
    };
    stage.tell(&format!("{}: gets", one.name));
    let mut most = gets(stage, "get most", oldest, probed);
    for plan in &mut most {
        plan.load = Load::Closed { pipeline: 1 };
        plan.duration = part(0.1);
    }
    found[mine].get_most = together::measure(stage, &most)?.rate();
    let get_rate = offered(GET_RATE * CONNECTIONS as f64, found[mine].get_most);
    stage.tell(&format!("{}: gets at {}/s", one.name, figure(get_rate)));
    let mut rated = gets(stage, "get", oldest + probed, readable - probed);
    for plan in &mut rated {
        plan.load = open(get_rate / servers);
        plan.duration = part(0.35);
    }
    rated[0].watch.device = Some(all.folder.path().join("ssd").display().to_string());
    let before = hits(&all);
    let run = together::measure(stage, &rated);
    let after = hits(&all);
    found[mine].hits = (after.0 - before.0, after.1 - before.1);
    found[mine].get = Some(run?);
    Ok(())
}

/// What the server with the fewest answers answered.
fn fewest(run: &Run) -> u64 {
    run.hosts.iter().map(|host| host.count).min().unwrap_or(run.count())
}

/// A plan for each server; they are to run at the same time.
fn plans(stage: &Stage<'_>, all: &Servers, one: Arrangement, name: &str) -> Vec<Plan> {
    let plan = |server: &Server| {
        let mut plan = stage.plan(&format!("{} {name}", one.name), server);
        plan.connections = CONNECTIONS;
        plan.workload = Workload {
            keys: one.keys.1,
            pattern: Pattern::Sequential,
            prefix: PREFIX.to_string(),
            key_bytes: Some(KEY_BYTES),
            sizes: Sizes::Fixed(VALUE_BYTES),
            mix: Mix::ratio(1, 0),
            ..Workload::default()
        };
        plan
    };
    all.servers.iter().map(plan).collect()
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrival: Arrival::Constant, max_in_flight: 100_000, when_full: WhenFull::Wait }
}

/// Lets writes to the SSD come to an end, so that gets are measured alone.
fn settle(stage: &Stage<'_>, all: &Servers) {
    if all.servers.iter().any(|server| server.setup.make == Make::Extstore) {
        // It moves what is a second old, and does not say what is left to move.
        std::thread::sleep(Duration::from_secs(3));
    }
    for _ in 0..20 {
        let pending: f64 = all.servers.iter().map(|server| server.counter("larder.ssd_writes_pending")).sum();
        if pending == 0.0 || stage.is_stopped() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Lets the page cache forget the file, of which Larder keeps nothing there and others do.
fn forget(all: &Servers) {
    let Ok(file) = std::fs::File::open(all.folder.path().join("ssd")) else { return };
    let _ = file.sync_all();
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
}

/// Gets that were answered from RAM, and from the SSD.
fn hits(all: &Servers) -> (f64, f64) {
    let sum = |name: &str| all.servers.iter().map(|server| server.counter(name)).sum::<f64>();
    match all.servers.first().map(|server| server.setup.make) {
        Some(Make::Larder) => (sum("larder.get_hits_ram"), sum("larder.get_hits_ssd")),
        _ => {
            let ssd = sum("get_extstore");
            (sum("get_hits") - ssd, ssd)
        }
    }
}

/// The share of gets that RAM answered, 0 to 1; none when nothing was found.
fn ram_share((ram, ssd): (f64, f64)) -> Option<f64> {
    (ram + ssd > 0.0).then(|| ram / (ram + ssd))
}

fn report(stage: &mut Stage<'_>, found: &mut [Found]) {
    stage.part.tables.extend(seed::tables());
    summary(stage, found);
    mcperf::tables(stage, found);
    device::table(stage, found);
    for one in found.iter() {
        judge(stage, one);
    }
    for one in found.iter_mut() {
        stage.part.runs.extend([one.set.take(), one.get.take()].into_iter().flatten());
    }
    let rates = match stage.options.as_seed {
        true => {
            "as in the document, the rates are 1000 sets and 40 gets a second of each connection, whether or \
                 not the servers can do that"
        }
        false => {
            "rates are the document's 1000 sets and 40 gets a second of each connection, or 60 % of what was \
                  reached in a closed loop where that is less: beyond, latency is the length of a queue"
        }
    };
    stage.part.note(rates);
    stage.part.note(
        "the document had one machine for the servers and one for the load, and an SSD of 600 GB; here the \
         servers share one file on the device of this host, read with O_DIRECT by Larder",
    );
    if found.iter().any(|one| one.arrangement.make == Make::Extstore) {
        stage.part.note(format!(
            "extstore is filled at {} sets a second, and that is its most here: it drops what comes faster",
            figure(EXTSTORE_KEEPS_RATE)
        ));
    }
    stage
        .part
        .note("gets read the older half of the keys, each once, since what was stored last is in RAM still");
}

fn summary(stage: &mut Stage<'_>, found: &[Found]) {
    let mut rows =
        vec![row([&"document x8", &"1,000,000", &"93,532", &"-", &"4,000", &"32,000", &"-", &"1.0"])];
    for one in found {
        let rate = |run: &Option<Run>| run.as_ref().map_or(0.0, Run::rate);
        let servers = f64::from(one.arrangement.servers);
        let get = rate(&one.get);
        let found = device::reads_a_get(one);
        let reads = found.map_or("-".to_string(), |reads| figure(device::hundredths(reads)));
        let share = ram_share(one.hits);
        // The page cache is RAM, whatever the server's own counters say.
        let has_read = found.is_none_or(|reads| reads >= READS_MIN);
        let is_ssd = share.is_some_and(|share| share <= RAM_MAX) && has_read;
        let name =
            if is_ssd { one.arrangement.name.to_string() } else { format!("{} (RAM)", one.arrangement.name) };
        rows.push(row([
            &name,
            &figure(one.keys as f64),
            &figure((rate(&one.set) / servers).round()),
            &figure((one.set_most / servers).round()),
            &figure((get / servers).round()),
            &figure(get.round()),
            &share.map_or("-".to_string(), |share| figure((share * 1000.0).round() / 10.0)),
            &reads,
        ]));
    }
    let columns = [
        "",
        "keys a server",
        "set/s a server",
        "at most",
        "get/s a server",
        "get/s in all",
        "% from RAM",
        "reads a get",
    ];
    stage.part.table("set and get at a rate", &columns, rows);
}

fn judge(stage: &mut Stage<'_>, one: &Found) {
    let name = one.arrangement.name;
    let mut checks = Vec::new();
    for (verb, run) in [("set", &one.set), ("get", &one.get)] {
        let Some(run) = run else { continue };
        let mut of = |check: crate::result::Check| checks.push((verb, check));
        let response = run.response();
        let connections = CONNECTIONS as u32 * one.arrangement.servers;
        of(queueing::overload(run.load.rate.unwrap_or(0.0), run.rate(), response.mean_ns(), connections));
        let cpu_s = (run.generator.cpu_user_us + run.generator.cpu_system_us) as f64 / 1e6;
        let cpus = stage.host.load_cpus.len().max(1) as f64;
        of(queueing::generator(cpu_s / run.seconds.max(1e-9) / cpus));
        let printed: Vec<(f64, u64)> =
            mcperf::PERCENTILES.iter().map(|p| (*p, response.quantile_ns(p / 100.0))).collect();
        of(labels::percentiles(&printed, &response));
        if run.hosts.len() > 1 {
            of(hosts::fairness(&run.hosts.iter().map(|host| host.rate).collect::<Vec<_>>()));
            of(hosts::overlap(&run.hosts));
        }
    }
    for (verb, check) in checks {
        stage.part.check_of(&format!("{name}, {verb}"), check);
    }
    let Some(get) = &one.get else { return };
    let is_of_larder = one.arrangement.make == Make::Larder;
    let message = match ram_share(one.hits) {
        None => check("ssd", Verdict::Fail, "no get was answered from any tier"),
        Some(share) => {
            let message = format!(
                "RAM served {:.1} % of the gets ({:.0} % is the most)",
                share * 100.0,
                RAM_MAX * 100.0
            );
            let verdict = match (share <= RAM_MAX, is_of_larder) {
                (true, _) => Verdict::Pass,
                (false, true) => Verdict::Fail,
                (false, false) => Verdict::Warn,
            };
            let more =
                if share <= RAM_MAX { "" } else { ": this is no figure of an SSD, and the table says RAM" };
            check("ssd", verdict, format!("{message}{more}"))
        }
    };
    stage.part.check_of(&format!("{name}, get"), message);
    match device::reads(get) {
        Some(reads) => {
            let found = queueing::reads_per_get(reads, get.rate(), READS_MIN);
            // The page cache of another's design is no fault of the measurement.
            let verdict = match found.verdict {
                Verdict::Fail if !is_of_larder => Verdict::Warn,
                verdict => verdict,
            };
            stage.part.check_of(&format!("{name}, get"), crate::result::Check { verdict, ..found });
        }
        None => {
            let message = "no block device is known for the servers' files";
            stage.part.check_of(&format!("{name}, get"), check("device-reads", Verdict::Skipped, message));
        }
    }
    if let Some(sample) = device::busiest(get) {
        let found =
            queueing::device_queue(sample.reads, device::hundredths(sample.read_await_ms), sample.queue);
        stage.part.check_of(&format!("{name}, get"), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_is_not_called_ssd() {
        assert_eq!(ram_share((0.0, 0.0)), None);
        assert!(ram_share((4.0, 96.0)).is_some_and(|share| share <= RAM_MAX));
        assert!(ram_share((6.0, 94.0)).is_some_and(|share| share > RAM_MAX));
    }

    #[test]
    fn what_is_stored_is_more_than_ram_and_fits_the_ssd() {
        for one in ARRANGEMENTS.into_iter().filter(|one| one.make == Make::Larder) {
            let (least, most) = one.keys;
            let share_bytes = one.ssd_mib * MIB / u64::from(one.servers);
            assert!(most * u64::from(ITEM_BYTES) < share_bytes, "{}", one.name);
            // The first half of the keys has left a RAM tier of 2 MiB when the second half is there.
            assert!(least / 2 * u64::from(VALUE_BYTES) > MIB, "{}", one.name);
        }
    }
}
