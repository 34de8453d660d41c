//! The four protocols: requests byte by byte, replies split anywhere, garbage refused.

use super::*;
use Protocol::{Binary, Meta, Resp2, Text};
use Seen::{Count, Done, Exists, Last, Miss, NotStored};
use Verb::{Append, Cas, Connect, Delete, Gat, Get, Gets, Incr, Prepend, Set, Touch};

fn encoder(protocol: Protocol) -> Encoder {
    let items = Names::new(b"k:", None, 1000).expect("it fits");
    let counters = items.counters().expect("it fits");
    Encoder { protocol, items, counters, pool: Pool::new() }
}

fn flags(key: u64) -> u32 {
    encoder(Text).items.flags(key)
}

fn said(protocol: Protocol, ask: impl Fn(&Encoder, &mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    ask(&encoder(protocol), &mut out);
    out.escape_ascii().to_string()
}

/// A piece of a reply, owned.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Value(Option<u32>, Vec<u8>),
    Unique(Option<u32>, Vec<u8>, u64),
    Exists,
    Done,
    Count(u64),
    Miss,
    NotStored,
    Error(String),
    Last,
}

/// Reads a reply of which `split` bytes come first, and then the rest.
fn read(protocol: Protocol, expected: Expected, reply: &[u8], split: usize) -> Result<Vec<Seen>, Garbage> {
    let names = encoder(protocol).items;
    let number = |whose: Whose<'_>| match whose {
        Whose::Only => None,
        Whose::Index(index) => Some(index),
        Whose::Name(name) => names.number(name).map(|key| key as u32),
    };
    let mut decoder = Decoder::new(protocol);
    let (mut at, mut seen) = (0, Vec::new());
    for end in [split, reply.len()] {
        while let Some(piece) = decoder.next(expected, &reply[at..end])? {
            at += piece.consumed;
            match piece.what {
                What::Value(whose, data, _) => seen.push(Seen::Value(number(whose), data.to_vec())),
                What::Unique(whose, data, _, unique) => {
                    seen.push(Seen::Unique(number(whose), data.to_vec(), unique));
                }
                What::Exists => seen.push(Exists),
                What::Done => seen.push(Seen::Done),
                What::Count(value) => seen.push(Seen::Count(value)),
                What::NotStored(_) => seen.push(Seen::NotStored),
                What::Miss => seen.push(Seen::Miss),
                What::Frame => {}
                What::Error(words) => seen.push(Seen::Error(words.escape_ascii().to_string())),
            }
            if piece.is_last {
                seen.push(Seen::Last);
                break;
            }
        }
        if seen.last() == Some(&Seen::Last) {
            break;
        }
    }
    assert!(
        seen.last() != Some(&Seen::Last) || at == reply.len(),
        "{at} of {} bytes were taken",
        reply.len()
    );
    Ok(seen)
}

fn binary(opcode: u8, status: u16, opaque: u32, extras: &[u8], value: &[u8]) -> Vec<u8> {
    let mut reply = vec![0x81, opcode, 0, 0, extras.len() as u8, 0];
    reply.extend(status.to_be_bytes());
    reply.extend(((extras.len() + value.len()) as u32).to_be_bytes());
    reply.extend(opaque.to_be_bytes());
    reply.extend([0; 8]);
    reply.extend(extras);
    reply.extend(value);
    reply
}

/// A protocol, a verb, a number of keys, the reply, and its expected pieces.
type Case = (Protocol, Verb, u32, Vec<u8>, Vec<Seen>);

fn value(whose: Option<u32>, data: &[u8]) -> Seen {
    Seen::Value(whose, data.to_vec())
}

fn error(words: &str) -> Seen {
    Seen::Error(words.to_string())
}

fn row(protocol: Protocol, verb: Verb, keys: u32, reply: &[u8], mut seen: Vec<Seen>) -> Case {
    seen.push(Last);
    (protocol, verb, keys, reply.to_vec(), seen)
}

fn cases() -> Vec<Case> {
    [text_cases(), meta_cases(), binary_cases(), resp_cases()].concat()
}

