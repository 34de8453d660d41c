//! Limits how often one place in the code may log, such as the report of a device that fails a thousand times a
//! second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;

/// Lines that one place may log in a window.
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// The recent lines of each place. There are as many entries as places in the code.
#[derive(Default)]
pub(super) struct Limit {
    places: HashMap<Identifier, Place>,
}

struct Place {
    /// The beginning of its window.
    began: Instant,
    lines: u32,
    /// Lines left out since its last one.
    left_out: u64,
}

impl Limit {
    /// Returns `None` when the place has logged enough for its window, and else how many of its lines were
    /// left out before this one.
    pub(super) fn admit(&mut self, place: Identifier, now: Instant) -> Option<u64> {
        let place = self.places.entry(place).or_insert(Place { began: now, lines: 0, left_out: 0 });
        if now.saturating_duration_since(place.began) >= WINDOW {
            (place.began, place.lines) = (now, 0);
        }
        if place.lines == LINES_MAX {
            place.left_out += 1;
            return None;
        }
        place.lines += 1;
        Some(std::mem::take(&mut place.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::callsite::Callsite;
    use tracing::subscriber::Interest;

    struct Somewhere(u8);

    impl Callsite for Somewhere {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &tracing::Metadata<'_> {
            unreachable!("place {} is only told from others", self.0)
        }
    }

    static HERE: Somewhere = Somewhere(1);
    static THERE: Somewhere = Somewhere(2);

    #[test]
    fn a_place_that_logs_too_often_is_cut_short_and_the_rest_is_counted() {
        let mut limit = Limit::default();
        let began = Instant::now();
        for _ in 0..LINES_MAX {
            assert_eq!(limit.admit(Identifier(&HERE), began), Some(0));
        }
        for _ in 0..990 {
            assert_eq!(limit.admit(Identifier(&HERE), began + WINDOW / 2), None);
        }
        assert_eq!(limit.admit(Identifier(&THERE), began + WINDOW / 2), Some(0), "each place on its own");
        assert_eq!(limit.admit(Identifier(&HERE), began + WINDOW), Some(990));
        assert_eq!(limit.admit(Identifier(&HERE), began + WINDOW), Some(0));
    }
}
