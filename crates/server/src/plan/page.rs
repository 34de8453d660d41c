//! A plan as text for people, as JSON, and as the command line that starts such a cache.

use std::fmt::Write as _;
use std::path::Path;

use larder_device::Bytes;

use super::figures::Plan;
use super::words::{KEY_BYTES, Kind, Wanted};
use crate::json::{list, object, quoted};

/// The least columns of a page.
pub(super) const COLUMNS_MIN: usize = 40;
/// The column of what stands behind a label.
const INDENT: usize = 10;
const MIB: u64 = 1 << 20;
const DAY_S: f64 = 86_400.0;

/// Returns the words of the command line, the program's name first, each with its value.
fn command(plan: &Plan) -> Vec<Vec<String>> {
    let config = &plan.config;
    let word = |name: &str, value: String| vec![name.to_string(), value];
    let mut words = vec![vec!["larder".to_string()], word("-m", (plan.memory_bytes / MIB).to_string())];
    if config.item_size_max_bytes > MIB {
        words.push(word("-I", format!("{}m", config.item_size_max_bytes / MIB)));
    }
    words.push(word("--item-size", config.item_size_bytes.to_string()));
    if let Some(bytes) = config.index_memory_bytes {
        words.push(word("--index-memory", format!("{}m", bytes / MIB)));
    }
    match config.ssd.as_slice() {
        [] => words.push(word("--ssd", "none".to_string())),
        paths => words.extend(paths.iter().map(|ssd| {
            let mib = ssd.size_bytes.unwrap_or(0) / MIB;
            word("--ssd", format!("{}:{mib}m", ssd.path.display()))
        })),
    }
    if let Some(bytes) = config.ssd_endurance_bytes.filter(|_| !config.ssd.is_empty()) {
        words.push(word("--ssd-endurance", decimal(bytes)));
    }
    words
}

