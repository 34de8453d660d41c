//! What a connection that has not authenticated may say, byte for byte, on both wires.

mod support;

use larder_protocol::{Login, Reject, Step, Verdict, Wire, Wish, parse, parse_unauthenticated};
use support::{answer, packet, request, written};

fn text(input: &[u8]) -> Step<'_> {
    parse_unauthenticated(Wire::Text, input)
}

/// The line that refuses `input`, and the bytes that go with it.
fn refusal(input: &[u8]) -> (String, u64, bool) {
    match text(input) {
        Step::Reject { reject, len, swallow, close } => {
            let said = String::from_utf8(written(|out| reject.encode(out))).expect("text");
            (said, len as u64 + swallow, close)
        }
        other => panic!("{} is {other:?}", input.escape_ascii()),
    }
}

fn credentials(step: Step<'_>) -> (Vec<u8>, Vec<u8>, usize) {
    match step {
        Step::Login { login: Login { wish: Wish::Check { user, password, .. }, .. }, len, swallow: 0 } => {
            (user.to_vec(), password.to_vec(), len)
        }
        other => panic!("no credentials: {other:?}"),
    }
}

fn pair(user: &str, password: &str, len: usize) -> (Vec<u8>, Vec<u8>, usize) {
    (user.into(), password.into(), len)
}

#[test]
fn a_text_login_is_a_set_of_any_key() {
    assert_eq!(credentials(text(b"set foo 0 0 7\r\nfoo bar\r\n")), pair("foo", "bar", 24));
    assert_eq!(credentials(text(b"set foo x y 7 z noreply\nfoo bar\r\nget a")), pair("foo", "bar", 33));
    assert_eq!(credentials(text(b"set k 0 0 9\r\na b  c:\r \r\n")), pair("a", "b  c:\r ", 24));
    assert_eq!(credentials(text(b"set k 0 0 1\r\n \r\n")), pair("", "", 16));
    let whole = b"set foo 0 0 7\r\nfoo bar\r\n";
    for cut in 0..whole.len() {
        assert!(matches!(text(&whole[..cut]), Step::Incomplete { .. }), "{cut}");
    }
}

#[test]
fn every_other_text_line_is_refused_with_its_line_only() {
    let lines: [&[u8]; 16] = [
        b"get foo\r\n",
        b"set foo 0 0\r\n",
        b"set foo 0 0 x\r\n",
        b"set foo 0 0 -1\r\n",
        b"set foo 0 0 4294967296\r\n",
        b" set foo 0 0 2\r\n",
        b"add foo 0 0 7\r\n",
        b"ms foo 7\r\n",
        b"mn\r\n",
        b"version\r\n",
        b"quit\r\n",
        b"stats\r\n",
        b"flush_all noreply\r\n",
        b"shutdown\r\n",
        b"\0\0\n",
        b"GET / HTTP/1.1\r\n",
    ];
    for line in lines {
        let unauthenticated = "CLIENT_ERROR unauthenticated\r\n".to_string();
        assert_eq!(refusal(line), (unauthenticated, line.len() as u64, false), "{}", line.escape_ascii());
    }
    assert!(matches!(text(&[b'x'; 2048]), Step::Incomplete { .. }));
    assert_eq!(text(&[b'x'; 2049]), Step::Close, "a line that long is no login");
}

#[test]
fn a_value_that_is_no_credentials_is_taken_off_with_its_line() {
    let format = "CLIENT_ERROR bad authentication token format\r\n".to_string();
    assert_eq!(refusal(b"set k 0 0 2\r\nhi\r\n"), (format.clone(), 17, false));
    assert_eq!(refusal(b"set k 0 0 0\r\n\r\n"), (format, 15, false));
    let end = "CLIENT_ERROR bad command line termination\r\n".to_string();
    assert_eq!(refusal(b"set k 0 0 6\r\nfoo bar\r\n"), (end, 21, false));
    let long = "CLIENT_ERROR auth token too long\r\n".to_string();
    assert_eq!(refusal(b"set k 0 0 2049\r\n"), (long.clone(), 16 + 2051, false));
    assert_eq!(refusal(b"set k 0 0 2147483646\r\n"), (long, 22, true));
    assert!(matches!(text(b"set k 0 0 2048\r\n"), Step::Incomplete { need: 2066 }));
}

fn binary(input: &[u8]) -> Step<'_> {
    parse_unauthenticated(Wire::Binary, input)
}

fn wish(input: &[u8]) -> Wish<'_> {
    match binary(input) {
        Step::Login { login, len, swallow } => {
            assert_eq!((len, swallow), (input.len(), 0));
            assert_eq!(binary(input), parse(Wire::Binary, input), "it may come at any time");
            login.wish
        }
        other => panic!("no login: {other:?}"),
    }
}

