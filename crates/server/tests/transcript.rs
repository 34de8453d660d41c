//! The probe of memcached 1.6.18 replayed against sessions, over RAM and over the SSD; and that no cut of
//! what a peer sends changes what it is answered.

mod support;
#[path = "../../protocol/tests/support/mod.rs"]
mod wire;

use larder_protocol::{Step, detect, parse};
use support::{Client, Server};
use wire::corpus;

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format\r\n";

/// Exchanges that 1.6.45 or this server answers otherwise than 1.6.18 did, why, and how. `{bad}` is
/// `BAD_FORMAT`.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("blank line", "fewer than four bytes are a bad format", "{bad}"),
    ("space LF", "fewer than four bytes are a bad format", "{bad}"),
    ("get no key", "too few arguments are a bad format", "{bad}"),
    ("set few args", "too few arguments are a bad format", "{bad}"),
    ("set extra args", "surplus arguments are ignored", "STORED\r\nVALUE a 0 2\r\nhi\r\nEND\r\n"),
    ("set bad flags", "the data of a malformed store is swallowed", "{bad}VERSION 1.6.#\r\n"),
    ("set bad flags neg", "the data of a malformed store is swallowed", "{bad}VERSION 1.6.#\r\n"),
    ("set bad exp", "the data of a malformed store is swallowed", "{bad}VERSION 1.6.#\r\n"),
    ("set long key", "the data of a malformed store is swallowed", "{bad}VERSION 1.6.#\r\n"),
    ("get ok+long key", "the answers before a voided multi-get are kept", "STORED\r\n{bad}VERSION 1.6.#\r\n"),
    (
        "data too long",
        "the leftover is a line of fewer than four bytes",
        "CLIENT_ERROR bad data chunk\r\n{bad}VERSION 1.6.#\r\n",
    ),
    ("cas no unique", "the data of a malformed store is swallowed", "{bad}VERSION 1.6.#\r\n"),
    (
        "incr neg",
        "too few arguments are a bad format, surplus ones are ignored",
        "STORED\r\nCLIENT_ERROR invalid numeric delta argument\r\n\
         CLIENT_ERROR invalid numeric delta argument\r\n{bad}6\r\n",
    ),
    ("delete 10", "surplus arguments are ignored", "STORED\r\nDELETED\r\nEND\r\n"),
    ("delete many", "surplus arguments are ignored", "NOT_FOUND\r\n"),
    (
        "touch no exp",
        "too few arguments are a bad format",
        "STORED\r\n{bad}CLIENT_ERROR invalid exptime argument\r\nTOUCHED\r\nNOT_FOUND\r\n",
    ),
    (
        "gat",
        "gat without a key is a bad format",
        "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nVALUE a 0 1 #\r\nx\r\nEND\r\n\
         CLIENT_ERROR invalid exptime argument\r\n{bad}",
    ),
    ("verbosity", "a level that is missing or no number is a bad format", "{bad}{bad}OK\r\nOK\r\n"),
    ("shutdown", "it is the server's error", "SERVER_ERROR: shutdown not enabled\r\n"),
    (
        "mg dup/unknown",
        "mg without a key is a bad format",
        "CLIENT_ERROR duplicate flag\r\nCLIENT_ERROR invalid flag\r\nCLIENT_ERROR invalid flag\r\n\
         {bad}{bad}",
    ),
    (
        "ms",
        "ms returns sizes, and append can create",
        "HD\r\nHD c# km Ox s2\r\nNS\r\nCLIENT_ERROR invalid mode for ms M token\r\n{bad}ERROR\r\n\
         {bad}HD s4\r\nNS\r\nHD\r\nCLIENT_ERROR invalid flag\r\nVERSION 1.6.#\r\n",
    ),
    (
        "ms bad chunk q",
        "the leftover is a line of fewer than four bytes",
        "CLIENT_ERROR bad data chunk\r\n{bad}VERSION 1.6.#\r\n",
    ),
    (
        "key ctrl chars",
        "a NUL is a byte of the key like any other",
        "STORED\r\nVALUE a\u{1}b 0 1\r\nx\r\nEND\r\nSTORED\r\nVALUE a\0b 0 1\r\nx\r\nEND\r\n\
         STORED\r\nVALUE a\tb 0 1\r\nx\r\nEND\r\n",
    ),
    ("lru_crawler", "there is no thread that could fail to start", "OK\r\nOK\r\nOK\r\nERROR\r\nOK\r\n"),
];

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// What cannot be compared byte by byte, made the same: cas uniques, times, sizes, slab classes, the version;
/// whether an item was fetched, which `me` may tell as of before the gets that wait with it; and which items
/// a cachedump lists, since it lists those in RAM.
fn normalised(answer: &[u8]) -> String {
    text(answer)
        .split_inclusive("\r\n")
        .filter(|line| !line.starts_with("ITEM "))
        .map(|line| {
            let words: Vec<&str> = line.trim_end_matches("\r\n").split(' ').collect();
            let of_meta = ["HD", "VA", "EN", "NS", "EX", "NF"].contains(&words[0]);
            let normal = words.iter().enumerate().map(|(at, word)| match *word {
                _ if words[0] == "VALUE" && at == 4 => "#",
                word if of_meta && word.len() > 1 && word.starts_with('c') && word != "c0" => "c#",
                word if words[0] == "ME" && at > 1 => match word.split('=').next() {
                    Some("exp") => word,
                    _ => "#",
                },
                "1.6.18" | "1.6.45" => "1.6.#",
                word => word,
            });
            normal.collect::<Vec<_>>().join(" ") + if line.ends_with("\r\n") { "\r\n" } else { "" }
        })
        .collect()
}

