//! Bytes for the HTTP interface, cut anywhere, from peers that take answers at any speed: each answer is a success or a
//! refusal, and a connection holds no more than a request may have.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use larder_server::config::Config;
use larder_server::http::{Connection, State};

use super::harness::Choices;
use super::support::Server;

const PIECES: &[&str] = &[
    "GET ",
    "HEAD ",
    "POST ",
    "/",
    "/metrics",
    "/healthz",
    " / ",
    "/page.css",
    "/api/v1/stats",
    "/api/v1/segments",
    "/api/v1/top",
    "/api/v1/prefixes",
    " HTTP/1.1\r\n",
    " HTTP/1.0\n",
    "Host: localhost\r\n",
    "Host:",
    "\r\n\r\n",
    "\r\n",
    "\0",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Authorization: Bearer secret\r\n",
    "Authorization: Basic bGFyZGVyOnNlY3JldA==\r\n",
    "Accept: application/openmetrics-text\r\n",
    "Content-Length: 18446744073709551616\r\n",
    "Transfer-Encoding: chunked\r\n",
    ": ",
    "%00?#",
    "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
];
const STATUSES: &[&str] = &["200", "400", "401", "403", "404", "405", "408", "421", "431"];
/// The most bytes of a request.
const REQUEST_BYTES_MAX: usize = 8 << 10;

fn state() -> &'static State {
    static STATE: OnceLock<State> = OnceLock::new();
    STATE.get_or_init(|| {
        let config =
            Config::from_args(["larder", "--ssd", "none", "--http", "127.0.0.1"]).expect("valid options");
        let state = State::new(config.http.expect("it is given"));
        state.serve(Arc::clone(&Server::start(&["-m", "8"], 0).shared));
        state
    })
}

fn piece(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.below(8) {
        0 => {
            let len = choices.below(60);
            choices.bytes(len).to_vec()
        }
        1 => vec![b'a'; choices.below(10_000)],
        _ => choices.pick(PIECES).as_bytes().to_vec(),
    }
}

/// One input: what a peer sends, and how much it takes at a time.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut now = Instant::now();
    let (mut connection, mut got) = (Connection::new(now), Vec::new());
    while !choices.is_over() && !connection.is_over() {
        let sent = piece(&mut choices);
        for part in sent.chunks(1 + choices.below(5_000)) {
            let room = connection.room().min(part.len());
            assert!(room <= REQUEST_BYTES_MAX);
            if room > 0 {
                connection.receive(state(), &part[..room], now);
            }
            let taken = choices.below(60_000).min(connection.output().len());
            got.extend_from_slice(&connection.output()[..taken]);
            if taken > 0 {
                connection.note_sent(state(), taken, now);
            }
        }
        if choices.one_in(20) {
            now += Duration::from_secs(choices.below(100) as u64);
            if now >= connection.deadline() && !connection.expire(now) {
                break;
            }
        }
    }
    got.extend_from_slice(connection.output());
    let text = String::from_utf8(got).expect("text");
    for answer in text.split("HTTP/1.1 ").skip(1) {
        assert!(STATUSES.contains(&&answer[..3]), "{answer}");
    }
    assert!(!connection.is_over() || !text.is_empty(), "it ends with a word");
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 "), "{text}");
}