fn text_cases() -> Vec<Case> {
    vec![
        row(Text, Get, 1, b"VALUE k:007 0 4\r\na\r\nb\r\nEND\r\n", vec![value(Some(7), b"a\r\nb")]),
        row(Text, Get, 1, b"VALUE k:007 0 0 99\r\n\r\nEND\r\n", vec![value(Some(7), b"")]),
        row(Text, Get, 1, b"END\r\n", vec![Miss]),
        row(
            Text,
            Get,
            3,
            b"VALUE k:001 0 1\r\nx\r\nVALUE k:003 0 1\r\ny\r\nEND\r\n",
            vec![value(Some(1), b"x"), value(Some(3), b"y"), Miss],
        ),
        row(Text, Set, 1, b"STORED\r\n", vec![Done]),
        row(Text, Set, 1, b"SERVER_ERROR out of memory\r\n", vec![error("SERVER_ERROR out of memory")]),
        row(Text, Incr, 1, b"12\r\n", vec![Count(12)]),
        row(Text, Incr, 1, b"9 \r\n", vec![Count(9)]),
        row(Text, Incr, 1, b"NOT_FOUND\r\n", vec![Miss]),
        row(Text, Delete, 1, b"DELETED\r\n", vec![Done]),
        row(Text, Touch, 1, b"TOUCHED\r\n", vec![Done]),
        row(Text, Touch, 1, b"ERROR\r\n", vec![error("ERROR")]),
        row(Text, Set, 1, b"NOT_STORED\r\n", vec![NotStored]),
        row(Text, Gat, 1, b"VALUE k:007 0 3\r\nabc\r\nEND\r\n", vec![value(Some(7), b"abc")]),
        row(
            Text,
            Gets,
            1,
            b"VALUE k:007 0 1 18446744073709551\r\nx\r\nEND\r\n",
            vec![Seen::Unique(Some(7), b"x".to_vec(), 18446744073709551)],
        ),
        row(Text, Gets, 1, b"END\r\n", vec![Miss]),
        row(Text, Cas, 1, b"STORED\r\n", vec![Done]),
        row(Text, Cas, 1, b"EXISTS\r\n", vec![Exists]),
        row(Text, Cas, 1, b"NOT_FOUND\r\n", vec![Miss]),
        row(Text, Append, 1, b"STORED\r\n", vec![Done]),
        row(Text, Set, 3, b"STORED\r\n", vec![Done]),
        row(Text, Connect, 1, b"VERSION 1.6.18\r\n", vec![Done]),
        row(Text, Prepend, 1, b"NOT_STORED\r\n", vec![Miss]),
    ]
}

fn meta_cases() -> Vec<Case> {
    vec![
        row(Meta, Get, 1, b"VA 3\r\nabc\r\n", vec![value(None, b"abc")]),
        row(Meta, Get, 1, b"EN\r\n", vec![Miss]),
        row(
            Meta,
            Get,
            3,
            b"VA 3 O0\r\nabc\r\nVA 0 O2\r\n\r\nMN\r\n",
            vec![value(Some(0), b"abc"), value(Some(2), b"")],
        ),
        row(Meta, Set, 1, b"HD\r\n", vec![Done]),
        row(Meta, Incr, 1, b"VA 2\r\n41\r\n", vec![Count(41)]),
        row(Meta, Incr, 1, b"HD\r\n", vec![Done]),
        row(Meta, Incr, 1, b"NF\r\n", vec![Miss]),
        row(Meta, Delete, 1, b"HD\r\n", vec![Done]),
        row(Meta, Touch, 1, b"EN\r\n", vec![Miss]),
        row(Meta, Gat, 1, b"VA 3\r\nabc\r\n", vec![value(None, b"abc")]),
        row(Meta, Gets, 1, b"VA 3 c77\r\nabc\r\n", vec![Seen::Unique(None, b"abc".to_vec(), 77)]),
        row(Meta, Gets, 1, b"EN\r\n", vec![Miss]),
        row(Meta, Cas, 1, b"HD\r\n", vec![Done]),
        row(Meta, Cas, 1, b"EX\r\n", vec![Exists]),
        row(Meta, Cas, 1, b"NF\r\n", vec![Miss]),
        row(Meta, Append, 1, b"HD\r\n", vec![Done]),
        row(Meta, Prepend, 1, b"NS\r\n", vec![Miss]),
        row(Meta, Set, 3, b"MN\r\n", vec![Done]),
        row(Meta, Connect, 1, b"VERSION 1.6.18\r\n", vec![Done]),
        row(Meta, Set, 3, b"SERVER_ERROR x\r\nNS\r\nMN\r\n", vec![error("SERVER_ERROR x"), NotStored, Done]),
    ]
}

