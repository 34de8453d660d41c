//! What items that were described take: index, RAM tier, SSD, writes and wear, by the store's own arithmetic.

use larder_store::{
    Forecast, RECORD_ALIGN, RECORD_HEADER_BYTES, SEGMENT_BYTES, SSD_VALUE_BYTES_MAX, Span, Store,
    cleaning_factor, kept_index_bytes, ssd_bytes_for, ssd_bytes_of_record,
};

use super::words::{Kind, Wanted};
use crate::config::{Config, SsdPath};
use crate::startup::{memory, ssd};

const MIB: u64 = 1 << 20;
const DAY_S: f64 = 86_400.0;
/// The least memory that is planned, and the most that items take which need no SSD beside it, in bytes.
const MEMORY_BYTES_MIN: u64 = 64 * MIB;
const NO_SSD_BYTES_MAX: f64 = 48.0 * MIB as f64;
/// The least RAM tier beside an SSD, in bytes.
const RAM_TIER_BYTES_MIN: u64 = 32 * MIB;
/// The part of a RAM tier that items fill which must all be there; the rest are segments that are kept free or half
/// filled, as parts of all.
const RAM_FILLED: f64 = 0.9;
/// The least segments with which an SSD keeps all live items.
const SEGMENTS_MIN: u64 = 16;
/// Of the SSD that live items may take at most while they are overwritten at random, in percent: beyond that, keeping
/// them costs much more writes.
const OVERWRITTEN_PERCENT: f64 = 50.0;
/// Items expire as they were written if they are set at most so often in their time to live, and if no TTL is more than
/// so many times another.
const ONCE: f64 = 1.05;
const ALIKE: f64 = 2.0;
/// Items that live shorter are written apart from others; those below the second bound not at all. In seconds.
const SHORT_LIVED_S: f64 = 1800.0;
const WRITTEN_TTL_S_MIN: f64 = 2.0;
/// Above this a record has RAM segments of its own, of this size at most.
const LARGE_RECORD_BYTES: u64 = 128 << 10;
const RAM_SEGMENT_BYTES: u64 = 256 << 10;
/// The part of the items that RAM is to hold, in percent, unless given: less only where another server would be needed.
const HOT_PERCENTS: [f64; 5] = [5.0, 2.0, 1.0, 0.5, 0.2];
/// The most servers that a plan is for.
const SERVERS_MAX: u64 = 64;

/// A plan, for each of `servers` with an equal part of the keys. Sizes are in bytes.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub servers: u64,
    /// The kinds of items, a server's part of them.
    pub kinds: Vec<Kind>,
    pub items: u64,
    pub memory_bytes: u64,
    pub index_bytes: u64,
    pub keeps_index: bool,
    /// Whether the index is as large as it began.
    pub has_first_index: bool,
    /// The part of the items that the RAM tier was made for, in percent.
    pub hot_percent: f64,
    pub ram_tier_bytes: u64,
    /// The part of the items, by their bytes, that the RAM tier holds, in percent.
    pub ram_percent: f64,
    /// Of all paths together, as long as they have to be; 0 for none.
    pub ssd_bytes: u64,
    /// What live items take of it once each was written there.
    pub ssd_live_bytes: f64,
    pub ssd_live_percent: f64,
    /// Whether live items have to be moved because others die between them.
    pub is_overwritten: bool,
    /// Bytes written to the SSD for each byte of a record that goes there.
    pub write_amplification: f64,
    /// `None`: not known, since nothing tells how often items are set.
    pub written_bytes_a_day: Option<f64>,
    /// Until the SSDs have taken what they may.
    pub wear_days: Option<f64>,
    /// The configuration that starts such a server.
    pub config: Config,
}

/// Returns the plan with the fewest servers.
///
/// # Errors
/// No number of servers will do; the sentence says what to change.
pub(super) fn plan(wanted: &Wanted, config: &Config) -> Result<Plan, String> {
    let hot = wanted.hot_percent.map_or(HOT_PERCENTS.to_vec(), |percent| vec![percent]);
    let of_servers = |servers| hot.iter().find_map(|percent| of_servers(wanted, config, servers, *percent));
    (1..=SERVERS_MAX).find_map(of_servers).ok_or_else(|| {
        let items = wanted.kinds.iter().map(|kind| kind.items).fold(0, u64::saturating_add);
        let remedy = match (config.ssd.is_empty(), wanted.kinds.iter().all(takes_ssd)) {
            (true, _) => "name an SSD with --ssd, or plan for fewer items",
            (false, false) => {
                "values above 8 MiB, and items that live less than 2 s, stay in RAM: store large values in \
                 parts, or plan for fewer"
            }
            (false, true) => "store small items together, or plan for fewer",
        };
        format!("{items} items of this size need more than {SERVERS_MAX} servers; {remedy}")
    })
}

