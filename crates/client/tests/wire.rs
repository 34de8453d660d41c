//! The client's wire against the server's parser and encoder, and against bytes that no server sends.

#[path = "fuzz/replies.rs"]
mod replies;

use std::time::Duration;

use larder_client::Key;
use larder_client::limit::{Algorithm, Limit};
use larder_client::wire::{Arith, Check, Delete, Get, Mode, Outbox, Reply, Request, Stale, Store, parse};
use larder_protocol as server;
use proptest::prelude::*;

fn encoded(request: &Request<'_>, opaque: Option<u32>) -> Vec<u8> {
    let mut out = Outbox::default();
    request.encode(opaque, &mut out);
    out.to_vec()
}

/// Returns the request that the server's parser finds at the front of `bytes`, which must be all of them.
fn parsed(bytes: &[u8]) -> server::Request<'_> {
    match server::parse(server::Wire::Text, bytes) {
        server::Step::Request { request, len } if len == bytes.len() => request,
        other => panic!("{:?} is parsed as {other:?}", String::from_utf8_lossy(bytes)),
    }
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-zA-Z0-9:/_.-]{1,250}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 1..=186),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Set, Mode::Add, Mode::Replace, Mode::Append, Mode::Prepend])
}

fn exptime(seconds: Option<i32>) -> Option<server::Exptime> {
    seconds.map(server::Exptime::from)
}

