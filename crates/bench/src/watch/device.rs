//! A block device as `/proc/diskstats` tells of it, in iostat's terms.

use crate::result::DeviceSample;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const SECTOR_BYTES: f64 = 512.0;

/// A device's counters since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    reads: u64,
    read_sectors: u64,
    read_ms: u64,
    writes: u64,
    written_sectors: u64,
    write_ms: u64,
    busy_ms: u64,
    weighted_ms: u64,
}

impl Counts {
    /// Those of the device `name`, from the text of `/proc/diskstats`.
    pub fn of(diskstats: &str, name: &str) -> Option<Self> {
        let line = diskstats.lines().find(|line| line.split_whitespace().nth(2) == Some(name))?;
        let fields: Vec<u64> =
            line.split_whitespace().skip(3).map_while(|field| field.parse().ok()).collect();
        let field = |at: usize| fields.get(at).copied();
        Some(Self {
            reads: field(0)?,
            read_sectors: field(2)?,
            read_ms: field(3)?,
            writes: field(4)?,
            written_sectors: field(6)?,
            write_ms: field(7)?,
            busy_ms: field(9)?,
            weighted_ms: field(10)?,
        })
    }

    /// What happened since `before`, an interval of `interval_ms` that ended at `at_ms`.
    pub fn since(&self, before: &Self, at_ms: u64, interval_ms: u64) -> DeviceSample {
        let milliseconds = interval_ms.max(1) as f64;
        let grown = |after: u64, before: u64| after.wrapping_sub(before) as f64;
        let rate = |after, before| grown(after, before) * 1000.0 / milliseconds;
        let mean = |time: f64, count: f64| if count > 0.0 { time / count } else { 0.0 };
        DeviceSample {
            at_ms,
            interval_ms,
            reads: rate(self.reads, before.reads),
            writes: rate(self.writes, before.writes),
            read_bytes: rate(self.read_sectors, before.read_sectors) * SECTOR_BYTES,
            written_bytes: rate(self.written_sectors, before.written_sectors) * SECTOR_BYTES,
            read_await_ms: mean(grown(self.read_ms, before.read_ms), grown(self.reads, before.reads)),
            write_await_ms: mean(grown(self.write_ms, before.write_ms), grown(self.writes, before.writes)),
            queue: grown(self.weighted_ms, before.weighted_ms) / milliseconds,
            utilisation: (grown(self.busy_ms, before.busy_ms) / milliseconds).min(1.0),
        }
    }
}

/// The name of a device in `/proc/diskstats`, given that name, or the device's file, or any path on it.
pub fn name_of(given: &str) -> Option<String> {
    let may_be_name = !given.is_empty() && !given.contains('/') && !given.starts_with('.');
    if may_be_name && Path::new("/sys/class/block").join(given).exists() {
        return Some(given.to_string());
    }
    let metadata = std::fs::metadata(given).ok()?;
    let number = if metadata.rdev() != 0 { metadata.rdev() } else { metadata.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let target = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iostats_columns_come_out() {
        let before =
            "   7 0 loop0 1 0 1 1 0 0 0 0 0 0 0\n 253       0 vda 100 5 800 50 10 0 80 20 0 100 70 0 0 0 0\n";
        let after = " 253       0 vda 2100 5 16800 1050 510 0 8080 520 0 1100 1570 0 0 0 0\n";
        let (before, after) = (Counts::of(before, "vda"), Counts::of(after, "vda"));
        let sample = after.expect("it is there").since(&before.expect("it is there"), 2000, 2000);
        assert_eq!((sample.reads, sample.writes), (1000.0, 250.0));
        assert_eq!((sample.read_bytes, sample.written_bytes), (4_096_000.0, 2_048_000.0));
        assert_eq!((sample.read_await_ms, sample.write_await_ms), (0.5, 1.0));
        assert_eq!((sample.queue, sample.utilisation), (0.75, 0.5));
        assert_eq!(Counts::of("1 2 vdb 3\n", "vda"), None);
        assert_eq!(Counts::of("1 2 vda 3\n", "vda"), None);
    }

    #[test]
    fn a_device_is_found_by_any_path_on_it() {
        let here = std::env::current_dir().expect("it is there");
        assert_eq!(name_of("."), name_of(&here.display().to_string()));
        assert_eq!(name_of("/nowhere/at/all"), None);
        assert_eq!(name_of(""), None);
    }
}
