//! What the store's policy keeps of a recorded stream: hit ratios, writes, drops, in seconds and without a
//! server. It is the real store over a device in memory.
//!
//! ```text
//! larder-bench workload twitter-29 -n 2m --scale 0.5 -o twitter-29.trace
//! cargo run --release -p larder-store --example policy -- twitter-29.trace --ram 64m --ssd 256m
//! ```
//! It reads what `larder-bench workload` writes, and oracleGeneral of libCacheSim.

mod look_aside;
mod peers;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::process::ExitCode;

use larder_store::{Admission, SEGMENT_BYTES};
use lexopt::prelude::*;
use look_aside::{LookAside, Op, Request, percent};
use peers::Peer;

const USAGE: &str = "\
usage: policy TRACE [OPTIONS]
  --ram SIZE        the bound on all memory, as larder's -m [64m]
  --ssd SIZE        the SSD file, as larder's --ssd PATH:SIZE; 0 for none [0]
  --item-size SIZE  a typical item, as larder's [512]
  --key-size BYTES  length of every key instead of the trace's
  --admission WHAT  all, returning or auto, as larder's --ssd-admission [all]
  --sample N        with auto, one key of N is in the sample: a power of two [1]
  --live-percent N  as larder's --ssd-live-percent [70]
  --first N         only so many requests
  --peers           other caches' policies instead of the store's, all at once
  --json            one object instead of one line";

/// The first bytes of what `larder-bench workload` writes.
const MAGIC: &[u8; 8] = b"LARDTRC1";
/// The daemon's file has so much before its first segment.
const SUPERBLOCK_BYTES: u64 = 1 << 20;

struct Options {
    trace: String,
    ram_bytes: u64,
    ssd_bytes: u64,
    item_bytes: u32,
    admission: Admission,
    live_percent: u32,
    key_bytes: Option<usize>,
    first: u64,
    sample: Option<u32>,
    json: bool,
    peers: bool,
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options).map_err(|error| format!("{}: {error}", options.trace))) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("policy: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A number with k, m or g for its powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'k')) => (&text[..at], 10),
        Some((at, 'm')) => (&text[..at], 20),
        Some((at, 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().filter(|number| *number <= u64::MAX >> shift);
    number.map(|number| number << shift).ok_or_else(|| format!("{text} is no size such as 64m"))
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        trace: String::new(),
        ram_bytes: 64 << 20,
        ssd_bytes: 0,
        item_bytes: 512,
        admission: Admission::All,
        live_percent: 70,
        key_bytes: None,
        first: u64::MAX,
        sample: None,
        json: false,
        peers: false,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let name = match argument {
            Long(name) => name.to_string(),
            Value(path) if options.trace.is_empty() => {
                options.trace = path.to_string_lossy().into_owned();
                continue;
            }
            other => return Err(format!("{}\n{USAGE}", other.unexpected())),
        };
        match name.as_str() {
            "json" => options.json = true,
            "peers" => options.peers = true,
            _ => {}
        }
        if name == "json" || name == "peers" {
            continue;
        }
        let value = parser.value().map_err(|error| error.to_string())?;
        if name == "admission" {
            options.admission = match &*value.to_string_lossy() {
                "all" => Admission::All,
                "returning" => Admission::Returning,
                "auto" => {
                    options.sample = options.sample.or(Some(1));
                    Admission::All
                }
                other => return Err(format!("{other} is neither all nor returning nor auto")),
            };
            continue;
        }
        let value = size(&value.to_string_lossy())?;
        match name.as_str() {
            "ram" => options.ram_bytes = value,
            "ssd" => options.ssd_bytes = value,
            "item-size" => options.item_bytes = value.min(1 << 20) as u32,
            "key-size" => options.key_bytes = Some(value.min(250) as usize),
            "live-percent" => options.live_percent = value.min(100) as u32,
            "sample" => options.sample = Some((value.clamp(1, 1 << 20) as u32).next_power_of_two()),
            "first" => options.first = value,
            _ => return Err(format!("there is no option --{name}\n{USAGE}")),
        }
    }
    if options.trace.is_empty() { Err(USAGE.to_string()) } else { Ok(options) }
}

/// Reads a record of `N` bytes; `None` at the end.
fn record<const N: usize>(input: &mut impl Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match input.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn number<const N: usize>(bytes: &[u8], from: usize) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&bytes[from..from + N]);
    u64::from_le_bytes(word)
}

/// larder-bench's own: time in ns, key, value bytes, ttl, key bytes, operation.
fn ours(bytes: &[u8; 32]) -> io::Result<Request> {
    let op = match bytes[26] {
        0 | 1 => Op::Get,
        2..=7 => Op::Set,
        8 => Op::Delete,
        _ => return Err(io::Error::other("it counts, which is neither a get nor a set")),
    };
    Ok(Request {
        at_s: (number::<8>(bytes, 0) / 1_000_000_000) as u32,
        key: number::<8>(bytes, 8),
        value_bytes: number::<4>(bytes, 16) as usize,
        ttl_s: number::<4>(bytes, 20) as u32,
        key_bytes: number::<2>(bytes, 24) as usize,
        op,
    })
}

/// oracleGeneral's: time in s from `first_s`, key, bytes of the object; all are gets.
fn oracle(bytes: &[u8; 24], first_s: u32) -> Request {
    Request {
        at_s: (number::<4>(bytes, 0) as u32).saturating_sub(first_s),
        key: number::<8>(bytes, 4),
        value_bytes: number::<4>(bytes, 12) as usize,
        ttl_s: 0,
        key_bytes: 16,
        op: Op::Get,
    }
}

