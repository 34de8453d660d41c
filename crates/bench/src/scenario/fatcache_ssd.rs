//! `fatcache-ssd`: eight servers that share one SSD, and one alone on it; sets and gets at a rate of each
//! connection.

mod device;
mod mcperf;
mod phases;
mod report;
mod seed;
mod servers;
mod together;

use super::server::Make;
use super::{Halt, Scenario, Stage};
use crate::result::Run;
use std::time::Duration;

/// This scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "fatcache-ssd",
    about: "8 servers that share one SSD, and one alone on it",
    question: "How many sets and gets of 100 bytes a second does a cache on SSD answer, one server and \
               eight?",
    runs: "8 Larder servers with --ssd-share 1/8 to 8/8 of one file, then one alone, then memcached with its \
           SSD tier, and a server of the user's: 100 connections each that set at 1000/s and get at 40/s, \
           100-byte values, keys in the order they were stored; RAM so small that gets come from the SSD; \
           the device watched as by iostat.",
    fixes: "Where this host is slower than the rate of the document, the rate is 60 % of what it can do, so \
            that latency is service and not a queue; gets read what has left RAM, and a row in which RAM \
            served more than 5 % is not called SSD; percentiles carry their right names.",
    document: seed::tables,
    takes: &["--server", "--count", "--sizes"],
    weight: 0.25,
    play,
};

const CONNECTIONS: usize = 100;
const VALUE_BYTES: u32 = 100;
/// Bytes of an item besides its value with Larder's overhead, roughly.
const BESIDES_BYTES: u32 = 50;
/// Bytes of RAM that Larder and extstore hold for a key whose value is on the SSD, at most.
const KEY_BYTES: u64 = 12;
const EXTSTORE_KEY_BYTES: u64 = 150;
const MIB: u64 = 1 << 20;
/// The document's number of keys, of each server.
const KEYS_MAX: u64 = 1_000_000;

/// Servers that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrangement {
    name: &'static str,
    /// None for the server that runs already.
    make: Option<Make>,
    servers: u32,
    /// The least and the most keys of each server: enough to leave RAM, and to fit the SSD.
    keys: (u64, u64),
    /// Bytes of a value.
    value_bytes: u32,
    /// RAM of each server, and the SSD's whole size.
    memory_mib: u64,
    ssd_mib: u64,
}

const ARRANGEMENTS: [Arrangement; 3] = [
    Arrangement {
        name: "larder x8",
        make: Some(Make::Larder),
        servers: 8,
        keys: (30_000, 250_000),
        value_bytes: VALUE_BYTES,
        memory_mib: 7,
        ssd_mib: 640,
    },
    Arrangement {
        name: "larder alone",
        make: Some(Make::Larder),
        servers: 1,
        keys: (40_000, KEYS_MAX),
        value_bytes: VALUE_BYTES,
        memory_mib: 17,
        ssd_mib: 256,
    },
    Arrangement {
        name: "extstore alone",
        make: Some(Make::Extstore),
        servers: 1,
        // It keeps the key and header of each item in RAM, some 150 bytes with all that goes with it: more
        // keys would push the oldest out, fewer would all stay in RAM.
        keys: (380_000, 400_000),
        value_bytes: VALUE_BYTES,
        memory_mib: 60,
        ssd_mib: 512,
    },
];

/// The server that runs already, with the keys of one alone. Its RAM and its SSD are its own.
const GIVEN: Arrangement =
    Arrangement { name: "server", make: None, memory_mib: 0, ssd_mib: 0, ..ARRANGEMENTS[1] };

/// The results of an arrangement.
#[derive(Clone, Debug)]
struct Found {
    arrangement: Arrangement,
    keys: u64,
    /// The rate of all servers in a closed loop, and whether that of sets is certified.
    set_most: f64,
    is_set_most_certified: bool,
    get_most: f64,
    set: Option<Run>,
    get: Option<Run>,
    /// Gets answered from RAM and from the SSD, while gets were measured; none if the server does not tell.
    hits: Option<(f64, f64)>,
}

