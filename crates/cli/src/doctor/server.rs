//! Checks of what a server counts.

use super::{Check, Finding, Scene, error, warning};
use crate::units::{show_bytes, show_seconds, show_whole};

/// Shares of a whole from which something is found, in hundredths.
const CONNECTIONS_MAX: u64 = 80;
const DROPPED_MAX: u64 = 1;
const EVICTED_BY_INDEX_MAX: u64 = 1;
/// Days of an SSD's life from which its end is near.
const WEAR_DAYS_MIN: u64 = 180;
/// Failed look-ups in a row from which DNS is no longer just late.
const LOOKUPS_FAILED_MAX: u64 = 3;
/// Days that a write limit is named for.
const LASTING_DAYS: u64 = 3 * 365;

/// The checks.
pub(super) const CHECKS: &[Check] = &[
    ("ssd-off", |scene| {
        let finding = "lasting failures have turned the SSD off".to_string();
        let why = "RAM serves alone, and all items of the SSD are misses";
        (scene.has_ssd() && scene.number("ssd_is_off") > 0)
            .then(|| error(finding, why, "dmesg | grep -i -E 'nvme|i/o error'; replace the device"))?
    }),
    ("ssd-errors", |scene| {
        let errors = scene.number("ssd_errors");
        let finding =
            format!("{} operations of the SSD failed, or brought damaged pages", show_whole(errors));
        let why = "each is a miss, and a device that begins to fail goes on";
        (errors > 0).then(|| warning(finding, why, "look at the daemon's log, and at smartctl -a DEVICE"))?
    }),
    ("io", |scene| {
        let finding = "the SSD is reached by threads, because io_uring is not available".to_string();
        let why = "each read costs two context switches, which limits the reads a second";
        let fix =
            "sysctl -w kernel.io_uring_disabled=0; in a container, allow its three system calls (seccomp)";
        (scene.has_ssd() && scene.figures.text("io") == Some("threads"))
            .then(|| warning(finding, why, fix))?
    }),
    ("ssd-behind", |scene| {
        let (dropped, items) = (scene.number("ssd_admissions_dropped"), scene.number("total_items"));
        let finding =
            format!("{} items were dropped because the SSD was behind with writes", show_whole(dropped));
        let why = "they are misses although the SSD has room for them";
        let fix = "give a larger --ssd-write-wait, or several paths of --ssd on several devices";
        is_share(dropped, items, DROPPED_MAX).then(|| warning(finding, why, fix))?
    }),
    ("index", |scene| {
        let (evicted, items) = (scene.number("index_evictions"), scene.number("total_items"));
        let finding =
            format!("{} items were dropped because the index was full around them", show_whole(evicted));
        let why = "the index has its largest size, so RAM and SSD cannot be filled";
        let fix = format!("give a larger -m than {}", show_bytes(scene.number("memory_limit_bytes")));
        is_share(evicted, items, EVICTED_BY_INDEX_MAX).then(|| warning(finding, why, fix))?
    }),
    ("connections", |scene| {
        let (open, max) = (scene.number("curr_connections"), scene.number("max_connections"));
        let finding = format!("{open} of {max} connections are open");
        let why = "beyond the limit, clients wait for others to leave";
        is_share(open, max, CONNECTIONS_MAX)
            .then(|| warning(finding, why, format!("give a larger -c than {max}")))?
    }),
    ("refused-connections", |scene| {
        let refused = scene.number("listen_disabled_num") + scene.number("rejected_connections");
        let finding = format!("connections were refused or had to wait {} times", show_whole(refused));
        let why = "there were as many connections as -c allows";
        let fix = format!("give a larger -c than {}", scene.number("max_connections"));
        (refused > 0).then(|| warning(finding, why, fix))?
    }),
    ("connection-memory", |scene| {
        let kicks = scene.number("conn_memory_kicks");
        let finding = format!(
            "{} connections were closed because they held memory without progress",
            show_whole(kicks)
        );
        let why = "--conn-memory was used up, and other clients waited for it";
        (kicks > 0).then(|| {
            warning(finding, why, "give a larger --conn-memory, or look for clients that do not read")
        })?
    }),
    ("leases", |scene| {
        let (displaced, announced) = (scene.number("leases_displaced"), scene.number("leases_announced"));
        let finding = format!("{} leases ended because another took their place", show_whole(displaced));
        let why = "clients fetch values again that have not changed";
        is_share(displaced, announced, 50).then(|| warning(finding, why, "give a larger --lease-memory"))?
    }),
    ("damaged-memory", |scene| {
        let (reset, shards) = (scene.number("shards_reset"), scene.number("shards"));
        let finding =
            format!("{reset} of {shards} parts of the memory were damaged at the last start, and emptied");
        let why = "their items are lost; memory that is damaged once may be again";
        (reset > 0).then(|| {
            error(finding, why, "look at the daemon's log and at the host's (edac, mce); test its memory")
        })?
    }),
    ("restart", |scene| {
        let is_cold = scene.figures.is_larder && scene.setting("memory_file") == Some("(null)");
        let lasts = scene.number("uptime") > 86_400 && scene.has_ssd();
        let finding =
            format!("it runs for {} and has no --memory-file", show_seconds(scene.number("uptime")));
        let why = "without it, or a --state-file, a restart loses all items, those on the SSD too";
        (is_cold && lasts).then(|| {
            warning(finding, why, "give --memory-file on tmpfs, or --state-file, at the next start")
        })?
    }),
    ("wear", wear),
    ("cluster-dns", cluster_dns),
    ("no-memory", |scene| {
        let refused = scene.number("store_no_memory");
        let finding = format!("{} stores were refused for want of memory", show_whole(refused));
        let why = "with -M nothing is evicted, so a full cache refuses what is new";
        (refused > 0).then(|| warning(finding, why, "give a larger -m, or leave out -M"))?
    }),
];

