//! `stats prefixes`: what each prefix of keys costs and gives.

use larder_store::shadow::{PrefixAmounts, Quantity};

use super::Lines;
use crate::prefixes::encoded;
use crate::shared::Shared;

/// Returns the lines: `state` alone if nothing is accounted for.
pub(super) fn lines(shared: &Shared) -> Lines {
    let Some(curve) = shared.curves.latest() else {
        return vec![("state".into(), "off".into())];
    };
    let report = &curve.prefixes;
    let mut lines: Lines = vec![
        ("state".into(), report.state.name().into()),
        ("delimiter".into(), encoded(&[report.delimiter])),
        ("sample_rate".into(), report.scale.to_string()),
        ("window_seconds".into(), curve.window.at.0.to_string()),
    ];
    for (row, place) in report.rows.iter().zip(1..) {
        add(&mut lines, row, place);
    }
    lines
}

fn add(lines: &mut Lines, row: &PrefixAmounts, place: usize) {
    let place = row.name.as_ref().map_or("other".to_string(), |_| place.to_string());
    let mut add = |name: &str, value: String| lines.push((format!("prefix:{place}:{name}").into(), value));
    if let Some(name) = &row.name {
        add("name", encoded(name));
    }
    add("items", row.items.to_string());
    for quantity in Quantity::ALL {
        let amount = row.of(quantity);
        add(quantity.name(), format!("{:.0}", amount.value));
        add(&format!("{}_error", quantity.name()), format!("{:.0}", amount.error));
    }
}
