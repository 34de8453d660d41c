//! Figures as JSON, each the twin of a command.

use larder_cli::{Checked, Finding, Weight};

use crate::checks::examine;
use crate::config::{COMPATIBLE_VERSION, ShownValue, VERSION, values_of};
use crate::histogram::Times;
use crate::json::{object, quoted};
use crate::prefixes::{PrefixCounts, encoded};
use crate::session::{Lines, all_figures, mrc_figures, prefix_figures};
use crate::shared::Shared;

/// The most prefixes that `top` lists.
const PREFIXES_MAX: usize = 100;

/// Returns the versions, of Larder and of the memcached that it is compatible with.
pub(super) fn version() -> String {
    object([("larder", quoted(VERSION)), ("memcached", quoted(COMPATIBLE_VERSION))])
}

/// Returns the lines of `stats` and of `stats larder`, each an object of its own.
pub(super) fn stats(shared: &Shared) -> String {
    let shown =
        |lines: &Lines| object(lines.iter().map(|(name, value)| (name.as_ref(), number_or_text(value))));
    let [stats, larder] = all_figures(shared);
    object([("stats", shown(&stats)), ("larder", shown(&larder))])
}

/// Returns the lines of `stats mrc` as an object; those of a size, which begin with its axis and multiple, as an object
/// each in `points`.
pub(super) fn mrc(shared: &Shared) -> String {
    mrc_of(&mrc_figures(shared))
}

fn mrc_of(lines: &Lines) -> String {
    let (points, others): (Vec<_>, Vec<_>) = lines.iter().partition(|(name, _)| name.contains(':'));
    let member = |(name, value): &(_, String)| -> (String, String) {
        let name: &std::borrow::Cow<'static, str> = name;
        (name.rsplit(':').next().unwrap_or_default().to_string(), number_or_text(value))
    };
    // The lines of a size follow each other.
    let sizes = points.chunk_by(|one, next| size_of_line(&one.0) == size_of_line(&next.0));
    let sizes = sizes.map(|lines| {
        let (axis, times) = size_of_line(&lines[0].0).split_once(':').unwrap_or_default();
        let own = [("axis".to_string(), quoted(axis)), ("times".to_string(), times.to_string())];
        let members: Vec<_> = own.into_iter().chain(lines.iter().map(|line| member(line))).collect();
        object(members.iter().map(|(name, value)| (name.as_str(), value.clone())))
    });
    let sizes = format!("[{}]", sizes.collect::<Vec<_>>().join(","));
    let others = others.into_iter().map(|(name, value)| (name.as_ref(), number_or_text(value)));
    object(others.chain([("points", sizes)]))
}

/// Returns the axis and the multiple that a line of a size begins with.
fn size_of_line(name: &str) -> &str {
    name.rsplit_once(':').map_or("", |(size, _)| size)
}

/// Returns the lines of `stats prefixes` as an object; those of a prefix as an object each in `prefixes`, the one of
/// all others at last, without a name.
pub(super) fn prefixes(shared: &Shared) -> String {
    prefixes_of(&prefix_figures(shared))
}

fn prefixes_of(lines: &Lines) -> String {
    let (rows, others): (Vec<_>, Vec<_>) = lines.iter().partition(|(name, _)| name.contains(':'));
    // The lines of a prefix follow each other.
    let rows = rows.chunk_by(|one, next| size_of_line(&one.0) == size_of_line(&next.0)).map(|lines| {
        object(lines.iter().map(|(name, value)| match name.rsplit(':').next().unwrap_or_default() {
            // It may look like a number.
            "name" => ("prefix", quoted(value)),
            name => (name, number_or_text(value)),
        }))
    });
    let rows = format!("[{}]", rows.collect::<Vec<_>>().join(","));
    let others = others.into_iter().map(|(name, value)| (name.as_ref(), number_or_text(value)));
    object(others.chain([("prefixes", rows)]))
}

/// Returns every value of the configuration with its origin, as `--print-config` shows them.
pub(super) fn config(shared: &Shared) -> String {
    let shown = |shown: &ShownValue| {
        object([
            ("name", quoted(shown.name)),
            ("value", quoted(&shown.value)),
            ("origin", quoted(&shown.origin)),
        ])
    };
    let values: Vec<String> = values_of(&shared.config).iter().map(shown).collect();
    format!("[{}]", values.join(","))
}

/// Returns the times of each class and of the SSD's operations, in microseconds. Quantiles are the bounds of their
/// buckets, so a time may be half as long.
pub(super) fn latency(shared: &Shared) -> String {
    let all = shared.times();
    object(
        [
            ("ram", &all.ram_hits),
            ("ssd", &all.ssd_hits),
            ("store", &all.stores),
            ("mutate_ssd", &all.ssd_changes),
            ("ssd_queue", &all.ssd_queue),
            ("ssd_read", &all.ssd_reads),
            ("ssd_write", &all.ssd_writes),
            ("loop", &all.loops),
        ]
        .map(|(name, times)| (name, shown_times(times))),
    )
}

