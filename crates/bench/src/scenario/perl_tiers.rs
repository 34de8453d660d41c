//! `perl-tiers`: the cost of a get and a set of a page for a Perl program, in its own memory, in a server
//! beside it, and in one behind a network.

mod perl;
mod seed;
mod value;

use super::netns::Netns;
use super::part::row;
use super::server::{Listen, Make, Server, Setup};
use super::{Halt, Scenario, Stage};
use crate::checks::tiers::Costs;
use crate::checks::{check, figure};
use crate::result::Verdict;
use perl::{Perl, Ran, Store};
use std::net::Ipv4Addr;
use std::time::Duration;

/// This scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "perl-tiers",
    about: "What a page costs a Perl program, near and far",
    question: "What does a cache in two tiers, local before remote, gain a Perl program?",
    runs: "A value of 28,579 bytes in real Perl: set once and read 50,000 times, then set and read 50,000 \
           times; by Cache::Memcached::Fast from a remote server (over TCP) and a local one (Unix socket), \
           and from Cache::Mmap and Cache::FastMmap in memory, as far as Debian's packages are installed.",
    fixes: "Costs of a get and of a set are told apart, and two tiers are computed from them: what the \
            document's TieredLmc measured is what a first tier costs that never hits.",
    document: seed::tables,
    weight: 0.10,
    play,
};

/// The document's number of iterations.
const ITERATIONS: u64 = 50_000;
const LEAST: Duration = Duration::from_millis(400);

/// The results of a store, reading and writing.
#[derive(Clone, Debug)]
struct Found {
    name: String,
    /// The document's row of this kind.
    theirs: Option<&'static seed::Row>,
    read: Option<Ran>,
    write: Option<Ran>,
}

impl Found {
    /// A get and a set, in microseconds.
    fn costs_us(&self) -> Option<(f64, f64)> {
        let get = self.read.as_ref()?.iteration_us();
        Some((get, (self.write.as_ref()?.iteration_us() - get).max(0.0)))
    }
}

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let perl = match Perl::find(stage) {
        Ok(perl) => perl,
        Err(why) => {
            stage.part.note(format!("skipped: {why}"));
            stage.part.tables.extend(seed::tables());
            return Ok(());
        }
    };
    let makes = stage.makes(&[Make::Memcached]);
    let netns = network(stage);
    let mut stores: Vec<(Store, Option<Make>)> = Vec::new();
    if perl.has("Cache::Memcached::Fast") {
        stores.extend(makes.iter().map(|make| (Store::Remote, Some(*make))));
        stores.extend(makes.iter().map(|make| (Store::Local, Some(*make))));
    }
    for store in [Store::Mmap, Store::FastMmap] {
        if perl.has(store.module()) {
            stores.push((store, None));
        }
    }
    let mut found: Vec<Found> = Vec::new();
    let mut left = 2.0 * stores.len() as f64;
    let mut played = Ok(());
    for (store, make) in stores {
        let name =
            make.map_or(store.module().to_string(), |make| format!("{} {}", store.place(), make.name()));
        let mut one = Found { theirs: seed::row_of(store), name, read: None, write: None };
        let ended = measure(stage, &perl, netns.as_ref(), store, make, &mut one, &mut left);
        found.push(one);
        match ended {
            Ok(()) => {}
            Err(Halt::Failed(why)) if make != Some(Make::Larder) => {
                let name = found.last().map(|one| one.name.clone()).unwrap_or_default();
                stage.part.note(format!("{name} skipped: {why}"));
            }
            Err(halt) => {
                played = Err(halt);
                break;
            }
        }
    }
    report(stage, &found);
    played
}

/// A network to a remote server, if there can be one.
fn network(stage: &mut Stage<'_>) -> Option<Netns> {
    match Netns::new(stage.host, 1) {
        Ok(netns) => {
            stage.part.note(
                "`remote` is a server in another network namespace, over TCP and a virtual cable without \
                 delay; the document's was another machine, and took 2,020 us for a get",
            );
            Some(netns)
        }
        Err(why) => {
            stage.part.note(format!(
                "`remote` is a server on this host over TCP, without a network between (no namespaces: \
                 {why}); the document's was another machine, and took 2,020 us for a get"
            ));
            None
        }
    }
}

fn measure(
    stage: &mut Stage<'_>,
    perl: &Perl,
    netns: Option<&Netns>,
    store: Store,
    make: Option<Make>,
    one: &mut Found,
    left: &mut f64,
) -> Result<(), Halt> {
    let mut server = None;
    if let Some(make) = make {
        let mut setup = Setup::new(make);
        setup.listen = match store {
            Store::Local => Listen::Unix,
            _ => Listen::Tcp(netns.map_or(Ipv4Addr::LOCALHOST, |netns| netns.middle)),
        };
        server = stage.server(setup)?;
        if server.is_none() {
            *left -= 2.0;
            return Ok(());
        }
    }
    let place = server.as_ref().map_or_else(String::new, |server: &Server| server.address.to_string());
    let host = netns.filter(|_| store == Store::Remote).and_then(|netns| {
        let words = netns.transport().replace("{host}", netns.hosts.first()?);
        Some(words.split(' ').map(str::to_string).collect::<Vec<_>>())
    });
    for with_set in [false, true] {
        let time = stage.share(1.0, *left, LEAST);
        *left -= 1.0;
        stage.tell(&format!("{}, {}", one.name, if with_set { "set and get" } else { "get" }));
        let ran = perl.run(stage, store, &place, host.as_deref().unwrap_or(&[]), with_set, ITERATIONS, time);
        stage.go_on()?;
        let ran = ran.map_err(Halt::Failed)?;
        if with_set { one.write = Some(ran) } else { one.read = Some(ran) }
    }
    Ok(())
}

