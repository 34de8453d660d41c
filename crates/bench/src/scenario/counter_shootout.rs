//! `counter-shootout`: one counter, incremented by 1 to 10 threads, in caches and in databases used as such.

mod databases;
mod mongodb;
mod place;
mod seed;

use super::part::{marked, row};
use super::server::{Make, Server, Setup};
use super::stage::GivenPeer;
use super::{Halt, Scenario, Stage};
use crate::checks::{check, figure};
use crate::counter::entry::Entry;
use crate::counter::measure::Length;
use crate::counter::shootout::{self, Contestant, Outcome, Plan};
use crate::counter::store::{Kind, Library, NO_DRIVERS, Options, Sql};
use crate::result::{Counter, Verdict};
use crate::show;
use databases::Databases;
use std::time::Duration;

/// This scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "counter-shootout",
    about: "One counter, 1 to 10 threads, caches and databases",
    question: "What does a rate limit cost that counts in a cache, and in a database used as one?",
    runs: "memcached, Larder, redis, MariaDB (MEMORY, InnoDB, through an ORM), PostgreSQL (logged and \
           unlogged), MongoDB (or a server from Maven that speaks its wire), libraries of Ruby: one \
           counter, as many increments as 1 to 10 threads can make, every answer kept.",
    fixes: "The history of answers is proved linearizable, which the document's count of missing updates can \
            not; a counter that is wrong on purpose has to be caught; databases increment in one statement \
            (as in the document, with --as-seed).",
    document: seed::tables,
    takes: &["--server", "--peer", "--count", "--threads"],
    weight: 0.20,
    play,
};

const TIMEOUT: Duration = Duration::from_secs(10);
const LEAST: Duration = Duration::from_millis(200);
/// The document's own.
const MOST: Duration = Duration::from_secs(600);
/// Databases take a while to be made, and so do some fifty processes of Ruby; with less than this they are left out.
const DATABASES_S: f64 = 12.0;
/// Numbers of threads beside each other: with more, and rates of millions, a table is wider than a terminal.
const COLUMNS_MAX: usize = 4;
/// Numbers of threads, those first that tell most.
const THREADS: [u32; 10] = [1, 10, 4, 2, 7, 3, 5, 8, 6, 9];
/// Under this many threads a lost update is all but certain.
const BROKEN_THREADS: u32 = 4;
const BROKEN: Duration = Duration::from_millis(300);

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let makes = stage.makes(&[Make::Memcached, Make::Redis]);
    let sql = if stage.options.as_seed { Sql::AsSeed } else { Sql::Idiomatic };
    let options = Options { sql, timeout: TIMEOUT };
    let has_time = stage.left().as_secs_f64() >= DATABASES_S;
    let databases = databases(stage)?;
    let mut servers: Vec<Server> = Vec::new();
    for make in makes {
        servers.extend(stage.server(Setup::new(make))?);
    }
    let mut entries: Vec<Entry> = Vec::new();
    for server in &servers {
        let (kind, address) = match server.setup.make {
            Make::Redis => (Kind::Redis, format!("redis://{}/15", server.address)),
            // The document's client spoke the binary protocol.
            _ if stage.options.as_seed => (Kind::MemcachedBinary, server.address.to_string()),
            _ => (Kind::Memcached, server.address.to_string()),
        };
        entries.push(Entry { label: server.setup.make.name().to_string(), kind, address });
    }
    for GivenPeer { name, address } in stage.options.given() {
        entries.push(Entry { label: name, kind: Kind::Memcached, address: address.to_string() });
    }
    let of_databases = databases.addresses();
    entries.extend(of_an_application(&servers, &of_databases));
    if !has_time {
        entries.retain(|entry| !matches!(entry.kind, Kind::Ruby(library) if library != Library::RackAttack));
        let why =
            format!("libraries of Ruby skipped: they need a budget of {DATABASES_S} s for this scenario");
        stage.part.note(why);
    }
    entries.extend(of_databases);
    if let Some(address) = &stage.options.mongodb {
        let kind = Kind::Mongodb;
        entries.push(Entry { label: kind.name().to_string(), kind, address: address.clone() });
    }
    let mut contestants = Vec::new();
    for entry in entries {
        match Contestant::prepare(entry.clone(), options) {
            Ok(contestant) => contestants.push(contestant),
            Err(why) if entry.label == Make::Larder.name() => return Err(Halt::Failed(why.to_string())),
            Err(why) => stage.part.note(format!("{} skipped: {why}", entry.label)),
        }
        stage.go_on()?;
    }
    if let Some(server) = servers.first() {
        broken(stage, server, options)?;
    }
    let (threads, duration) = rounds(stage.left(), contestants.len(), &stage.options.wanted.threads);
    let length = Length { duration, increments: stage.options.wanted.count };
    let plan = Plan { threads: threads.clone(), length, repeat: 1, calibrates: false, options };
    let tell = |at: usize, total: usize, store: &str, threads: u32| {
        stage.step(at, total, &format!("{store}, {}", show::threads(threads)));
    };
    let outcome = shootout::run(contestants, &plan, stage.stop, &mut { tell });
    report(stage, &outcome, &threads, duration);
    if outcome.is_stopped { Err(Halt::Stopped) } else { Ok(()) }
}

