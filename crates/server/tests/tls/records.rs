//! One connection's records, without a socket: however they are cut, whatever is changed in them.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use larder_server::config::ListenTls;
use larder_server::tls::{HANDSHAKE_BYTES, INCOMING_BYTES_MAX, PIECE_BYTES, Piece, RECORD_BYTES_MAX, Tls};
use rustls::ClientConfig;

use super::certificates::{Certificates, VERSIONS};
use super::harness::for_a_while;
use super::link::Link;
use super::stream;
use super::support::Random;

fn bytes_of(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

#[test]
fn bytes_of_every_size_pass_both_ways_however_they_are_cut() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    for version in VERSIONS {
        for step in [1, 4, 1000, 64 << 10] {
            let mut link = Link::new(&tls, ListenTls::Default, &certificates.client(version, false));
            link.shake_hands(step).expect("they agree");
            for len in [0, 1, 100, 16_383, 16_384, 16_385, 100_000, 1 << 20] {
                if len > 1000 * step {
                    continue;
                }
                let bytes = bytes_of(len);
                link.write(&bytes);
                link.deliver_to_server(step, &mut |_| {}).expect("it understands");
                assert!(std::mem::take(&mut link.at_server) == bytes, "{len} bytes by {step}");
                assert_eq!(link.server.memory_bytes(), 0, "a connection that waits holds nothing");
                link.reply(&bytes);
                assert!(std::mem::take(&mut link.at_client) == bytes, "{len} bytes back");
            }
            assert!(link.most_bytes <= RECORD_BYTES_MAX + HANDSHAKE_BYTES, "{} bytes held", link.most_bytes);
        }
    }
}

#[test]
fn a_handshake_comes_in_as_many_records_as_the_client_likes() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    for version in VERSIONS {
        for step in [1, 100, 64 << 10] {
            let mut config = (*certificates.client(version, true)).clone();
            config.max_fragment_size = Some(40);
            let mut link = Link::new(&tls, ListenTls::Mutual, &Arc::new(config));
            link.shake_hands(step).expect("they agree");
            link.write(&bytes_of(10_000));
            link.deliver_to_server(step, &mut |_| {}).expect("it understands");
            link.reply(b"thanks");
            assert!(link.at_server == bytes_of(10_000) && link.at_client == b"thanks");
            assert_eq!(link.server.memory_bytes(), 0, "a connection that waits holds nothing");
        }
    }
}

#[test]
fn small_replies_are_gathered_into_full_records() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    let mut link = Link::new(&tls, ListenTls::Default, &certificates.client(VERSIONS[1], false));
    link.shake_hands(64 << 10).expect("they agree");
    let mut piece = Piece::new(&mut link.server, &mut link.buffers, PIECE_BYTES);
    let mut plain = 0;
    while let Ok(taken) = piece.take(&bytes_of(100)) {
        plain += taken;
    }
    let records = piece.finish().expect("it can send");
    assert_eq!(plain, PIECE_BYTES);
    assert!(records - plain < 4 * 64, "{} bytes more for four records", records - plain);
}

#[test]
fn a_change_of_keys_and_the_end_of_a_stream_pass() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    for version in VERSIONS {
        let mut link = Link::new(&tls, ListenTls::Default, &certificates.client(version, false));
        link.shake_hands(1000).expect("they agree");
        if link.client.refresh_traffic_keys().is_ok() {
            link.write(b"new keys");
            link.deliver_to_server(7, &mut |_| {}).expect("it understands");
            link.deliver_to_client().expect("it understands");
            link.reply(b"new keys too");
            assert_eq!((&link.at_server[..], &link.at_client[..]), (&b"new keys"[..], &b"new keys too"[..]));
        }
        link.client.send_close_notify();
        link.deliver_to_server(1, &mut |_| {}).expect("it understands");
        assert!(link.server.is_ended());
        link.reply(b"last words");
        assert!(link.at_client.ends_with(b"last words"));
        link.server.queue_close();
        link.deliver_to_client().expect("it understands");
        assert!(matches!(link.client.reader().read(&mut [0; 1]), Ok(0)), "the client knows that this is all");
    }
}

