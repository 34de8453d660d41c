//! Answers, byte for byte, on the three wires.
#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing should fail")]

mod support;

use larder_protocol::{
    ItemInfo, Outcome, Reply, Verb, cachedump_line, metadump_line, mgdump_line, uri_encode,
};
use support::{answer, packet, request, written};

const ITEM: ItemInfo = ItemInfo {
    client_flags: 5,
    cas: 36,
    value_len: 2,
    ttl_before_s: Some(100),
    ttl_after_s: Some(30),
    idle_s: 7,
    hit_before: true,
    stale: false,
    won: false,
    win_sent: false,
    key_is_binary: false,
};

/// What a hit on `key` answers to `input`, its value being `hi`.
#[track_caller]
fn hit(input: &[u8], key: &[u8], item: &ItemInfo, with_value: bool) -> String {
    let request = request(input);
    let reply = request.reply();
    let bytes = written(|out| {
        reply.hit_head(out, key, item, with_value);
        if with_value {
            out.extend_from_slice(b"hi");
        }
        reply.hit_tail(out, with_value);
        reply.end(out);
    });
    String::from_utf8(bytes).unwrap()
}

#[track_caller]
fn miss(input: &[u8], key: &[u8]) -> String {
    let request = request(input);
    let reply = request.reply();
    String::from_utf8(written(|out| {
        reply.miss(out, key);
        reply.end(out);
    }))
    .unwrap()
}

#[track_caller]
fn ends(input: &[u8], key: &[u8], outcome: Outcome) -> String {
    String::from_utf8(written(|out| request(input).reply().outcome(out, key, outcome, &ITEM))).unwrap()
}

#[test]
fn classic_reads() {
    assert_eq!(hit(b"get a\r\n", b"a", &ITEM, true), "VALUE a 5 2\r\nhi\r\nEND\r\n");
    assert_eq!(hit(b"gets a\r\n", b"a", &ITEM, true), "VALUE a 5 2 36\r\nhi\r\nEND\r\n");
    assert_eq!(hit(b"gat 1 a\r\n", b"a", &ITEM, true), "VALUE a 5 2\r\nhi\r\nEND\r\n");
    assert_eq!(hit(b"gats 1 a\r\n", b"a", &ITEM, true), "VALUE a 5 2 36\r\nhi\r\nEND\r\n");
    assert_eq!(miss(b"get a\r\n", b"a"), "END\r\n");
    let widest = ItemInfo { client_flags: u32::MAX, cas: u64::MAX, value_len: u32::MAX, ..ITEM };
    assert_eq!(
        hit(b"gets \xf0\x9f\xa6\x80\r\n", "\u{1f980}".as_bytes(), &widest, true),
        "VALUE \u{1f980} 4294967295 4294967295 18446744073709551615\r\nhi\r\nEND\r\n"
    );
}

#[test]
fn classic_outcomes() {
    for (outcome, line) in [
        (Outcome::Stored, "STORED"),
        (Outcome::NotStored, "NOT_STORED"),
        (Outcome::Exists, "EXISTS"),
        (Outcome::NotFound, "NOT_FOUND"),
        (Outcome::TooLarge, "SERVER_ERROR object too large for cache"),
        (Outcome::OutOfMemory, "SERVER_ERROR out of memory storing object"),
        (Outcome::BadDataChunk, "CLIENT_ERROR bad data chunk"),
        (Outcome::Failed { reason: "the device failed" }, "SERVER_ERROR the device failed"),
    ] {
        assert_eq!(ends(b"set a 0 0 1\r\nx\r\n", b"a", outcome), format!("{line}\r\n"));
        assert_eq!(ends(b"set a 0 0 1 noreply\r\nx\r\n", b"a", outcome), "");
    }
    assert_eq!(ends(b"delete a\r\n", b"a", Outcome::Deleted), "DELETED\r\n");
    assert_eq!(ends(b"touch a 0\r\n", b"a", Outcome::Touched), "TOUCHED\r\n");
    assert_eq!(ends(b"incr a 1\r\n", b"a", Outcome::Number { value: u64::MAX }), "18446744073709551615\r\n");
    assert_eq!(ends(b"incr a 1\r\n", b"a", Outcome::OutOfMemory), "SERVER_ERROR out of memory\r\n");
    assert_eq!(
        ends(b"decr a 1\r\n", b"a", Outcome::NonNumeric),
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
    );
    assert_eq!(ends(b"flush_all\r\n", b"", Outcome::Ok), "OK\r\n");
    assert_eq!(
        ends(b"flush_all\r\n", b"", Outcome::FlushNotAllowed),
        "CLIENT_ERROR flush_all not allowed\r\n"
    );
    assert_eq!(ends(b"verbosity 1\r\n", b"", Outcome::Ok), "OK\r\n");
    assert_eq!(ends(b"version\r\n", b"", Outcome::Ok), "VERSION 1.6.45\r\n");
    assert_eq!(ends(b"stats reset\r\n", b"", Outcome::Reset), "RESET\r\n");
    assert_eq!(ends(b"quit\r\n", b"", Outcome::Ok), "");
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "one reply"))]
fn a_classic_read_has_no_other_reply_than_its_end() {
    ends(b"get a\r\n", b"a", Outcome::OutOfMemory);
}