/// The counters of an application itself: in its process, and those of libraries of Ruby.
fn of_an_application(servers: &[Server], databases: &[Entry]) -> Vec<Entry> {
    let server = |make: Make| servers.iter().find(|server| server.setup.make == make);
    let database =
        |kind: Kind| databases.iter().find(|entry| entry.kind == kind).map(|entry| entry.address.clone());
    let larder = server(Make::Larder).map(|server| server.address.to_string());
    let memcached = server(Make::Memcached).map(|server| server.address.to_string());
    let redis = server(Make::Redis).map(|server| format!("redis://{}/15", server.address));
    [
        (Kind::MemoryStore, Some(Kind::MemoryStore.example().to_string())),
        (Kind::Ruby(Library::RackAttack), larder.clone()),
        // As in the document, if it is installed.
        (Kind::Ruby(Library::Dalli), memcached.or(larder)),
        (Kind::Ruby(Library::Redis), redis),
        (Kind::Ruby(Library::Mysql2), database(Kind::MariadbMemory)),
        (Kind::Ruby(Library::Pg), database(Kind::PostgresUnlogged)),
    ]
    .into_iter()
    .filter_map(|(kind, address)| Some(Entry { label: kind.name().to_string(), kind, address: address? }))
    .collect()
}

/// Starts the databases for which there is a driver and time; the others are noted.
fn databases(stage: &mut Stage<'_>) -> Result<Databases, Halt> {
    if !Kind::Postgres.is_built() {
        stage.part.note(format!("databases skipped: {NO_DRIVERS}"));
        return Ok(Databases::default());
    }
    if stage.left().as_secs_f64() < DATABASES_S {
        let why = format!("databases skipped: they need a budget of {DATABASES_S} s for this scenario");
        stage.part.note(why);
        return Ok(Databases::default());
    }
    Databases::start(stage)
}

/// Which numbers of threads fit into the time, and how long each store gets at each. Those that the user chose are all
/// measured, if shortly.
fn rounds(time: Duration, stores: usize, chosen: &[u32]) -> (Vec<u32>, Duration) {
    let each = time.as_secs_f64() / stores.max(1) as f64;
    if !chosen.is_empty() {
        let seconds = (each / chosen.len() as f64).clamp(LEAST.as_secs_f64(), MOST.as_secs_f64());
        return (chosen.to_vec(), Duration::from_secs_f64(seconds));
    }
    let count = ((each / 0.5) as usize).clamp(3, THREADS.len());
    let seconds = (each / count as f64).clamp(LEAST.as_secs_f64(), MOST.as_secs_f64());
    let mut threads = THREADS[..count].to_vec();
    threads.sort_unstable();
    (threads, Duration::from_secs_f64(seconds))
}

