//! What threads did to keys and when, and whether some order of it explains every answer. Never a thread.
//!
//! Each event has the moments at which it began and ended, taken from one counter. A read may answer a
//! version only if no other write began after that version's write had ended and was itself over before the
//! read began.

use std::collections::HashMap;

/// A version no write has.
pub const GONE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub key: u32,
    /// What was written or read; [`GONE`] for a removal.
    pub version: u64,
    pub began: u64,
    pub ended: u64,
    pub is_write: bool,
}

/// Panics at the first read that no order of the writes explains; answers how many reads were judged.
pub fn judge(events: impl Iterator<Item = Event>) -> u64 {
    let mut keys: HashMap<u32, (Vec<Event>, Vec<Event>)> = HashMap::new();
    for event in events {
        let (writes, reads) = keys.entry(event.key).or_default();
        if event.is_write { writes.push(event) } else { reads.push(event) }
    }
    let mut judged = 0;
    for (writes, reads) in keys.values_mut() {
        writes.sort_by_key(|write| write.began);
        // At i: the earliest end of the writes from i on.
        let mut ends = vec![u64::MAX; writes.len() + 1];
        for (i, write) in writes.iter().enumerate().rev() {
            ends[i] = ends[i + 1].min(write.ended);
        }
        let by_version: HashMap<u64, &Event> =
            writes.iter().filter(|write| write.version != GONE).map(|write| (write.version, write)).collect();
        for read in reads {
            let write = by_version.get(&read.version);
            let write = write.unwrap_or_else(|| panic!("{read:?} answers what nobody wrote"));
            assert!(write.began < read.ended, "{read:?} comes before {write:?}");
            let later = writes.partition_point(|other| other.began <= write.ended);
            assert!(
                ends[later] >= read.began,
                "{read:?} answers {write:?}, which a later write had replaced at {}",
                ends[later]
            );
            judged += 1;
        }
    }
    judged
}

#[test]
fn the_judge_convicts_an_old_answer_and_acquits_an_overlapping_one() {
    let event = |version, began, ended, is_write| Event { key: 1, version, began, ended, is_write };
    let writes = [event(1, 0, 10, true), event(2, 20, 30, true)];
    let acquitted = [event(1, 25, 40, false), event(2, 25, 26, false)];
    assert_eq!(judge(writes.into_iter().chain(acquitted)), 2);
    for old in [event(1, 31, 40, false), event(3, 31, 40, false), event(2, 5, 15, false)] {
        let convicted = std::thread::spawn(move || judge(writes.into_iter().chain([old]))).join();
        assert!(convicted.is_err(), "{old:?}");
    }
}
