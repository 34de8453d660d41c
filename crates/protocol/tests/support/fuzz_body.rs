//! What must hold for any bytes whatever. Called by the crate's own test and by the fuzz target.

use std::time::Duration;

use larder_protocol::{
    ItemInfo, Limits, Outcome, Reply, Request, Step, Verb, Verdict, Wire, parse, parse_unauthenticated, rate,
};

/// Parses `data` as either wire and checks every property on the way; panics where one does not hold.
pub fn check(data: &[u8]) {
    for wire in [Wire::Text, Wire::Binary] {
        check_wire(parse, wire, data);
        check_wire(only_open_requests, wire, data);
    }
}

type Parse = for<'a> fn(Wire, &'a [u8]) -> Step<'a>;

/// As a connection that has not authenticated parses; what it may ask reaches no item.
fn only_open_requests(wire: Wire, data: &[u8]) -> Step<'_> {
    let step = parse_unauthenticated(wire, data);
    assert!(
        match &step {
            Step::Request { request, .. } => matches!(request, Request::Version(_)) && wire == Wire::Binary,
            Step::Body { .. } => false,
            _ => true,
        },
        "before authentication: {step:?}"
    );
    step
}

fn check_wire(parse: Parse, wire: Wire, data: &[u8]) {
    let mut rest = data;
    let mut out = Vec::new();
    // An empty input waits for something.
    loop {
        let step = parse(wire, rest);
        assert_eq!(step, parse(wire, rest), "parsing is a function of its input");
        prefixes_agree(parse, wire, rest, &step);
        let consumed = match step {
            Step::Incomplete { need } => {
                assert!(need > rest.len());
                return;
            }
            Step::Request { request, len } => {
                assert!(len > 0 && len <= rest.len());
                well_formed(&request);
                answers(&request, &mut out);
                len
            }
            Step::Body { request, head, tail } => {
                assert!(head > 0 && head <= rest.len());
                assert!(head + request.value_len as usize + tail > rest.len(), "the body is there");
                assert!(request.value.is_empty());
                assert_eq!(tail, if wire == Wire::Text { 2 } else { 0 });
                answers(&Request::Store(request), &mut out);
                return;
            }
            Step::Reject { reject, len, swallow, close } => {
                assert!(len > 0 && len <= rest.len());
                assert!(swallow <= u64::from(u32::MAX) + 2);
                assert!(!(close && swallow > 0), "who closes reads no more");
                out.clear();
                reject.encode(&mut out);
                assert!(out.is_empty() || wire == Wire::Binary || out.ends_with(b"\r\n"));
                if close || swallow > (rest.len() - len) as u64 {
                    return;
                }
                len + swallow as usize
            }
            Step::Login { login, len, swallow } => {
                assert!(len > 0 && len <= rest.len());
                assert!(swallow <= u64::from(u32::MAX));
                for verdict in [Verdict::Accepted, Verdict::Refused, Verdict::Continue, Verdict::Unknown] {
                    out.clear();
                    login.reply.encode(&mut out, verdict);
                    assert!(if wire == Wire::Text { out.ends_with(b"\r\n") } else { out.len() >= 24 });
                }
                if swallow > (rest.len() - len) as u64 {
                    return;
                }
                len + swallow as usize
            }
            Step::Close => return,
        };
        rest = &rest[consumed..];
    }
}

/// A shorter input never says anything that the longer one takes back.
fn prefixes_agree(parse: Parse, wire: Wire, input: &[u8], step: &Step<'_>) {
    let end = match step {
        Step::Request { len, .. } | Step::Reject { len, .. } | Step::Login { len, .. } => *len,
        Step::Body { head, .. } => *head + 8,
        Step::Incomplete { .. } | Step::Close => input.len(),
    }
    .min(input.len());
    // All cuts of what is short; of what is long, those near either end and some between.
    let stride = 1 + end / 64;
    for cut in (0..end).filter(|cut| *cut < 32 || end - cut < 8 || cut % stride == 0) {
        agree(parse, wire, &input[..cut], step);
    }
}

