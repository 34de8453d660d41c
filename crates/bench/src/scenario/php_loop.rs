//! `php-loop`: one client that sets, or sets and gets, in a closed loop, as a PHP script of 2013 did with
//! fatcache.

mod php;
mod seed;

use super::part::{row, table};
use super::server::{Make, Server, Setup, Ssd};
use super::trace::SetThenGet;
use super::{GivenPeer, Halt, Scenario, Stage, Target, Wanted};
use crate::checks::{self, check, figure, labels};
use crate::engine::{Address, Load, Unseen, Verify};
use crate::result::{Run, Verdict};
use crate::show;
use crate::workload::{Mix, Pattern, Sizes, Workload};
use std::sync::Arc;
use std::time::Duration;

/// This scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "php-loop",
    about: "One client sets, or sets and gets, one item at a time",
    question: "Is a cache on SSD fast enough for one PHP process on a small server?",
    runs: "One connection, closed loop, keys of 32 bytes, values of 160, expiry 60 to 600 s: 100 K sets, 1 M \
           sets, 100 K sets each followed by a get; then the PHP script itself where php-memcached is \
           installed. A fresh server for each loop.",
    fixes: "Times in milliseconds and the printed time computed from them; values verified; hits told by \
            tier, and one more loop that reads keys set long ago, so that gets reach the SSD.",
    document: seed::tables,
    takes: &["--server", "--sizes", "--count", "--peer"],
    weight: 0.15,
    play,
};

const VALUE_BYTES: u32 = 160;
const KEY_BYTES: usize = 32;
/// Bytes of an item besides its value: its key and its header, rounded up.
const ITEM_MORE_BYTES: u64 = 90;
const EXPIRY_S: (u32, u32) = (60, 600);
const LEAST: Duration = Duration::from_millis(250);
const COLUMNS: [&str; 6] =
    ["Server", "Number of items", "Start time", "Final time", "Time/s", "Operations/s"];

/// One loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    /// What it does with its items.
    kind: &'static str,
    items: u64,
    value_bytes: u32,
    /// The sets between that of a key and its get; `None` for a loop without gets.
    lag: Option<u64>,
    /// Whether Larder's peers run it, too.
    has_peers: bool,
    /// Whether the PHP script runs it, too.
    in_php: bool,
    /// Larder's RAM and SSD, and the expected size of an item where it is given.
    memory_mib: u64,
    ssd_bytes: u64,
    item_bytes: Option<u32>,
    /// Its time relative to the others'.
    units: u32,
}

impl Loop {
    /// Its items and what it does with them: a row's name says what it holds.
    fn name(&self) -> String {
        format!("{} {}", show::count(self.items), self.kind)
    }

    /// The same with the user's number and size of items. The SSD has room for them, and the gets of late ones lag as
    /// many items behind, as a share.
    fn of(self, count: Option<u64>, value_bytes: Option<u32>) -> Self {
        let items = count.unwrap_or(self.items);
        let value_bytes = value_bytes.unwrap_or(self.value_bytes);
        let stored = items.saturating_mul(u64::from(value_bytes) + ITEM_MORE_BYTES);
        Self {
            items,
            value_bytes,
            lag: self.lag.map(|lag| (lag as f64 * items as f64 / self.items as f64) as u64),
            ssd_bytes: self.ssd_bytes.max(stored.saturating_mul(2)),
            item_bytes: self.item_bytes.map(|_| value_bytes + ITEM_MORE_BYTES as u32),
            ..self
        }
    }

    fn has_gets(&self) -> bool {
        self.lag.is_some()
    }

    /// Whether the gets are of keys set long ago instead of just now.
    fn is_late(&self) -> bool {
        self.lag.is_some_and(|lag| lag > 0)
    }

    fn operations(&self, items: u64) -> u64 {
        items * if self.has_gets() { 2 } else { 1 }
    }
}

