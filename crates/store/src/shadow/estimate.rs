//! From what shadows have seen to what a cache of another size would miss, and how sure that is.
//!
//! Four things make an estimate unsure:
//!
//! - other keys in the sample would have had other misses: told by the parts of the sample (jackknife);
//! - the sample as a whole has a little too much or too little for its room, which moves all parts alike: told by the
//!   number of its items, and how steep the curve is there and at the cache's own size;
//! - shadows are simpler than a store, which matters the more, the more another size changes;
//! - it may hang on little whether an SSD's live records are moved or dropped: told by the SSD's log.

use super::Counts;

/// Parts of a sample, by keys: how much they differ tells how much another sample would.
pub const PARTS: usize = 8;
/// The quantile of Student's distribution that 95 % of estimates from so many parts lie within, and the normal one's.
pub(super) const QUANTILE: f64 = 2.365;
const NORMAL_QUANTILE: f64 = 1.96;
/// Misses of the sample of which an estimate tells something, of this cache's shadow and of the other's.
const MISSES_MIN: u64 = 100;
/// What moving live records, or dropping them, changes of the misses: as much as was seen.
const EDGE: f64 = 0.03;
/// What a cache of another size would miss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Misses of all gets, from 0 to 1.
    pub miss_ratio: f64,
    /// The interval of 95 % around it.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// What makes an estimate by a shadow unsure besides its choice of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Doubt {
    /// By how much its room may be too large or too small for its sample, as a part of it: the standard deviation.
    pub room: f64,
    /// Whether it hangs on little if live records on the SSD are moved.
    pub is_on_edge: bool,
    /// The part of the difference between two sizes by which it may be wrong, since it is simpler than a store.
    pub model: f64,
}

/// What a shadow has seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The size along the axis, in bytes.
    pub bytes: u64,
    /// Its counts.
    pub counts: Counts,
    /// What is unsure.
    pub doubt: Doubt,
}

impl Estimate {
    /// Returns whether the shadow of the cache's own size, of one key of `scale`, has missed enough to tell something.
    pub fn is_told_by(control: &Counts, scale: u32) -> bool {
        sum(&control.misses) / u64::from(scale) >= MISSES_MIN
    }

    /// Returns what caches of some sizes would have missed of `gets`, from what their shadows have seen. The first
    /// one has the size of the real cache, which missed `misses`: what all shadows have wrong alike does not count.
    /// Empty while the sample has missed too little.
    pub fn of_all(seen: &[Seen], scale: u32, gets: u64, misses: u64) -> Vec<Estimate> {
        let Some(control) = seen.first().filter(|control| Estimate::is_told_by(&control.counts, scale))
        else {
            return vec![];
        };
        if gets == 0 {
            return vec![];
        }
        let real = misses as f64 / gets as f64;
        let of = |one: &Seen| {
            let (ratio, by_keys) = Estimate::ratio(&one.counts, &control.counts);
            let by_room = NORMAL_QUANTILE * room_error(one, seen, control, ratio);
            let is_on_edge = one.doubt.is_on_edge || control.doubt.is_on_edge;
            let by_edge = if is_on_edge { EDGE * ratio } else { 0.0 };
            let by_model = one.doubt.model * (ratio - 1.0).abs();
            // The real cache itself tells of its own size.
            let is_control = one.bytes == control.bytes;
            let error = if is_control { 0.0 } else { by_keys.hypot(by_room).hypot(by_model) + by_edge };
            let of = |ratio: f64| (real * ratio).clamp(0.0, 1.0);
            Estimate { miss_ratio: of(ratio), low: of(ratio - error), high: of(ratio + error) }
        };
        seen.iter().map(of).collect()
    }

    /// Returns a shadow's misses as a multiple of the control's, and by how much another sample's would differ.
    fn ratio(shadow: &Counts, control: &Counts) -> (f64, f64) {
        let (all, of_control) = (sum(&shadow.misses), sum(&control.misses));
        let ratio = |without: u64, without_control: u64| {
            (all - without) as f64 / (of_control - without_control).max(1) as f64
        };
        let others: Vec<f64> =
            shadow.misses.iter().zip(&control.misses).map(|(one, two)| ratio(*one, *two)).collect();
        let mean = others.iter().sum::<f64>() / PARTS as f64;
        let spread: f64 = others.iter().map(|other| (other - mean).powi(2)).sum();
        (ratio(0, 0), (spread * (PARTS - 1) as f64 / PARTS as f64).sqrt() * QUANTILE)
    }
}

