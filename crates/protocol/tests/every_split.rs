//! However the bytes are cut on their way, a connection makes the same of them.

mod support;

use support::{Bodies, corpus, events, whole};

#[test]
fn two_pieces_cut_anywhere() {
    for transcript in corpus::all() {
        let expected = whole(&transcript);
        for cut in 0..=transcript.len() {
            let (front, back) = transcript.split_at(cut);
            for bodies in [Bodies::Wait, Bodies::Stream] {
                let got = events([front, back], bodies);
                assert_eq!(got, expected, "{} cut at {cut}, {bodies:?}", transcript.escape_ascii());
            }
        }
    }
}

#[test]
fn one_byte_at_a_time() {
    for transcript in corpus::all() {
        for bodies in [Bodies::Wait, Bodies::Stream] {
            let got = events(transcript.chunks(1), bodies);
            assert_eq!(got, whole(&transcript), "{}, {bodies:?}", transcript.escape_ascii());
        }
    }
}

#[test]
fn every_transcript_says_something() {
    for transcript in corpus::all() {
        assert!(!whole(&transcript).is_empty(), "{}", transcript.escape_ascii());
    }
}

#[test]
fn a_prefix_makes_a_prefix() {
    for transcript in corpus::all() {
        let expected = whole(&transcript);
        for cut in 0..=transcript.len() {
            let got = whole(&transcript[..cut]);
            assert_eq!(got, expected[..got.len()], "{} up to {cut}", transcript.escape_ascii());
        }
    }
}