/// A read-modify-write that is wrong on purpose must be caught, or no verdict here is worth anything.
fn broken(stage: &mut Stage<'_>, server: &Server, options: Options) -> Result<(), Halt> {
    stage.tell("a counter that is wrong on purpose");
    let entry =
        Entry { label: "broken-rmw".to_string(), kind: Kind::BrokenRmw, address: server.address.to_string() };
    let contestant = Contestant::prepare(entry, options).map_err(|error| Halt::Failed(error.to_string()))?;
    let plan = Plan {
        threads: vec![BROKEN_THREADS],
        length: Length::of(BROKEN),
        repeat: 1,
        calibrates: false,
        options,
    };
    let outcome = shootout::run(vec![contestant], &plan, stage.stop, &mut |_, _, _, _| {});
    stage.go_on()?;
    let found = match outcome.violations.first() {
        Some(first) => check("broken-rmw", Verdict::Pass, format!("caught: {first}")),
        None => check("broken-rmw", Verdict::Fail, "a counter that loses updates was not caught"),
    };
    stage.part.check(found);
    Ok(())
}

/// The rate of a store at a number of threads, as a cell of a table.
fn rate(counters: &[Counter], store: &str, threads: u32) -> String {
    let found = counters.iter().find(|one| one.store == store && one.threads == threads);
    let shown = |one: &Counter| marked(figure(one.rate.round()), one.is_certified());
    found.map_or_else(|| "-".to_string(), shown)
}

fn stores(counters: &[Counter]) -> Vec<String> {
    let mut stores: Vec<String> = Vec::new();
    for one in counters {
        if !stores.contains(&one.store) {
            stores.push(one.store.clone());
        }
    }
    stores
}

fn report(stage: &mut Stage<'_>, outcome: &Outcome, threads: &[u32], duration: Duration) {
    stage.part.tables.extend(seed::tables());
    let stores = stores(&outcome.counters);
    for threads in threads.chunks(threads.len().div_ceil(threads.len().div_ceil(COLUMNS_MAX).max(1)).max(1)) {
        let mut columns = vec!["store, threads".to_string()];
        columns.extend(threads.iter().map(u32::to_string));
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let cells = |store: &String| {
            let rates = threads.iter().map(|threads| rate(&outcome.counters, store, *threads));
            std::iter::once(store.clone()).chain(rates).collect()
        };
        stage.part.table("increments a second, ours", &columns, stores.iter().map(cells).collect());
    }
    beside(stage, outcome, &stores, threads);
    for store in &stores {
        let rows: Vec<&Counter> = outcome.counters.iter().filter(|one| one.store == *store).collect();
        let count: u64 = rows.iter().map(|one| one.count).sum();
        let worst = rows.iter().find(|one| one.check.verdict == Verdict::Fail);
        let found = match worst {
            Some(one) => check(
                "linearizable",
                Verdict::Fail,
                format!("{}: {}", show::threads(one.threads), one.check.message),
            ),
            None if rows.iter().any(|one| one.check.verdict == Verdict::Warn) => check(
                "linearizable",
                Verdict::Warn,
                format!("{} increments, cut short", figure(count as f64)),
            ),
            None => check(
                "linearizable",
                Verdict::Pass,
                format!("{} increments, each seen once", figure(count as f64)),
            ),
        };
        stage.part.check_of(store, found);
        doubts(stage, store, &rows);
    }
    for failure in &outcome.failures {
        stage.part.note(failure.as_str());
    }
    let statements = match stage.options.as_seed {
        true => {
            "as in the document, databases lock, insert or update, select and unlock; memcached is asked \
             in binary"
        }
        false => {
            "databases increment in one statement of their own; those of the document come with --as-seed"
        }
    };
    stage.part.note(statements);
    if stores.iter().any(|store| store == mongodb::LABEL) {
        let what = "is a server in memory that speaks MongoDB's wire; --mongodb names a MongoDB in its place";
        stage.part.note(format!("{} {what}", mongodb::LABEL));
    }
    let most = stage.options.wanted.count;
    let most = most.map_or(String::new(), |most| format!(" or {} increments", figure(most as f64)));
    stage.part.note(format!(
        "{:.1} s{most} for each store and number of threads (10 minutes there), threads {}; the document's \
         client was Ruby, whose threads take turns: its curves fall with threads because of that. Ours in \
         Ruby (ruby-*, rack-attack) is a process a thread, asked over a socket",
        duration.as_secs_f64(),
        threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    ));
    stage.part.counters.extend(outcome.counters.iter().cloned());
}

