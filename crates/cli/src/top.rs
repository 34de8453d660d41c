//! `larder top`: the prefixes, keys or clients that a server has most to do with.

mod over_http;
mod space_saving;

use std::collections::HashMap;
use std::io::{IsTerminal, stdout};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use larder_client::{Client, Watch, WatchLine};
use serde::Serialize;

use crate::connect::One;
use crate::exit::{Failure, Outcome, Verdict, print, print_json};
use crate::figures::stats;
use crate::http::HttpSource;
use crate::prefixes::{Prefix, Prefixes};
use crate::screen::{Progress, stop_on_signals, width};
use crate::spool::list;
use crate::units::{self, show_bytes, show_count, show_key, show_whole};
use space_saving::{SpaceSaving, Weight};

/// Names that are counted at a time. One with more than a two-thousandth of all requests is among them.
const NAMES_MAX: usize = 2048;
const WAIT: Duration = Duration::from_millis(100);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Prefixes of keys, up to the delimiter
    Prefixes,
    /// Keys
    Keys,
    /// Connections of clients, by their addresses
    Clients,
}

/// Shows the prefixes, keys or clients that are asked for most
///
/// It watches what the server does (`watch fetchers`), which makes no request wait: lines that come faster than
/// they can be sent are left out, and it says how many. Of prefixes a Larder also tells what they have in RAM and
/// on the SSD, and their share of the bytes written there (stats prefixes). On a terminal it goes on until Ctrl-C;
/// in a pipe it ends after one interval. With --stored it counts the items of the list of keys instead. With --http
/// it shows the prefixes that the daemon counts itself (-D, or `stats detail on`); it tells them only with
/// --http-token-file.
#[derive(Debug, Args)]
pub struct TopArguments {
    /// What to count
    #[arg(value_enum, default_value = "prefixes")]
    of: Of,
    /// Watch for so long before the next view
    #[arg(long, short, value_name = "TIME", default_value = "2s", value_parser = units::duration)]
    interval: Duration,
    /// End after so many views
    #[arg(long, short, value_name = "N")]
    count: Option<u64>,
    /// Show so many names
    #[arg(long, short = 'n', value_name = "N", default_value = "20")]
    names: usize,
    /// The character that ends a prefix
    #[arg(long, value_name = "CHAR", default_value = ":", conflicts_with = "http")]
    delimiter: char,
    /// Count items and their bytes, not requests
    #[arg(long, conflicts_with = "http")]
    stored: bool,
    /// Print each view as an object of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    http: HttpSource,
    #[command(flatten)]
    one: One,
}

/// One view.
#[derive(Debug, Serialize)]
struct View {
    /// The time that it is about; 0 for items.
    seconds: f64,
    /// Requests, or items.
    counted: u64,
    /// Requests that the server left out.
    skipped: u64,
    names: Vec<Name>,
}