const SETS: Loop = Loop {
    kind: "sets",
    items: 100_000,
    value_bytes: VALUE_BYTES,
    lag: None,
    has_peers: true,
    in_php: true,
    memory_mib: 64,
    ssd_bytes: 1 << 30,
    item_bytes: None,
    units: 2,
};
const LOOPS: [Loop; 4] = [
    SETS,
    Loop { items: 1_000_000, in_php: false, units: 8, ..SETS },
    Loop { kind: "sets and gets", lag: Some(0), units: 3, ..SETS },
    Loop {
        kind: "sets and late gets",
        // More than a RAM tier of 3 MiB holds.
        lag: Some(20_000),
        has_peers: false,
        in_php: false,
        memory_mib: 8,
        ssd_bytes: 96 << 20,
        item_bytes: Some(250),
        units: 3,
        ..SETS
    },
];

/// The loops of the document, or those with the user's number and size of items; one of two that differ in their number
/// only.
fn loops(wanted: &Wanted) -> Vec<Loop> {
    let bytes = wanted.sizes.first().copied();
    let is_kept = |one: &Loop| wanted.count.is_none() || one.items == SETS.items;
    LOOPS.into_iter().filter(is_kept).map(|one| one.of(wanted.count, bytes)).collect()
}

/// The results of one loop.
#[derive(Clone, Debug)]
struct Found {
    server: String,
    name: String,
    items: u64,
    operations: u64,
    start_s: f64,
    seconds: f64,
}

/// One loop against one server, by this program or by PHP.
#[derive(Clone, Debug)]
struct Job {
    target: Target,
    one: Loop,
    in_php: bool,
}

/// Everything that is to be run, PHP last: its loops are left out first when time is short.
fn jobs(loops: &[Loop], makes: &[Make], given: &[GivenPeer], has_php: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for one in loops.iter().copied() {
        let ours = makes.iter().filter(|make| one.has_peers || **make == Make::Larder);
        jobs.extend(ours.map(|make| Job { target: Target::Ours(*make), one, in_php: false }));
        if one.has_peers {
            jobs.extend(given.iter().map(|peer| Job {
                target: Target::Given(peer.clone()),
                one,
                in_php: false,
            }));
        }
    }
    let is_scripted = |job: &&Job| {
        let speaks = !matches!(job.target, Target::Ours(Make::Redis));
        has_php && speaks && job.one.in_php && job.one.value_bytes == VALUE_BYTES
    };
    let scripted: Vec<Job> =
        jobs.iter().filter(is_scripted).map(|job| Job { in_php: true, ..job.clone() }).collect();
    jobs.extend(scripted);
    jobs
}

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let makes = stage.makes(&[Make::Memcached, Make::Redis]);
    let php = php::find(stage);
    let given = stage.options.given();
    if let Some(first) = given.first() {
        stage
            .part
            .note(format!("{} runs already, so its loops find what those before them stored", first.name));
    }
    let loops = loops(&stage.options.wanted);
    if php.is_some() && loops.iter().any(|one| one.value_bytes != VALUE_BYTES) {
        stage.part.note(format!(
            "the PHP script skipped: its values have {VALUE_BYTES} bytes, not those of --sizes"
        ));
    }
    let jobs = jobs(&loops, &makes, &given, php.is_some());
    let mut units: u32 = jobs.iter().map(|job| job.one.units).sum();
    let mut found = Vec::new();
    let mut played = Ok(());
    for (at, job) in jobs.iter().enumerate() {
        let time = stage.share(job.one.units.into(), units.into(), LEAST);
        units -= job.one.units;
        let by = if job.in_php { "PHP to " } else { "" };
        stage.step(at + 1, jobs.len(), &format!("{by}{} {}", job.target.name(), job.one.name()));
        match measured(stage, job, php.as_ref(), time) {
            Ok(more) => found.extend(more),
            Err(Halt::Failed(why)) if matches!(job.target, Target::Given(_)) => {
                stage.part.note(format!("{}, {} skipped: {why}", job.target.name(), job.one.name()));
            }
            Err(halt) => {
                played = Err(halt);
                break;
            }
        }
    }
    report(stage, &loops, &found);
    played
}