/// Returns by how much a ratio of misses may be off since the sample has too much or too little for its room: the
/// standard deviation. The smaller shadow's items are part of the larger one's, so what moves one moves the other, and
/// what moves both alike does not change the ratio.
fn room_error(one: &Seen, seen: &[Seen], control: &Seen, ratio: f64) -> f64 {
    let (room, of_control) = (one.doubt.room, control.doubt.room);
    let (a, b) =
        (room * steepness(one, seen, control), ratio * of_control * steepness(control, seen, control));
    let common = room.min(of_control) / room.max(of_control).max(f64::MIN_POSITIVE);
    (a * a + b * b - 2.0 * common * a * b).max(0.0).sqrt()
}

/// Returns how much the misses change with the size, as multiples of the control's misses for each factor e of size:
/// the steeper of the two slopes beside a shadow.
fn steepness(one: &Seen, seen: &[Seen], control: &Seen) -> f64 {
    let missed = |of: &Seen| sum(&of.counts.misses) as f64 / sum(&control.counts.misses).max(1) as f64;
    let below = seen.iter().filter(|other| other.bytes < one.bytes).max_by_key(|other| other.bytes);
    let above = seen.iter().filter(|other| other.bytes > one.bytes).min_by_key(|other| other.bytes);
    let slope = |other: &Seen| {
        let sizes = (one.bytes.max(1) as f64 / other.bytes.max(1) as f64).ln();
        ((missed(one) - missed(other)) / sizes).abs()
    };
    [below, above].into_iter().flatten().map(slope).fold(0.0, f64::max)
}

fn sum(misses: &[u64; PARTS]) -> u64 {
    misses.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: f64 = 0.1;
    /// What shadows simplify, where a tenth of the gets misses and twice the size misses half of them.
    const OF_MODEL: f64 = MODEL * 0.5 * 0.1;

    fn seen(bytes: u64, misses: [u64; PARTS], room: f64) -> Seen {
        let doubt = Doubt { room, is_on_edge: false, model: MODEL };
        Seen { bytes, counts: Counts { misses, ..Counts::default() }, doubt }
    }

    #[test]
    fn a_shadow_of_the_same_size_misses_what_the_cache_does() {
        let same = seen(5, [100, 120, 90, 200, 50, 100, 110, 95], 0.1);
        let estimates = Estimate::of_all(&[same], 1, 10_000, 2_500);
        assert_eq!(estimates, [Estimate { miss_ratio: 0.25, low: 0.25, high: 0.25 }]);
    }

    #[test]
    fn parts_that_differ_widen_the_interval() {
        let of = |misses| {
            Estimate::of_all(&[seen(1, [100; PARTS], 0.0), seen(2, misses, 0.0)], 1, 10_000, 1_000)[1]
        };
        let alike = of([50; PARTS]);
        assert_eq!(alike.miss_ratio, 0.05);
        assert!((alike.high - alike.low - 2.0 * OF_MODEL).abs() < 1e-9, "{alike:?}");
        let apart = of([40, 60, 40, 60, 40, 60, 40, 60]);
        assert_eq!(apart.miss_ratio, 0.05);
        assert!(apart.high - apart.low > 1.5 * (alike.high - alike.low), "{apart:?}");
    }

    #[test]
    fn few_items_widen_the_interval_where_the_curve_is_steep() {
        let width = |room, misses: u64| {
            let both = [seen(1, [100; PARTS], room), seen(2, [misses; PARTS], room)];
            let estimate = Estimate::of_all(&both, 8, 10_000, 1_000)[1];
            estimate.high - estimate.low
        };
        assert!((width(0.0, 50) - 2.0 * OF_MODEL).abs() < 1e-9, "many items: {}", width(0.0, 50));
        assert_eq!(width(0.1, 100), 0.0, "a flat curve");
        // Half of the misses for twice the size, and a tenth of that size: 0.1 x 0.05 / ln 2, twice 1.96 times; half
        // of it is gone, since the same keys move the misses of the cache's own size, too.
        let of_room = 0.0283_f64 / 2.0;
        assert!((width(0.1, 50) - of_room.hypot(2.0 * OF_MODEL)).abs() < 0.0001, "{}", width(0.1, 50));
        assert!(width(0.1, 25) > width(0.1, 50) && width(0.2, 50) > width(0.1, 50));
    }

    #[test]
    fn what_hangs_on_little_widens_the_interval() {
        let mut both = [seen(1, [100; PARTS], 0.0), seen(2, [50; PARTS], 0.0)];
        both[1].doubt.is_on_edge = true;
        let estimate = Estimate::of_all(&both, 8, 10_000, 1_000)[1];
        let above = estimate.high - estimate.miss_ratio;
        assert!((above - OF_MODEL - 0.05 * EDGE).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn too_few_misses_tell_nothing() {
        let few = seen(1, [8, 9, 10, 11, 12, 13, 14, 15], 0.0);
        assert_eq!(Estimate::of_all(&[few], 1, 1_000, 92), []);
        assert_eq!(Estimate::of_all(&[few], 8, 1_000, 92), []);
    }
}