#[test]
fn meta_reads() {
    assert_eq!(hit(b"mg a\r\n", b"a", &ITEM, false), "HD\r\n");
    assert_eq!(hit(b"mg a v\r\n", b"a", &ITEM, true), "VA 2\r\nhi\r\n");
    assert_eq!(
        hit(b"mg a t s f c k Oabc v l h q u P1 L2\r\n", b"a", &ITEM, true),
        "VA 2 t100 s2 f5 c36 ka Oabc l7 h1\r\nhi\r\n"
    );
    assert_eq!(hit(b"mg a s f O1 k v\r\n", b"a", &ITEM, true), "VA 2 s2 f5 O1 ka\r\nhi\r\n");
    let never = ItemInfo { ttl_before_s: None, ttl_after_s: None, ..ITEM };
    assert_eq!(hit(b"mg a t\r\n", b"a", &never, false), "HD t-1\r\n");
    assert_eq!(miss(b"mg a\r\n", b"a"), "EN\r\n");
    assert_eq!(miss(b"mg a v k s Oabc t\r\n", b"a"), "EN ka Oabc\r\n");
    assert_eq!(miss(b"mg YWJj b Oabc k\r\n", b"abc"), "EN Oabc kYWJj b\r\n");
    assert_eq!(miss(b"mg a v q k\r\n", b"a"), "");
    assert_eq!(miss(b"me a\r\n", b"a"), "EN\r\n");
}

#[test]
fn the_place_of_the_touch_decides_which_ttl_is_shown() {
    assert_eq!(hit(b"mg a T30 t\r\n", b"a", &ITEM, false), "HD t30\r\n");
    assert_eq!(hit(b"mg a t T30\r\n", b"a", &ITEM, false), "HD t100\r\n");
    let vivified = ItemInfo { ttl_before_s: None, won: true, value_len: 0, ..ITEM };
    assert_eq!(hit(b"mg a N30 t c s\r\n", b"a", &vivified, false), "HD t30 c36 s0 W\r\n");
    assert_eq!(hit(b"mg a t N30\r\n", b"a", &vivified, false), "HD t-1 W\r\n");
}

#[test]
fn the_refill_race_is_told_last() {
    let state = |stale, won, win_sent| ItemInfo { stale, won, win_sent, ..ITEM };
    assert_eq!(hit(b"mg a v t\r\n", b"a", &state(true, true, false), true), "VA 2 t100 X W\r\nhi\r\n");
    assert_eq!(hit(b"mg a v\r\n", b"a", &state(true, false, true), true), "VA 2 Z X\r\nhi\r\n");
    assert_eq!(hit(b"mg a v\r\n", b"a", &state(true, false, false), true), "VA 2 Z X\r\nhi\r\n");
    assert_eq!(hit(b"mg a k\r\n", b"a", &state(false, false, true), false), "HD ka Z\r\n");
}