fn binary_cases() -> Vec<Case> {
    let several =
        [binary(0x0d, 0, 1, &[0; 4], b"one"), binary(0x0d, 0, 2, &[0; 4], b""), binary(0x0a, 0, 0, &[], b"")];
    let refused = [binary(0x11, 3, 2, &[], b"Too large."), binary(0x0a, 0, 0, &[], b"")];
    vec![
        row(Binary, Incr, 1, &binary(5, 5, 0, &[], b"Not stored."), vec![NotStored]),
        row(Binary, Get, 1, &binary(0, 0, 0, &[0; 4], b"abc"), vec![value(None, b"abc")]),
        row(Binary, Get, 1, &binary(0, 1, 0, &[], b"Not found"), vec![Miss]),
        row(Binary, Get, 3, &several.concat(), vec![value(Some(1), b"one"), value(Some(2), b"")]),
        row(Binary, Set, 1, &binary(1, 0, 0, &[], b""), vec![Done]),
        row(Binary, Set, 1, &binary(1, 3, 0, &[], b"Too large."), vec![error("Too large.")]),
        row(Binary, Incr, 1, &binary(5, 0, 0, &[], &7u64.to_be_bytes()), vec![Count(7)]),
        row(Binary, Touch, 1, &binary(0x1c, 1, 0, &[], b""), vec![Miss]),
        row(Binary, Gat, 1, &binary(0x1d, 0, 0, &[0; 4], b"abc"), vec![value(None, b"abc")]),
        row(Binary, Gat, 1, &binary(0x1d, 1, 0, &[], b""), vec![Miss]),
        row(Binary, Gets, 1, &binary(0, 0, 0, &[0; 4], b"abc"), vec![Seen::Unique(None, b"abc".to_vec(), 0)]),
        row(Binary, Cas, 1, &binary(1, 0, 0, &[], b""), vec![Done]),
        row(Binary, Cas, 1, &binary(1, 2, 0, &[], b"Exists"), vec![Exists]),
        row(Binary, Cas, 1, &binary(1, 1, 0, &[], b"Not found"), vec![Miss]),
        row(Binary, Append, 1, &binary(0x0e, 0, 0, &[], b""), vec![Done]),
        row(Binary, Prepend, 1, &binary(0x0f, 5, 0, &[], b"Not stored"), vec![Miss]),
        row(Binary, Connect, 1, &binary(0x0b, 0, 0, &[], b"1.6.18"), vec![Done]),
        row(Binary, Set, 3, &binary(0x0a, 0, 0, &[], b""), vec![Done]),
        row(Binary, Set, 3, &refused.concat(), vec![error("Too large."), Done]),
    ]
}

fn resp_cases() -> Vec<Case> {
    vec![
        row(Resp2, Get, 1, b"$3\r\nabc\r\n", vec![value(None, b"abc")]),
        row(Resp2, Get, 1, b"$-1\r\n", vec![Miss]),
        row(
            Resp2,
            Get,
            3,
            b"*3\r\n$1\r\nx\r\n$-1\r\n$2\r\n\r\n\r\n",
            vec![value(Some(0), b"x"), Miss, value(Some(2), b"\r\n")],
        ),
        row(Resp2, Set, 1, b"+OK\r\n", vec![Done]),
        row(Resp2, Set, 1, b"-OOM no memory\r\n", vec![error("OOM no memory")]),
        row(Resp2, Incr, 1, b":5\r\n", vec![Count(5)]),
        row(Resp2, Delete, 1, b":0\r\n", vec![Miss]),
        row(Resp2, Touch, 1, b":1\r\n", vec![Done]),
        row(Resp2, Connect, 1, b"+PONG\r\n", vec![Done]),
        row(Resp2, Gat, 1, b"$3\r\nabc\r\n", vec![value(None, b"abc")]),
    ]
}

#[test]
fn a_gat_carries_its_expiry() {
    let asked = |protocol, expiry_s| said(protocol, |encoder, out| encoder.gat(out, 7, expiry_s));
    assert_eq!(asked(Text, 60), r"gat 60 k:007\r\n");
    assert_eq!(asked(Meta, 60), r"mg k:007 v f T60\r\n");
    assert!(asked(Binary, 60).starts_with(r"\x80\x1d\x00\x05\x04") && asked(Binary, 60).ends_with("<k:007"));
    assert_eq!(asked(Resp2, 60), r"*4\r\n$5\r\nGETEX\r\n$5\r\nk:007\r\n$2\r\nEX\r\n$2\r\n60\r\n");
    assert_eq!(asked(Resp2, 0), r"*3\r\n$5\r\nGETEX\r\n$5\r\nk:007\r\n$7\r\nPERSIST\r\n");
}

