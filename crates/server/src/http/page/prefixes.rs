//! The prefixes of keys with the most commands. They are parts of keys, so only those who have the token see them.

use super::figure::{count, percent};
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
