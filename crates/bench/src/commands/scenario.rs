//! `larder-bench scenario`: the five published benchmarks, made again.

use super::agent::plan_of;
use super::counter::{Threads, parse_threads};
use super::{Exit, Failure, choices, hosts, output};
use crate::net::Address;
use crate::report;
use crate::result::Document;
use crate::scenario::folder::Folder;
use crate::scenario::stage::Peer;
use crate::scenario::text::{hanging, table, wrapped};
use crate::scenario::{ALL, GivenPeer, Host, Options, Part, Run, Scenario, host, named, text};
use crate::sweep::Values;
use crate::transport::host::Place;
use crate::workload::parse;
use std::io::{self, IsTerminal, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connections a thread of a sweep at most: beyond, a host runs out of files.
const PER_THREAD_MAX: u64 = 500;
/// Threads of a server, and server processes, of a sweep at most.
const SERVER_THREADS_MAX: u64 = 64;

/// Make published benchmarks of caches again: the document's figures beside
/// ours, with checks.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Name the scenarios
    List,
    /// Describe one, with the document's figures
    Show {
        /// Its name
        #[arg(value_parser = scenario)]
        name: Scenario,
    },
    /// Run one, several or all
    Run(Box<RunArgs>),
}

/// Run scenarios: servers are started here, on free ports, and ended again.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Names as `list` shows them, or all
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// How long all of them together may take, about
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse::duration)]
    budget: Duration,
    /// Larder's program [default: next to this one, else in PATH]
    #[arg(long, value_name = "PATH")]
    larder: Option<PathBuf>,
    /// Peers to compare it with: memcached, redis or none [default: all that
    /// are installed]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = peer)]
    peers: Option<Vec<Option<Peer>>>,
    /// A server that runs already, as one more row of php-loop, memtier-sweep
    /// and counter-shootout, such as fatcache=127.0.0.1:11211; may be given
    /// several times
    #[arg(long = "peer", value_name = "NAME=ADDRESS", value_parser = given_peer)]
    given_peers: Vec<GivenPeer>,
    /// Numbers of connections a thread for memtier-sweep, such as 1:40:1 or 1,8,40
    #[arg(long, value_name = "NUMBERS", value_parser = per_thread)]
    per_thread: Option<Values>,
    /// Numbers of threads that increment, for counter-shootout: 1-10, or 1,2,4
    #[arg(long, value_name = "RANGE", value_parser = parse_threads)]
    threads: Option<Threads>,
    /// Numbers of threads of a server, for memtier-sweep, such as 1,2,4
    #[arg(long, value_name = "NUMBERS", value_parser = server_threads)]
    server_threads: Option<Values>,
    /// Numbers of server processes of one thread that share the keys, for memtier-sweep, such as 1,2,4
    #[arg(long, value_name = "NUMBERS", value_parser = server_threads)]
    processes: Option<Values>,
    /// The hosts that make the load of memtier-sweep
    #[command(flatten)]
    hosts: hosts::Those,
    /// With --hosts: this machine's address at which servers are started for them
    #[arg(long, value_name = "IPV4", help_heading = "Fleet")]
    listen: Option<Ipv4Addr>,
    /// A MongoDB for counter-shootout [default: a server in memory that speaks its wire, if Maven can fetch it]
    #[arg(long, value_name = "URL")]
    mongodb: Option<String>,
    /// Keep the document's flaws where that means something
    #[arg(long)]
    as_seed: bool,
    /// A server that runs already: HOST, HOST:PORT or unix:PATH. The remote one
    /// of perl-tiers; one more row of each other scenario
    #[arg(long, value_name = "ADDRESS", value_parser = choices::address, help_heading = "Loops")]
    server: Option<Address>,
    /// Values and counts of scenarios
    #[command(flatten)]
    choices: choices::Args,
    /// Where results go
    #[command(flatten)]
    common: Common,
}

/// Where servers' files and results go.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Common {
    /// Where servers may keep their files [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Write the report into this folder: a page, Markdown, CSV, JSON
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the result to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Say nothing but errors while it runs
    #[arg(short, long)]
    quiet: bool,
}

fn scenario(name: &str) -> Result<Scenario, String> {
    named(name).ok_or_else(|| format!("there is no scenario `{name}`; there are {}", names()))
}

fn names() -> String {
    ALL.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ")
}

fn peer(name: &str) -> Result<Option<Peer>, String> {
    match name {
        "none" => Ok(None),
        name => match Peer::ALL.into_iter().find(|peer| peer.name() == name) {
            Some(peer) => Ok(Some(peer)),
            None => Err("is one of memcached, redis, none".to_string()),
        },
    }
}