/// Returns a number of bytes in the largest unit of a data sheet that divides it.
fn decimal(bytes: u64) -> String {
    let units = [("t", 1_000_000_000_000), ("g", 1_000_000_000), ("m", 1_000_000), ("k", 1000)];
    let unit = units.iter().find(|(_, unit)| bytes.is_multiple_of(*unit));
    unit.map_or(bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// Returns a size as it was most likely written: exact in a unit of 1024 or of 1000 bytes, where there is such a unit.
fn exact(bytes: u64) -> String {
    match bytes.is_multiple_of(1024) || !bytes.is_multiple_of(1000) {
        true => Bytes(bytes).to_string(),
        false => decimal(bytes).to_uppercase() + "B",
    }
}

/// Returns the plan as JSON. Sizes are in bytes, times in seconds unless named.
pub(super) fn json(plan: &Plan) -> String {
    let known = |number: Option<f64>| number.map_or("null".to_string(), |number| format!("{number:.0}"));
    let kind = |kind: &Kind| {
        object([
            ("name", quoted(&kind.name)),
            ("items", kind.items.to_string()),
            ("key_bytes", kind.key_bytes.to_string()),
            ("value_bytes", kind.value_bytes.to_string()),
            ("ttl_s", known(kind.ttl_s)),
            ("sets_per_s", kind.sets_per_s.map_or("null".to_string(), |sets| format!("{sets:.6}"))),
        ])
    };
    let words = command(plan).into_iter().flatten().map(|word| quoted(&word));
    let page = object([
        ("servers", plan.servers.to_string()),
        ("kinds", list(plan.kinds.iter().map(kind))),
        ("items", plan.items.to_string()),
        ("memory_bytes", plan.memory_bytes.to_string()),
        ("index_bytes", plan.index_bytes.to_string()),
        ("ram_tier_bytes", plan.ram_tier_bytes.to_string()),
        ("ssd_bytes", plan.ssd_bytes.to_string()),
        ("ssd_live_bytes", format!("{:.0}", plan.ssd_live_bytes)),
        ("ssd_live_percent", format!("{:.1}", plan.ssd_live_percent)),
        ("ssd_bytes_written_a_day", known(plan.written_bytes_a_day)),
        ("write_amplification", format!("{:.3}", plan.write_amplification)),
        ("wear_days", known(plan.wear_days)),
        ("command", list(words)),
    ]);
    page + "\n"
}

/// Returns the plan as text.
pub(super) fn text(plan: &Plan, wanted: &Wanted, columns: usize) -> String {
    let mut page = Page { text: String::new(), columns };
    if plan.servers > 1 {
        page.row("servers", &format!("{}, each with an equal part of the keys, as below", plan.servers));
    }
    for (at, kind) in plan.kinds.iter().enumerate() {
        page.row(if at == 0 { "items" } else { "" }, &described(kind));
    }
    page.row("memory", &format!("{} in all (-m)", Bytes(plan.memory_bytes)));
    page.row("  index", &index(plan));
    page.row(
        "  RAM",
        &format!("{} for items: {} of them", Bytes(plan.ram_tier_bytes), percent(plan.ram_percent)),
    );
    page.row("SSD", &ssd(plan));
    if plan.ssd_bytes > 0 {
        page.row("written", &written(plan));
        page.row("wear", &wear(plan));
    }
    page.row("assumed", &assumed(plan, wanted));
    page.text.push('\n');
    page.command(plan);
    page.text
}

fn described(kind: &Kind) -> String {
    let mut text = format!("{} {} of {}", whole(kind.items), kind.name, exact(kind.value_bytes));
    let _ = match kind.ttl_s {
        Some(ttl_s) => write!(text, ", TTL {}", duration(ttl_s)),
        None => write!(text, ", no TTL"),
    };
    if let Some(sets) = kind.sets_per_s {
        let _ = write!(text, ", {} sets/s", rate(sets));
    }
    text
}

fn index(plan: &Plan) -> String {
    let each = plan.index_bytes as f64 / plan.items.max(1) as f64;
    let size = Bytes(plan.index_bytes);
    match (plan.keeps_index, plan.has_first_index) {
        (true, _) => format!("{size}, of a fixed size with an SSD as large as this"),
        (false, false) => format!("{size}, {each:.1} bytes an item"),
        (false, true) => format!("{size}, which it begins with"),
    }
}

fn ssd(plan: &Plan) -> String {
    if plan.ssd_bytes == 0 {
        return "none: RAM holds all items".to_string();
    }
    let why = match plan.is_overwritten {
        true => "the rest is for what dies between live items before it is overwritten",
        false => "the rest is for what has expired and is not overwritten yet",
    };
    format!("{}, of which live items take {}: {why}", Bytes(plan.ssd_bytes), percent(plan.ssd_live_percent))
}

fn written(plan: &Plan) -> String {
    let amplified = format!("write amplification {:.2}", plan.write_amplification);
    match plan.written_bytes_a_day {
        Some(a_day) => {
            let each_s = Bytes((a_day / DAY_S) as u64);
            format!("{} a day at most, {each_s}/s; {amplified}", Bytes(a_day as u64))
        }
        None => format!("not known without sets=N/s; {amplified}"),
    }
}

fn wear(plan: &Plan) -> String {
    let paths = plan.config.ssd.len();
    let each = if paths > 1 { " each" } else { "" };
    match (plan.config.ssd_endurance_bytes, plan.wear_days) {
        (Some(bytes), Some(days)) => {
            let size = decimal(bytes).to_uppercase();
            format!("{size}B{each} last {} days", whole(days.min(1e15) as u64))
        }
        (Some(_), None) => "not known without sets=N/s".to_string(),
        (None, _) => "give --ssd-endurance, the TBW of the data sheet, to see how long it lasts".to_string(),
    }
}

fn assumed(plan: &Plan, wanted: &Wanted) -> String {
    let mut parts = Vec::new();
    if wanted.kinds.iter().any(|kind| kind.key_bytes == KEY_BYTES) {
        parts.push(format!("keys of {KEY_BYTES} bytes (key=)"));
    }
    if wanted.hot_percent.is_none() && plan.ssd_bytes > 0 {
        parts.push(format!("RAM for {} % of the items at least (hot=)", plan.hot_percent));
    }
    if wanted.has_shared_total {
        parts.push("kinds without a total have equal parts of the one before".to_string());
    }
    let by_ttl = |kind: &Kind| {
        let once = kind.ttl_s.map(|ttl_s| kind.items as f64 / ttl_s);
        once.is_some() && once == kind.sets_per_s
    };
    if wanted.kinds.iter().any(by_ttl) {
        parts.push("each item is set once in its TTL (sets=)".to_string());
    }
    match parts.is_empty() {
        true => "nothing".to_string(),
        false => parts.join("; "),
    }
}

/// Text that fits its columns.
struct Page {
    text: String,
    columns: usize,
}

impl Page {
    /// Appends a label and what stands behind it, broken at blanks.
    fn row(&mut self, label: &str, text: &str) {
        let _ = write!(self.text, "{label:INDENT$}");
        let mut column = INDENT;
        for word in text.split_whitespace() {
            let width = word.chars().count();
            if column > INDENT && column + 1 + width > self.columns {
                let _ = write!(self.text, "\n{:INDENT$}", "");
                column = INDENT;
            } else if column > INDENT {
                self.text.push(' ');
                column += 1;
            }
            self.text.push_str(word);
            column += width;
        }
        self.text.push('\n');
    }

    /// Appends the command line, for a shell; an option and its value stay together.
    fn command(&mut self, plan: &Plan) {
        let mut column = 0;
        for words in command(plan) {
            let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
            let words = words.join(" ");
            let width = words.chars().count();
            // Room is left for a blank and the backslash.
            if column > 0 && column + 1 + width + 2 > self.columns {
                self.text.push_str(" \\\n    ");
                column = 4;
            } else if column > 0 {
                self.text.push(' ');
                column += 1;
            }
            self.text.push_str(&words);
            column += width;
        }
        self.text.push('\n');
    }
}

/// Returns a word as a shell takes it for itself.
fn shell_word(word: &str) -> String {
    let is_plain = Path::new(word).to_str().is_some()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&byte));
    if is_plain { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn percent(percent: f64) -> String {
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Returns all digits of a number, in groups of three.
fn whole(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

fn rate(rate: f64) -> String {
    if rate >= 100.0 { whole(rate.round() as u64) } else { format!("{rate:.2}") }
}

/// Returns a time in its largest unit that leaves a whole number, or in seconds.
fn duration(seconds: f64) -> String {
    let units = [("d", DAY_S), ("h", 3_600.0), ("min", 60.0)];
    let unit = units.iter().find(|(_, unit)| seconds >= *unit && seconds % unit == 0.0);
    match unit {
        Some((name, unit)) => format!("{} {name}", whole((seconds / unit) as u64)),
        None => format!("{seconds} s"),
    }
}
