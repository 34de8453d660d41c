//! Meta commands that are put together of their own parts, executed one by one on both tiers: each is answered by whole
//! replies, and the next request is understood.

use super::harness::Choices;
use super::support::{Client, Server};

const VERBS: &[&str] = &["mg", "ms", "md", "ma", "me", "ml", "mi", "mg", "ms"];
const FLAGS: &[&str] = &[
    "v", "k", "t", "f", "c", "s", "h", "l", "q", "b", "I", "x", "r", "w", "a", "O", "T", "N", "R", "C", "E",
    "F", "J", "D", "M", "MA", "MP", "ME", "MR", "MI", "MD", "MG", "MF", "L", "P", "B", "S", "A", "\x01",
    "\u{e9}",
];
const NUMBERS: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "30",
    "1000",
    "2592001",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "x",
    "1x",
];
/// Some that are base64 too, some that are too long.
const KEYS: &[&str] = &["k", "a", "YWJj", "YWJ", "YQ==", "key", "\u{e9}"];

fn key(choices: &mut Choices<'_>) -> String {
    match choices.below(12) {
        0 => "k".repeat(249 + choices.below(4)),
        _ => choices.pick(KEYS).to_string(),
    }
}

fn request(choices: &mut Choices<'_>) -> Vec<u8> {
    let verb = choices.pick(VERBS);
    let mut words = vec![verb.to_string(), key(choices)];
    let value = match choices.below(20) {
        0 => vec![b'v'; 70_000 + choices.below(900_000)],
        1..4 => vec![b'v'; choices.below(10_000)],
        4 => choices.below(100_000).to_string().into_bytes(),
        _ => {
            let len = choices.below(8);
            choices.bytes(len).to_vec()
        }
    };
    if verb == "ms" {
        words.push(value.len().to_string());
    }
    for _ in 0..choices.below(8) {
        words.push(format!("{}{}", choices.pick(FLAGS), choices.pick(NUMBERS)));
    }
    let mut bytes = words.join(choices.pick(&[" ", " ", " ", "  "])).into_bytes();
    bytes.extend_from_slice(choices.pick(&["\r\n", "\r\n", "\r\n", "\n"]).as_bytes());
    if verb == "ms" {
        bytes.extend(value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Takes the replies off the front of what came, up to that of `mn`.
fn take_replies(mut got: &[u8]) -> bool {
    while let Some(end) = got.windows(2).position(|pair| pair == b"\r\n") {
        let (line, rest) = (&got[..end], &got[end + 2..]);
        if line == b"MN" {
            return rest.is_empty();
        }
        let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        got = rest;
        if word == b"VA" {
            let len = line.split(|byte| *byte == b' ').nth(1).and_then(|len| std::str::from_utf8(len).ok());
            let len: usize = len.and_then(|len| len.parse().ok()).expect("a length");
            assert_eq!(&rest[len..len + 2], b"\r\n", "{}", line.escape_ascii());
            got = &rest[len + 2..];
        } else {
            let known: [&[u8]; 11] = [
                b"HD",
                b"EN",
                b"NS",
                b"EX",
                b"NF",
                b"ME",
                b"OK",
                b"ERROR",
                b"CLIENT_ERROR",
                b"SERVER_ERROR",
                b"MI",
            ];
            assert!(known.contains(&word), "{}", line.escape_ascii());
        }
    }
    false
}

/// One input: what is in front of each `mn`.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let server = Server::start(&["-m", "8"], [0, 4][choices.below(2)]);
    let mut client = Client::to(&server);
    while !choices.is_over() && !client.session.is_over() {
        let request = request(&mut choices);
        let got = client.ask(&server, [&request[..], b"mn\r\n"].concat());
        let shown = request[..request.len().min(300)].escape_ascii();
        assert!(take_replies(&got), "{shown}: {}", got[..got.len().min(300)].escape_ascii());
        if choices.one_in(16) {
            server.push_out();
        }
    }
    server.shared.store.check().expect("the store is in order");
}