fn per_thread(text: &str) -> Result<Values, String> {
    let values: Values = text.parse()?;
    match values.0.last() {
        Some(most) if *most > PER_THREAD_MAX => {
            Err(format!("at most {PER_THREAD_MAX} connections a thread: each thread of each host has them"))
        }
        _ => Ok(values),
    }
}

fn server_threads(text: &str) -> Result<Values, String> {
    let values: Values = text.parse()?;
    match values.0.last() {
        Some(most) if *most > SERVER_THREADS_MAX => Err(format!("{SERVER_THREADS_MAX} at most")),
        _ => Ok(values),
    }
}

fn given_peer(text: &str) -> Result<GivenPeer, String> {
    let (name, address) = text.split_once('=').ok_or("is NAME=ADDRESS, such as fatcache=127.0.0.1:11211")?;
    if name.is_empty() || name.len() > 40 || name.contains(char::is_control) {
        return Err("a name has 1 to 40 characters".to_string());
    }
    Ok(GivenPeer { name: name.to_string(), address: choices::address(address)? })
}

/// Runs the command.
///
/// # Errors
/// Nothing could be run, or the result could not be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let width = output::width();
    match args.command {
        Command::List => {
            for scenario in ALL {
                print(&listed(scenario, width));
            }
            Ok(Exit::Ok)
        }
        Command::Show { name } => {
            show(&name, width);
            Ok(Exit::Ok)
        }
        Command::Run(args) => start(&args, width),
    }
}

fn listed(scenario: &Scenario, width: usize) -> String {
    let line = format!("{:<17} {}\n", scenario.name, scenario.about);
    if line.len() <= width {
        line
    } else {
        format!("{}\n{}", scenario.name, hanging("", scenario.about, width))
    }
}

/// Prints; the reader of a pipe may be gone, and the exit status carries the result.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn show(scenario: &Scenario, width: usize) {
    let heading = format!("{}: {}", scenario.name, scenario.about);
    let mut page = format!("{}\n\n", wrapped(&heading, width, "  "));
    for (name, words) in [("asks", scenario.question), ("runs", scenario.runs), ("fixes", scenario.fixes)] {
        page += &hanging(name, words, width);
    }
    for one in (scenario.document)() {
        page += &format!("\n{}", table(&one, width));
    }
    print(&page);
}

fn start(args: &RunArgs, width: usize) -> Result<Exit, Failure> {
    let scenarios = chosen(&args.names)?;
    let mut given = args.choices.given(args.server.as_ref());
    let more = [
        ("--peer", !args.given_peers.is_empty()),
        ("--per-thread", args.per_thread.is_some()),
        ("--threads", args.threads.is_some()),
        ("--server-threads", args.server_threads.is_some()),
        ("--processes", args.processes.is_some()),
        ("--hosts", args.hosts.are_given()),
        ("--listen", args.listen.is_some()),
    ];
    given.extend(more.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name));
    for one in &scenarios {
        if let Some(option) = given.iter().find(|option| !one.takes.contains(option)) {
            let takers = ALL.iter().filter(|one| one.takes.contains(option)).map(|one| one.name);
            let takers = takers.collect::<Vec<_>>().join(", ");
            let message = format!("{option} is no option of `{}`, but of: {takers}", one.name);
            return Err(Failure::usage(message));
        }
    }
    let options = args.options()?;
    let title = match scenarios.as_slice() {
        [one] => format!("Scenario {}", one.name),
        all => format!("{} scenarios", all.len()),
    };
    play(&args.common, &scenarios, args.budget, &options, title, width)
}