/// Runs one job; none where its server does not start.
fn measured(
    stage: &mut Stage<'_>,
    job: &Job,
    php: Option<&php::Php>,
    time: Duration,
) -> Result<Option<Found>, Halt> {
    let started = match &job.target {
        Target::Given(_) => None,
        Target::Ours(make) => match start(stage, *make, job.one)? {
            Some(server) => Some(server),
            None => return Ok(None),
        },
    };
    let address = match (&job.target, &started) {
        (Target::Given(peer), _) => peer.address.clone(),
        (Target::Ours(_), Some(server)) => server.address.clone(),
        (Target::Ours(_), None) => return Ok(None),
    };
    let found = match php.filter(|_| job.in_php) {
        Some(php) => script(stage, php, job, &address, time)?,
        None => Some(native(stage, job, started.as_ref(), address, time)?),
    };
    if let Some(server) = started {
        end(server);
    }
    Ok(found)
}

fn start(stage: &mut Stage<'_>, make: Make, one: Loop) -> Result<Option<Server>, Halt> {
    let mut setup = Setup::new(make);
    if make == Make::Larder {
        let path = stage.folder().join(format!("{}.ssd", stage.next_number()));
        setup.memory_mib = one.memory_mib;
        setup.ssd = Some(Ssd { path, bytes: one.ssd_bytes, share: (1, 1) });
        setup.item_bytes = one.item_bytes;
    }
    stage.server(setup)
}

fn end(server: Server) {
    let path = server.setup.ssd.as_ref().map(|ssd| ssd.path.clone());
    drop(server);
    if let Some(path) = path {
        let _ = std::fs::remove_file(path);
    }
}

/// The loop by this program, without the cost of PHP.
fn native(
    stage: &mut Stage<'_>,
    job: &Job,
    server: Option<&Server>,
    address: Address,
    time: Duration,
) -> Result<Found, Halt> {
    let (name, one) = (job.target.name(), job.one);
    let label = format!("{name} {}", one.name());
    let mut plan = match server {
        Some(server) => stage.plan(&label, server),
        None => stage.plan_of_peer(&label, address),
    };
    plan.load = Load::Closed { pipeline: 1 };
    plan.connections = 1;
    plan.duration = time;
    plan.requests = Some(one.operations(one.items));
    plan.verify = Verify::Full;
    plan.workload = Workload {
        keys: one.items,
        pattern: Pattern::Sequential,
        prefix: String::new(),
        key_bytes: Some(KEY_BYTES),
        sizes: Sizes::Fixed(one.value_bytes),
        expiry_s: EXPIRY_S,
        mix: Mix::ratio(1, 0),
        ..Workload::default()
    };
    plan.trace = one.lag.map(|lag| {
        Arc::new(SetThenGet { items: one.items, size: one.value_bytes, expiry_s: EXPIRY_S, lag }) as Arc<_>
    });
    let run = stage.measure(&plan, &Unseen)?;
    if matches!(job.target, Target::Ours(Make::Larder)) && one.has_gets() {
        tiers(stage, &run, one);
    }
    let sets = run.verbs.iter().find(|verb| verb.name == "set").map_or(0, |verb| verb.count);
    let found = Found {
        server: name.to_string(),
        name: one.name(),
        items: sets,
        operations: run.count(),
        start_s: run.started_unix_ms as f64 / 1000.0,
        seconds: run.seconds,
    };
    stage.part.runs.push(run);
    Ok(found)
}