#[test]
fn a_binary_key_is_shown_as_its_item_was_stored() {
    let binary = ItemInfo { key_is_binary: true, ..ITEM };
    assert_eq!(hit(b"mg abc v k\r\n", b"abc", &binary, true), "VA 2 kYWJj b\r\nhi\r\n");
    assert_eq!(hit(b"mg YWJj b v k\r\n", b"abc", &binary, true), "VA 2 kYWJj b\r\nhi\r\n");
    assert_eq!(hit(b"mg YWJj b k v s\r\n", b"abc", &binary, true), "VA 2 kYWJj b s2\r\nhi\r\n");
    assert_eq!(hit(b"mg YWJj b k\r\n", b"abc", &ITEM, false), "HD kabc\r\n");
}

#[test]
fn meta_stores() {
    let all = b"ms a 2 T0 F5 c k Ox s b\r\nhi\r\n";
    let plain = b"ms a 2 T0 F5 c k Ox s\r\nhi\r\n";
    assert_eq!(ends(plain, b"a", Outcome::Stored), "HD c36 ka Ox s2\r\n");
    assert!(matches!(
        larder_protocol::parse(larder_protocol::Wire::Text, all),
        larder_protocol::Step::Reject { .. }
    ));
    assert_eq!(ends(b"ms YWJj 2 b k\r\nhi\r\n", b"abc", Outcome::Stored), "HD kYWJj b\r\n");
    assert_eq!(ends(plain, b"a", Outcome::NotStored), "NS c36 ka Ox s2\r\n");
    assert_eq!(ends(plain, b"a", Outcome::Exists), "EX c36 ka Ox s2\r\n");
    assert_eq!(ends(plain, b"a", Outcome::NotFound), "NF c36 ka Ox s2\r\n");
    assert_eq!(ends(b"ms a 2\r\nhi\r\n", b"a", Outcome::Stored), "HD\r\n");
}

#[test]
fn meta_deletes_and_counters() {
    assert_eq!(ends(b"md a k Oz\r\n", b"a", Outcome::Deleted), "HD ka Oz\r\n");
    assert_eq!(ends(b"md a Oz k\r\n", b"a", Outcome::NotFound), "NF Oz ka\r\n");
    assert_eq!(ends(b"md a C9\r\n", b"a", Outcome::Exists), "EX\r\n");
    let value = Outcome::Number { value: 14 };
    assert_eq!(ends(b"ma a\r\n", b"a", value), "HD\r\n");
    assert_eq!(ends(b"ma a v t c k O1\r\n", b"a", value), "VA 2 t100 c36 ka O1\r\n14\r\n");
    assert_eq!(ends(b"ma a T30 t v\r\n", b"a", value), "VA 2 t30\r\n14\r\n");
    assert_eq!(ends(b"ma YWJj b k\r\n", b"abc", value), "HD kYWJj b\r\n");
    assert_eq!(ends(b"ma a k O1 t\r\n", b"a", Outcome::NotFound), "NF ka O1\r\n");
    assert_eq!(ends(b"ma a\r\n", b"a", Outcome::NotStored), "NS\r\n");
    assert_eq!(ends(b"mn\r\n", b"", Outcome::Ok), "MN\r\n");
}

#[test]
fn meta_debug() {
    let me = |input: &[u8], item: &ItemInfo| {
        String::from_utf8(written(|out| request(input).reply().debug(out, b"abc", item, 1, 64))).unwrap()
    };
    let never = ItemInfo { ttl_after_s: None, idle_s: 0, cas: 37, key_is_binary: true, ..ITEM };
    assert_eq!(me(b"me YWJj b\r\n", &never), "ME YWJj exp=-1 la=0 cas=37 fetch=yes cls=1 size=64\r\n");
    let unread = ItemInfo { hit_before: false, ..ITEM };
    assert_eq!(me(b"me abc\r\n", &unread), "ME abc exp=30 la=7 cas=36 fetch=no cls=1 size=64\r\n");
}

