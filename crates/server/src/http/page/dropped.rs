//! Items that were dropped, by the reason.

use super::figure::{count, data, per_second};
use super::panel::Panel;
use super::shapes::bar;
use super::table::table;
use super::view::View;
use crate::http::history::{Dropped, POINTS_MAX};

/// Returns what the page calls a reason.
fn name(reason: Dropped) -> &'static str {
    match reason {
        Dropped::RamFull => "RAM full",
        Dropped::SsdFull => "Oldest on the SSD",
        Dropped::IndexFull => "Index full",
        Dropped::Unwanted => "Writes rationed",
        Dropped::WriteLimit => "Write limit",
        Dropped::Expiring => "About to expire",
        Dropped::TooLarge => "Too large for the SSD",
        Dropped::Behind => "SSD behind",
    }
}

/// Returns the panel of items dropped, those of the last minutes as bars.
pub(super) fn dropped(view: &View<'_>) -> Option<Panel> {
    let is_shown =
        |reason: &Dropped| view.has_ssd() || matches!(reason, Dropped::RamFull | Dropped::IndexFull);
    let reasons: Vec<(usize, Dropped)> =
        Dropped::ALL.into_iter().enumerate().filter(|(_, reason)| is_shown(reason)).collect();
    let rate = |at: usize| view.history.mean(POINTS_MAX, move |point| point.dropped[at]);
    let most = reasons.iter().map(|(at, _)| rate(*at)).fold(0.0, f64::max);
    let mut body = String::from("<dl class=\"bars\">");
    for (at, reason) in &reasons {
        let (rate, name) = (rate(*at), name(*reason));
        let share = if most > 0.0 { rate / most } else { 0.0 };
        let drawn = bar(&format!("{name}: {}", per_second(rate)), 8, &[("m1", share)]);
        let shown = data(rate, &per_second(rate));
        body += &format!("<div><dt>{name}</dt><dd class=\"drawn\">{drawn}</dd><dd>{shown}</dd></div>");
    }
    body += "</dl>";
    let row = |(at, reason): &(usize, Dropped)| {
        let rate = rate(*at);
        (name(*reason).to_string(), vec![data(rate, &per_second(rate)), count(reason.count(&view.store))])
    };
    let rows: Vec<_> = reasons.iter().map(row).collect();
    Some(Panel {
        id: "dropped",
        title: "Dropped items",
        note: "by reason, last 5 min",
        body,
        tables: table("Items dropped, by the reason", "Reason", &["Last 5 min", "Since the start"], &rows),
    })
}
