//! `larder_prefix_*`: what prefixes of keys cost and give. docs/metrics.md explains each.

use larder_store::shadow::{PrefixAmounts, Quantity, State};

use super::text::Exposition;
use super::text::Kind::Gauge;
use crate::prefixes::encoded;
use crate::shared::Shared;

/// The label of all prefixes that have no samples of their own. No encoded prefix has these characters.
const OTHERS: &str = "(other)";

/// Adds them, if prefixes are accounted for.
pub(super) fn add(text: &mut Exposition, shared: &Shared) {
    let Some(curve) = shared.curves.latest() else { return };
    let report = &curve.prefixes;
    let help = "1 while the shadow that tells what prefixes hold and write has filled.";
    text.single("larder_prefix_ready", Gauge, help, u64::from(report.state == State::Ready));
    let labels: Vec<String> = report.rows.iter().map(label).collect();
    for quantity in Quantity::ALL {
        let (name, help) = family(quantity);
        text.family(name, Gauge, help);
        for (row, label) in report.rows.iter().zip(&labels) {
            text.sample(name, &[("prefix", label)], row.of(quantity).value.round());
        }
    }
    let name = "larder_prefix_sampled_items";
    text.family(name, Gauge, "Sampled items that the amounts of a prefix rest on.");
    for (row, label) in report.rows.iter().zip(&labels) {
        text.sample(name, &[("prefix", label)], row.items);
    }
}

fn family(quantity: Quantity) -> (&'static str, &'static str) {
    match quantity {
        Quantity::RamBytes => ("larder_prefix_ram_bytes", "Bytes that the items of a prefix have in RAM."),
        Quantity::SsdBytes => {
            ("larder_prefix_ssd_bytes", "Bytes that the items of a prefix have on the SSD alone.")
        }
        Quantity::SsdBytesWritten => {
            ("larder_prefix_ssd_written_bytes", "Bytes of a prefix written to the SSD in the window.")
        }
        Quantity::DeviceReads => {
            ("larder_prefix_device_reads", "Requests of a prefix that read the device in the window.")
        }
        Quantity::Hits => ("larder_prefix_hits", "Gets of a prefix that found an item in the window."),
        Quantity::Misses => ("larder_prefix_misses", "Gets of a prefix that found none in the window."),
    }
}

fn label(row: &PrefixAmounts) -> String {
    row.name.as_deref().map_or(OTHERS.to_string(), encoded)
}