#[test]
fn sasl_knows_one_mechanism() {
    let auth = |mechanism: &[u8], message: &[u8]| packet(0x21, mechanism, &[], message, 0);
    let check = |user, password, is_step| Wish::Check { user, password, is_step };
    assert_eq!(wish(&packet(0x20, &[], &[], &[], 0)), Wish::Mechanisms);
    assert_eq!(wish(&auth(b"PLAIN", b"\0user\0pass word")), check(b"user", b"pass word", false));
    assert_eq!(wish(&auth(b"PLAIN", b"user\0user\0pass")), check(b"user", b"pass", false));
    assert_eq!(wish(&auth(b"PLAIN", b"\0\0")), check(b"", b"", false));
    assert_eq!(wish(&auth(b"PLAIN", b"")), Wish::Begin);
    let step = packet(0x22, b"PLAIN", &[], b"\0user\0pass", 0);
    assert_eq!(wish(&step), check(b"user", b"pass", true));
    let broken: [(&[u8], &[u8]); 6] = [
        (b"plain", b"\0user\0pass"),
        (b"CRAM-MD5", b""),
        (b"PLAIN", b"user\0pass"),
        (b"PLAIN", b"other\0user\0pass"),
        (b"PLAIN", b"\0user\0pass\0"),
        (b"PLAIN", b"user"),
    ];
    for (mechanism, message) in broken {
        assert_eq!(wish(&auth(mechanism, message)), Wish::Invalid, "{}", message.escape_ascii());
    }
    assert_eq!(wish(&packet(0x22, b"PLAIN", &[], &[], 0)), Wish::Invalid, "a step says something");
    let long = auth(b"PLAIN", &[b'x'; 2049]);
    let Step::Login { login, len: 24, swallow: 2054 } = binary(&long[..24]) else { panic!() };
    assert_eq!(login.wish, Wish::Invalid);
}

#[test]
fn sasl_is_answered_as_memcached_answers_it() {
    let auth = packet(0x21, b"PLAIN", &[], b"\0u\0p", 0);
    let Step::Login { login, .. } = binary(&auth) else { panic!() };
    for (verdict, status, words) in [
        (Verdict::Accepted, 0, "Authenticated"),
        (Verdict::Refused, 0x20, "Auth failure."),
        (Verdict::Continue, 0x21, ""),
        (Verdict::Mechanisms, 0, "PLAIN"),
        (Verdict::Unknown, 0x81, "Unknown command"),
    ] {
        let said = written(|out| login.reply.encode(out, verdict));
        assert_eq!(said, answer(0x21, status, 0, b"", b"", words.as_bytes()));
    }
}

#[test]
fn an_unauthenticated_binary_request_is_refused_by_its_header_and_closes() {
    for opcode in (0..=255).filter(|opcode| !matches!(opcode, 0x0b | 0x20..=0x22)) {
        let asked = packet(opcode, b"key", &[0; 8], b"value", 7);
        let Step::Reject { reject, len: 24, swallow: 0, close: true } = binary(&asked[..24]) else {
            panic!("{opcode:#x}: {:?}", binary(&asked))
        };
        let said = written(|out| reject.encode(out));
        assert_eq!(said, answer(opcode, 0x20, 0, b"", b"", b"Auth failure."));
        assert!(matches!(binary(&asked[..23]), Step::Incomplete { need: 24 }));
    }
    let version = packet(0x0b, &[], &[], &[], 0);
    assert_eq!(binary(&version), parse(Wire::Binary, &version));
    assert_eq!(binary(b"get a\r\n"), Step::Close, "it is another wire");
}

#[test]
fn a_denied_request_is_told_unless_it_asked_for_silence() {
    let said = |input: &[u8]| {
        let reject = Reject::denial(request(input).reply());
        written(|out| reject.encode(out))
    };
    let denied = b"CLIENT_ERROR permission denied\r\n";
    assert_eq!(said(b"get a b\r\n"), denied);
    assert_eq!(said(b"md a q\r\n"), denied);
    assert_eq!(said(b"delete a noreply\r\n"), b"");
    let quietly = packet(0x09, b"k", &[], &[], 0);
    assert_eq!(said(&quietly), answer(0x09, 0x20, 0, b"", b"", b"Auth failure."));
}

#[test]
fn credentials_are_not_shown_for_debugging() {
    let shown = format!("{:?}", text(b"set k 0 0 11\r\nchef kitchen\r\n"));
    assert!(!shown.contains("kitchen") && !shown.contains("107, 105"), "{shown}");
    let Step::Login { login, .. } = text(b"set k 0 0 12\r\nchef kitchen\r\n") else { panic!() };
    assert!(!format!("{login:?}").contains("kit"));
}