fn opaque_of(reply: &server::Reply<'_>, opaque: Option<u32>) {
    let server::Reply::Meta { flags, .. } = reply else { panic!("no meta reply: {reply:?}") };
    let wanted = opaque.map(|opaque| format!("O{opaque}"));
    let found = flags.split(|byte| *byte == b' ').find(|token| token.first() == Some(&b'O'));
    assert_eq!(found.map(<[u8]>::to_vec), wanted.map(String::into_bytes));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn the_server_reads_each_get_as_it_was_meant(
        bytes in key(), wants in any::<[bool; 6]>(), touch: Option<i32>, vivify: Option<i32>,
        recache: Option<i32>, unless_cas: Option<u64>, announce: Option<(u64, u64)>, opaque: Option<u32>,
    ) {
        let [value, cas, flags, ttl, no_bump, quiet] = wants;
        // The server keeps a key of bytes above 127 that is sent plain, as memcached does.
        let Ok(key) = Key::new(&bytes) else { return Ok(()) };
        let get = Get {
            key, value, cas, flags, ttl, no_bump, touch, vivify, recache, unless_cas, announce, quiet,
        };
        let sent = encoded(&Request::Get(get), opaque);
        let server::Request::Get(got) = parsed(&sent) else { panic!("no get") };
        let keys: Vec<Vec<u8>> = got.keys.clone().map(|key| key.bytes().to_vec()).collect();
        prop_assert_eq!(keys, vec![bytes.clone()]);
        prop_assert_eq!(got.value, value);
        prop_assert_eq!(got.no_bump, no_bump);
        prop_assert_eq!(got.touch, exptime(touch));
        prop_assert_eq!(got.vivify, exptime(vivify));
        prop_assert_eq!(got.recache, recache);
        prop_assert!(!got.recache_sees_touch);
        prop_assert_eq!(got.unless_cas, unless_cas);
        prop_assert_eq!(got.lease().map(|lease| (lease.subscription, lease.token)), announce);
        prop_assert_eq!(got.reply.is_quiet(), quiet);
        opaque_of(&got.reply, opaque);
    }

    #[test]
    fn the_server_reads_each_store_as_it_was_meant(
        bytes in key(), value in prop::collection::vec(any::<u8>(), 0..20_000), mode in mode(), flags: u32,
        exptime: i32, compare: Option<u64>, invalidate: bool, cas: bool, quiet: bool, opaque: Option<u32>,
    ) {
        let Ok(key) = Key::new(&bytes) else { return Ok(()) };
        // A cas unique means something to a plain set alone.
        let compare = compare.filter(|_| mode == Mode::Set);
        let store = Store { key, value: &value, mode, flags, exptime, compare, invalidate, cas, quiet };
        let sent = encoded(&Request::Store(store), opaque);
        let server::Request::Store(got) = parsed(&sent) else { panic!("no store") };
        prop_assert_eq!(got.key.bytes(), &bytes[..]);
        prop_assert_eq!(got.value, &value[..]);
        let wanted = match mode {
            Mode::Set => server::StoreMode::Set,
            Mode::Add => server::StoreMode::Add,
            Mode::Replace => server::StoreMode::Replace,
            Mode::Append => server::StoreMode::Append,
            Mode::Prepend => server::StoreMode::Prepend,
        };
        prop_assert_eq!(got.mode, wanted);
        prop_assert_eq!(got.flags, flags);
        prop_assert_eq!(got.exptime, server::Exptime::from(exptime));
        prop_assert_eq!(got.compare, compare);
        prop_assert_eq!(got.reply.is_quiet(), quiet);
        prop_assert_eq!(got.invalidate, invalidate && compare.is_some());
        opaque_of(&got.reply, opaque);
    }

    #[test]
    fn the_server_reads_each_removal_and_count_as_it_was_meant(
        bytes in key(), compare: Option<u64>, stale_for: Option<Option<i32>>, quiet: bool, delta: u64,
        decrement: bool, initial: Option<(u64, i32)>, touch: Option<i32>, opaque: Option<u32>,
    ) {
        let Ok(key) = Key::new(&bytes) else { return Ok(()) };
        let stale = stale_for.map(|exptime| exptime.map_or(Stale::Unchanged, Stale::For));
        let sent = encoded(&Request::Delete(Delete { key, compare, stale, quiet }), opaque);
        let server::Request::Delete(got) = parsed(&sent) else { panic!("no delete") };
        prop_assert_eq!((got.key.bytes(), got.compare), (&bytes[..], compare));
        prop_assert_eq!((got.invalidate, got.touch), (stale_for.is_some(), exptime(stale_for.flatten())));
        opaque_of(&got.reply, opaque);

        let arith = Arith { key, delta, decrement, initial, touch, compare, quiet };
        let sent = encoded(&Request::Arith(arith), opaque);
        let server::Request::Arith(got) = parsed(&sent) else { panic!("no arith") };
        prop_assert_eq!((got.key.bytes(), got.compare), (&bytes[..], compare));
        prop_assert_eq!((got.delta, got.decrement, got.touch), (delta, decrement, exptime(touch)));
        prop_assert_eq!(got.initial, initial.map(|(value, seconds)| (value, server::Exptime::from(seconds))));
        opaque_of(&got.reply, opaque);
    }

    #[test]
    fn the_server_reads_each_check_of_a_limit_and_the_client_the_verdict(
        bytes in key(), count in 1u64.., period_ms in 1u64..31_622_400_000, burst in 1u64.., which in 0..3,
        cost: u64, opaque: Option<u32>, numbers: [u64; 3], is_allowed: bool, can_pass: bool,
    ) {
        let Ok(key) = Key::new(&bytes) else { return Ok(()) };
        let algorithm = match which {
            0 => Algorithm::FixedWindow,
            1 => Algorithm::SlidingWindow,
            _ => Algorithm::Gcra { burst },
        };
        let limit = Limit { count, period: Duration::from_millis(period_ms), algorithm };
        let sent = encoded(&Request::Check(Check { key, limit, cost }), opaque);
        let server::Request::Check(got) = parsed(&sent) else { panic!("no check") };
        prop_assert_eq!((got.key.bytes(), got.limit, got.cost), (&bytes[..], limit, cost));
        opaque_of(&got.reply, opaque);

        let [remaining, retry_ns, reset_ns] = numbers;
        let retry_after_ns = can_pass.then_some(retry_ns);
        let reset_after_ns = reset_ns;
        let verdict = server::rate::Verdict { is_allowed, remaining, retry_after_ns, reset_after_ns };
        let mut line = Vec::new();
        got.reply.verdict(&mut line, &bytes, &verdict);
        let (reply, used) = parse(&line).expect("well-formed").expect("whole");
        prop_assert_eq!(used, line.len());
        prop_assert!(matches!((&reply, is_allowed), (Reply::Done(_), true) | (Reply::NotStored(_), false)));
        let facts = *reply.facts().expect("a verdict has facts");
        let retry_ms = retry_after_ns.map_or(-1, |ns| ns.div_ceil(1_000_000) as i64);
        prop_assert_eq!((facts.remaining, facts.opaque), (Some(remaining), opaque));
        prop_assert_eq!(facts.retry_after_ms, Some(retry_ms));
        prop_assert_eq!(facts.reset_after_ms, Some(reset_ns.div_ceil(1_000_000)));
    }

    #[test]
    fn the_client_reads_what_the_server_encodes(
        bytes in "[a-z]{1,30}", flags: u32, cas: u64, len in 0u32..1 << 30, ttl: Option<u32>,
        state: [bool; 3], opaque: u32, value: bool,
    ) {
        let key = Key::new(bytes.as_bytes()).expect("the key is good");
        let get = Get { value, cas: true, flags: true, ttl: true, ..Get::new(key) };
        let sent = encoded(&Request::Get(get), Some(opaque));
        let server::Request::Get(got) = parsed(&sent) else { panic!("no get") };
        let [stale, won, win_sent] = state;
        let item = server::ItemInfo {
            client_flags: flags, cas, value_len: len, ttl_before_s: ttl, ttl_after_s: ttl, stale, won,
            win_sent,
            ..server::ItemInfo::default()
        };
        let mut line = Vec::new();
        got.reply.hit_head(&mut line, bytes.as_bytes(), &item, value);
        let (reply, used) = parse(&line).expect("well-formed").expect("whole");
        prop_assert_eq!(used, line.len());
        let facts = *reply.facts().expect("a hit has facts");
        prop_assert_eq!((facts.cas, facts.flags, facts.opaque), (Some(cas), Some(flags), Some(opaque)));
        prop_assert_eq!(facts.ttl_s, Some(ttl.map_or(-1, i64::from)));
        // A stale item that this reader may not renew is another's to renew.
        let is_taken = win_sent || stale && !won;
        prop_assert_eq!((facts.is_stale, facts.has_lease, facts.lease_is_taken), (stale, won, is_taken));
        match reply {
            Reply::Value { len: announced, .. } => prop_assert!(value && announced == len as usize),
            Reply::Done(_) => prop_assert!(!value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn random_bytes_are_a_reply_an_error_or_not_enough(bytes in prop::collection::vec(any::<u8>(), 0..6000)) {
        replies::check(&bytes);
    }

    #[test]
    fn lines_of_the_wire_s_own_words_never_panic(
        words in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "VA", "HD", "EN", "NS", "EX", "NF", "MN", "ME", "OK", "VERSION", "STAT", "END", "ERROR",
                    " ", "\r", "\n", "\r\n", "c", "f", "t-1", "O1", "X", "W", "Z", "s", "-", "+", "0", "b",
                ]).prop_map(String::from),
                any::<i128>().prop_map(|number| number.to_string()),
                "[ -~]{0,8}",
            ],
            0..40,
        )
    ) {
        replies::check(words.join(" ").as_bytes());
        replies::check(words.concat().as_bytes());
    }
}

#[test]
fn classic_words_are_those_of_the_server() {
    for (request, line) in [
        (Request::Noop, "mn\r\n"),
        (Request::Version, "version\r\n"),
        (Request::Metadump, "lru_crawler metadump hash\r\n"),
        (Request::Watch("fetchers mutations"), "watch fetchers mutations\r\n"),
        (Request::FlushAll(0), "flush_all\r\n"),
        (Request::FlushAll(30), "flush_all 30\r\n"),
        (Request::Stats(""), "stats\r\n"),
        (Request::Stats("larder"), "stats larder\r\n"),
    ] {
        assert_eq!(encoded(&request, Some(1)), line.as_bytes());
        parsed(line.as_bytes());
    }
    let key = Key::new(b"a b").expect("the key is good");
    assert_eq!(encoded(&Request::Debug(key), None), b"me YSBi b\r\n");
}
