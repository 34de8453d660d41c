//! Where other servers diverged from memcached, as far as the wire goes.
//!
//! Not here but with the server, because they are about stored items, connections or the operator's surface:
//! negative and absolute expiries in effect, `add` on an expired item, removal of the old value by a set that
//! is too large, padding of a decremented value, cas changing with every mutation, `flush_all` in the same
//! second, touch leaving the cas alone, append keeping flags and expiry, the set of statistics,
//! authentication, `-h` and `-V`, blanks in option values, half-read values, memory of pipelines, hit
//! counters.
#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing should fail")]

mod support;

use larder_protocol::{
    Crawler, Exptime, ItemInfo, Outcome, Request, Step, Store, StoreMode, Wire, detect, metadump_line, parse,
    parse_unauthenticated,
};
use support::{answer, packet, request, said, written};

const BAD_FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";

#[track_caller]
fn store(input: &[u8]) -> Store<'_> {
    match request(input) {
        Request::Store(store) => store,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn keys(input: &[u8]) -> Vec<Vec<u8>> {
    match request(input) {
        Request::Get(get) => get.keys.map(|key| key.bytes().to_vec()).collect(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn ends(input: &[u8], outcome: Outcome) -> Vec<u8> {
    let item = ItemInfo { value_len: 2, ..ItemInfo::default() };
    written(|out| request(input).reply().outcome(out, b"k", outcome, &item))
}

#[test]
fn version_is_three_numbers_and_nothing_else() {
    let (answer, _) = said(b"version\r\n");
    let line = String::from_utf8(answer).unwrap();
    let numbers = line.strip_prefix("VERSION ").and_then(|rest| rest.strip_suffix("\r\n")).unwrap();
    let numbers: Vec<u8> = numbers.split('.').map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers, [1, 6, 45]);
}

#[test]
fn noreply_silences_errors_and_large_values_too() {
    for input in [
        &b"set k 0 0 2 noreply\r\nhi\r\n"[..],
        b"delete k noreply\r\n",
        b"delete k 0 noreply\r\n",
        b"incr k 1 noreply\r\n",
        b"touch k 1 noreply\r\n",
        b"flush_all 0 noreply\r\n",
        b"flush_all  noreply\r\n",
        b"verbosity 0 noreply\r\n",
    ] {
        for outcome in
            [Outcome::Stored, Outcome::Ok, Outcome::NotFound, Outcome::TooLarge, Outcome::NonNumeric]
        {
            assert_eq!(ends(input, outcome), b"", "{}", input.escape_ascii());
        }
    }
    for malformed in [
        &b"incr k x noreply\r\n"[..],
        b"touch k x noreply\r\n",
        b"flush_all x noreply\r\n",
        b"verbosity noreply\r\n",
        b"set k x 0 2 noreply\r\nhi\r\n",
        b"set k 0 0 2 noreply\r\nhello\r\n",
    ] {
        let (answer, _) = said(malformed);
        assert!(!answer.starts_with(b"CLIENT_ERROR inv"), "{}", malformed.escape_ascii());
        assert!(!answer.starts_with(b"CLIENT_ERROR bad data"), "{}", malformed.escape_ascii());
    }
    assert_eq!(said(b"set k x 0 2 noreply\r\nhi\r\n").0, b"");
}

#[test]
fn a_line_too_broken_to_show_its_noreply_is_answered() {
    assert_eq!(said(b"set k 0 0 x noreply\r\n").0, BAD_FORMAT);
    assert_eq!(said(b"set k 0 noreply\r\n").0, BAD_FORMAT);
}

#[test]
fn counters_are_never_padded_and_deltas_have_64_bits() {
    assert_eq!(ends(b"decr n 1\r\n", Outcome::Number { value: 9 }), b"9\r\n");
    assert_eq!(ends(b"ma n v\r\n", Outcome::Number { value: 9 }), b"VA 1\r\n9\r\n");
    let Request::Arith(arith) = request(b"incr n 18446744073709551615\r\n") else { panic!() };
    assert_eq!((arith.delta, arith.decrement), (u64::MAX, false));
    for delta in ["18446744073709551616", "-1", "1.5", "x", "1x", "99999999999999999999999999"] {
        let line = format!("incr n {delta}\r\n");
        assert_eq!(said(line.as_bytes()).0, b"CLIENT_ERROR invalid numeric delta argument\r\n", "{delta}");
    }
}

#[test]
fn cas_on_a_missing_item_is_not_found() {
    let input = b"cas k 1 2 2 99\r\nhi\r\n";
    let cas = store(input);
    assert_eq!((cas.mode, cas.compare), (StoreMode::Set, Some(99)));
    assert_eq!(ends(input, Outcome::NotFound), b"NOT_FOUND\r\n");
    assert_eq!(ends(input, Outcome::Exists), b"EXISTS\r\n");
    assert_eq!(store(b"cas k 0 0 2 0\r\nhi\r\n").compare, Some(0), "zero is a cas to compare with");
    assert_eq!(store(b"cas k 0 -1 1 7\r\nx\r\n").exptime, Exptime(-1), "how one client deletes");
}

#[test]
fn too_large_says_the_words_that_clients_match() {
    let words = b"SERVER_ERROR object too large for cache\r\n";
    assert_eq!(ends(b"set k 0 0 2\r\nhi\r\n", Outcome::TooLarge), words);
    assert_eq!(ends(b"ms k 2 q\r\nhi\r\n", Outcome::TooLarge), words);
}

#[test]
fn a_bad_header_of_known_length_swallows_the_data() {
    let long = "k".repeat(251);
    for header in [
        "set k x 0 2",
        "set k 0 x 2",
        "set k -1 0 2",
        "add k 18446744073709551616 0 2",
        "add k 0 9223372036854775808 2",
        "add k 0 -9223372036854775809 2",
        "cas k 0 0 2",
        "cas k 0 0 2 x",
        &format!("set {long} 0 0 2"),
        &format!("ms {long} 2"),
        "ms k 2 v v",
        "ms k 2 MZ",
        "ms k 2 Oxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ms k 2 b",
    ] {
        let input = format!("{header}\r\nhi\r\nmn\r\n");
        let Step::Reject { swallow, close, .. } = parse(Wire::Text, input.as_bytes()) else {
            panic!("{header}");
        };
        assert_eq!((swallow, close), (4, false), "{header}");
        let (answer, _) = said(input.as_bytes());
        assert!(answer.starts_with(b"CLIENT_ERROR ") && answer.ends_with(b"\r\nMN\r\n"), "{header}");
        assert_eq!(answer.split(|byte| *byte == b'\n').count(), 3, "{header}: one error, then MN");
    }
}

#[test]
fn a_header_of_unusable_length_swallows_nothing() {
    for length in ["-1", "x", "2147483646", "4294967296", "99999999999999999999", "+2", "2x"] {
        for header in [format!("set k 0 0 {length}"), format!("ms k {length}")] {
            let input = format!("{header}\r\nmn\r\n");
            assert_eq!(said(input.as_bytes()).0, [BAD_FORMAT, b"MN\r\n"].concat(), "{header}");
        }
    }
    let Step::Body { request, head: 22, tail: 2 } = parse(Wire::Text, b"set k 0 0 2147483645\r\n    ") else {
        panic!("the longest length that is believed");
    };
    assert_eq!(request.value_len, 2_147_483_645);
}

#[test]
fn leftovers_of_a_bad_data_chunk_are_commands() {
    let (answer, _) = said(b"set k 0 0 2\r\nhi there\r\nmn\r\n");
    assert_eq!(answer, b"CLIENT_ERROR bad data chunk\r\nERROR\r\nMN\r\n");
    let (answer, _) = said(b"set k 0 0 2\r\nhi\nget lf2\r\n");
    assert_eq!(answer, b"CLIENT_ERROR bad data chunk\r\nERROR\r\n", "a bare LF does not end data");
    let (answer, _) = said(b"ms k 2 q\r\nhello\r\nmn\r\n");
    assert!(answer.starts_with(b"CLIENT_ERROR bad data chunk\r\n"), "q hides no errors");
}

#[test]
fn expiries_arrive_as_they_were_sent() {
    for exptime in [0, -1, i32::MIN, 2_592_000, 2_592_001, i32::MAX] {
        let input = format!("set k 0 {exptime} 0\r\n\r\n");
        assert_eq!(store(input.as_bytes()).exptime, Exptime::from(exptime));
    }
    assert_eq!(store(b"add k 0 2678400 0\r\n\r\n").mode, StoreMode::Add);
    let never = packet(0x01, b"k", &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], b"", 0);
    assert_eq!(
        store(&never).exptime,
        Exptime(4_294_967_295),
        "unsigned on the binary wire: far off, not past"
    );
}

#[test]
fn exptimes_beyond_32_bits_keep_their_low_bits() {
    for (sent, kept) in [
        ("4294967295", -1),
        ("4294967396", 100),
        ("9223372036854775807", -1),
        ("-2147483649", i32::MAX),
        ("-9223372036854775808", 0),
        ("\t7", 7),
    ] {
        let kept = Exptime::from(kept);
        for verb in ["set", "add", "replace", "append", "prepend"] {
            assert_eq!(
                store(format!("{verb} k 0 {sent} 1\r\nx\r\n").as_bytes()).exptime,
                kept,
                "{verb} {sent}"
            );
        }
        assert_eq!(store(format!("cas k 0 {sent} 1 7\r\nx\r\n").as_bytes()).exptime, kept, "cas {sent}");
        assert_eq!(store(format!("ms k 1 T{sent}\r\nx\r\n").as_bytes()).exptime, kept, "ms {sent}");
        let line = format!("touch k {sent}\r\n");
        let Request::Touch(touch) = request(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(touch.exptime, kept, "{line}");
        let line = format!("flush_all {sent}\r\n");
        let Request::Flush(flush) = request(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(flush.delay, kept, "{line}");
        for line in [format!("gat {sent} k\r\n"), format!("gats {sent} k\r\n"), format!("mg k T{sent}\r\n")] {
            let Request::Get(get) = request(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(get.touch, Some(kept), "{line}");
        }
        let line = format!("mg k N{sent} R{sent}\r\n");
        let Request::Get(get) = request(line.as_bytes()) else { panic!("{line}") };
        assert_eq!((get.vivify, get.recache.map(Exptime::from)), (Some(kept), Some(kept)), "{line}");
        let line = format!("ma k N{sent} T{sent}\r\n");
        let Request::Arith(arith) = request(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(
            (arith.initial.map(|(_, exptime)| exptime), arith.touch),
            (Some(kept), Some(kept)),
            "{line}"
        );
    }
}

#[test]
fn client_flags_beyond_32_bits_keep_their_low_bits() {
    for (sent, kept) in [("4294967296", 0), ("4294967297", 1), ("18446744073709551615", u32::MAX)] {
        assert_eq!(store(format!("set k {sent} 0 1\r\nx\r\n").as_bytes()).flags, kept, "{sent}");
        assert_eq!(store(format!("ms k 1 F{sent}\r\nx\r\n").as_bytes()).flags, kept, "{sent}");
    }
    assert_eq!(support::said(b"set k 18446744073709551616 0 1\r\nx\r\n").0, BAD_FORMAT);
    assert_eq!(support::said(b"set k -1 0 1\r\nx\r\n").0, BAD_FORMAT);
}

#[test]
fn multi_get_keeps_order_and_duplicates() {
    assert_eq!(keys(b"get b a b nope a\r\n"), [&b"b"[..], b"a", b"b", b"nope", b"a"]);
}

#[test]
fn one_long_key_voids_a_multi_get() {
    let long = "k".repeat(251);
    for line in [format!("get a {long}"), format!("gets {long} a"), format!("gat 1 a {long} b")] {
        assert_eq!(said(format!("{line}\r\nmn\r\n").as_bytes()).0, [BAD_FORMAT, b"MN\r\n"].concat());
    }
}

#[test]
fn mg_answers_in_request_order_with_b_behind_its_key() {
    let item = ItemInfo {
        value_len: 2,
        client_flags: 5,
        stale: true,
        won: true,
        key_is_binary: true,
        ..ItemInfo::default()
    };
    let input = b"mg YWJj b s f O1 k v t\r\n";
    let said = written(|out| request(input).reply().hit_head(out, b"abc", &item, true));
    assert_eq!(said, b"VA 2 s2 f5 O1 kYWJj b t-1 X W\r\n");
}

#[test]
fn q_hides_what_each_command_expects_and_never_errors() {
    let number = Outcome::Number { value: 1 };
    let mg = |input: &[u8]| written(|out| request(input).reply().miss(out, b"k"));
    assert_eq!(mg(b"mg k v q\r\n"), b"");
    let item = ItemInfo::default();
    assert_eq!(written(|out| request(b"mg k q\r\n").reply().hit_head(out, b"k", &item, false)), b"HD\r\n");
    let ms = b"ms k 2 q\r\nhi\r\n";
    assert_eq!(ends(ms, Outcome::Stored), b"");
    assert_eq!(ends(ms, Outcome::NotStored), b"NS\r\n");
    assert_eq!(ends(ms, Outcome::Exists), b"EX\r\n");
    assert_eq!(ends(ms, Outcome::NotFound), b"NF\r\n");
    assert_eq!(ends(b"md k q\r\n", Outcome::Deleted), b"");
    assert_eq!(ends(b"md k q\r\n", Outcome::NotFound), b"NF\r\n");
    assert_eq!(ends(b"md k q\r\n", Outcome::Exists), b"EX\r\n");
    assert_eq!(ends(b"ma k q\r\n", number), b"");
    assert_eq!(ends(b"ma k v q\r\n", number), b"");
    assert_eq!(ends(b"ma k q\r\n", Outcome::NotFound), b"NF\r\n");
    assert_eq!(ends(b"ma k q\r\n", Outcome::Exists), b"EX\r\n");
    let non_numeric = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    assert_eq!(ends(b"ma k q\r\n", Outcome::NonNumeric), non_numeric);
    assert_eq!(said(b"mg k q q\r\n").0, b"CLIENT_ERROR duplicate flag\r\n");
}

#[test]
fn md_and_ma_have_one_line_for_all_faults_of_single_flags() {
    for verb in ["md", "ma"] {
        for flags in ["q q", "!", "Tx", "Cx", "Fx", "b"] {
            let line = said(format!("{verb} k:k {flags}\r\n").as_bytes()).0;
            assert_eq!(line, b"CLIENT_ERROR invalid or duplicate flag\r\n", "{verb} {flags}");
        }
        let many = format!("{verb} k{}\r\n", " O1".repeat(25));
        assert_eq!(said(many.as_bytes()).0, b"CLIENT_ERROR options flags are too long\r\n");
        let long = format!("{verb} {} q q\r\n", "k".repeat(251));
        assert_eq!(said(long.as_bytes()).0, b"CLIENT_ERROR bad command line format\r\n");
    }
}

#[test]
fn bare_lf_and_any_number_of_blanks_are_tolerated() {
    assert_eq!(keys(b"get lf\n"), [b"lf"]);
    assert_eq!(keys(b"  get  a   b  \r\n"), [b"a", b"b"]);
    assert_eq!(store(b"set  a   0  0   1 \r\nx\r\n").value, b"x");
    assert_eq!(store(b"set lf 0 0 2\nhi\r\n").value, b"hi");
    assert!(matches!(request(b"stats \r\n"), Request::Stats(b"", _)));
    assert!(matches!(request(b"flush_all \r\n"), Request::Flush(_)));
    assert_eq!(said(b"config get nodes\n").0, b"ERROR\r\n");
    assert_eq!(said(b"mn\n").0, b"MN\r\n");
}

#[test]
fn an_unfinished_line_over_2048_bytes_closes_unless_it_gets() {
    let unfinished = |start: &str, len: usize| {
        let line: Vec<u8> = start.bytes().chain(std::iter::repeat(b'k')).take(len).collect();
        matches!(parse(Wire::Text, &line), Step::Close)
    };
    for start in ["set ", "gat 0 ", "mg ", "getx", "x", "delete "] {
        assert!(!unfinished(start, 2048), "{start}");
        assert!(unfinished(start, 2049), "{start}");
    }
    for start in ["get ", "gets ", "   get "] {
        assert!(!unfinished(start, 2049), "{start}");
        assert!(!unfinished(start, 1024 * 1024 - 1), "{start}");
        assert!(unfinished(start, 1024 * 1024), "{start}: even this has a bound");
    }
    assert!(!unfinished(&format!("{}get ", " ".repeat(100)), 3000));
    assert!(unfinished(&format!("{}get ", " ".repeat(101)), 3000));
}

#[test]
fn a_long_line_that_is_all_there_is_served() {
    let line = format!("gat 0{}\r\n", " key".repeat(1000));
    assert_eq!(keys(line.as_bytes()).len(), 1000);
    let line = format!("get{}\r\n", " key".repeat(100_000));
    assert_eq!(keys(line.as_bytes()).len(), 100_000);
}

#[test]
fn unknown_verbs_are_error_malformed_known_ones_client_error() {
    for unknown in ["GET a", "bget a", "config get nodes", "mx a", "getx a", "foo", "SET a 0 0 1"] {
        assert_eq!(said(format!("{unknown}\r\n").as_bytes()).0, b"ERROR\r\n", "{unknown}");
    }
    for malformed in [
        "get",
        "gets",
        "gat",
        "gat 1",
        "set a 0 0",
        "cas a 0 0 1x 2",
        "touch a",
        "incr a",
        "delete",
        "mg",
        "ms a",
        "md",
        "ma",
        "me",
        "verbosity",
        "verbosity invalid",
        "slabs automove invalid",
        "mg  ",
    ] {
        assert_eq!(said(format!("{malformed}\r\n").as_bytes()).0, BAD_FORMAT, "{malformed}");
    }
    for short in ["\r\n", "\n", " \n", "a\r\n", "ab\n"] {
        assert_eq!(said(short.as_bytes()).0, BAD_FORMAT, "{short:?}");
    }
}

#[test]
fn a_key_is_1_to_250_bytes_of_anything_but_blank_and_line_end() {
    for key in [&b"a\tb"[..], b"a\x01b", b"a\0b", b"\xff\xfe", "schl\u{fc}ssel".as_bytes(), b"a\rb", b"\x7f"]
    {
        let input = [b"get ", key, b"\r\n"].concat();
        assert_eq!(keys(&input), [key]);
        let input = [b"set ", key, b" 0 0 1\r\nx\r\n"].concat();
        assert_eq!(store(&input).key.bytes(), key);
    }
    for command in ["get K", "delete K", "incr K 1", "touch K 1", "mg K", "md K", "me K", "gat 1 K"] {
        let line = |len| format!("{}\r\n", command.replace('K', &"k".repeat(len)));
        let ok = line(250);
        request(ok.as_bytes());
        assert_eq!(said(line(251).as_bytes()).0, BAD_FORMAT, "{command}");
    }
}

#[test]
fn value_flags_are_the_full_range_of_32_bits() {
    let store = store(b"set k 4294967295 0 1\r\nx\r\n");
    assert_eq!(store.flags, u32::MAX);
    let item = ItemInfo { client_flags: store.flags, value_len: 1, ..ItemInfo::default() };
    let said = written(|out| request(b"get k\r\n").reply().hit_head(out, b"k", &item, true));
    assert_eq!(said, b"VALUE k 4294967295 1\r\n");
}

#[test]
fn quiet_binary_operations_hide_success_and_misses_and_send_errors() {
    let item = ItemInfo::default();
    let setq = packet(0x11, b"k", &[0; 8], b"v", 0);
    let outcome =
        |packet: &[u8], outcome| written(|out| request(packet).reply().outcome(out, b"k", outcome, &item));
    assert_eq!(outcome(&setq, Outcome::Stored), b"");
    assert_eq!(outcome(&setq, Outcome::Exists), answer(0x11, 2, 0, b"", b"", b"Data exists for key."));
    assert_eq!(outcome(&setq, Outcome::TooLarge), answer(0x11, 3, 0, b"", b"", b"Too large."));
    let deleteq = packet(0x14, b"k", &[], &[], 0);
    assert_eq!(outcome(&deleteq, Outcome::Deleted), b"");
    assert_eq!(outcome(&deleteq, Outcome::NotFound), answer(0x14, 1, 0, b"", b"", b"Not found"));
    let incrq = packet(0x15, b"k", &[0; 20], &[], 0);
    assert_eq!(outcome(&incrq, Outcome::Number { value: 1 }), b"");
    for opcode in [0x09, 0x0d] {
        let getq = packet(opcode, b"k", &[], &[], 0);
        assert_eq!(written(|out| request(&getq).reply().miss(out, b"k")), b"");
        assert_ne!(written(|out| request(&getq).reply().hit_head(out, b"k", &item, true)), b"");
    }
    let noop = packet(0x0a, &[], &[], &[], 0);
    assert_eq!(outcome(&noop, Outcome::Ok), answer(0x0a, 0, 0, b"", b"", b""), "the opaque comes back");
}

#[test]
fn binary_counters_that_must_not_be_created() {
    let mut extras = [0; 20];
    extras[7] = 3;
    extras[15] = 9;
    let create = packet(0x05, b"k", &extras, &[], 0);
    let Request::Arith(arith) = request(&create) else { panic!() };
    assert_eq!((arith.delta, arith.initial), (3, Some((9, Exptime(0)))));
    extras[16..].fill(0xff);
    let only = packet(0x06, b"k", &extras, &[], 5);
    let Request::Arith(arith) = request(&only) else { panic!() };
    assert_eq!((arith.decrement, arith.initial, arith.compare), (true, None, Some(5)));
}

#[test]
fn binary_without_sasl_knows_no_sasl_and_goes_on() {
    let auth = packet(0x21, b"PLAIN", &[], b"\0user\0password", 0);
    let noop = packet(0x0a, &[], &[], &[], 0);
    let (said, closes) = said(&[packet(0x20, &[], &[], &[], 0), auth, noop].concat());
    let unknown = |opcode| answer(opcode, 0x81, 0, b"", b"", b"Unknown command");
    assert_eq!(said, [unknown(0x20), unknown(0x21), answer(0x0a, 0, 0, b"", b"", b"")].concat());
    assert!(!closes);
}

#[test]
fn binary_garbage_closes() {
    let noop = packet(0x0a, &[], &[], &[], 0);
    assert!(said(&[&noop[..], b"get a\r\n"].concat()).1, "wrong magic");
    let with_key = packet(0x0a, b"k", &[], &[], 0);
    assert_eq!(said(&with_key), (answer(0x0a, 4, 0, b"", b"", b"Invalid arguments"), true));
    let mut lengths = packet(0x00, b"key", &[], &[], 0);
    lengths[11] = 1;
    assert_eq!(said(&lengths), (answer(0x00, 0x81, 0, b"", b"", b"Unknown command"), true));
    let long_key = packet(0x00, &[b'k'; 251], &[], &[], 0);
    assert_eq!(said(&long_key), (answer(0x00, 4, 0, b"", b"", b"Invalid arguments"), true));
}

#[test]
fn gat_gats_and_mg_with_t_touch() {
    for (input, cas) in [(&b"gat 30 a b\r\n"[..], false), (b"gats 30 a b\r\n", true)] {
        let Request::Get(get) = request(input) else { panic!() };
        assert_eq!((get.touch, get.keys.clone().count()), (Some(Exptime(30)), 2));
        let said = written(|out| get.reply.hit_head(out, b"a", &ItemInfo::default(), true));
        assert_eq!(said.ends_with(b" 0 0 0\r\n"), cas);
    }
    let Request::Get(get) = request(b"mg a T-1 v\r\n") else { panic!() };
    assert_eq!(get.touch, Some(Exptime(-1)));
    assert_eq!(said(b"gat x a\r\n").0, b"CLIENT_ERROR invalid exptime argument\r\n");
}

#[test]
fn surplus_arguments_do_no_harm() {
    assert_eq!(said(b"version foo bar\r\nversion noreply\r\n").0, b"VERSION 1.6.45\r\nVERSION 1.6.45\r\n");
    assert_eq!(said(b"verbosity 1 2 3\r\n").0, b"OK\r\n");
    assert_eq!(said(b"quit foo\r\nversion\r\n"), (vec![], true));
    assert_eq!(store(b"set a 0 0 2 x y\r\nhi\r\n").value, b"hi");
    assert!(matches!(request(b"delete a b c d e\r\n"), Request::Delete(_)));
    assert!(matches!(request(b"delete k 0\r\n"), Request::Delete(_)));
    assert!(matches!(request(b"incr n 1 2 3\r\n"), Request::Arith(_)));
    assert_eq!(ends(b"stats reset\r\n", Outcome::Reset), b"RESET\r\n");
}

#[test]
fn metadump_lines_end_in_a_bare_lf() {
    let Request::Admin(larder_protocol::Admin::Crawler(what, reply)) =
        request(b"lru_crawler metadump all\r\n")
    else {
        panic!()
    };
    assert_eq!(what, Crawler::Metadump(b"all"));
    assert_eq!(written(|out| reply.outcome(out, b"", Outcome::Ok, &ItemInfo::default())), b"OK\r\n");
    let line = written(|out| metadump_line(out, b"a b", &ItemInfo::default(), None, 1, 1, 60));
    assert_eq!(line, b"key=a%20b exp=-1 la=1 cas=0 fetch=no cls=1 size=60\n");
    assert_eq!(written(|out| reply.stats_end(out)), b"END\r\n");
}

#[test]
fn statistics_take_whole_words() {
    assert!(matches!(request(b"stats r\r\n"), Request::Stats(b"r", _)));
    assert!(matches!(request(b"stats  cachedump 1 0 \r\n"), Request::Stats(b"cachedump 1 0", _)));
}

#[test]
fn browsers_get_nothing() {
    for line in ["GET / HTTP/1.0", "POST /set HTTP/1.1", "x HTTP/"] {
        assert_eq!(said(format!("{line}\r\nmn\r\n").as_bytes()), (vec![], true), "{line}");
    }
    assert_eq!(said(b"HTTP/1.0\r\n"), (b"ERROR\r\n".to_vec(), false));
    let hello = b"\x16\x03\x01\x02\x00 session\r\nset k 0 0 1\r\nx\r\n";
    assert_eq!(said(hello), (Vec::new(), true), "nothing within a TLS hello is executed");
    let login = parse_unauthenticated(detect(hello[0]), hello);
    assert_eq!(login, Step::Close, "nor before a login");
}

#[test]
fn a_line_that_begins_like_tls_is_a_line_behind_others() {
    assert_eq!(said(b"mn\r\n\x16\x03\x01 x\r\nmn\r\n"), (b"MN\r\nERROR\r\nMN\r\n".to_vec(), false));
}

#[test]
fn meta_commands_have_at_most_20_tokens() {
    let most = b"mg a v s t f c k h l Oabc q u P L b I x T1 N1\r\n";
    assert_eq!(most.split(|byte| *byte == b' ').count(), 20);
    assert_eq!(said(most).0, b"CLIENT_ERROR error decoding key\r\n");
    let more = b"mg a v s t f c k h l Oabc q u P L I x T1 N1 R1 C1\r\n";
    assert_eq!(said(more).0, b"CLIENT_ERROR options flags are too long\r\n");
    let more = b"mg a v v s t f c k h l Oabc q u P L I x T1 N1 R1\r\n";
    assert_eq!(said(more).0, b"CLIENT_ERROR options flags are too long\r\n", "before any flag is looked at");
}

#[test]
fn an_opaque_has_at_most_31_characters() {
    request(format!("mg a O{}\r\n", "o".repeat(31)).as_bytes());
    for command in ["mg a", "md a", "ma a"] {
        let line = format!("{command} O{}\r\n", "o".repeat(32));
        assert_eq!(said(line.as_bytes()).0, b"CLIENT_ERROR opaque token too long\r\n");
    }
}

#[test]
fn ms_normalises_mode_and_compare() {
    let ms = |flags: &str| {
        let input = format!("ms k 2 {flags}\r\nhi\r\n");
        let store = store(input.as_bytes());
        (store.mode, store.compare, store.vivify, store.exptime, store.invalidate)
    };
    let never = Exptime::NEVER;
    assert_eq!(ms(""), (StoreMode::Set, None, None, never, false));
    assert_eq!(ms("MS T5"), (StoreMode::Set, None, None, Exptime(5), false));
    assert_eq!(ms("C0"), (StoreMode::Set, Some(0), None, never, false));
    assert_eq!(ms("C7 I"), (StoreMode::Set, Some(7), None, never, true));
    assert_eq!(ms("I"), (StoreMode::Set, None, None, never, false));
    assert_eq!(ms("MR"), (StoreMode::Replace, None, None, never, false));
    assert_eq!(ms("MR C7"), (StoreMode::Set, Some(7), None, never, false));
    assert_eq!(ms("ME C7"), (StoreMode::Add, None, None, never, false));
    assert_eq!(ms("MA N9 T5"), (StoreMode::Append, None, Some(Exptime(9)), Exptime(9), false));
    assert_eq!(ms("MPREPEND C7"), (StoreMode::Prepend, Some(7), None, never, false));
    assert_eq!(ms("MA C0"), (StoreMode::Append, None, None, never, false));
    assert_eq!(ms("N9"), (StoreMode::Set, None, None, never, false));
}