/// Returns the plan for each of so many servers; `None` if one of them cannot address its part.
fn of_servers(wanted: &Wanted, config: &Config, servers: u64, hot_percent: f64) -> Option<Plan> {
    let kinds: Vec<Kind> = wanted.kinds.iter().map(|kind| part_of(kind, servers)).collect();
    let items = kinds.iter().map(|kind| kind.items).fold(0, u64::saturating_add);
    let in_ram = |kinds: &[&Kind]| -> f64 { kinds.iter().map(|kind| ram_bytes(kind)).sum() };
    let fits_ram = in_ram(&kinds.iter().collect::<Vec<_>>()) <= NO_SSD_BYTES_MAX;
    let goes_to_ssd = |kind: &&Kind| !config.ssd.is_empty() && !fits_ram && takes_ssd(kind);
    let (on_ssd, ram_only): (Vec<&Kind>, Vec<&Kind>) = kinds.iter().partition(goes_to_ssd);

    let mut config = sized(config, &kinds, items);
    let log = Log::of(&on_ssd, &config);
    config.ssd = split(&config, log.data_bytes)?;
    let spans = ssd::foreseen(&config)?;
    if keeps_index(&config, &spans) {
        config.index_memory_bytes = Some(kept_index_bytes(items).next_multiple_of(MIB));
    }
    let least = if on_ssd.is_empty() { MIB } else { RAM_TIER_BYTES_MIN };
    let hot_bytes = (in_ram(&on_ssd) * hot_percent / 100.0 + in_ram(&ram_only)) / RAM_FILLED;
    let ram_tier_bytes =
        (hot_bytes as u64).max(least).max(config.item_size_max_bytes * memory::RAM_PER_LARGEST_ITEM);
    let store = |config: &Config| memory::store_config(config, spans.clone(), 0);
    config.memory_limit_bytes =
        Forecast::memory_for(&store(&config), items, ram_tier_bytes)?.max(MEMORY_BYTES_MIN);
    let forecast = Forecast::of(&store(&config), items)?;
    let ssd_bytes = config.ssd.iter().filter_map(|path| path.size_bytes).sum();
    let endurance_bytes = config.ssd_endurance_bytes.map(|bytes| bytes as f64 * config.ssd.len() as f64);
    let all_bytes = in_ram(&kinds.iter().collect::<Vec<_>>());
    Some(Plan {
        servers,
        items,
        memory_bytes: config.memory_limit_bytes,
        index_bytes: forecast.index_bytes,
        keeps_index: forecast.keeps_index,
        has_first_index: forecast.has_first_index,
        hot_percent,
        ram_tier_bytes: forecast.ram_tier_bytes,
        ram_percent: (forecast.ram_tier_bytes as f64 * RAM_FILLED / all_bytes * 100.0).min(100.0),
        ssd_bytes,
        ssd_live_bytes: log.live_bytes,
        ssd_live_percent: log.live_percent,
        is_overwritten: log.is_overwritten,
        write_amplification: log.write_amplification,
        written_bytes_a_day: log.written_bytes_a_day,
        wear_days: endurance_bytes
            .zip(log.written_bytes_a_day)
            .and_then(|(endurance, a_day)| (a_day > 0.0).then(|| endurance / a_day)),
        config,
        kinds,
    })
}

fn part_of(kind: &Kind, servers: u64) -> Kind {
    let sets_per_s = kind.sets_per_s.map(|sets| sets / servers as f64);
    Kind { items: kind.items.div_ceil(servers), sets_per_s, ..kind.clone() }
}

fn record_bytes(kind: &Kind) -> u64 {
    RECORD_HEADER_BYTES as u64 + kind.key_bytes + kind.value_bytes
}

/// Returns what all items of a kind take in RAM.
fn ram_bytes(kind: &Kind) -> f64 {
    let record = record_bytes(kind);
    let unit = if record > LARGE_RECORD_BYTES { RAM_SEGMENT_BYTES } else { RECORD_ALIGN as u64 };
    record.next_multiple_of(unit) as f64 * kind.items as f64
}

/// Returns whether items of a kind are written to an SSD at all.
fn takes_ssd(kind: &Kind) -> bool {
    kind.value_bytes <= SSD_VALUE_BYTES_MAX as u64
        && kind.ttl_s.is_none_or(|ttl_s| ttl_s >= WRITTEN_TTL_S_MIN)
}

/// Returns the configuration of a server for these items, whose memory and SSD are not known yet.
fn sized(config: &Config, kinds: &[Kind], items: u64) -> Config {
    let largest = kinds.iter().map(|kind| record_bytes(kind) + 64).max().unwrap_or(0);
    let all: f64 =
        kinds.iter().map(|kind| (kind.key_bytes + kind.value_bytes) as f64 * kind.items as f64).sum();
    let mut sized = config.clone();
    sized.item_size_bytes = ((all / items as f64) as u64).max(1);
    sized.item_size_max_bytes = largest.next_multiple_of(MIB);
    sized.memory_limit_bytes = MEMORY_BYTES_MIN;
    sized.index_memory_bytes = None;
    sized
}