/// Cuts what is sent into requests, values included.
fn requests(mut sent: &[u8]) -> Vec<&[u8]> {
    let mut requests = Vec::new();
    while let Some(first) = sent.first() {
        let len = match parse(detect(*first), sent) {
            Step::Request { len, .. } => len,
            Step::Reject { len, swallow, .. } | Step::Login { len, swallow, .. } => len + swallow as usize,
            Step::Body { .. } | Step::Incomplete { .. } | Step::Close => sent.len(),
        };
        let (request, rest) = sent.split_at(len.min(sent.len()));
        requests.push(request);
        sent = rest;
    }
    requests
}

/// Replays all exchanges in order, one session as long as it stays open; before each request, everything
/// stored is pushed out to the SSD, if there is one.
fn replay(server: &Server) {
    let mut client = Client::new();
    let mut failures = String::new();
    let mut differences = 0;
    for probe in corpus::probes() {
        let mut answered = Vec::new();
        for request in requests(&probe.sent) {
            server.push_out();
            answered.extend(client.ask(server, request));
        }
        let theirs = normalised(&probe.answered);
        let named = DIFFERENCES.iter().find(|(name, ..)| *name == probe.name);
        let expected = named
            .map_or(theirs.clone(), |(_, _, says)| normalised(says.replace("{bad}", BAD_FORMAT).as_bytes()));
        let ours = normalised(&answered);
        if ours != expected || client.session.is_over() != probe.closed {
            failures += &format!("{}\n  expected {expected:?}\n  answered {ours:?}\n", probe.name);
        }
        if let Some((name, why, _)) = named {
            assert_ne!(expected, theirs, "{name} is named as a difference ({why}) and is none");
            differences += 1;
        }
        if client.session.is_over() {
            client = Client::new();
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert_eq!(differences, DIFFERENCES.len(), "every difference is about a probe");
}

#[test]
fn the_probe_is_answered_as_memcached_answered_it() {
    replay(&Server::ram());
}

#[test]
fn the_probe_is_answered_alike_from_the_ssd() {
    let server = Server::ssd();
    replay(&server);
    assert!(server.reads.get() > 60, "requests needed the SSD: {} reads", server.reads.get());
}

/// Answers without what differs from call to call: statistics, and the random numbers of subscriptions.
fn steady(answer: &[u8]) -> Vec<u8> {
    if answer.first() == Some(&0x81) {
        let mut kept = Vec::new();
        let mut rest = answer;
        while rest.len() >= 24 {
            let body = u32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
            let (packet, behind) = rest.split_at((24 + body).min(rest.len()));
            if packet[1] != 0x10 {
                kept.extend_from_slice(packet);
            }
            rest = behind;
        }
        return [kept, rest.to_vec()].concat();
    }
    let lines = answer.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.starts_with(b"STAT "));
    lines.flat_map(|line| if line.starts_with(b"MI ") { b"MI #\r\n" } else { line }).copied().collect()
}

/// What a fresh server answers to pieces sent one by one, and whether it closes. With an SSD, all that is
/// stored goes there after each piece.
fn pieces<'a>(ssd_segments: u64, pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, bool) {
    let server = Server::start(&["-m", "4"], ssd_segments);
    let mut client = Client::new();
    let mut answered = Vec::new();
    for piece in pieces {
        answered.extend(client.ask(&server, piece));
        server.push_out();
    }
    let answered = steady(&answered);
    (if ssd_segments == 0 { text(&answered) } else { normalised(&answered) }, client.session.is_over())
}

fn no_cut_matters(ssd_segments: u64) {
    let mut cuts = 0;
    for sent in corpus::all() {
        let whole = pieces(ssd_segments, [&sent[..]]);
        assert_eq!(pieces(ssd_segments, sent.chunks(1)), whole, "byte by byte: {}", sent.escape_ascii());
        for cut in 1..sent.len() {
            let (first, second) = sent.split_at(cut);
            assert_eq!(pieces(ssd_segments, [first, second]), whole, "cut at {cut}: {}", sent.escape_ascii());
            cuts += 1;
        }
    }
    assert!(cuts > 10_000, "{cuts} cuts");
}

#[test]
fn no_cut_changes_an_answer() {
    no_cut_matters(0);
}

#[test]
fn no_cut_changes_an_answer_while_everything_moves_to_the_ssd() {
    no_cut_matters(2);
}
