//! The figures that one page is made of, taken once for all of its panels.

use larder_cli::Checked;
use larder_store::{Ages, Stats};

use super::table::Row;
use crate::counters::Totals;
use crate::http::history::History;
use crate::latency::AllTimes;
use crate::shared::Shared;

/// The figures of one moment.
pub(super) struct View<'a> {
    pub shared: &'a Shared,
    /// The last minutes.
    pub history: &'a History,
    /// What `larder doctor` found.
    pub checked: &'a [Checked],
    /// Since the start.
    pub totals: Totals,
    pub store: Stats,
    pub ages: Ages,
    /// Since the start.
    pub times: AllTimes,
    /// Whether parts of keys may be shown: they may tell of users.
    pub shows_keys: bool,
}

impl<'a> View<'a> {
    /// Takes the figures.
    pub(super) fn new(
        shared: &'a Shared,
        history: &'a History,
        checked: &'a [Checked],
        shows_keys: bool,
    ) -> View<'a> {
        View {
            shared,
            history,
            checked,
            totals: shared.lifetime(),
            store: shared.store.stats(),
            ages: shared.store.ages(shared.clock.now()),
            times: shared.times(),
            shows_keys,
        }
    }

    /// Returns the rows but for those of an SSD that is not there.
    pub(super) fn of_tiers<const N: usize>(&self, rows: [Row; N]) -> Vec<Row> {
        rows.into_iter().filter(|(name, _)| self.has_ssd() || !name.contains("SSD")).collect()
    }

    /// Returns whether there is an SSD.
    pub(super) fn has_ssd(&self) -> bool {
        self.store.ssd_segments > 0
    }
}