impl Found {
    fn new(arrangement: Arrangement) -> Self {
        let (keys, set_most, get_most, is_set_most_certified) = (0, 0.0, 0.0, true);
        let (set, get, hits) = (None, None, None);
        Self { arrangement, keys, set_most, is_set_most_certified, get_most, set, get, hits }
    }
}

impl Arrangement {
    /// Whether it is Larder, started here: nothing can be measured without it.
    fn is_our_larder(self) -> bool {
        self.make == Some(Make::Larder)
    }

    /// Bytes of an item, roughly.
    fn item_bytes(self) -> u32 {
        self.value_bytes + BESIDES_BYTES
    }

    /// The same for as many keys, and values of as many bytes, as the user chose: with RAM for the index of the keys,
    /// and an SSD that has room for all.
    fn wanted(self, count: Option<u64>, value_bytes: Option<u32>) -> Self {
        let keys = count.map_or(self.keys, |count| (count, count));
        let mut wanted = Self { keys, value_bytes: value_bytes.unwrap_or(self.value_bytes), ..self };
        let more = keys.1.saturating_sub(self.keys.1);
        let key_bytes = if self.make == Some(Make::Extstore) { EXTSTORE_KEY_BYTES } else { KEY_BYTES };
        wanted.memory_mib += (more * key_bytes).div_ceil(MIB);
        let stored = keys.1 * u64::from(wanted.item_bytes()) * u64::from(self.servers);
        wanted.ssd_mib = wanted.ssd_mib.max((stored + stored / 4).div_ceil(MIB));
        wanted
    }
}

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let makes = stage.makes(&[Make::Extstore]);
    let (count, size) = (stage.options.wanted.count, stage.options.wanted.sizes.first().copied());
    let given = stage.options.wanted.server.as_ref().map(|_| GIVEN);
    let is_wanted = |one: &Arrangement| one.make.is_some_and(|make| makes.contains(&make));
    let todo = ARRANGEMENTS.into_iter().filter(is_wanted).chain(given);
    let todo: Vec<Arrangement> = todo.map(|one| one.wanted(count, size)).collect();
    let mut found: Vec<Found> = Vec::new();
    let mut played = Ok(());
    for (at, one) in todo.iter().enumerate() {
        let time = stage.share(1.0, (todo.len() - at) as f64, Duration::from_secs(2));
        stage.step(at + 1, todo.len(), &format!("{}: starting", one.name));
        match phases::measure(stage, *one, time, &mut found) {
            Ok(()) => {}
            Err(Halt::Failed(why)) if !one.is_our_larder() => {
                stage.part.note(format!("{} skipped: {why}", one.name));
            }
            Err(halt) => {
                played = Err(halt);
                break;
            }
        }
    }
    report::report(stage, &mut found);
    played
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_more_than_ram_and_fits_the_ssd() {
        for one in ARRANGEMENTS.into_iter().filter(|one| one.is_our_larder()) {
            let (least, most) = one.keys;
            let share_bytes = one.ssd_mib * MIB / u64::from(one.servers);
            assert!(most * u64::from(one.item_bytes()) < share_bytes, "{}", one.name);
            // The first half of the keys has left a RAM tier of 2 MiB when the second half is there.
            assert!(least / 2 * u64::from(VALUE_BYTES) > MIB, "{}", one.name);
        }
    }

    #[test]
    fn keys_and_sizes_of_the_users_choice_fit_the_ssd() {
        for one in ARRANGEMENTS {
            assert_eq!(one.wanted(None, None), one);
            for (count, size) in [(1_000, 1), (KEYS_MAX, 100), (100_000, 9_000)] {
                let wanted = one.wanted(Some(count), Some(size));
                let share_bytes = wanted.ssd_mib * MIB / u64::from(one.servers);
                assert_eq!((wanted.keys, wanted.value_bytes), ((count, count), size));
                assert!(count * u64::from(wanted.item_bytes()) < share_bytes, "{wanted:?}");
            }
        }
        let all = ARRANGEMENTS[0].wanted(Some(KEYS_MAX), None);
        assert!(all.memory_mib > ARRANGEMENTS[0].memory_mib && all.ssd_mib > 8 * 150, "{all:?}");
    }
}
