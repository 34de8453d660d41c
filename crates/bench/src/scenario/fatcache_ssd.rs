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
/// Bytes of an item with Larder's overhead, roughly.
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
        // It keeps the key and header of each item in RAM, some 150 bytes with all that goes with it: more
        // keys would push the oldest out, fewer would all stay in RAM.
        keys: (380_000, 400_000),
        memory_mib: 60,
        ssd_mib: 512,
    },
];

/// The results of an arrangement.
#[derive(Clone, Debug)]
struct Found {
    arrangement: Arrangement,
    keys: u64,
    /// The rate of all servers in a closed loop.
    set_most: f64,
    get_most: f64,
    set: Option<Run>,
    get: Option<Run>,
    /// Gets answered from RAM and from the SSD, while gets were measured.
    hits: (f64, f64),
}

impl Found {
    fn new(arrangement: Arrangement) -> Self {
        let (keys, set_most, get_most, hits) = (0, 0.0, 0.0, (0.0, 0.0));
        Self { arrangement, keys, set_most, get_most, set: None, get: None, hits }
    }
}

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let makes = stage.makes(&[Make::Extstore]);
    let todo: Vec<Arrangement> = ARRANGEMENTS.into_iter().filter(|one| makes.contains(&one.make)).collect();
    let mut found: Vec<Found> = Vec::new();
    let mut played = Ok(());
    for (at, one) in todo.iter().enumerate() {
        let time = stage.share(1.0, (todo.len() - at) as f64, Duration::from_secs(2));
        match phases::measure(stage, *one, time, &mut found) {
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
    report::report(stage, &mut found);
    played
}

#[cfg(test)]
mod tests {
    use super::*;

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