fn agree(parse: Parse, wire: Wire, prefix: &[u8], whole: &Step<'_>) {
    let early = parse(wire, prefix);
    match (&early, whole) {
        (Step::Incomplete { need }, whole) => {
            assert!(*need > prefix.len());
            match whole {
                Step::Request { len, .. } | Step::Reject { len, .. } | Step::Login { len, .. } => {
                    assert!(need <= len);
                }
                Step::Body { head, .. } => assert!(need <= head),
                Step::Incomplete { .. } | Step::Close => {}
            }
        }
        // A line that was too long unfinished may turn out to be fine when it comes in one piece.
        (Step::Close, _) if wire == Wire::Text && prefix.len() > Limits::MEMCACHED.line_bytes_max => {}
        (Step::Body { request, head, tail }, Step::Request { request: Request::Store(store), len }) => {
            assert_eq!(*len, head + store.value.len() + tail);
            let mut store = store.clone();
            store.value = &[];
            assert_eq!(*request, store);
        }
        (Step::Body { request, head, tail: 2 }, Step::Reject { len, swallow: 0, close: false, .. }) => {
            assert_eq!(*len, head + request.value_len as usize + 2);
        }
        (early, whole) => assert_eq!(early, whole, "after {} bytes", prefix.len()),
    }
}

/// What every request promises to whoever executes it.
fn well_formed(request: &Request<'_>) {
    let limit = Limits::MEMCACHED.key_bytes_max;
    let fits = |key: &[u8]| assert!(!key.is_empty() && key.len() <= limit);
    match request {
        Request::Get(get) => {
            assert!(get.keys.clone().count() > 0);
            assert_eq!(get.keys.is_single(), get.keys.clone().count() == 1);
            get.keys.clone().for_each(|key| fits(key.bytes()));
        }
        Request::Store(store) => {
            fits(store.key.bytes());
            assert_eq!(store.value.len(), store.value_len as usize);
        }
        Request::Delete(delete) => fits(delete.key.bytes()),
        Request::Arith(arith) => fits(arith.key.bytes()),
        Request::Check(check) => {
            fits(check.key.bytes());
            assert!(check.limit.count > 0 && check.limit.cost_max() > 0);
            assert_eq!(Duration::from_millis(check.limit.period_ms()), check.limit.period);
        }
        Request::Touch(touch) => fits(touch.key.bytes()),
        Request::Debug(debug) => fits(debug.key.bytes()),
        _ => {}
    }
}

/// Every answer to `request` is whole lines, or whole packets.
fn answers(request: &Request<'_>, out: &mut Vec<u8>) {
    let reply = request.reply();
    let owned = reply.to_owned_reply();
    assert_eq!(owned.reply(), *reply);
    let item = ItemInfo { value_len: 3, won: true, ..ItemInfo::default() };
    let outcomes = [
        Outcome::Stored,
        Outcome::NotFound,
        Outcome::Number { value: u64::MAX },
        Outcome::TooLarge,
        Outcome::Ok,
    ];
    // A classic read has no outcome but its end.
    let is_classic_read = matches!(reply, Reply::Classic { verb: Verb::Get, .. });
    for outcome in outcomes.into_iter().filter(|_| !is_classic_read) {
        out.clear();
        reply.outcome(out, b"key", outcome, &item);
        whole(reply, out);
    }
    for is_allowed in [false, true] {
        let wait = (!is_allowed).then_some(u64::MAX);
        let verdict = rate::Verdict { is_allowed, remaining: 1, retry_after_ns: wait, reset_after_ns: 1 };
        out.clear();
        reply.verdict(out, b"key", &verdict);
        whole(reply, out);
    }
    out.clear();
    reply.miss(out, b"key");
    whole(reply, out);
    out.clear();
    reply.hit_head(out, b"key", &item, true);
    out.extend_from_slice(b"abc");
    reply.hit_tail(out, true);
    whole(reply, out);
}

fn whole(reply: &Reply<'_>, out: &[u8]) {
    if out.is_empty() {
        return;
    }
    if let Reply::Binary { .. } = reply {
        let body = out.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        assert_eq!(Some(out.len()), body.map(|body| body as usize + 24));
    } else {
        assert!(out.ends_with(b"\r\n"));
    }
}