fn report(stage: &mut Stage<'_>, found: &[Found]) {
    stage.part.tables.extend(seed::tables());
    let mut rows = Vec::new();
    let mut least = ITERATIONS;
    for one in found {
        let seconds = |ran: &Option<Ran>| {
            ran.as_ref().map_or("-".to_string(), |ran| figure(ran.iteration_us() * ITERATIONS as f64 / 1e6))
        };
        for ran in [&one.read, &one.write].into_iter().flatten() {
            least = least.min(ran.iterations);
            let message = format!("{} wrong of {} values read", ran.wrong, ran.iterations);
            let verdict = if ran.wrong == 0 { Verdict::Pass } else { Verdict::Fail };
            let what = format!("{}, {}", one.name, if ran.with_set { "set and get" } else { "get" });
            stage.part.check_of(&what, check("values", verdict, message));
        }
        let theirs = |of: fn(&seed::Row) -> f64| one.theirs.map_or("-".to_string(), |row| figure(of(row)));
        let costs = one.costs_us();
        rows.push(row([
            &one.name,
            &theirs(|row| row.read_s),
            &theirs(|row| row.write_s),
            &seconds(&one.read),
            &seconds(&one.write),
            &one.read.as_ref().map_or("-".to_string(), |ran| ran.misses.to_string()),
            &costs.map_or("-".to_string(), |(get, _)| figure(get)),
            &costs.map_or("-".to_string(), |(_, set)| figure(set)),
        ]));
    }
    let columns =
        ["", "document read s", "document write s", "read s", "write s", "misses", "us a get", "us a set"];
    stage.part.table("seconds for 50,000 iterations", &columns, rows);
    model(stage, found);
    if least < ITERATIONS {
        stage.part.note(format!(
            "loops of {} iterations or more, as the budget allowed; seconds are scaled to the document's {}",
            figure(least as f64),
            figure(ITERATIONS as f64)
        ));
    }
    stage.part.note("the value is made by this program, as long as the document's page (28,579 bytes)");
    stage.part.note(
        "Cache::Tiered, Cache::TieredFast and Cache::TieredLmc are left out: they come with \
                     the tiered client",
    );
}

/// Adds the cost of two tiers, computed from the costs of one each.
fn model(stage: &mut Stage<'_>, found: &[Found]) {
    let costs = |name: &str| found.iter().find(|one| one.name == name).and_then(Found::costs_us);
    let remotes = ["remote larder", "remote memcached"];
    let firsts =
        [("Cache::Mmap", "Tiered"), ("Cache::FastMmap", "TieredFast"), ("local larder", "TieredLmc")];
    let mut rows = Vec::new();
    for remote in remotes {
        let Some((l2_get, l2_set)) = costs(remote) else { continue };
        for (first, name) in firsts {
            let Some((l1_get, l1_set)) = costs(first) else { continue };
            let costs = Costs { l1_get, l1_set, l2_get, l2_set };
            rows.push(row([
                &name,
                &first,
                &remote,
                &figure(costs.get_hit()),
                &figure(costs.get_miss()),
                &figure(costs.set() + costs.get_hit()),
                &figure(costs.set() + costs.get_miss()),
                &figure(l2_get / l1_get),
            ]));
            let sane = l1_get > 0.0 && l2_get > 0.0;
            let message = format!(
                "{name} before {remote}: a get {} us when the first tier hits, {} us when not, {} us \
                 without it",
                figure(costs.get_hit()),
                figure(costs.get_miss()),
                figure(l2_get)
            );
            let verdict = match sane && costs.get_hit() < l2_get {
                true => Verdict::Pass,
                false => Verdict::Warn,
            };
            stage.part.check(check("tiers-model", verdict, message));
        }
    }
    if !rows.is_empty() {
        let columns = [
            "",
            "first",
            "second",
            "get, hit us",
            "get, miss us",
            "set+get, hit us",
            "set+get, miss us",
            "gain at most",
        ];
        stage.part.table("what two tiers would cost, computed", &columns, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_the_second_loop_costs_more() {
        let ran = |seconds, with_set| Some(Ran { iterations: 1000, seconds, misses: 0, wrong: 0, with_set });
        let one = Found { name: "x".into(), theirs: None, read: ran(0.05, false), write: ran(0.08, true) };
        let (get, set) = one.costs_us().expect("both ran");
        assert!((get - 50.0).abs() < 1e-9 && (set - 30.0).abs() < 1e-9);
        assert!(Found { write: None, ..one }.costs_us().is_none());
    }
}