/// Runs scenarios, prints what they found, and writes it.
///
/// # Errors
/// Nothing could be run, or the result could not be written.
pub fn play(
    args: &Common,
    scenarios: &[Scenario],
    budget: Duration,
    options: &Options,
    title: String,
    width: usize,
) -> Result<Exit, Failure> {
    writable(args)?;
    // An empty TMPDIR names no folder.
    let usual = || Some(std::env::temp_dir()).filter(|folder| folder.is_absolute());
    let parent = args.folder.clone().or_else(usual).unwrap_or_else(|| PathBuf::from("/tmp"));
    let no_place = |e: io::Error| Failure::error(format!("{}: {e}; say --folder DIR", parent.display()));
    // Servers run in folders of their own, where a relative path would lead elsewhere.
    let folder = parent.canonicalize().and_then(|parent| Folder::new(&parent)).map_err(no_place)?;
    let stop = stop_on_signals();
    let host = Host::look();
    let mut document = output::document();
    document.title = title;
    document.environment.facts = host.facts(folder.path());
    let is_live = !args.quiet && io::stdout().is_terminal();
    let tell = |what: &str| {
        if is_live {
            print(&format!("\r\x1b[2K{}", what.get(..width.saturating_sub(1)).unwrap_or(what)));
        }
    };
    let run = Run { options, host: &host, folder: folder.path(), stop: &stop, tell: &tell, plan_of };
    let (mut is_wrong, mut is_certified) = (false, true);
    let is_whole = run.all(scenarios, budget, &mut |scenario: &Scenario, part: Part| {
        tell("");
        if !args.quiet {
            let line = "=".repeat(width.min(78));
            print(&format!(
                "{line}\n{}\n\n",
                wrapped(&format!("{}: {}", scenario.name, scenario.about), width, "  ")
            ));
            print(&format!("{}\n", text::part(&part, width)));
        }
        is_wrong |= part.is_wrong();
        is_certified &= part.is_certified();
        part.add_to(&mut document);
    });
    // Servers are gone by now, and their files go before the report is written: it may need the room.
    drop(folder);
    versions(&mut document);
    write(args, &document)?;
    if !is_whole {
        let why = match stop.load(Ordering::Relaxed) {
            true => "stopped; these are the results so far",
            false => "a scenario did not come to its end; its check `scenario` says why",
        };
        eprintln!("larder-bench: {why}");
    }
    Ok(match () {
        () if is_wrong => Exit::Wrong,
        () if !is_whole => Exit::Error,
        () if !is_certified => Exit::NotCertified,
        () => Exit::Ok,
    })
}

impl RunArgs {
    fn options(&self) -> Result<Options, Failure> {
        let peers = match &self.peers {
            None => Peer::ALL.to_vec(),
            Some(peers) => peers.iter().copied().flatten().collect(),
        };
        let larder = larder(self.larder.as_deref())?;
        let mut wanted = self.choices.wanted(self.server.clone())?;
        let numbers = |values: &Option<Values>| -> Vec<usize> {
            values.iter().flat_map(|values| &values.0).map(|n| *n as usize).collect()
        };
        wanted.per_thread = numbers(&self.per_thread);
        wanted.threads = self.threads.iter().flat_map(|threads| threads.0.clone()).collect();
        wanted.server_threads = numbers(&self.server_threads);
        wanted.processes = numbers(&self.processes);
        let options = Options {
            larder,
            peers,
            given_peers: self.given_peers.clone(),
            as_seed: self.as_seed,
            mongodb: self.mongodb.clone(),
            fleet: self.hosts.fleet()?,
            listen: self.listen,
            wanted,
        };
        reachable(&options).map_err(Failure::usage)?;
        Ok(options)
    }
}

/// Checks that the hosts of a fleet reach the servers of their load.
fn reachable(options: &Options) -> Result<(), String> {
    let Some(fleet) = &options.fleet else {
        let message =
            "--listen is for the hosts of --hosts; servers for this machine alone listen on loopback";
        return if options.listen.is_some() { Err(message.to_string()) } else { Ok(()) };
    };
    if options.as_seed {
        return Err("--as-seed: one process stands for all hosts, so it does not go with --hosts".to_string());
    }
    let Some(far) = fleet.hosts.iter().find(|host| host.place != Place::Local) else { return Ok(()) };
    if options.listen.is_none_or(|listen| listen.is_loopback()) {
        return Err(format!(
            "--hosts: {} does not reach servers on loopback; name an address of this machine for them by \
             --listen",
            far.name
        ));
    }
    match options.given().into_iter().find(|peer| peer.address.is_of_this_host()) {
        Some(peer) => Err(format!(
            "--hosts: {} does not reach {} at {}; give the address at which other hosts reach it",
            far.name, peer.name, peer.address
        )),
        None => Ok(()),
    }
}

fn chosen(names: &[String]) -> Result<Vec<Scenario>, Failure> {
    if names.iter().any(|name| name == "all") {
        return Ok(ALL.to_vec());
    }
    // In their own order, each once.
    let wrong = names.iter().find_map(|name| scenario(name).err());
    match wrong {
        Some(message) => Err(Failure::usage(message)),
        None => Ok(ALL
            .iter()
            .copied()
            .filter(|scenario| names.iter().any(|name| name == scenario.name))
            .collect()),
    }
}