fn wear(scene: &Scene) -> Option<Finding> {
    let days = scene.figures.get("ssd_wear_days_left")?;
    let (written, endurance) =
        (scene.number("ssd_lifetime_written_bytes"), scene.number("ssd_endurance_bytes"));
    if endurance == 0 || days >= WEAR_DAYS_MIN {
        return None;
    }
    let (written, endurance) = (show_bytes(written), show_bytes(endurance));
    let finding =
        format!("the SSD has {days} days left at the present rate: {written} of {endurance} are written");
    let why = "a worn SSD fails, or only reads";
    let limit_kb = scene.number("ssd_bytes_written_per_day") / 86_400 * days / LASTING_DAYS / 1024;
    let fix = match limit_kb {
        0 => "give --ssd-admission returning; plan for a new device".to_string(),
        kb => format!("--ssd-write-limit {} makes it last {LASTING_DAYS} days at least", show_limit(kb)),
    };
    warning(finding, why, fix)
}

fn cluster_dns(scene: &Scene) -> Option<Finding> {
    let failed = scene.number("cluster_lookups_failed_in_a_row");
    if failed < LOOKUPS_FAILED_MAX {
        return None;
    }
    let fix =
        "see the daemon's log, and dig SRV NAME with that of --cluster-srv; or give another --cluster-dns";
    if scene.number("cluster_servers") == 0 {
        let finding = format!("DNS has not named the servers of the cluster yet: {failed} look-ups failed");
        return error(finding, "clients with auto-discovery are refused until it does", fix);
    }
    let age = show_seconds(scene.number("cluster_answer_age_seconds"));
    let finding =
        format!("DNS last named the servers of the cluster {age} ago: {failed} look-ups failed since");
    let why =
        "clients with auto-discovery keep those of before, also such as are gone, and learn of no new one";
    warning(finding, why, fix)
}

/// Returns a write limit as its option takes it, rounded down.
fn show_limit(kilobytes: u64) -> String {
    if kilobytes < 10 << 10 { format!("{kilobytes}k/s") } else { format!("{}m/s", kilobytes >> 10) }
}

/// Returns whether a part is more than so many hundredths of a whole.
fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    part > 0 && part.saturating_mul(100) > whole.saturating_mul(percent)
}
