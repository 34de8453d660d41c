//! Requests that are put together at random, one by one, in both newer protocols: whole replies, and only their own.

#[path = "fuzz/binary.rs"]
mod binary;
#[path = "../../../fuzz/harness.rs"]
mod harness;
#[path = "fuzz/meta.rs"]
mod meta;
mod support;

use std::time::Duration;

use harness::for_a_while;

const TIME: Duration = Duration::from_secs(2);

#[test]
fn whatever_a_meta_command_asks_it_is_answered_in_whole_replies() {
    for_a_while("meta", TIME, 50, 4_000, meta::check);
}

#[test]
fn whatever_a_packet_asks_it_is_answered_in_whole_packets_of_its_own() {
    for_a_while("binary", TIME, 50, 4_000, binary::check);
}