#[derive(Debug, Serialize)]
struct Name {
    name: String,
    /// Requests, or items.
    count: u64,
    /// By how much `count` may be too large.
    error: u64,
    /// Those of the requests that could have found an item; `None` if all could.
    #[serde(skip_serializing_if = "Option::is_none")]
    gets: Option<u64>,
    /// Requests that found an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    hits: Option<u64>,
    /// Bytes of the values that they found, or of the items; `None` if the server does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// What the prefix costs, if the server accounts for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

/// What a prefix costs, as its server estimates it.
#[derive(Debug, Serialize)]
struct Cost {
    ram_bytes: u64,
    ssd_bytes: u64,
    /// Of all bytes written to the SSD in the server's window, from 0 to 1.
    written_share: f64,
    /// Sampled items that this rests on.
    sampled_items: u64,
}

impl Cost {
    fn of(prefixes: &Prefixes, prefix: &Prefix) -> Cost {
        Cost {
            ram_bytes: prefix.ram_bytes,
            ssd_bytes: prefix.ssd_bytes,
            written_share: prefixes.share(prefix, |row| row.ssd_bytes_written),
            sampled_items: prefix.items,
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// The server refuses to be watched, or to list its keys.
pub fn run(arguments: &TopArguments) -> Outcome<Verdict> {
    let stop = stop_on_signals();
    let views = match arguments.count {
        Some(count) => count,
        None if stdout().is_terminal() && !arguments.json => u64::MAX,
        None => 1,
    };
    if let Some(http) = arguments.http.alone(&arguments.one)? {
        return over_http::run(arguments, http, views, &stop).map(|()| Verdict::Fine);
    }
    let client = arguments.one.client()?;
    if arguments.stored {
        if arguments.of == Of::Clients {
            return Err(Failure::Usage("items belong to no client; leave out --stored".to_string()));
        }
        return stored(arguments, &client, &stop)
            .and_then(|view| show(arguments, &view))
            .map(|()| Verdict::Fine);
    }
    let mut watch = client.watch(0, "fetchers")?;
    for _ in 0..views {
        let view = watched(arguments, &client, &mut watch, &stop)?;
        if stop.load(Relaxed) {
            break;
        }
        show(arguments, &view)?;
    }
    Ok(Verdict::Fine)
}

/// Counts what the server does for an interval.
fn watched(arguments: &TopArguments, client: &Client, watch: &mut Watch, stop: &AtomicBool) -> Outcome<View> {
    let began = Instant::now();
    let until = began + arguments.interval;
    let (mut names, mut counted, mut skipped) = (SpaceSaving::new(NAMES_MAX), 0, 0);
    while Instant::now() < until && !stop.load(Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        let Some(line) = watch.next(left.min(WAIT))? else { continue };
        skipped += line.skipped();
        if let Some(name) = name(arguments, &line) {
            let is_hit = line.field("status") == Some(b"found");
            let bytes = if is_hit { number(&line, "size") } else { 0 };
            counted += 1;
            names.add(&name, Weight { count: 1, hits: u64::from(is_hit), bytes });
        }
    }
    let addresses = if arguments.of == Of::Clients { addresses(client)? } else { HashMap::new() };
    let shown = |name: &[u8]| match addresses.get(name) {
        Some(address) => address.clone(),
        None if arguments.of == Of::Clients => format!("connection {}, closed", show_key(name)),
        None => show_key(name),
    };
    let prefixes = match arguments.of {
        Of::Prefixes => Prefixes::ask(client)?,
        Of::Keys | Of::Clients => None,
    };
    let names = names.top(arguments.names).into_iter().map(|(name, weight, error)| Name {
        cost: prefixes.as_ref().and_then(|prefixes| cost(arguments, prefixes, &name)),
        name: shown(&name),
        count: weight.count,
        error,
        gets: None,
        hits: Some(weight.hits),
        bytes: Some(weight.bytes),
    });
    Ok(View { seconds: began.elapsed().as_secs_f64(), counted, skipped, names: names.collect() })
}

/// Counts the items of the list of keys.
fn stored(arguments: &TopArguments, client: &Client, stop: &AtomicBool) -> Outcome<View> {
    let (mut names, mut counted) = (SpaceSaving::new(NAMES_MAX), 0);
    let mut progress = Progress::new(false);
    for listed in list(client, stop)? {
        let listed = listed?;
        if stop.load(Relaxed) {
            return Err(Failure::Interrupted);
        }
        counted += 1;
        names.add(key_name(arguments, &listed.key), Weight { count: 1, hits: 0, bytes: listed.bytes });
        progress.show(|| vec![format!("listed {} keys", show_whole(counted))]);
    }
    progress.end();
    let names = names.top(arguments.names).into_iter().map(|(name, weight, error)| {
        let name = show_key(&name);
        Name {
            name,
            count: weight.count,
            error,
            gets: None,
            hits: None,
            bytes: Some(weight.bytes),
            cost: None,
        }
    });
    Ok(View { seconds: 0.0, counted, skipped: 0, names: names.collect() })
}

fn name(arguments: &TopArguments, line: &WatchLine) -> Option<Vec<u8>> {
    match arguments.of {
        Of::Clients => line.field("cfd").map(<[u8]>::to_vec),
        Of::Keys | Of::Prefixes => Some(key_name(arguments, &line.key()?).to_vec()),
    }
}

/// Returns what a key is counted by. A key without the delimiter has the empty prefix, shown as `-`.
fn key_name<'k>(arguments: &TopArguments, key: &'k [u8]) -> &'k [u8] {
    if arguments.of == Of::Keys {
        return key;
    }
    let mut buffer = [0; 4];
    let delimiter = arguments.delimiter.encode_utf8(&mut buffer).as_bytes();
    let end = key.windows(delimiter.len()).position(|bytes| bytes == delimiter);
    end.and_then(|end| key.get(..end + delimiter.len())).unwrap_or(b"-")
}

/// Returns what a prefix costs, if the server accounts for it under the same name: it ends as the server's do.
fn cost(arguments: &TopArguments, prefixes: &Prefixes, name: &[u8]) -> Option<Cost> {
    let mut buffer = [0; 4];
    let delimiter = arguments.delimiter.encode_utf8(&mut buffer).as_bytes();
    if delimiter != prefixes.delimiter {
        return None;
    }
    let prefix = if name == b"-" { &b""[..] } else { name.strip_suffix(delimiter)? };
    let row = prefixes.rows.iter().find(|row| row.name.as_deref() == Some(prefix))?;
    Some(Cost::of(prefixes, row))
}

fn number(line: &WatchLine, name: &str) -> u64 {
    let text = line.field(name).and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Returns the address of each connection.
fn addresses(client: &Client) -> Outcome<HashMap<Vec<u8>, String>> {
    let connections = stats(client, "conns")?.into_iter();
    let address = |(name, value): (String, String)| {
        let number = name.strip_suffix(":addr")?;
        Some((number.as_bytes().to_vec(), value))
    };
    Ok(connections.filter_map(address).collect())
}

fn show(arguments: &TopArguments, view: &View) -> Outcome<()> {
    if arguments.json {
        return print_json(view);
    }
    let out = stdout();
    let clear = if out.is_terminal() && !arguments.stored { "\x1b[H\x1b[2J" } else { "" };
    print(&format!("{clear}{}", text(view, width(&out))))
}

fn text(view: &View, columns: usize) -> String {
    let mut text = match view.names.first() {
        Some(Name { hits: None, .. }) => format!("{} items\n\n", show_whole(view.counted)),
        _ => format!("{} requests in {:.1} s", show_whole(view.counted), view.seconds),
    };
    if !text.ends_with('\n') {
        text.push_str(&match view.skipped {
            0 => "\n\n".to_string(),
            skipped => format!("; {} more were not shown\n\n", show_whole(skipped)),
        });
    }
    let count = if view.seconds > 0.0 { "req/s" } else { "items" };
    let is_wide = columns >= 60;
    let has_costs = columns >= 80 && view.names.iter().any(|name| name.cost.is_some());
    text.push_str(&if is_wide {
        let costs = if has_costs { "     RAM       SSD   wear  " } else { "" };
        format!("{count:>7}  share   hit%     bytes  {costs}name\n")
    } else {
        format!("{count:>7}  hit%  name\n")
    });
    for name in &view.names {
        let rate = if view.seconds > 0.0 { name.count as f64 / view.seconds } else { name.count as f64 };
        let percent = |part: u64, whole: u64| format!("{:.0}%", part as f64 / whole.max(1) as f64 * 100.0);
        let (rate, share) = (show_count(rate.round() as u64), percent(name.count, view.counted));
        let hits = name.hits.map_or("-".to_string(), |hits| percent(hits, name.gets.unwrap_or(name.count)));
        let bytes = name.bytes.map_or("-".to_string(), show_bytes);
        let costs = match &name.cost {
            Some(cost) if has_costs => format!(
                "{:>8}  {:>8}  {:>4.0}%  ",
                show_bytes(cost.ram_bytes),
                show_bytes(cost.ssd_bytes),
                cost.written_share * 100.0
            ),
            None if has_costs => format!("{:>8}  {:>8}  {:>5}  ", "-", "-", "-"),
            _ => String::new(),
        };
        let facts = if is_wide {
            format!("{rate:>7}  {share:>5}  {hits:>5}  {bytes:>8}  {costs}")
        } else {
            format!("{rate:>7}  {hits:>4}  ")
        };
        let room = columns.saturating_sub(facts.len()).max(8);
        text.push_str(&format!("{facts}{}\n", name.name.chars().take(room).collect::<String>()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(of: Of) -> TopArguments {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            top: TopArguments,
        }
        let mut top = Line::parse_from(["top"]).top;
        top.of = of;
        top
    }

    #[test]
    fn a_prefix_ends_with_the_first_delimiter() {
        let top = arguments(Of::Prefixes);
        assert_eq!(key_name(&top, b"shop:a:b"), b"shop:");
        assert_eq!(key_name(&top, b":a"), b":");
        assert_eq!(key_name(&top, b"plain"), b"-");
        assert_eq!(key_name(&arguments(Of::Keys), b"shop:a:b"), b"shop:a:b");
    }

    #[test]
    fn what_a_prefix_costs_is_shown_where_the_server_cuts_keys_alike() {
        let prefixes = Prefixes::of(&crate::prefixes::tests::lines("ready")).expect("there are rows");
        let top = arguments(Of::Prefixes);
        let scan = cost(&top, &prefixes, b"scan:").expect("the server knows it");
        assert_eq!((scan.ram_bytes, scan.ssd_bytes, scan.written_share), (100, 600, 0.4));
        assert!(cost(&top, &prefixes, b"other:").is_none() && cost(&top, &prefixes, b"scan").is_none());
        let other = TopArguments { delimiter: '/', ..top };
        assert!(cost(&other, &prefixes, b"scan/").is_none());
        let name = |name: &str, cost| Name {
            name: name.to_string(),
            count: 5,
            error: 0,
            gets: None,
            hits: Some(1),
            bytes: Some(9),
            cost,
        };
        let names = vec![name("scan:", Some(scan)), name("other:", None)];
        let shown = text(&View { seconds: 1.0, counted: 10, skipped: 0, names }, 80);
        assert!(shown.contains("   100 B     600 B    40%  scan:\n"), "{shown}");
        assert!(shown.contains("       -         -      -  other:\n"), "{shown}");
    }

    #[test]
    fn a_view_fits_the_terminal() {
        let long = Name {
            name: "k".repeat(300),
            count: 123_456,
            error: 0,
            gets: None,
            hits: Some(99),
            bytes: Some(1 << 40),
            cost: Some(Cost { ram_bytes: 1 << 40, ssd_bytes: 1 << 50, written_share: 1.0, sampled_items: 9 }),
        };
        let view = View { seconds: 2.0, counted: 200_000, skipped: 0, names: vec![long] };
        for columns in [40, 80] {
            let shown = text(&view, columns);
            assert!(shown.lines().all(|line| line.len() <= columns), "{shown}");
        }
    }
}