#[test]
fn replies_are_understood_however_they_are_split() {
    for (protocol, verb, keys, reply, want) in cases() {
        let expected = Expected { verb, keys };
        for split in 0..=reply.len() {
            let seen = read(protocol, expected, &reply, split);
            let shown = reply.escape_ascii();
            assert_eq!(seen.as_ref(), Ok(&want), "{protocol:?} {verb:?} `{shown}` split at {split}");
        }
    }
}

#[test]
fn part_of_a_reply_is_not_taken_for_all_of_it() {
    for (protocol, verb, keys, reply, _) in cases() {
        for kept in 0..reply.len() {
            let seen =
                read(protocol, Expected { verb, keys }, &reply[..kept], 0).expect("it may still become one");
            assert!(!seen.contains(&Seen::Last), "{protocol:?} {verb:?}: {kept} of {} bytes", reply.len());
        }
    }
}

#[test]
fn garbage_is_refused() {
    let wrong: [(Protocol, Verb, u32, &[u8]); 20] = [
        (Text, Verb::Gets, 1, b"VALUE k:1 0 1\r\nx\r\nEND\r\n"),
        (Text, Verb::Cas, 1, b"DELETED\r\n"),
        (Meta, Verb::Gets, 1, b"VA 1\r\nx\r\n"),
        (Text, Verb::Get, 1, b"STORED\r\n"),
        (Text, Verb::Get, 1, b"VALUE k:1 0 x\r\n"),
        (Text, Verb::Get, 1, b"VALUE k:1 0 99999999999\r\n"),
        (Text, Verb::Get, 1, b"VALUE k:1 0 1\r\nxyz\r\nEND\r\n"),
        (Text, Verb::Get, 1, b"VALUE k:1 0 1\r\nx\r\nVALUE k:1 0 1\r\n"),
        (Text, Verb::Set, 1, b"END\r\n"),
        (Text, Verb::Set, 1, b"STORED\n"),
        (Meta, Verb::Get, 1, b"MN\r\n"),
        (Meta, Verb::Get, 2, b"VA 1 O7\r\nx\r\n"),
        (Meta, Verb::Get, 2, b"VA 1\r\nx\r\n"),
        (Binary, Verb::Get, 1, b"VALUE"),
        (Resp2, Verb::Get, 1, b"+OK\r\n"),
        (Resp2, Verb::Get, 3, b"*2\r\n"),
        (Resp2, Verb::Get, 3, b"$1\r\nx\r\n"),
        (Resp2, Verb::Get, 1, b"$-7\r\n"),
        (Resp2, Verb::Incr, 1, b":x\r\n"),
        (Resp2, Verb::Set, 1, b"\r\n"),
    ];
    for (protocol, verb, keys, reply) in wrong {
        let seen = read(protocol, Expected { verb, keys }, reply, 0);
        assert!(seen.is_err(), "{protocol:?} {verb:?} `{}`: {seen:?}", reply.escape_ascii());
    }
    let other = binary(1, 0, 0, &[], b"");
    assert!(read(Binary, Expected { verb: Verb::Get, keys: 1 }, &other, 0).is_err());
    let endless = vec![b'x'; LINE_BYTES_MAX + 1];
    assert!(read(Text, Expected { verb: Verb::Get, keys: 1 }, &endless, 0).is_err());
}

#[test]
fn any_bytes_at_all_do_not_panic() {
    let mut random = crate::random::Random::new(11);
    let alphabet = b"\r\n 0123456789VALUEKDSTOR$*:-+\x81\x00\x0a\x0dO";
    for _ in 0..200_000 {
        let length = random.below(40) as usize;
        let input: Vec<u8> =
            (0..length).map(|_| alphabet[random.below(alphabet.len() as u64) as usize]).collect();
        for protocol in [Protocol::Text, Protocol::Meta, Protocol::Binary, Protocol::Resp2] {
            let verb = Verb::ALL[random.below(Verb::ALL.len() as u64) as usize];
            let keys = if matches!(verb, Verb::Get | Verb::Set) { 1 + random.below(3) as u32 } else { 1 };
            let mut decoder = Decoder::new(protocol);
            let _ = decoder.next(Expected { verb, keys }, &input);
        }
    }
}