/// The first check of every load that a store's counters fail.
fn doubts(stage: &mut Stage<'_>, store: &str, rows: &[&Counter]) {
    let checks = rows.iter().flat_map(|one| one.checks.iter().map(move |check| (one.threads, check)));
    let mut failed = checks.filter(|(_, check)| check.verdict == Verdict::Fail);
    if let Some((threads, first)) = failed.next() {
        let message = format!("{}: {}", show::threads(threads), first.message);
        stage.part.check_of(store, check(&first.name, Verdict::Fail, message));
    }
}

/// The document's rates beside ours, at its least, its most and the best number of threads.
fn beside(stage: &mut Stage<'_>, outcome: &Outcome, stores: &[String], threads: &[u32]) {
    let (Some(first), Some(last)) = (threads.first(), threads.last()) else { return };
    let mut rows = Vec::new();
    for store in stores {
        let theirs = seed::line_of(store);
        let of = |threads: u32| {
            let rate = theirs.and_then(|line| line.rates.get(threads as usize - 1));
            rate.map_or("-".to_string(), |rate| figure(rate.round()))
        };
        let ours = |threads: u32| rate(&outcome.counters, store, threads);
        let best = outcome.counters.iter().filter(|one| one.store == *store);
        let best = best.max_by(|a, b| a.rate.total_cmp(&b.rate)).map_or(0, |one| one.threads);
        rows.push(row([
            store,
            &of(*first),
            &of(*last),
            &theirs.map_or("-".to_string(), |line| line.best().to_string()),
            &ours(*first),
            &ours(*last),
            &best,
        ]));
    }
    let columns = [
        "store".to_string(),
        format!("document, {first}"),
        format!("document, {last}"),
        "best at".to_string(),
        format!("ours, {first}"),
        format!("ours, {last}"),
        "best at".to_string(),
    ];
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    stage.part.table("increments a second, the document beside ours", &columns, rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_fit_the_time() {
        for (seconds, stores) in [(2.0, 3), (15.0, 8), (180.0, 8), (3600.0, 8), (1e6, 8)] {
            let (threads, each) = rounds(Duration::from_secs_f64(seconds), stores, &[]);
            assert!(threads.len() >= 3 && threads.is_sorted() && threads[0] == 1, "{threads:?}");
            let whole = each.as_secs_f64() * threads.len() as f64 * stores as f64;
            assert!(whole <= seconds.max(0.6 * stores as f64) + 0.01, "{seconds}: {whole}");
        }
        assert_eq!(rounds(Duration::from_secs(180), 8, &[]).0.len(), 10);
        // Ten minutes each, as in the document, where the budget allows.
        let (threads, each) = rounds(Duration::from_secs(8 * 6_000), 8, &[]);
        assert_eq!((threads.len(), each), (10, Duration::from_secs(600)));
        let (threads, each) = rounds(Duration::from_secs(24), 2, &[1, 16]);
        assert_eq!(
            (threads, each),
            (vec![1, 16], Duration::from_secs(6)),
            "those of the user are all measured"
        );
    }

    #[test]
    fn a_row_is_found_by_store_and_threads() {
        let one = Counter { store: "larder".into(), threads: 4, rate: 7.0, ..Counter::default() };
        assert_eq!(rate(std::slice::from_ref(&one), "larder", 4), "7");
        assert_eq!(rate(std::slice::from_ref(&one), "larder", 5), "-");
        assert_eq!(stores(&[one.clone(), one]), ["larder"]);
    }
}
