//! `ml`, Larder's own command for rate limits: its grammar, its faults and its replies.
#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing should fail")]

mod support;

use std::time::Duration;

use larder_protocol::rate::{Algorithm, Limit, Verdict};
use larder_protocol::{Check, Request};
use support::{request, said, written};

const MINUTE: Duration = Duration::from_secs(60);

fn check(line: &str) -> (Vec<u8>, Limit, u64) {
    match request(format!("{line}\r\n").as_bytes()) {
        Request::Check(Check { key, limit, cost, .. }) => (key.bytes().to_vec(), limit, cost),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_limit_is_a_count_a_period_and_a_mode() {
    assert_eq!(check("ml k L5 P60000"), (b"k".to_vec(), Limit::gcra(5, MINUTE), 1));
    assert_eq!(check("ml k P60000 MG L5 D3"), (b"k".to_vec(), Limit::gcra(5, MINUTE), 3));
    let burst = Limit { algorithm: Algorithm::Gcra { burst: 9 }, ..Limit::gcra(5, MINUTE) };
    assert_eq!(check("ml k L5 P60000 B9").1, burst);
    assert_eq!(check("ml k L5 P60000 MF D0"), (b"k".to_vec(), Limit::fixed_window(5, MINUTE), 0));
    assert_eq!(check("ml k L5 P60000 MS q k r w a O77").1, Limit::sliding_window(5, MINUTE));
    assert_eq!(check("ml YWJj b L5 P60000").0, b"abc");
    assert_eq!(check("ml k L18446744073709551615 P1 D18446744073709551615").2, u64::MAX);
    assert_eq!(check("ml k L1 P31622400000").1.period, Duration::from_secs(366 * 86_400));
}

#[test]
fn what_is_no_limit_is_refused_with_its_reason() {
    let many = format!("ml k L1 P1 {}", "k ".repeat(17));
    for (line, reason) in [
        ("ml", "bad command line format"),
        (&format!("ml {} L1 P1", "k".repeat(251)), "bad command line format"),
        ("ml k", "ml needs a limit: L and P"),
        ("ml k L5", "ml needs a limit: L and P"),
        ("ml k P5 MF", "ml needs a limit: L and P"),
        ("ml k L0 P1", "bad token in command line format"),
        ("ml k L-1 P1", "bad token in command line format"),
        ("ml k L18446744073709551616 P1", "bad token in command line format"),
        ("ml k L1 P0", "bad token in command line format"),
        ("ml k L1 P31622400001", "bad token in command line format"),
        ("ml k L1 P1 B0", "bad token in command line format"),
        ("ml k L1 P1 Dx", "bad token in command line format"),
        ("ml k L1 P1 MX", "invalid mode for ml M token"),
        ("ml k L1 P1 M", "invalid mode for ml M token"),
        ("ml k L1 P1 L1", "duplicate flag"),
        ("ml k L1 P1 v", "invalid flag"),
        ("ml k L1 P1 \u{7f}", "duplicate flag"),
        (&many, "options flags are too long"),
        ("ml YWJ L1 P1 b", "error decoding key"),
        (&format!("ml k L1 P1 O{}", "9".repeat(32)), "opaque token too long"),
    ] {
        let answer = said(format!("{line}\r\n").as_bytes()).0;
        assert_eq!(String::from_utf8_lossy(&answer), format!("CLIENT_ERROR {reason}\r\n"), "{line}");
    }
}

#[test]
fn a_verdict_tells_what_was_asked_for_in_its_order() {
    let allowed =
        Verdict { is_allowed: true, remaining: 4, retry_after_ns: Some(0), reset_after_ns: 12_000_000_001 };
    let denied = Verdict { is_allowed: false, remaining: 0, retry_after_ns: Some(1), ..allowed };
    let never = Verdict { retry_after_ns: None, ..denied };
    let answer = |line: &str, verdict: &Verdict| {
        let line = format!("{line}\r\n");
        let answer = written(|out| request(line.as_bytes()).reply().verdict(out, b"abc", verdict));
        String::from_utf8(answer).unwrap()
    };
    assert_eq!(answer("ml abc L5 P1", &allowed), "HD\r\n");
    assert_eq!(answer("ml abc L5 P1", &denied), "NS\r\n");
    assert_eq!(answer("ml abc r L5 P1 w a", &allowed), "HD r4 w0 a12001\r\n");
    assert_eq!(answer("ml abc a w O7 k L5 P1 r", &denied), "NS a12001 w1 O7 kabc r0\r\n");
    assert_eq!(answer("ml YWJj b k w L5 P1", &never), "NS kYWJj b w-1\r\n");
    assert_eq!(answer("ml abc q L5 P1 r", &allowed), "", "a quiet one hides that it passes");
    assert_eq!(answer("ml abc q L5 P1 r", &denied), "NS r0\r\n");
}