#[test]
fn a_counter_is_asked_for_as_its_statement_says() {
    let said = |protocol, ask: fn(&Counting, &mut Vec<u8>)| {
        let mut out = Vec::new();
        ask(&Counting::new(protocol, "c"), &mut out);
        out.escape_ascii().to_string()
    };
    assert_eq!(said(Protocol::Text, Counting::increment), r"incr c 1\r\n");
    assert_eq!(said(Protocol::Text, Counting::create), r"add c 0 0 1\r\n1\r\n");
    assert_eq!(said(Protocol::Text, |counter, out| counter.set(out, 42)), r"set c 0 0 2\r\n42\r\n");
    assert_eq!(said(Protocol::Meta, Counting::increment), r"ma c N0 J1 v\r\n");
    assert_eq!(said(Protocol::Text, Counting::delete), r"delete c\r\n");
    let mut out = Vec::new();
    Counting::new(Protocol::Binary, "c").increment(&mut out);
    assert_eq!((out.len(), out[1], out[4]), (45, 5, 20));
    assert_eq!(out[24..40], [[0, 0, 0, 0, 0, 0, 0, 1]; 2].concat()[..]);
    assert_eq!(out[40..], *b"\0\0\0\0c");
    let version = |protocol, reply: &[u8]| Counting::new(protocol, "c").read_version(reply);
    assert_eq!(version(Protocol::Text, b"VERSION 1.6\r\n"), Ok(Some("1.6".to_string())));
    assert_eq!(version(Protocol::Binary, &binary(0x0b, 0, 0, &[], b"1.6")), Ok(Some("1.6".to_string())));
    assert_eq!(version(Protocol::Meta, b"VERSION"), Ok(None));
    assert!(version(Protocol::Text, b"ERROR\r\n").is_err());
}

#[test]
fn a_cas_names_the_number_and_an_addition_its_side() {
    let new = Value { bytes: 0, expiry_s: 60, version: 1 };
    let cas = |protocol| said(protocol, |encoder, out| encoder.cas(out, 7, 515, new));
    let seven = flags(7);
    assert_eq!(cas(Text), format!(r"cas k:007 {seven} 60 0 515\r\n\r\n"));
    assert_eq!(cas(Meta), format!(r"ms k:007 0 F{seven} T60 C515\r\n\r\n"));
    let extras = [seven.to_be_bytes(), 60u32.to_be_bytes()].concat();
    let tail = format!(r"\x00\x00\x00\x00\x00\x00\x02\x03{}k:007", extras.escape_ascii());
    assert!(cas(Binary).ends_with(&tail), "{}", cas(Binary));
    let add = |protocol, is_front| said(protocol, |encoder, out| encoder.add(out, is_front, 7, new));
    assert_eq!(add(Text, false), format!(r"append k:007 {seven} 0 0\r\n\r\n"));
    assert_eq!(add(Text, true), format!(r"prepend k:007 {seven} 0 0\r\n\r\n"));
    assert_eq!(add(Meta, false), r"ms k:007 0 MA\r\n\r\n");
    assert_eq!(add(Meta, true), r"ms k:007 0 MP\r\n\r\n");
    assert!(add(Binary, false).starts_with(r"\x80\x0e\x00\x05\x00"));
    assert!(add(Binary, true).starts_with(r"\x80\x0f\x00\x05\x00"));
    assert_eq!(said(Text, |e, out| e.gets(out, 7)), r"gets k:007\r\n");
    assert_eq!(said(Meta, |e, out| e.gets(out, 7)), r"mg k:007 v f c\r\n");
}

#[test]
fn of_sets_in_a_row_the_last_alone_is_answered() {
    let empty = Value { bytes: 0, expiry_s: 0, version: 1 };
    let sets =
        |protocol| said(protocol, |encoder, out| encoder.sets(out, [(7, empty), (8, empty)].into_iter()));
    let (seven, eight) = (flags(7), flags(8));
    let text = format!(r"set k:007 {seven} 0 0 noreply\r\n\r\nset k:008 {eight} 0 0\r\n\r\n");
    assert_eq!(sets(Text), text);
    assert_eq!(sets(Meta), format!(r"ms k:007 0 F{seven} q\r\n\r\nms k:008 0 F{eight} q\r\n\r\nmn\r\n"));
    let mut binary = Vec::new();
    encoder(Binary).sets(&mut binary, [(7, empty), (8, empty)].into_iter());
    let heads: Vec<(u8, u8)> = [0, 37, 74].map(|at| (binary[at + 1], binary[at + 15])).into();
    assert_eq!((binary.len(), heads), (98, vec![(0x11, 0), (0x11, 1), (0x0a, 0)]));
}

