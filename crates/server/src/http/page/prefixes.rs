//! The prefixes of keys with the most commands, and what each prefix costs and gives. They are parts of keys, so only
//! those who have the token see them.

use larder_cli::is_out_of_proportion;
use larder_store::shadow::{PrefixAmounts, PrefixReport, Quantity, State};

use super::figure::{bytes, count, data, escape, grouped, percent, short};
use super::panel::Panel;
use super::table::table;
use super::view::View;

/// Prefixes in the panel, and in its table.
const SHOWN: usize = 6;
const ROWS: usize = 24;
/// Characters of a prefix that are shown.
const CHARACTERS_MAX: usize = 40;

/// Returns the panel, if commands are counted by prefix.
pub(super) fn prefixes(view: &View<'_>) -> Option<Panel> {
    if !view.shows_keys || !view.shared.prefixes.is_on() {
        return None;
    }
    let top = view.shared.prefixes.top(ROWS);
    let row = |(prefix, counts): &(Vec<u8>, crate::prefixes::PrefixCounts)| {
        let ratio = percent(counts.hits as f64 / counts.gets as f64);
        (cut(prefix), vec![count(counts.gets), ratio, count(counts.sets), count(counts.deletes)])
    };
    let rows: Vec<_> = top.iter().map(row).collect();
    let heads = ["Gets", "Hits", "Stores", "Deletes"];
    let body = match rows.len() {
        0 => "<p class=\"quiet\">No key with a prefix was used yet.</p>".to_string(),
        some => table("Prefixes with the most commands", "Prefix", &heads, &rows[..some.min(SHOWN)]),
    };
    Some(Panel {
        id: "prefixes",
        title: "Prefixes",
        note: "with the most commands",
        body,
        tables: table("Prefixes with the most commands", "Prefix", &heads, &rows),
    })
}

/// Returns the panel of what prefixes cost and give, if that is accounted for.
pub(super) fn costs(view: &View<'_>) -> Option<Panel> {
    let curve = view.shared.curves.latest().filter(|_| view.shows_keys)?;
    let report = &curve.prefixes;
    let heads = ["RAM", "SSD", "Written", "Device reads", "Hits", "Misses"];
    let shares: Vec<_> = report.rows.iter().map(|row| (name_of(row), cells_of_shares(report, row))).collect();
    let amounts: Vec<_> = report.rows.iter().map(|row| (name_of(row), cells_of_amounts(row))).collect();
    let caption = "Shares by prefix, estimated from a sample";
    let body = match report.rows.len() {
        0 | 1 => "<p class=\"quiet\">No key with a prefix was sampled yet.</p>".to_string(),
        some => format!(
            "<p>{}</p>{}",
            escape(&sentence(report)),
            table(caption, "Prefix", &heads, &shares[..some.min(SHOWN)])
        ),
    };
    let heads_of_amounts = [&heads[..], &["Sampled items"]].concat();
    let caption_of_amounts = "Amounts by prefix, estimated, and by how much each may be off (95 %)";
    Some(Panel {
        id: "prefix-costs",
        title: "What prefixes cost",
        note: "shares of all, estimated",
        body,
        tables: table(caption, "Prefix", &heads, &shares)
            + &table(caption_of_amounts, "Prefix", &heads_of_amounts, &amounts),
    })
}

/// Returns what attracts attention, or what the shares are of.
fn sentence(report: &PrefixReport) -> String {
    let share = |row: &PrefixAmounts, quantity| report.share(row, quantity);
    let costly = report.rows.iter().filter(|row| row.name.is_some()).find(|row| {
        is_out_of_proportion(share(row, Quantity::SsdBytesWritten), share(row, Quantity::Hits), row.items)
    });
    match costly {
        _ if report.state == State::Filling => {
            "The sample has not filled yet: what is held and written is still to come.".to_string()
        }
        Some(row) => format!(
            "Keys with the prefix {} cause {} of the bytes written and {} of the hits.",
            name_of(row),
            percent(share(row, Quantity::SsdBytesWritten)),
            percent(share(row, Quantity::Hits)),
        ),
        None => format!("One key of {} is in the sample.", grouped(report.scale.into())),
    }
}

fn name_of(row: &PrefixAmounts) -> String {
    match row.name.as_deref() {
        None => "all others".to_string(),
        Some(b"") => "no prefix".to_string(),
        Some(name) => cut(name),
    }
}

fn cells_of_shares(report: &PrefixReport, row: &PrefixAmounts) -> Vec<String> {
    let cell = |quantity| {
        let share = report.share(row, quantity);
        data(share, &percent(share))
    };
    Quantity::ALL.map(cell).to_vec()
}

fn cells_of_amounts(row: &PrefixAmounts) -> Vec<String> {
    let cell = |quantity| {
        let amount = row.of(quantity);
        let shown = match quantity {
            Quantity::RamBytes | Quantity::SsdBytes | Quantity::SsdBytesWritten => bytes,
            Quantity::DeviceReads | Quantity::Hits | Quantity::Misses => short,
        };
        let text = format!("{} \u{b1} {}", shown(amount.value), shown(amount.error));
        data(amount.value, &text)
    };
    Quantity::ALL.into_iter().map(cell).chain([count(row.items)]).collect()
}

/// Returns a prefix as text, the end of a long one left out.
fn cut(prefix: &[u8]) -> String {
    let text = String::from_utf8_lossy(prefix);
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prefix_is_cut_between_characters() {
        assert_eq!(cut(b"user"), "user");
        assert_eq!(cut("\u{e4}".repeat(41).as_bytes()), "\u{e4}".repeat(40) + "\u{2026}");
        assert_eq!(cut(b"\xff"), "\u{fffd}");
    }
}