/// The PHP script itself.
fn script(
    stage: &mut Stage<'_>,
    php: &php::Php,
    job: &Job,
    address: &Address,
    time: Duration,
) -> Result<Option<Found>, Halt> {
    let (name, one) = (job.target.name(), job.one);
    let ran = php.run(stage, address, one.items, one.has_gets(), time);
    match ran {
        Ok(ran) => {
            let what = format!("PHP to {name}, {}", one.name());
            let message =
                format!("{} sets failed, {} gets wrong of {}", ran.sets_failed, ran.gets_wrong, ran.items);
            let is_right = ran.sets_failed + ran.gets_wrong == 0;
            let verdict = if is_right { Verdict::Pass } else { Verdict::Fail };
            stage.part.check_of(&what, check("values", verdict, message));
            Ok(Some(Found {
                server: format!("{name} from PHP"),
                name: one.name(),
                items: ran.items,
                operations: one.operations(ran.items),
                start_s: ran.start_s,
                seconds: ran.seconds,
            }))
        }
        Err(_) if stage.is_stopped() => Err(Halt::Stopped),
        Err(why) => {
            stage.part.note(format!("PHP to {name}, {} skipped: {why}", one.name()));
            Ok(None)
        }
    }
}

/// From which tier Larder answered.
fn tiers(stage: &mut Stage<'_>, run: &Run, one: Loop) {
    let growth = run.watch.as_ref().map(|watch| watch.stats_growth.clone()).unwrap_or_default();
    let of = |name: &str| growth.get(name).copied().unwrap_or(0.0);
    let (ram, ssd) = (of("larder.get_hits_ram"), of("larder.get_hits_ssd"));
    let message = format!("{} gets answered from RAM, {} from the SSD", figure(ram), figure(ssd));
    let why =
        if one.is_late() { "each was of a key set long before" } else { "each came right after its set" };
    let verdict = if ram + ssd > 0.0 { Verdict::Pass } else { Verdict::Skipped };
    stage
        .part
        .check_of(&format!("larder, {}", one.name()), check("tiers", verdict, format!("{message}: {why}")));
}

fn report(stage: &mut Stage<'_>, loops: &[Loop], found: &[Found]) {
    stage.part.tables.extend(seed::tables());
    for one in loops {
        let name = one.name();
        let rows: Vec<Vec<String>> = found
            .iter()
            .filter(|found| found.name == name)
            .map(|found| printed(found, stage.options.as_seed))
            .collect();
        if rows.is_empty() {
            continue;
        }
        stage.part.tables.push(table(&format!("php-loop: ours, {name}"), &COLUMNS, rows));
        let least =
            found.iter().filter(|found| found.name == name).map(|found| found.items).min().unwrap_or(0);
        if least < one.items {
            stage.part.note(format!("{name}: as many of them as the budget allowed, see the table"));
        }
    }
    for one in found {
        for check in judged(one, stage.options.as_seed) {
            stage.part.check_of(&format!("{}, {}", one.server, one.name), check);
        }
    }
    let clock = match stage.options.as_seed {
        true => "as in the document, times are of a clock of whole seconds",
        false => "times are in milliseconds where the document's clock had whole seconds",
    };
    stage.part.note(clock);
    stage.part.note(
        "the document's cost of PHP (six md5 a set) is in the rows `from PHP` only; keys are distinct \
         numbers of 32 digits in the others",
    );
    stage.part.note(
        "a get right after its set is answered from RAM, in fatcache as in Larder: this loop says nothing \
         about reads of an SSD; `late gets` does, when so many keys were set that they do not fit into RAM",
    );
}

/// Start, end and length of a loop as they are printed.
fn times(found: &Found, as_seed: bool) -> (f64, f64, f64) {
    let end = found.start_s + found.seconds;
    match as_seed {
        true => (found.start_s.floor(), end.floor(), end.floor() - found.start_s.floor()),
        false => {
            let ms = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
            (ms(found.start_s), ms(found.start_s) + ms(found.seconds), ms(found.seconds))
        }
    }
}

