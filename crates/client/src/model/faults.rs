//! Faults that are put into the client on purpose: the model finds each.

use super::explore::{Program, Search, explore, stay_on_one_cpu};
use super::programs::program;
use super::schedule::Limits;
use crate::simulation::Fault;

/// The most executions until a fault is found.
const EXECUTIONS_MAX: usize = 5_000;

/// Preemptions and events, the fewest first.
const ALL_LIMITS: &[(u32, u32)] = &[(0, 0), (0, 1), (1, 0), (1, 1)];

/// Returns after how many executions a fault is found, within each of these limits at most.
fn executions_to_find(fault: Fault, name: &str, limits: &[(u32, u32)]) -> usize {
    let mut sum = 0;
    for &(preemptions, events) in limits {
        let limits = Limits { preemptions, events, ..program(name).limits };
        let program = Program { limits, ..*program(name) };
        let explored = explore(&program, Some(fault), Search::DepthFirst, EXECUTIONS_MAX - sum);
        sum += explored.executions;
        if explored.wrong.is_some() {
            println!(
                "{fault:?}: in \"{name}\" after {sum} executions, {preemptions} preemptions, {events} events"
            );
            return sum;
        }
        assert!(sum < EXECUTIONS_MAX, "{fault:?} is not found in \"{name}\"");
    }
    panic!("{fault:?} is not found in \"{name}\"");
}

#[test]
fn each_fault_that_is_put_into_the_client_is_found() {
    stay_on_one_cpu();
    for (fault, name) in [
        (Fault::TicketIgnored, "reads beside a set"),
        (Fault::TicketIgnored, "requests and replies are lost"),
        (Fault::DeleteKeepsVersion, "reads beside a delete"),
        (Fault::DeleteKeepsVersion, "two threads of a process"),
        (Fault::UnchangedOverReconnect, "the server is restarted"),
        (Fault::FreshFromReply, "the server is restarted"),
        (Fault::RefusedSetKeepsEntry, "two writers of a host"),
        (Fault::AbsenceAsFresh, "an absent key is set elsewhere"),
        (Fault::NoLease, "one value is created for all"),
        (Fault::RefusedCreationKeepsEntry, "a creation beside reads"),
        (Fault::CreationReplacesNewer, "a set while a value is created"),
        (Fault::FailedCreationDeletesNewer, "a creation that fails"),
        (Fault::EmptyItemIsValue, "an item is marked stale while its value is created"),
        (Fault::DeadRenewalStays, "a process is killed while it renews"),
        (Fault::DeadRenewalStays, "a process is killed while it creates"),
        (Fault::LeaseAfterRead, "changes are announced"),
        (Fault::AnnouncementLost, "changes are announced"),
        (Fault::FeedFromAnswer, "an answer is read late"),
        (Fault::BeatFromAnswer, "the answer to a beat is read late"),
        (Fault::InexactBesideRenewal, "two readers find that the listener is late"),
        (Fault::ForgetKeepsVersion, "an announcement overtakes a reply"),
    ] {
        assert!(executions_to_find(fault, name, ALL_LIMITS) > 0);
    }
    // With less, these have more executions than one would wait for.
    for (fault, name, limits) in [
        (Fault::BeatNotLookedBehind, "the listener or a reader is late", (1, 1)),
        (Fault::BeatOfAnyFeed, "another process announces what the killed one did not", (0, 1)),
    ] {
        assert!(executions_to_find(fault, name, &[limits]) > 0);
    }
}