#[test]
fn requests_are_what_the_protocols_say() {
    assert_eq!(said(Text, |e, out| e.get(out, &[7])), r"get k:007\r\n");
    assert_eq!(said(Text, |e, out| e.get(out, &[7, 8])), r"get k:007 k:008\r\n");
    let seven = flags(7);
    let set = said(Text, |e, out| e.set(out, 7, 3, 60, 1));
    assert!(set.starts_with(&format!(r"set k:007 {seven} 60 3\r\n")), "{set}");
    assert_eq!(said(Text, |e, out| e.incr(out, 7)), r"incr k:n007 1\r\n");
    assert_eq!(said(Text, |e, out| e.touch(out, 7, 5)), r"touch k:007 5\r\n");
    assert_eq!(said(Meta, |e, out| e.get(out, &[7])), r"mg k:007 v f\r\n");
    let several = r"mg k:007 v f q O0\r\nmg k:008 v f q O1\r\nmn\r\n";
    assert_eq!(said(Meta, |e, out| e.get(out, &[7, 8])), several);
    let set = said(Meta, |e, out| e.set(out, 7, 3, 60, 1));
    assert!(set.starts_with(&format!(r"ms k:007 3 F{seven} T60\r\n")), "{set}");
    assert_eq!(said(Meta, |e, out| e.touch(out, 7, 5)), r"mg k:007 T5\r\n");
    assert_eq!(said(Resp2, |e, out| e.get(out, &[7])), r"*2\r\n$3\r\nGET\r\n$5\r\nk:007\r\n");
    let mget = r"*3\r\n$4\r\nMGET\r\n$5\r\nk:007\r\n$5\r\nk:008\r\n";
    assert_eq!(said(Resp2, |e, out| e.get(out, &[7, 8])), mget);
    let set = said(Resp2, |e, out| e.set_counter(out, 7));
    assert_eq!(set, r"*3\r\n$3\r\nSET\r\n$6\r\nk:n007\r\n$1\r\n0\r\n");
    let set = said(Resp2, |e, out| e.set(out, 7, 0, 60, 1));
    assert_eq!(set, r"*5\r\n$3\r\nSET\r\n$5\r\nk:007\r\n$0\r\n\r\n$2\r\nEX\r\n$2\r\n60\r\n");
    let mut get = Vec::new();
    encoder(Binary).get(&mut get, &[7]);
    assert_eq!((get.len(), &get[..6], &get[24..]), (29, &[0x80, 0, 0, 5, 0, 0][..], &b"k:007"[..]));
    let mut set = Vec::new();
    encoder(Binary).set(&mut set, 7, 30, 60, 1);
    assert_eq!((set.len(), set[4], &set[8..12]), (24 + 8 + 5 + 30, 8, &[0, 0, 0, 43][..]));
    assert_eq!(set[24..28], seven.to_be_bytes());
}

#[test]
fn client_flags_come_with_a_value_and_differ_between_keys() {
    let found = |protocol, verb, keys, reply: &[u8]| match Decoder::new(protocol)
        .next(Expected { verb, keys }, reply)
    {
        Ok(Some(Reply { what: What::Value(_, _, flags) | What::Unique(_, _, flags, _), .. })) => flags,
        other => panic!("{other:?}"),
    };
    assert_eq!(found(Text, Get, 1, b"VALUE k:007 42 1\r\nx\r\nEND\r\n"), Some(42));
    assert_eq!(found(Text, Gets, 1, b"VALUE k:007 4294967295 1 9\r\nx\r\nEND\r\n"), Some(u32::MAX));
    assert_eq!(found(Meta, Get, 1, b"VA 1 f7\r\nx\r\n"), Some(7));
    assert_eq!(found(Meta, Gets, 1, b"VA 1 c5 f7\r\nx\r\n"), Some(7));
    assert_eq!(found(Meta, Get, 2, b"VA 1 f7 O1\r\nx\r\n"), Some(7));
    assert_eq!(found(Meta, Get, 1, b"VA 1\r\nx\r\n"), None);
    assert_eq!(found(Binary, Get, 1, &binary(0, 0, 0, &[0, 0, 1, 2], b"x")), Some(258));
    assert_eq!(found(Resp2, Get, 1, b"$1\r\nx\r\n"), None);
    let all: std::collections::BTreeSet<u32> = (0..2000).map(flags).collect();
    assert_eq!((all.len(), all.first(), all.last()), (99, Some(&1), Some(&99)));
}
