//! The probe of 1.6.18 against this parser: what is answered without looking at stored state. Where 1.6.45
//! answers otherwise the difference is named; what is neither the same nor named fails.

mod support;

use support::{corpus, said};

/// Exchanges where 1.6.45 says something else than 1.6.18, why, and what.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("blank line", "fewer than four bytes are a bad format", "CLIENT_ERROR bad command line format\r\n"),
    ("space LF", "fewer than four bytes are a bad format", "CLIENT_ERROR bad command line format\r\n"),
    ("get no key", "too few arguments are a bad format", "CLIENT_ERROR bad command line format\r\n"),
    ("set few args", "too few arguments are a bad format", "CLIENT_ERROR bad command line format\r\n"),
    (
        "data too long",
        "the leftover is a line of fewer than four bytes",
        "CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\nVERSION 1.6.45\r\n",
    ),
    ("set extra args", "surplus arguments are ignored", ""),
    (
        "set bad flags",
        "the data of a malformed store is swallowed",
        "CLIENT_ERROR bad command line format\r\nVERSION 1.6.45\r\n",
    ),
    (
        "set bad flags neg",
        "the data of a malformed store is swallowed",
        "CLIENT_ERROR bad command line format\r\nVERSION 1.6.45\r\n",
    ),
    (
        "set bad exp",
        "the data of a malformed store is swallowed",
        "CLIENT_ERROR bad command line format\r\nVERSION 1.6.45\r\n",
    ),
    (
        "set long key",
        "the data of a malformed store is swallowed",
        "CLIENT_ERROR bad command line format\r\nVERSION 1.6.45\r\n",
    ),
    (
        "cas no unique",
        "the data of a malformed store is swallowed",
        "CLIENT_ERROR bad command line format\r\nVERSION 1.6.45\r\n",
    ),
    (
        "incr neg",
        "too few arguments are a bad format, surplus ones are ignored",
        "CLIENT_ERROR invalid numeric delta argument\r\nCLIENT_ERROR invalid numeric delta argument\r\n\
         CLIENT_ERROR bad command line format\r\n",
    ),
    ("delete 10", "surplus arguments are ignored", ""),
    ("delete many", "surplus arguments are ignored", ""),
    (
        "touch no exp",
        "too few arguments are a bad format",
        "CLIENT_ERROR bad command line format\r\nCLIENT_ERROR invalid exptime argument\r\n",
    ),
    (
        "gat",
        "gat without a key is a bad format",
        "CLIENT_ERROR invalid exptime argument\r\nCLIENT_ERROR bad command line format\r\n",
    ),
    (
        "verbosity",
        "a level that is missing or no number is a bad format",
        "CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n",
    ),
    (
        "mg dup/unknown",
        "mg without a key is a bad format",
        "CLIENT_ERROR duplicate flag\r\nCLIENT_ERROR invalid flag\r\nCLIENT_ERROR invalid flag\r\n\
         CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n",
    ),
    (
        "ms bad chunk q",
        "the leftover is a line of fewer than four bytes",
        "CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\nVERSION 1.6.45\r\n",
    ),
    ("key ctrl chars", "a NUL is a byte of the key like any other", ""),
];

/// Lines that depend on what is stored or how the server is set up, and so are not the parser's to say.
const STATEFUL: &[&str] = &[
    "CLIENT_ERROR cannot increment or decrement non-numeric value",
    "SERVER_ERROR object too large for cache",
    "ERROR failed to start lru crawler thread",
    "ERROR: shutdown not enabled",
    "CLIENT_ERROR bad command line",
    "CLIENT_ERROR Illegal slab id",
    "CLIENT_ERROR usage: stats detail on|off|dump",
];

/// Exchanges in which an error is about state, so that its line cannot be told from the parser's.
const STATE_ONLY: &[&str] = &["watch bad", "stats space", "stats foo", "config get cluster"];

/// What of an answer is the parser's to say. OK is said by flush and verbosity here, by the server elsewhere.
fn parsers_share(answer: &[u8]) -> String {
    let text: String = answer.iter().map(|byte| char::from(*byte)).collect();
    text.split_inclusive("\r\n")
        .filter(|line| {
            let line = line.trim_end();
            let known = ["ERROR", "CLIENT_ERROR ", "VERSION ", "MN", "MEMLIMIT_"];
            known.iter().any(|start| line.starts_with(start)) && !STATEFUL.contains(&line)
        })
        .collect::<String>()
        .replace("VERSION 1.6.18", "VERSION 1.6.45")
}

#[test]
fn answers_without_state_are_those_of_the_probe() {
    let mut compared = 0;
    for probe in corpus::probes() {
        if STATE_ONLY.contains(&probe.name.as_str()) {
            continue;
        }
        let (ours, closes) = said(&probe.sent);
        let ours = parsers_share(&ours);
        let named = DIFFERENCES.iter().find(|(name, ..)| *name == probe.name);
        let theirs = parsers_share(&probe.answered);
        let expected = named.map_or(theirs.as_str(), |(_, _, answer)| *answer);
        assert_eq!(ours, expected, "{}: {}", probe.name, probe.sent.escape_ascii());
        assert_eq!(closes, probe.closed, "{}", probe.name);
        if named.is_some() {
            assert_ne!(ours, theirs, "{} is named as a difference and is none", probe.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 67);
}

#[test]
fn every_difference_is_about_a_probe() {
    let probes = corpus::probes();
    for (name, why, _) in DIFFERENCES {
        assert!(probes.iter().any(|probe| probe.name == *name), "{name} ({why})");
    }
}