#[test]
fn binary_reads() {
    let ask = |opcode, key: &[u8], extras: &[u8]| {
        let packet = packet(opcode, key, extras, &[], 0);
        let request = request(&packet);
        let reply = request.reply();
        let hit = written(|out| {
            reply.hit_head(out, key, &ITEM, true);
            out.extend_from_slice(b"hi");
            reply.hit_tail(out, true);
            reply.end(out);
        });
        (hit, written(|out| reply.miss(out, key)))
    };
    let flags = [0, 0, 0, 5];
    for (opcode, extras) in [(0x00, &[][..]), (0x1d, &[0; 4])] {
        let (hit, miss) = ask(opcode, b"key", extras);
        assert_eq!(hit, answer(opcode, 0, 36, &flags, b"", b"hi"));
        assert_eq!(miss, answer(opcode, 1, 0, b"", b"", b"Not found"));
    }
    for (opcode, extras) in [(0x0c, &[][..]), (0x23, &[0; 4])] {
        let (hit, miss) = ask(opcode, b"key", extras);
        assert_eq!(hit, answer(opcode, 0, 36, &flags, b"key", b"hi"));
        assert_eq!(miss, answer(opcode, 1, 0, b"", b"key", b""));
    }
    for (opcode, extras) in [(0x09, &[][..]), (0x1e, &[0; 4])] {
        assert_eq!(ask(opcode, b"key", extras), (answer(opcode, 0, 36, &flags, b"", b"hi"), vec![]));
    }
    for (opcode, extras) in [(0x0d, &[][..]), (0x24, &[0; 4])] {
        assert_eq!(ask(opcode, b"key", extras), (answer(opcode, 0, 36, &flags, b"key", b"hi"), vec![]));
    }
}

#[test]
fn binary_outcomes() {
    let store = [0; 8];
    let counter = [0; 20];
    let ends = |opcode, key: &[u8], extras: &[u8], outcome| {
        let packet = packet(opcode, key, extras, &[], 0);
        written(|out| request(&packet).reply().outcome(out, key, outcome, &ITEM))
    };
    let bare = |opcode, status, words: &str| answer(opcode, status, 0, b"", b"", words.as_bytes());
    assert_eq!(ends(0x01, b"k", &store, Outcome::Stored), answer(0x01, 0, 36, b"", b"", b""));
    assert_eq!(ends(0x02, b"k", &store, Outcome::NotStored), bare(0x02, 2, "Data exists for key."));
    assert_eq!(ends(0x03, b"k", &store, Outcome::NotStored), bare(0x03, 1, "Not found"));
    assert_eq!(ends(0x0e, b"k", &[], Outcome::NotStored), bare(0x0e, 5, "Not stored."));
    assert_eq!(ends(0x01, b"k", &store, Outcome::Exists), bare(0x01, 2, "Data exists for key."));
    assert_eq!(ends(0x01, b"k", &store, Outcome::NotFound), bare(0x01, 1, "Not found"));
    assert_eq!(ends(0x01, b"k", &store, Outcome::TooLarge), bare(0x01, 3, "Too large."));
    assert_eq!(
        ends(0x01, b"k", &store, Outcome::OutOfMemory),
        bare(0x01, 0x82, "Out of memory allocating item")
    );
    assert_eq!(ends(0x04, b"k", &[], Outcome::Deleted), bare(0x04, 0, ""));
    assert_eq!(ends(0x04, b"k", &[], Outcome::NotFound), bare(0x04, 1, "Not found"));
    let number = Outcome::Number { value: 5 };
    assert_eq!(ends(0x05, b"k", &counter, number), answer(0x05, 0, 36, b"", b"", &[0, 0, 0, 0, 0, 0, 0, 5]));
    assert_eq!(
        ends(0x06, b"k", &counter, Outcome::NonNumeric),
        bare(0x06, 6, "Non-numeric server-side value for incr or decr")
    );
    assert_eq!(ends(0x1c, b"k", &[0; 4], Outcome::Touched), answer(0x1c, 0, 36, &[0, 0, 0, 5], b"", b""));
    assert_eq!(ends(0x1c, b"k", &[0; 4], Outcome::NotFound), bare(0x1c, 1, "Not found"));
    assert_eq!(ends(0x08, b"", &[], Outcome::Ok), bare(0x08, 0, ""));
    assert_eq!(ends(0x08, b"", &[], Outcome::FlushNotAllowed), bare(0x08, 0x20, "Auth failure."));
    assert_eq!(ends(0x0a, b"", &[], Outcome::Ok), bare(0x0a, 0, ""));
    assert_eq!(ends(0x0b, b"", &[], Outcome::Ok), bare(0x0b, 0, "1.6.45"));
    assert_eq!(ends(0x07, b"", &[], Outcome::Ok), bare(0x07, 0, ""));
    assert_eq!(ends(0x17, b"", &[], Outcome::Ok), b"");
    assert_eq!(ends(0x10, b"reset", &[], Outcome::Reset), bare(0x10, 0, ""));
    assert_eq!(ends(0x01, b"k", &store, Outcome::Failed { reason: "why" }), bare(0x01, 0x84, "why"));
}

