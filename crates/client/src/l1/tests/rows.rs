//! Rows of the statistics: taken by a process that may be killed meanwhile, from others that have ended.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::super::crash::armed::kill_at;
use super::super::layout::{LANES, LINE, ROW};
use super::super::{L1, L1Processes};
use super::{name, small_cache};

fn miss(l1: &L1, times: u64) {
    (0..times).for_each(|key| assert!(l1.get(&name(key), &mut Vec::new()).is_none()));
}

/// Returns how many reads the living processes missed, and the others.
fn misses(found: &L1Processes) -> (Vec<u64>, u64) {
    (found.living.iter().map(|process| process.stats.misses).collect(), found.others.misses)
}

/// Gives the first row to a process that had the same id and was born at another time.
fn end_the_first_process(l1: &L1) {
    let birth = &l1.inner.words()[l1.inner.cache.layout.stats_at + LANES * LINE + 1];
    assert_ne!(birth.load(Relaxed), 0, "there is no /proc here");
    birth.store(1, Relaxed);
}

#[test]
fn a_process_killed_while_it_takes_a_row_changes_no_count_and_is_not_shown() {
    for steps in 1.. {
        let l1 = small_cache();
        miss(&l1, 5);
        end_the_first_process(&l1);
        let killed = l1.mapped_again();
        let is_killed = kill_at(steps, || miss(&killed, 1)).is_none();
        let ended = if is_killed { 5 } else { 6 };
        assert_eq!(l1.stats().misses, ended, "store {steps}");
        if !is_killed {
            assert!(steps > 10, "{steps} stores");
            break;
        }
        assert_eq!(misses(&l1.mapped_again().stats_by_process()), (vec![], ended), "store {steps}");
        let next = l1.mapped_again();
        miss(&next, 3);
        assert_eq!(misses(&next.stats_by_process()), (vec![3], ended), "store {steps}");
        assert_eq!(next.stats().misses, ended + 3, "store {steps}");
    }
}

#[test]
fn an_id_used_again_has_the_counts_of_its_own_process_only() {
    let l1 = small_cache();
    miss(&l1, 5);
    end_the_first_process(&l1);
    let again = l1.mapped_again();
    assert_eq!(misses(&again.stats_by_process()), (vec![], 5));
    miss(&again, 2);
    assert_eq!(misses(&again.stats_by_process()), (vec![2], 5));
}

#[test]
fn a_process_that_opens_its_file_again_counts_on_in_its_row() {
    let l1 = small_cache();
    for round in 1..100 {
        let again = l1.mapped_again();
        miss(&again, 2);
        assert_eq!(misses(&again.stats_by_process()), (vec![round * 2], 0));
    }
}

#[test]
fn threads_of_a_process_share_its_row_and_no_count_is_lost() {
    let l1 = small_cache();
    miss(&l1, 1);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| miss(&l1, 1_000));
        }
    });
    assert_eq!(misses(&l1.stats_by_process()), (vec![20_001], 0));
}

#[test]
fn threads_that_come_while_the_row_is_taken_do_not_wait_and_are_counted() {
    let l1 = small_cache();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| miss(&l1, 1_000));
        }
    });
    let found = l1.stats_by_process();
    assert_eq!((found.living.len(), l1.stats().misses), (1, 20_000));
    assert_eq!(found.living[0].stats.misses + found.others.misses, 20_000);
    let stats_at = l1.inner.cache.layout.stats_at;
    let lines_at = l1.inner.seat.lines_at(super::super::sys::process());
    assert_eq!(lines_at, Some(stats_at + ROW), "those of the first row");
    assert_eq!(l1.inner.words()[stats_at + LANES * LINE].load(Acquire) >> 32, 1, "it was taken once");
}
