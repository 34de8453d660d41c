//! The bounds that the client promises hold in every interleaving that is explored.

use super::explore::{Explored, Program, Search, explore, stay_on_one_cpu};
use super::programs::{PROGRAMS, program};
use super::schedule::Limits;

/// Executions of each program within each pair of limits, and at random; times `LARDER_MODEL_TIMES`.
const EXECUTIONS: usize = 200;
/// The seed of random executions, unless `LARDER_MODEL_SEED` is another number or `random`.
const SEED: u64 = 11;
/// Preemptions and events of random executions.
const RANDOM: (u32, u32) = (3, 2);

fn times() -> usize {
    std::env::var("LARDER_MODEL_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn seed() -> u64 {
    match std::env::var("LARDER_MODEL_SEED").as_deref() {
        Ok("random") => crate::now_ms() ^ u64::from(std::process::id()) << 32,
        Ok(seed) => seed.parse().expect("a number, or random"),
        Err(_) => SEED,
    }
}

/// Explores a program within narrow limits first, and returns how many executions that were.
fn keeps_its_bounds(program: &Program, executions_max: usize, seed: u64) -> usize {
    let own = (program.limits.preemptions, program.limits.events);
    let depth_first = [(0, 0), (0, 1), (1, 0), own].map(|limits| (limits, Search::DepthFirst));
    let searches = depth_first.into_iter().chain([(RANDOM, Search::Random(seed))]);
    let mut sum = 0;
    for ((preemptions, events), search) in searches {
        let program = Program { limits: Limits { preemptions, events, ..program.limits }, ..*program };
        let Explored { executions, is_complete, wrong } = explore(&program, None, search, executions_max);
        if let Some(wrong) = wrong {
            panic!("{search:?}, {preemptions} preemptions, {events} events: {wrong}");
        }
        let reached = if is_complete { "all" } else { "the first" };
        println!(
            "{}: {reached} {executions}, {search:?}, {preemptions} preemptions, {events} events",
            program.name
        );
        sum += executions;
    }
    sum
}

#[test]
fn the_bounds_hold_in_every_interleaving_of_small_programs() {
    stay_on_one_cpu();
    let seed = seed();
    println!("seed {seed}");
    let executions = |program| keeps_its_bounds(program, EXECUTIONS * times(), seed);
    let sum: usize = PROGRAMS.iter().map(executions).sum();
    println!("{sum} executions of {} programs", PROGRAMS.len());
    assert!(sum > 10_000, "{sum} executions");
}

/// The most executions of a program that has to hold in all.
const ALL_MAX: usize = 3_000;

/// Makes all choices of a program, or [`ALL_MAX`] executions, with so many preemptions and events.
fn holds(name: &str, preemptions: u32, events: u32) {
    stay_on_one_cpu();
    let limits = Limits { preemptions, events, ..program(name).limits };
    let explored = explore(&Program { limits, ..*program(name) }, None, Search::DepthFirst, ALL_MAX);
    assert_eq!(explored.wrong, None);
}

#[test]
fn a_creation_replaces_no_value_that_was_stored_meanwhile() {
    holds("a set while a value is created", 2, 0);
}

#[test]
fn a_creation_that_fails_deletes_no_value_that_was_stored_meanwhile() {
    holds("a creation that fails", 1, 0);
}

#[test]
fn a_created_value_is_seen_by_its_host_whatever_another_read_has_stored() {
    holds("a creation beside reads", 0, 1);
}

#[test]
fn an_empty_item_that_stands_for_a_value_is_never_returned_as_one() {
    holds("an item is marked stale while its value is created", 2, 0);
}

#[test]
fn once_an_announcement_was_heeded_no_process_of_the_host_reads_an_older_value() {
    holds("an announcement overtakes a reply", 0, 1);
    holds("a host changes what is announced to it", 1, 0);
}

#[test]
fn a_change_goes_unseen_for_no_longer_than_the_silence() {
    holds("an answer is read late", 1, 1);
    holds("changes are announced", 0, 1);
    holds("the process that listens is killed", 0, 1);
    holds("the server that announces is restarted", 0, 1);
}

#[test]
fn a_value_is_exact_within_its_bound_although_the_listener_or_the_reader_is_late() {
    holds("the listener or a reader is late", 1, 1);
    holds("two readers find that the listener is late", 0, 1);
}

#[test]
fn a_value_is_exact_within_its_bound_although_the_line_falls_silent() {
    holds("the line that announces falls silent", 0, 2);
    holds("another process announces what the killed one did not", 0, 1);
}

#[test]
fn a_stale_value_is_renewed_although_the_process_that_renewed_it_was_killed() {
    holds("a process is killed while it renews", 1, 1);
    holds("a process is killed while it creates", 1, 1);
}