/// Larder's program: the one given, else next to this one, else in PATH.
fn larder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return match path.canonicalize() {
            Ok(path) if path.is_file() => Ok(path),
            _ => Err(Failure::usage(format!("--larder {}: there is no such program", path.display()))),
        };
    }
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("larder")));
    beside
        .filter(|path| path.is_file())
        .or_else(|| host::program("larder", &[]))
        .ok_or_else(|| Failure::usage("larder is neither beside this program nor in PATH; say --larder PATH"))
}

/// Checks that the result can be written, before the scenarios run.
fn writable(args: &Common) -> Result<(), Failure> {
    if let Some(folder) = &args.output {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|e| Failure::error(format!("-o {}: {e}", folder.display())))?;
    }
    if let Some(path) = &args.json {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|e| Failure::error(format!("--json {}: {e}", path.display())))?;
    }
    Ok(())
}

/// Only the flag: a second Ctrl-C must not leave servers behind, and the first one is heard soon everywhere.
fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// The versions of the servers that were measured, in the environment.
fn versions(document: &mut Document) {
    let of_runs = document.runs.iter().map(|run| run.server.clone());
    let of_counters = document.counters.iter().map(|one| format!("{} {}", one.store, one.version));
    let mut versions: Vec<String> =
        of_runs.chain(of_counters).filter(|version| !version.is_empty()).collect();
    versions.sort();
    versions.dedup();
    document.environment.facts.push(("servers".to_string(), versions.join("; ")));
}

fn write(args: &Common, document: &Document) -> Result<(), Failure> {
    let json = args.json.as_deref().map_or(Ok(()), |path| output::write_json(path, document));
    if let Some(folder) = &args.output {
        report::write_bundle(folder, document)
            .map_err(|e| Failure::error(format!("the report could not be written: {e}")))?;
        if !args.quiet {
            print(&format!("report: {}\n", folder.join("report.html").display()));
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Wanted;

    #[test]
    fn hosts_must_reach_their_servers() {
        let of = |hosts: &str, listen: Option<Ipv4Addr>, server: Option<&str>| {
            let those = hosts::Those {
                hosts: Some(hosts.to_string()),
                ssh: "ssh".to_string(),
                remote: Some("/larder-bench".to_string()),
                ..hosts::Those::default()
            };
            let server = server.map(|server| choices::address(server).expect("it is one"));
            let wanted = Wanted { server, ..Wanted::default() };
            let fleet = those.fleet().expect("hosts");
            reachable(&Options { fleet, listen, wanted, ..Options::default() })
        };
        let here = Some(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(of("local*2", None, Some("127.0.0.1")), Ok(()));
        assert_eq!(of("a,b", here, Some("10.0.0.9")), Ok(()));
        assert!(of("a,b", None, None).is_err_and(|why| why.contains("--listen")));
        assert!(of("a", Some(Ipv4Addr::LOCALHOST), None).is_err_and(|why| why.contains("loopback")));
        for server in ["127.0.0.1:7", "localhost:7", "unix:/run/x", "[::1]:7"] {
            assert!(
                of("a", here, Some(server)).is_err_and(|why| why.contains("does not reach server")),
                "{server}"
            );
        }
        let alone = Options { listen: here, ..Options::default() };
        assert!(reachable(&alone).is_err_and(|why| why.contains("--hosts")));
    }

    #[test]
    fn names_are_chosen_in_their_own_order() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            chosen(&names).map(|all| all.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&["perl-tiers", "php-loop", "php-loop"]), Ok(vec!["php-loop", "perl-tiers"]));
        assert_eq!(chosen(&["all"]).map(|all| all.len()), Ok(ALL.len()));
        assert!(chosen(&["php"]).is_err_and(|failure| failure.message.contains("counter-shootout")));
    }

    #[test]
    fn a_given_peer_has_a_name_and_an_address() {
        let peer = given_peer("fatcache=10.0.0.1:22122").expect("it is one");
        assert_eq!((peer.name.as_str(), peer.address.to_string().as_str()), ("fatcache", "10.0.0.1:22122"));
        for wrong in ["10.0.0.1", "=10.0.0.1", "a=", "a=redis://h"] {
            assert!(given_peer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn connections_a_thread_are_a_list_or_a_range() {
        assert!(per_thread("1:40:1").is_ok_and(|values| values.0.len() == 40));
        assert!(per_thread("501").is_err() && per_thread("0").is_err());
    }

    #[test]
    fn peers_have_names() {
        assert_eq!(peer("redis"), Ok(Some(Peer::Redis)));
        assert_eq!(peer("none"), Ok(None));
        assert!(peer("valkey").is_err());
    }
}