#[test]
fn statistics_on_both_wires() {
    let text = written(|out| {
        let request = request(b"stats\r\n");
        request.reply().stat(out, "version", b"1.6.45");
        request.reply().stat_number(out, "curr_items", 5);
        request.reply().stats_end(out);
    });
    assert_eq!(text, b"STAT version 1.6.45\r\nSTAT curr_items 5\r\nEND\r\n");
    assert_eq!(written(|out| request(b"stats foo\r\n").reply().stats_unknown(out)), b"ERROR\r\n");
    let ask = packet(0x10, b"foo", &[], &[], 0);
    let packets = written(|out| {
        let request = request(&ask);
        request.reply().stat(out, "version", b"1.6.45");
        request.reply().stat_number(out, "curr_items", 5);
        request.reply().stats_end(out);
    });
    let expected = [
        answer(0x10, 0, 0, b"", b"version", b"1.6.45"),
        answer(0x10, 0, 0, b"", b"curr_items", b"5"),
        answer(0x10, 0, 0, b"", b"", b""),
    ];
    assert_eq!(packets, expected.concat());
    let unknown = written(|out| request(&ask).reply().stats_unknown(out));
    assert_eq!(unknown, answer(0x10, 1, 0, b"", b"", b"Not found"));
}

#[test]
fn dumps() {
    assert_eq!(written(|out| uri_encode(out, b"aZ09-._~ \x01\t%/\xff")), b"aZ09-._~%20%01%09%25%2F%FF");
    let line = written(|out| metadump_line(out, b"a\x01b", &ITEM, None, 1_795_187_383, 1, 63));
    assert_eq!(line, b"key=a%01b exp=-1 la=1795187383 cas=36 fetch=yes cls=1 size=63\n");
    let unread = ItemInfo { hit_before: false, ..ITEM };
    let line = written(|out| metadump_line(out, b"k", &unread, Some(1_800_000_000), 1, 2, 3));
    assert_eq!(line, b"key=k exp=1800000000 la=1 cas=36 fetch=no cls=2 size=3\n");
    assert_eq!(written(|out| mgdump_line(out, b"abc", false)), b"mg abc\r\n");
    assert_eq!(written(|out| mgdump_line(out, b"abc", true)), b"mg YWJj b\r\n");
    assert_eq!(written(|out| cachedump_line(out, b"a\tb", 1, 0)), b"ITEM a\tb [1 b; 0 s]\r\n");
}

#[test]
fn a_reply_outlives_its_request() {
    let owned = {
        let input = b"mg YWJj b k Oabc v q\r\n".to_vec();
        request(&input).reply().to_owned_reply()
    };
    let reply = owned.reply();
    assert_eq!((reply.verb(), reply.is_quiet()), (Verb::Get, true));
    let said = written(|out| reply.hit_head(out, b"abc", &ITEM, true));
    assert_eq!(said, b"VA 2 kabc Oabc\r\n");
}

#[test]
fn lines_of_the_server_heed_noreply_and_know_no_binary() {
    let line = |reply: Reply<'_>| written(|out| reply.line(out, "OK"));
    let classic = |noreply| Reply::Classic { verb: Verb::Admin, noreply, with_cas: false };
    assert_eq!(line(classic(false)), b"OK\r\n");
    assert_eq!(line(classic(true)), b"");
    assert_eq!(line(Reply::Binary { opcode: 0x10, opaque: 0, quiet: false }), b"");
}
