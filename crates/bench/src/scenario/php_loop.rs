//! `php-loop`: one client that sets, or sets and gets, in a closed loop, as a PHP script of 2013 did with
//! fatcache.

mod php;
mod seed;

use super::part::{row, table};
use super::server::{Make, Server, Setup, Ssd};
use super::trace::SetThenGet;
use super::{Halt, Scenario, Stage};
use crate::checks::{self, check, figure, labels};
use crate::engine::{Load, Unseen, Verify};
use crate::result::{Run, Verdict};
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
    weight: 0.15,
    play,
};

const VALUE_BYTES: u32 = 160;
const KEY_BYTES: usize = 32;
const EXPIRY_S: (u32, u32) = (60, 600);
const LEAST: Duration = Duration::from_millis(250);
const COLUMNS: [&str; 6] =
    ["Server", "Number of items", "Start time", "Final time", "Time/s", "Operations/s"];

/// One loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    name: &'static str,
    items: u64,
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
    name: "100 K sets",
    items: 100_000,
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
    Loop { name: "1 M sets", items: 1_000_000, in_php: false, units: 8, ..SETS },
    Loop { name: "100 K sets and gets", lag: Some(0), units: 3, ..SETS },
    Loop {
        name: "100 K sets and late gets",
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

/// The results of one loop.
#[derive(Clone, Debug)]
struct Found {
    server: String,
    name: &'static str,
    items: u64,
    operations: u64,
    start_s: f64,
    seconds: f64,
}

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let makes = stage.makes(&[Make::Memcached, Make::Redis]);
    let php = php::find(stage);
    let mut jobs: Vec<(Make, Loop)> = Vec::new();
    for one in LOOPS {
        let run_by = makes.iter().filter(|make| one.has_peers || **make == Make::Larder);
        jobs.extend(run_by.map(|make| (*make, one)));
    }
    let in_php = |(make, one): &(Make, Loop)| php.is_some() && *make != Make::Redis && one.in_php;
    let scripted: Vec<(Make, Loop)> = jobs.iter().copied().filter(in_php).collect();
    let mut units: u32 = jobs.iter().chain(&scripted).map(|(_, one)| one.units).sum();
    let mut found = Vec::new();
    let mut played = Ok(());
    for (make, one) in jobs {
        let time = stage.share(one.units.into(), units.into(), LEAST);
        units -= one.units;
        match native(stage, make, one, time) {
            Ok(more) => found.extend(more),
            Err(halt) => {
                played = Err(halt);
                break;
            }
        }
    }
    if let (Ok(()), Some(php)) = (&played, &php) {
        for (make, one) in scripted {
            let time = stage.share(one.units.into(), units.into(), LEAST);
            units -= one.units;
            match script(stage, php, make, one, time) {
                Ok(more) => found.extend(more),
                Err(halt) => {
                    played = Err(halt);
                    break;
                }
            }
        }
    }
    report(stage, &found);
    played
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
fn native(stage: &mut Stage<'_>, make: Make, one: Loop, time: Duration) -> Result<Option<Found>, Halt> {
    stage.tell(&format!("{} {}", make.name(), one.name));
    let Some(server) = start(stage, make, one)? else { return Ok(None) };
    let mut plan = stage.plan(&format!("{} {}", make.name(), one.name), &server);
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
        sizes: Sizes::Fixed(VALUE_BYTES),
        expiry_s: EXPIRY_S,
        mix: Mix::ratio(1, 0),
        ..Workload::default()
    };
    plan.trace = one.lag.map(|lag| {
        Arc::new(SetThenGet { items: one.items, size: VALUE_BYTES, expiry_s: EXPIRY_S, lag }) as Arc<_>
    });
    let run = stage.measure(&plan, &Unseen)?;
    if make == Make::Larder && one.has_gets() {
        tiers(stage, &run, one);
    }
    let sets = run.verbs.iter().find(|verb| verb.name == "set").map_or(0, |verb| verb.count);
    let found = Found {
        server: make.name().to_string(),
        name: one.name,
        items: sets,
        operations: run.count(),
        start_s: run.started_unix_ms as f64 / 1000.0,
        seconds: run.seconds,
    };
    stage.part.runs.push(run);
    end(server);
    Ok(Some(found))
}

/// The PHP script itself.
fn script(
    stage: &mut Stage<'_>,
    php: &php::Php,
    make: Make,
    one: Loop,
    time: Duration,
) -> Result<Option<Found>, Halt> {
    stage.tell(&format!("PHP to {} {}", make.name(), one.name));
    let Some(server) = start(stage, make, one)? else { return Ok(None) };
    let ran = php.run(stage, &server, one.items, one.has_gets(), time);
    end(server);
    match ran {
        Ok(ran) => {
            let what = format!("PHP to {}, {}", make.name(), one.name);
            let message =
                format!("{} sets failed, {} gets wrong of {}", ran.sets_failed, ran.gets_wrong, ran.items);
            let is_right = ran.sets_failed + ran.gets_wrong == 0;
            let verdict = if is_right { Verdict::Pass } else { Verdict::Fail };
            stage.part.check_of(&what, check("values", verdict, message));
            Ok(Some(Found {
                server: format!("{} from PHP", make.name()),
                name: one.name,
                items: ran.items,
                operations: one.operations(ran.items),
                start_s: ran.start_s,
                seconds: ran.seconds,
            }))
        }
        Err(_) if stage.is_stopped() => Err(Halt::Stopped),
        Err(why) => {
            stage.part.note(format!("PHP to {}, {} skipped: {why}", make.name(), one.name));
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
        .check_of(&format!("larder, {}", one.name), check("tiers", verdict, format!("{message}: {why}")));
}

fn report(stage: &mut Stage<'_>, found: &[Found]) {
    stage.part.tables.extend(seed::tables());
    for one in LOOPS {
        let rows: Vec<Vec<String>> = found
            .iter()
            .filter(|found| found.name == one.name)
            .map(|found| printed(found, stage.options.as_seed))
            .collect();
        if rows.is_empty() {
            continue;
        }
        stage.part.tables.push(table(&format!("php-loop: ours, {}", one.name), &COLUMNS, rows));
        let least =
            found.iter().filter(|found| found.name == one.name).map(|found| found.items).min().unwrap_or(0);
        if least < one.items {
            stage.part.note(format!("{}: as many of them as the budget allowed, see the table", one.name));
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
        Found { server: "x".into(), name: SETS.name, items: 100_000, operations: 100_000, start_s, seconds }
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
}