fn run(options: &Options) -> Result<String, String> {
    let segments = options.ssd_bytes.saturating_sub(SUPERBLOCK_BYTES) / SEGMENT_BYTES;
    if options.peers {
        let mut peers = peers::all(options.ram_bytes, segments * SEGMENT_BYTES, options.item_bytes);
        replay(options, |request| peers.iter_mut().for_each(|(_, peer)| peer.request(request)))?;
        return Ok(report_peers(&peers, options.json));
    }
    let mut cache = LookAside::new(
        options.ram_bytes,
        segments,
        options.item_bytes,
        options.admission,
        options.live_percent,
    )?;
    if let Some(scale) = options.sample {
        let config = look_aside::config(
            options.ram_bytes,
            segments,
            options.item_bytes,
            options.admission,
            options.live_percent,
        );
        cache.choose_admission(&config, scale)?;
    }
    replay(options, |request| cache.request(request))?;
    cache.store.check()?;
    Ok(report(&cache, options.json))
}

/// Reads the trace, and hands over request by request.
fn replay(options: &Options, mut each: impl FnMut(&Request)) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let mut input = BufReader::with_capacity(1 << 20, File::open(&options.trace).map_err(said)?);
    let head: [u8; 16] = record(&mut input).map_err(said)?.ok_or("it is too short for a trace")?;
    let is_ours = head.starts_with(MAGIC);
    let first_s = number::<4>(&head, 0) as u32;
    // The other form has no head: these bytes are its first record's.
    let mut input = (if is_ours { &[][..] } else { &head[..] }).chain(input);
    for _ in 0..options.first {
        let request = if is_ours {
            record(&mut input).map_err(said)?.map(|bytes| ours(&bytes)).transpose().map_err(said)?
        } else {
            record(&mut input).map_err(said)?.map(|bytes| oracle(&bytes, first_s))
        };
        let Some(mut request) = request else { break };
        request.key_bytes = options.key_bytes.unwrap_or(request.key_bytes);
        each(&request);
    }
    Ok(())
}

/// A line for each peer, or one object with all of them.
fn report_peers(peers: &[(&str, Peer)], json: bool) -> String {
    let lines = peers.iter().map(|(name, peer)| {
        let (counts, written) = (peer.counts, peer.ssd_bytes_written());
        let hits = counts.hit_percent();
        let in_ram = percent(counts.hits_ram, counts.gets);
        match json {
            true => format!(
                "{{\"what\": \"{name}\", \"hit_percent\": {hits:.4}, \"ram_hit_percent\": {in_ram:.4}, \
                 \"gets\": {}, \"sets\": {}, \"ssd_bytes_written\": {written}}}",
                counts.gets, counts.sets
            ),
            false => format!(
                "{name} hit_percent {hits:.2} ram_hit_percent {in_ram:.2} ssd_bytes_written {written}"
            ),
        }
    });
    let lines: Vec<_> = lines.collect();
    if json { format!("{{\"peers\": [{}]}}", lines.join(", ")) } else { lines.join("\n") }
}

fn report(cache: &LookAside, json: bool) -> String {
    let (counts, stats) = (cache.counts, cache.store.stats());
    let written = stats.ssd_bytes_written as f64;
    let figures = [
        ("hit_percent", counts.hit_percent()),
        ("ram_hit_percent", percent(counts.hits_ram, counts.gets)),
        ("ssd_hit_percent", percent(counts.hits_ssd, counts.gets)),
        ("write_amplification", written / (stats.ssd_bytes_admitted.max(1)) as f64),
    ];
    let numbers = [
        ("gets", counts.gets),
        ("hits_ram", counts.hits_ram),
        ("hits_ssd", counts.hits_ssd),
        ("sets", counts.sets),
        ("refused", counts.refused),
        ("device_reads", counts.device_reads),
        ("ssd_bytes_written", stats.ssd_bytes_written),
        ("ssd_bytes_admitted", stats.ssd_bytes_admitted),
        ("ssd_admissions_dropped", stats.ssd_admissions_dropped),
        ("ssd_admissions_refused", stats.ssd_admissions_refused),
        ("evictions", stats.evictions),
        ("index_evictions", stats.index_evictions),
        ("ram_items", stats.ram_items),
        ("ram_item_bytes", stats.ram_item_bytes),
        ("ram_tier_bytes", stats.ram_tier_bytes),
        ("ssd_items", stats.ssd_items),
        ("ssd_segments", stats.ssd_segments),
        ("shards", stats.shards),
        ("switches", cache.choice.as_ref().map_or(0, |choice| choice.chosen().switches)),
        ("returning", u64::from(cache.store.admission() == Admission::Returning)),
    ];
    if json {
        let figures = figures.iter().map(|(name, figure)| format!("\"{name}\": {figure:.4}"));
        let numbers = numbers.iter().map(|(name, number)| format!("\"{name}\": {number}"));
        let members: Vec<_> = figures.chain(numbers).collect();
        return format!("{{{}}}", members.join(", "));
    }
    let figures = figures.iter().map(|(name, figure)| format!("{name} {figure:.2}"));
    let numbers = numbers.iter().map(|(name, number)| format!("{name} {number}"));
    figures.chain(numbers).collect::<Vec<_>>().join(" ")
}
