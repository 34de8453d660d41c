//! Which SSD segment is reused next, and what becomes of its live records.
//!
//! Moving the live records out of a segment of which the share `u` is live costs a read of all of it and a
//! write of `u`, and frees `1 - u`. Old segments are preferred: what they still hold is likely to stay, so the
//! freed room lasts (Rosenblum and Ousterhout, "The design and implementation of a log-structured file
//! system", 1992).

/// With fewer segments than this no live records are moved: the free segments that moving needs would be too
/// large a part of the SSD.
const MOVING_SEGMENTS_MIN: u32 = 8;
/// With fewer segments than this one free segment is reserved for moving, else two.
const SMALL_SEGMENTS: u32 = 256;
/// A segment of which more is live is not worth moving.
const MOVED_SHARE_MAX: f64 = 0.95;

/// Returns how many free segments only moved and readmitted records may fill, on an SSD of so many.
pub(crate) fn reserved_segments(segments: u32) -> usize {
    match segments {
        0..MOVING_SEGMENTS_MIN => 0,
        MOVING_SEGMENTS_MIN..SMALL_SEGMENTS => 1,
        _ => 2,
    }
}

/// Returns what reusing a segment next gains, to compare with others': of which the share `live` is live, and
/// since whose opening `age` others were opened. Nothing is above a segment without live records.
pub(crate) fn gain(live: f64, age: u32) -> f64 {
    if live == 0.0 { f64::MAX } else { (1.0 - live) * (1.0 + f64::from(age)) / (1.0 + live) }
}

/// An SSD that needs a segment.
pub(crate) struct Ssd {
    /// Segments of it.
    pub segments: u32,
    /// Whether there is a free segment to move records to, or one can be made by dropping records.
    pub has_room: bool,
    /// The live records of all segments, in segments.
    pub live_segments: f64,
    /// The live records may take so much of it, in percent, and all are kept.
    pub live_percent_max: u32,
}

/// Returns whether the live records of the segment that gains most, of which the share `live` is live, are all
/// moved. If not, the oldest segment is reused, and what of it was not read is dropped.
pub(crate) fn moves_live_records(live: f64, ssd: &Ssd) -> bool {
    ssd.segments >= MOVING_SEGMENTS_MIN
        && ssd.has_room
        && live <= MOVED_SHARE_MAX
        && ssd.live_segments <= f64::from(ssd.segments) * f64::from(ssd.live_percent_max) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptier_or_older_segment_gains_more_and_an_empty_one_most() {
        assert!(gain(0.2, 5) > gain(0.5, 5) && gain(0.5, 9) > gain(0.5, 5));
        assert!(gain(0.0, 0) > gain(0.001, u32::MAX));
    }

    #[test]
    fn live_records_are_moved_while_they_take_little_of_the_ssd() {
        let ssd = |live_segments| Ssd { segments: 100, has_room: true, live_segments, live_percent_max: 55 };
        assert!(moves_live_records(0.5, &ssd(55.0)) && !moves_live_records(0.5, &ssd(55.1)));
        assert!(!moves_live_records(0.96, &ssd(10.0)), "not worth it");
        assert!(!moves_live_records(0.5, &Ssd { has_room: false, ..ssd(10.0) }));
        assert!(!moves_live_records(0.5, &Ssd { segments: 7, ..ssd(1.0) }));
    }
}
