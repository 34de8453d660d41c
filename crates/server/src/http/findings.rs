//! What `larder doctor` finds of the daemon and of its host, kept for a while: the checks read many files of `/proc`.

use std::time::{Duration, Instant};

use larder_cli::Checked;

use crate::checks::examine;
use crate::shared::Shared;

/// How long findings are shown before the checks run again.
const KEPT: Duration = Duration::from_secs(30);

/// The checks that ran last, and when.
#[derive(Default)]
pub(super) struct Findings(Option<(Instant, Vec<Checked>)>);

impl Findings {
    /// Returns all checks with what they found, which may have been some time ago.
    pub(super) fn recent(&mut self, shared: &Shared, now: Instant) -> &[Checked] {
        let is_recent = |(at, _): &(Instant, _)| now.saturating_duration_since(*at) < KEPT;
        if !self.0.as_ref().is_some_and(is_recent) {
            self.0 = Some((now, examine(shared)));
        }
        self.0.as_ref().map_or(&[], |(_, checked)| checked)
    }
}
