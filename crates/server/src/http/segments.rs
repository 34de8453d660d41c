//! The segments of both tiers by state and age, as JSON.

use larder_store::{SEGMENT_BYTES, SsdSurvey, Stats};

use crate::json::object;
use crate::shared::Shared;

/// The most parts by age that the SSD is divided into.
const SSD_PARTS_MAX: usize = 64;

/// Returns the segments of both tiers by state and age. An SSD that is not there has 0 of them.
pub(super) fn segments(shared: &Shared) -> String {
    let (store, now) = (shared.store.stats(), shared.clock.now());
    let ages = shared.store.ages(now);
    let survey = shared.store.survey_ssd(SSD_PARTS_MAX, now);
    let ram_ages = [("oldest_small_age_s", ages.ram_small_s), ("oldest_main_age_s", ages.ram_main_s)];
    object([("ram", ram_segments(&store, ram_ages)), ("ssd", ssd_segments(&store, ages.ssd_s, &survey))])
}

fn ram_segments(store: &Stats, ages: [(&'static str, u32); 2]) -> String {
    let used = store.ram_segments - store.ram_segments_free - store.ram_segments_withheld;
    let members = [
        ("segments", store.ram_segments),
        ("segment_bytes", store.ram_segment_bytes),
        ("used", used),
        ("free", store.ram_segments_free),
        ("withheld", store.ram_segments_withheld),
    ];
    let ages = ages.map(|(name, age)| (name, u64::from(age)));
    object(members.into_iter().chain(ages).map(|(name, number)| (name, number.to_string())))
}

fn ssd_segments(store: &Stats, oldest_age_s: u32, survey: &SsdSurvey) -> String {
    let shares: Vec<String> = survey.live_shares.iter().map(|share| format!("{share:.4}")).collect();
    object([
        ("segments", store.ssd_segments.to_string()),
        ("segment_bytes", SEGMENT_BYTES.to_string()),
        ("used", store.ssd_segments_used.to_string()),
        ("oldest_age_s", oldest_age_s.to_string()),
        ("live_shares", format!("[{}]", shares.join(","))),
    ])
}
