//! Larder's extension of the meta protocol: subscriptions, leases of keys, and the lines that tell of changes.

use larder_protocol::{
    ItemInfo, Lease, Request, Step, Wire, all_changed_line, changed_line, parse, subscription_line,
};

fn request(input: &[u8]) -> Request<'_> {
    match parse(Wire::Text, input) {
        Step::Request { request, len } if len == input.len() => request,
        other => panic!("{} is no request but {other:?}", input.escape_ascii()),
    }
}

fn refusal(input: &[u8]) -> String {
    let Step::Reject { reject, .. } = parse(Wire::Text, input) else { panic!("it is accepted") };
    let mut said = Vec::new();
    reject.encode(&mut said);
    String::from_utf8(said).expect("a line")
}

fn lease(input: &[u8]) -> Option<Lease> {
    let Request::Get(get) = request(input) else { panic!("no get") };
    get.lease()
}

#[test]
fn a_get_asks_for_a_lease_by_subscription_and_token() {
    let most = u64::MAX;
    assert_eq!(lease(b"mg a v A1:2\r\n"), Some(Lease { subscription: 1, token: 2 }));
    let line = format!("mg a A{most}:{most} Ox\r\n");
    assert_eq!(lease(line.as_bytes()), Some(Lease { subscription: most, token: most }));
    for without in [&b"mg a v\r\n"[..], b"mg A1:2 v\r\n", b"mg a v OA1:2\r\n", b"get A1:2\r\n"] {
        assert_eq!(lease(without), None, "{}", without.escape_ascii());
    }
    for bad in ["A", "A1", "A:", "A1:", "A:1", "A-1:2", "A1:+2", "A1:2:3", "A1:18446744073709551616"] {
        let said = refusal(format!("mg a v {bad}\r\n").as_bytes());
        assert_eq!(said, "CLIENT_ERROR bad token in command line format\r\n", "{bad}");
    }
    assert_eq!(refusal(b"mg a A1:2 A1:2\r\n"), "CLIENT_ERROR duplicate flag\r\n");
}

#[test]
fn a_reply_shows_a_lease_where_it_was_asked_for() {
    let item = ItemInfo { cas: 7, ..ItemInfo::default() };
    for (line, leased, found, missed) in [
        (&b"mg a A1:2 c\r\n"[..], true, "HD A c7\r\n", "EN A\r\n"),
        (b"mg a c A1:2 O5\r\n", true, "HD c7 A O5\r\n", "EN O5 A\r\n"),
        (b"mg a c A1:2\r\n", false, "HD c7\r\n", "EN\r\n"),
    ] {
        let Request::Get(get) = request(line) else { panic!("no get") };
        let reply = if leased { get.reply.clone().with_lease() } else { get.reply.clone() };
        for reply in [reply.clone(), reply.to_owned_reply().reply()] {
            let (mut hit, mut miss) = (Vec::new(), Vec::new());
            reply.hit_head(&mut hit, b"a", &item, false);
            reply.miss(&mut miss, b"a");
            assert_eq!(String::from_utf8(hit).expect("a line"), found);
            assert_eq!(String::from_utf8(miss).expect("a line"), missed);
        }
    }
}

#[test]
fn a_connection_subscribes_by_a_command_of_its_own() {
    assert!(matches!(request(b"mi\r\n"), Request::Subscribe(_)));
    assert!(matches!(request(b"mi whatever follows\r\n"), Request::Subscribe(_)));
    let mut said = Vec::new();
    subscription_line(&mut said, u64::MAX);
    assert_eq!(said, b"MI 18446744073709551615\r\n");
}

#[test]
fn changes_are_told_in_lines_of_a_bounded_length() {
    let told = |tokens: &[u64]| {
        let mut out = Vec::new();
        changed_line(&mut out, tokens);
        String::from_utf8(out).expect("lines")
    };
    assert_eq!(told(&[]), "");
    assert_eq!(told(&[3]), "IN 3\r\n");
    assert_eq!(told(&[3, u64::MAX]), "IN 3 18446744073709551615\r\n");
    let many = told(&[u64::MAX; 250]);
    assert_eq!(many.lines().map(|line| line.split(' ').count() - 1).collect::<Vec<_>>(), [100, 100, 50]);
    assert!(many.lines().all(|line| line.len() < 2_200));
    let mut out = Vec::new();
    all_changed_line(&mut out);
    assert_eq!(out, b"IN *\r\n");
}