fn printed(found: &Found, as_seed: bool) -> Vec<String> {
    let (start, end, seconds) = times(found, as_seed);
    let digits = if as_seed { 0 } else { 3 };
    let rate = if seconds > 0.0 { figure(found.operations as f64 / seconds) } else { "-".to_string() };
    row([
        &found.server,
        &figure(found.items as f64),
        &format!("{start:.digits$}"),
        &format!("{end:.digits$}"),
        &format!("{seconds:.digits$}"),
        &rate,
    ])
}

fn judged(found: &Found, as_seed: bool) -> Vec<crate::result::Check> {
    let (start, end, seconds) = times(found, as_seed);
    if seconds <= 0.0 {
        let message = format!("{} s are less than the clock's step", figure(found.seconds));
        return vec![check("elapsed", Verdict::Warn, message)];
    }
    let step = if as_seed { 1.0 } else { 0.001 };
    let elapsed = labels::elapsed(start, end, seconds, step);
    // Ten digits before the point are enough to be told apart, and more than a reader wants.
    let message = format!(
        "{} s between {start:.3} and {end:.3}, printed {} s",
        checks::figure(end - start),
        figure(seconds)
    );
    let elapsed =
        if elapsed.verdict == Verdict::Pass { check("elapsed", Verdict::Pass, message) } else { elapsed };
    vec![elapsed, labels::rate(found.operations as f64, seconds, found.operations as f64 / seconds)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(start_s: f64, seconds: f64) -> Found {
        Found { server: "x".into(), name: SETS.name(), items: 100_000, operations: 100_000, start_s, seconds }
    }

    #[test]
    fn what_is_printed_is_what_its_times_say() {
        let one = found(1_763_669_999.123_4, 5.000_4);
        assert_eq!(printed(&one, false)[2..], ["1763669999.123", "1763670004.123", "5.000", "20,000"]);
        assert!(
            judged(&one, false).iter().all(|check| check.verdict == Verdict::Pass),
            "{:?}",
            judged(&one, false)
        );
    }

    #[test]
    fn whole_seconds_are_seen_to_be_coarse() {
        let one = found(1_763_669_999.9, 5.2);
        assert_eq!(printed(&one, true)[2..5], ["1763669999", "1763670005", "6"]);
        assert_eq!(judged(&one, true)[0].verdict, Verdict::Warn);
        assert_eq!(judged(&found(1.1, 0.2), true)[0].verdict, Verdict::Warn);
    }

    #[test]
    fn a_given_peer_runs_what_the_others_run() {
        let address = Address::Tcp { host: "10.0.0.1".to_string(), port: 22122 };
        let peer = GivenPeer { name: "fatcache".to_string(), address };
        let jobs = jobs(&LOOPS, &[Make::Larder, Make::Redis], &[peer], true);
        let of = |name: &str, in_php| {
            let all = jobs.iter().filter(|job| job.target.name() == name && job.in_php == in_php);
            all.map(|job| job.one.name()).collect::<Vec<_>>()
        };
        assert_eq!(of("fatcache", false), of("redis", false));
        assert_eq!(of("fatcache", true), of("larder", true));
        assert!(of("redis", true).is_empty());
        assert!(jobs.is_sorted_by_key(|job| job.in_php));
    }

    #[test]
    fn rows_are_named_after_the_users_number_of_items() {
        let names = |wanted: &Wanted| loops(wanted).iter().map(Loop::name).collect::<Vec<_>>();
        let document = ["100 K sets", "1 M sets", "100 K sets and gets", "100 K sets and late gets"];
        assert_eq!(names(&Wanted::default()), document);
        let wanted = Wanted { count: Some(5000), sizes: vec![4096], ..Wanted::default() };
        assert_eq!(names(&wanted), ["5000 sets", "5000 sets and gets", "5000 sets and late gets"]);
        assert_eq!(loops(&wanted)[2].lag, Some(1000), "a fifth of them, as in the document's size");
        let many = Wanted { count: Some(4_000_000), sizes: vec![4096], ..Wanted::default() };
        assert!(loops(&many)[0].ssd_bytes > 4_000_000 * 4096, "all of them have room on the SSD");
    }
}