#[test]
fn a_stream_that_is_changed_ends_and_gives_no_byte_that_was_not_sent() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    let sent = bytes_of(40_000);
    let mut ended = [0, 0];
    for seed in 0..400 {
        let mut random = Random(seed);
        let version = VERSIONS[random.below(2)];
        let mut link = Link::new(&tls, ListenTls::Default, &certificates.client(version, random.one_in(2)));
        let in_handshake = random.one_in(2);
        if !in_handshake {
            link.shake_hands(1000).expect("they agree");
            link.write(&sent);
        }
        let mut change = |bytes: &mut Vec<u8>| {
            if bytes.is_empty() {
                return;
            }
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes.truncate(at),
                2 => bytes.insert(at, random.next() as u8),
                _ => bytes[at..].iter_mut().for_each(|byte| *byte = random.next() as u8),
            }
        };
        let result = (0..4).try_for_each(|_| {
            link.deliver_to_server(997, &mut change)?;
            link.deliver_to_client()
        });
        ended[usize::from(in_handshake)] += u32::from(result.is_err());
        assert!(sent.starts_with(&link.at_server), "seed {seed}: bytes that were not sent");
        assert!(link.most_bytes <= INCOMING_BYTES_MAX + HANDSHAKE_BYTES, "{} bytes held", link.most_bytes);
    }
    assert!(ended[0] > 100 && ended[1] > 50, "{ended:?}");
}

#[test]
fn bytes_of_no_meaning_end_the_connection() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    let config = certificates.client(VERSIONS[1], false);
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut link = Link::new(&tls, ListenTls::Default, &config);
        let len = 100_000;
        let result = link.deliver_to_server(4096, &mut |bytes| {
            *bytes = (0..len).map(|_| random.next() as u8).collect();
            // Half of them begin as a handshake does.
            if seed % 2 == 0 {
                bytes[..3].copy_from_slice(&[22, 3, 1]);
            }
        });
        assert!(result.is_err(), "seed {seed}");
        assert!(matches!(link.server.unsent().len(), 0 | 7), "at most an alert");
    }
}

#[test]
fn whatever_comes_between_the_records_no_byte_is_taken_that_was_not_sent() {
    for_a_while("tls", Duration::from_secs(2), 100, 20_000, stream::check);
}

/// Returns whether a handshake resumed a session.
fn resumes(tls: &Tls, listener: ListenTls, config: &Arc<ClientConfig>) -> Result<bool, rustls::Error> {
    let mut link = Link::new(tls, listener, config);
    link.shake_hands(1000)?;
    link.write(b"x");
    link.deliver_to_server(1000, &mut |_| {})?;
    link.reply(b"y");
    Ok(!link.server.is_new_session())
}

#[test]
fn a_session_is_resumed_where_it_began_and_nowhere_else() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    for version in VERSIONS {
        let config = certificates.client(version, false);
        assert_eq!(resumes(&tls, ListenTls::Basic, &config), Ok(false));
        assert_eq!(resumes(&tls, ListenTls::Basic, &config), Ok(true));
        assert!(resumes(&tls, ListenTls::Mutual, &config).is_err(), "a ticket is no certificate");
        let config = certificates.client(version, true);
        assert_eq!(resumes(&tls, ListenTls::Mutual, &config), Ok(false));
        assert_eq!(resumes(&tls, ListenTls::Mutual, &config), Ok(true));
        tls.refresh().expect("valid certificates");
        assert_eq!(resumes(&tls, ListenTls::Mutual, &config), Ok(false), "after a refresh");
    }
}

#[test]
fn certificates_are_refreshed_or_stay_as_they_were() {
    let certificates = Certificates::new();
    let tls = Tls::open(&certificates.options("")).expect("valid certificates");
    let config = certificates.client(VERSIONS[1], false);
    let presented = |tls: &Tls| {
        let mut link = Link::new(tls, ListenTls::Default, &config);
        link.shake_hands(1000).expect("they agree");
        link.client.peer_certificates().expect("there is one")[0].to_vec()
    };
    let first = presented(&tls);
    let good = std::fs::read_to_string(certificates.path("server.pem")).expect("a file");
    let cases = [
        ("server.pem", "none\n", "holds no certificate in PEM"),
        (
            "server.pem",
            &std::fs::read_to_string(certificates.path("client.pem")).expect("a file"),
            "not that of",
        ),
        ("server.key", "none\n", "holds no private key in PEM; for DER"),
        ("server.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "the private key is encrypted"),
    ];
    for (file, text, said) in cases {
        let before = std::fs::read_to_string(certificates.path(file)).expect("a file");
        certificates.write(file, text);
        let problem = tls.refresh().expect_err(said);
        assert!(problem.contains(said) && problem.contains("-o ssl_"), "{problem}");
        assert!(presented(&tls) == first, "it stays as it was");
        certificates.write(file, &before);
    }
    std::fs::remove_file(certificates.path("server.pem")).expect("it is there");
    assert!(tls.refresh().expect_err("missing").contains("cannot be read"));
    certificates.write("server.pem", &good);
    certificates.issue("server");
    tls.refresh().expect("valid certificates");
    assert!(presented(&tls) != first);
}