/// The SSD's log, and what is written to it.
struct Log {
    live_bytes: f64,
    live_percent: f64,
    is_overwritten: bool,
    /// Bytes of the SSD for records; 0 for none.
    data_bytes: u64,
    write_amplification: f64,
    written_bytes_a_day: Option<f64>,
}

impl Log {
    fn of(kinds: &[&Kind], config: &Config) -> Log {
        let buffer_bytes = write_buffer_bytes(config);
        let there = |kind: &Kind| {
            ssd_bytes_of_record(u32::try_from(record_bytes(kind)).unwrap_or(u32::MAX), buffer_bytes)
        };
        let live_bytes: f64 = kinds.iter().map(|kind| kind.items as f64 * there(kind)).sum();
        let most = f64::from(config.ssd_live_percent).clamp(10.0, 90.0);
        let moved_percent = most.min(OVERWRITTEN_PERCENT);
        // What is set again before it expires takes its room until then, or is left behind when others are moved.
        let until_expired: f64 =
            kinds.iter().map(|kind| sets_of(kind) * kind.ttl_s.unwrap_or(f64::MAX) * there(kind)).sum();
        let expires_as_written =
            has_alike_ttls(kinds) && until_expired / most <= live_bytes / moved_percent * ONCE;
        let (kept_bytes, live_percent) =
            if expires_as_written { (until_expired, most) } else { (live_bytes, moved_percent) };
        let cleaning = if expires_as_written { 1.0 } else { cleaning_factor(live_percent) };
        // By what is set, or by what there is.
        let weight = |kind: &Kind| if sets_of(kind) > 0.0 { sets_of(kind) } else { kind.items as f64 };
        let records: f64 = kinds.iter().map(|kind| weight(kind) * record_bytes(kind) as f64).sum();
        let padded: f64 = kinds.iter().map(|kind| weight(kind) * there(kind)).sum();
        let sets_known = kinds.iter().all(|kind| kind.sets_per_s.is_some());
        let written = kinds.iter().map(|kind| sets_of(kind) * there(kind)).sum::<f64>() * cleaning * DAY_S;
        let data_bytes = ssd_bytes_for(kept_bytes, live_percent).max(SEGMENTS_MIN * SEGMENT_BYTES);
        let is_used = !kinds.is_empty();
        Log {
            live_bytes,
            live_percent: if is_used { live_bytes / data_bytes as f64 * 100.0 } else { 0.0 },
            is_overwritten: !expires_as_written && is_used,
            data_bytes: if is_used { data_bytes } else { 0 },
            write_amplification: if is_used { padded / records * cleaning } else { 1.0 },
            written_bytes_a_day: sets_known.then_some(written),
        }
    }
}

fn sets_of(kind: &Kind) -> f64 {
    kind.sets_per_s.unwrap_or(0.0)
}

/// Returns whether what is written together expires together: all items have a TTL, and those that share segments
/// have TTLs that are alike.
fn has_alike_ttls(kinds: &[&Kind]) -> bool {
    let is_alike = |is_short: bool| {
        let ttls =
            kinds.iter().filter_map(|kind| kind.ttl_s).filter(|ttl_s| (*ttl_s < SHORT_LIVED_S) == is_short);
        let (least, most) =
            ttls.fold((f64::MAX, 0.0_f64), |(least, most), ttl_s| (least.min(ttl_s), most.max(ttl_s)));
        most <= least * ALIKE
    };
    kinds.iter().all(|kind| kind.ttl_s.is_some()) && is_alike(true) && is_alike(false)
}

/// Returns the bytes of a write buffer of any store that is planned.
fn write_buffer_bytes(config: &Config) -> u32 {
    let span = Span { device: 0, offset: 0, bytes: SEGMENTS_MIN * SEGMENT_BYTES };
    Store::geometry(&memory::store_config(config, vec![span], 0))
        .map_or(0, |geometry| geometry.write_buffer_bytes)
}

/// Returns whether a store keeps the size of its index, with whatever memory.
fn keeps_index(config: &Config, spans: &[Span]) -> bool {
    let mut wide = config.clone();
    (wide.memory_limit_bytes, wide.index_memory_bytes) = (64 << 30, Some(MIB));
    Store::geometry(&memory::store_config(&wide, spans.to_vec(), 0))
        .is_ok_and(|geometry| geometry.index_bytes_max <= geometry.index_bytes)
}

/// Returns the paths, each with an equal part of the SSD; `None` if that is more than any path can have.
fn split(config: &Config, data_bytes: u64) -> Option<Vec<SsdPath>> {
    if data_bytes == 0 {
        return Some(Vec::new());
    }
    let segments = (data_bytes / SEGMENT_BYTES).div_ceil(config.ssd.len() as u64);
    let bytes = segments.checked_mul(SEGMENT_BYTES).filter(|bytes| *bytes < 1 << 60)?;
    let with_size = |path: &SsdPath| {
        let size_bytes = Some(larder_device::FileOptions::total_bytes(bytes));
        SsdPath { path: path.path.clone(), size_bytes }
    };
    Some(config.ssd.iter().map(with_size).collect())
}