/// Returns the prefixes of keys with the most commands, if commands are counted by prefix. Prefixes are encoded as in
/// `metadump`, because keys may hold any bytes.
pub(super) fn top(shared: &Shared) -> String {
    let counts = |(prefix, counts): (Vec<u8>, PrefixCounts)| {
        object([
            ("prefix", quoted(&encoded(&prefix))),
            ("gets", counts.gets.to_string()),
            ("hits", counts.hits.to_string()),
            ("sets", counts.sets.to_string()),
            ("deletes", counts.deletes.to_string()),
        ])
    };
    let prefixes: Vec<String> = shared.prefixes.top(PREFIXES_MAX).into_iter().map(counts).collect();
    object([
        ("is_counting", shared.prefixes.is_on().to_string()),
        ("prefixes", format!("[{}]", prefixes.join(","))),
    ])
}

/// Returns the checks of `larder doctor --json`, each with what it found.
pub(super) fn doctor(shared: &Shared) -> String {
    let shown = |Checked { check, finding }: Checked| {
        let mut members = vec![("check", quoted(&check))];
        if let Some(Finding { weight, finding, why, fix }) = finding {
            let weight = if weight == Weight::Error { "error" } else { "warning" };
            members.extend([
                ("weight", quoted(weight)),
                ("finding", quoted(&finding)),
                ("why", quoted(&why)),
                ("fix", quoted(&fix)),
            ]);
        }
        object(members)
    };
    let checks: Vec<String> = examine(shared).into_iter().map(shown).collect();
    format!("[{}]", checks.join(","))
}

fn shown_times(times: &Times) -> String {
    let count = times.count();
    let mean_us = times.sum_ns.checked_div(count).unwrap_or(0) as f64 / 1000.0;
    let quantile = |share| times.quantile(share).as_micros().to_string();
    object([
        ("count", count.to_string()),
        ("mean_us", format!("{mean_us:.3}")),
        ("p50_us", quantile(0.5)),
        ("p90_us", quantile(0.9)),
        ("p99_us", quantile(0.99)),
        ("p999_us", quantile(0.999)),
    ])
}

/// Returns a value of `stats` as it is if it is a number of JSON, else as a string.
fn number_or_text(value: &str) -> String {
    let (whole, part) = value.split_once('.').unwrap_or((value, "0"));
    let is_whole = whole.parse::<u64>().is_ok_and(|number| number.to_string() == whole);
    let is_number = is_whole && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { value.to_string() } else { quoted(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_by_the_bounds_of_their_buckets() {
        let mut times = Times::default();
        (times.buckets[3], times.buckets[10], times.sum_ns) = (98, 2, 2_450_000);
        assert_eq!(
            shown_times(&times),
            "{\"count\":100,\"mean_us\":24.500,\"p50_us\":8,\"p90_us\":8,\"p99_us\":1024,\"p999_us\":1024}"
        );
        assert!(shown_times(&Times::default()).starts_with("{\"count\":0,\"mean_us\":0.000,\"p50_us\":0,"));
    }

    #[test]
    fn sizes_are_objects_of_their_own() {
        let line = |name: &'static str, value: &str| (name.into(), value.to_string());
        let lines = vec![
            line("state", "on"),
            line("ram:0.25:miss_ratio", "0.500000"),
            line("ram:0.25:is_full", "1"),
            line("ram:1:miss_ratio", "unknown"),
        ];
        let size = "{\"axis\":\"ram\",\"times\":0.25,\"miss_ratio\":0.500000,\"is_full\":1}";
        let own = "{\"axis\":\"ram\",\"times\":1,\"miss_ratio\":\"unknown\"}";
        assert_eq!(mrc_of(&lines), format!("{{\"state\":\"on\",\"points\":[{size},{own}]}}"));
        assert_eq!(mrc_of(&vec![line("state", "off")]), "{\"state\":\"off\",\"points\":[]}");
    }

    #[test]
    fn prefixes_are_objects_of_their_own() {
        let line = |name: &'static str, value: &str| (name.into(), value.to_string());
        let lines = vec![
            line("state", "ready"),
            line("prefix:1:name", "7"),
            line("prefix:1:hits", "12"),
            line("prefix:other:hits", "3"),
        ];
        let rows = "[{\"prefix\":\"7\",\"hits\":12},{\"hits\":3}]";
        assert_eq!(prefixes_of(&lines), format!("{{\"state\":\"ready\",\"prefixes\":{rows}}}"));
        assert_eq!(prefixes_of(&vec![line("state", "off")]), "{\"state\":\"off\",\"prefixes\":[]}");
    }

    #[test]
    fn numbers_are_numbers_and_all_else_is_quoted() {
        let shown = ["0", "17", "0.000120", "1.6.45", "none", "", "007", "a\"b\\c\nd"].map(number_or_text);
        let wanted =
            ["0", "17", "0.000120", "\"1.6.45\"", "\"none\"", "\"\"", "\"007\"", "\"a\\\"b\\\\c\\u000ad\""];
        assert_eq!(shown, wanted);
    }
}
