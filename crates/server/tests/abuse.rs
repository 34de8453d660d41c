//! Clients that send garbage, stop in the middle, do not read, leave; and an SSD that is slow and fails.
//! Nothing may panic, get stuck, grow without bound, or end up with the wrong client.

#[path = "fuzz/connection.rs"]
mod connection;
#[path = "../../../fuzz/harness.rs"]
mod harness;
mod support;

use std::time::Duration;

use connection::Abuse;
use harness::{RandomBytes, for_a_while};
use support::{Client, Random, Server};

/// What `seed` decides for some thousand steps of the clients.
fn steps(seed: u64) -> Vec<u8> {
    RandomBytes(seed).of(80_000)
}

#[test]
fn sane_clients_over_a_slow_ssd_get_their_own_data() {
    for seed in 0..5 {
        let steps = steps(seed);
        let abuse = Abuse::run(&steps, Server::start(&["-m", "8"], 4), false, 0);
        assert!(abuse.answered > 1 << 20, "{} bytes", abuse.answered);
        assert!(abuse.server.reads.get() > 500, "{} reads", abuse.server.reads.get());
        assert_eq!(abuse.server.shared.store.stats().ssd_errors, 0);
    }
}

#[test]
fn wild_clients_over_a_failing_ssd_harm_nobody() {
    for seed in 10..17 {
        let steps = steps(seed);
        let abuse = Abuse::run(&steps, Server::start(&["-m", "8"], 4), true, 30);
        assert!(abuse.server.reads.get() > 100, "{} reads", abuse.server.reads.get());
    }
}

#[test]
fn an_ssd_that_fails_for_good_is_turned_off_and_ram_goes_on() {
    for seed in 20..22 {
        let steps = steps(seed);
        let mut abuse = Abuse::run(&steps, Server::start(&["-m", "8"], 4), false, 1);
        assert!(abuse.server.shared.store.ssd_is_off());
        let (client, _) = &mut abuse.clients[0];
        assert!(
            client
                .say(&abuse.server, "\r\nset k 0 0 1\r\nx\r\nget k\r\n")
                .ends_with("VALUE k 0 1\r\nx\r\nEND\r\n")
        );
    }
}

#[test]
fn wild_clients_without_an_ssd_harm_nobody() {
    for seed in 30..38 {
        Abuse::run(&steps(seed), Server::start(&["-m", "4"], 0), true, 0);
    }
}

#[test]
fn whatever_clients_and_the_ssd_do_nobody_is_harmed() {
    for_a_while("connection", Duration::from_secs(2), 20, 40_000, connection::check);
}

/// Takes one reply of a text command off the front of what came; panics when there is none.
fn take_reply(got: &mut &[u8], command: &str) -> usize {
    let reads = ["get ", "gets ", "gat ", "gats "].iter().any(|verb| command.starts_with(verb));
    let mut lines = 0;
    loop {
        let end = got.windows(2).position(|pair| pair == b"\r\n").expect("a line ends");
        let line = String::from_utf8_lossy(&got[..end]).into_owned();
        *got = &got[end + 2..];
        lines += 1;
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "VALUE" | "VA" => {
                let len: usize = words[if words[0] == "VALUE" { 3 } else { 1 }].parse().expect("a length");
                assert_eq!(&got[len..len + 2], b"\r\n", "{command}: {line}");
                *got = &got[len + 2..];
                if words[0] == "VA" {
                    return lines;
                }
            }
            "END" => {
                assert!(reads, "{command}: {line}");
                return lines;
            }
            _ => {
                assert!(!reads || lines == 1 && !line.starts_with("SERVER_ERROR"), "{command}: {line}");
                return lines;
            }
        }
    }
}

#[test]
fn every_request_has_one_reply_when_memory_is_short() {
    const COMMANDS: [&str; 19] = [
        "get K K2",
        "gets K",
        "gat 100 K",
        "gats 100 K K2",
        "mg K v T90",
        "mg K v N30 R60",
        "me K",
        "set K 1 0 V",
        "add K 2 0 V",
        "replace K 3 100 V",
        "append K 0 0 V",
        "prepend K 0 0 V",
        "cas K 0 0 V 5",
        "ms K V",
        "md K I T30",
        "incr K 1",
        "ma K N0 J7 v",
        "ml K L5 P1000 r",
        "touch K 10",
    ];
    for (seed, options, segments) in [
        (1, &["-m", "4", "-o", "no_lru_crawler"][..], 3),
        (2, &["-m", "4", "-M"], 0),
        (3, &["-m", "8", "--ssd-write-wait", "0"], 2),
        (4, &["-m", "4", "-I", "2m"], 2),
    ] {
        let server = Server::start(options, segments);
        let mut random = Random(seed);
        let mut client = Client::new();
        let sizes = [10, 500, 3000, 30_000, 200_000, 900_000];
        let mut failures = 0;
        for _ in 0..6000 {
            let key = format!("k{}", random.below(300));
            let len = sizes[random.below(sizes.len())];
            let command = COMMANDS[random.below(COMMANDS.len())];
            let line = command.replace("K2", "other").replace('K', &key).replace('V', &len.to_string());
            let mut request = format!("{line}\r\n");
            if command.contains('V') {
                request += &"7".repeat(len);
                request += "\r\n";
            }
            // Writes are mostly not performed, so that what leaves RAM finds no room on the SSD either.
            client.send(&server, format!("{request}mn\r\n").as_bytes());
            let writes = random.one_in(8);
            client.settle_beside(&server, |server| {
                if writes {
                    server.write_all();
                }
            });
            let got = std::mem::take(&mut client.got);
            let mut rest = &got[..];
            take_reply(&mut rest, command);
            assert_eq!(rest, b"MN\r\n", "{seed}: {line}: {}", got[..got.len().min(300)].escape_ascii());
            failures += usize::from(got.starts_with(b"SERVER_ERROR"));
        }
        assert!(failures > 0, "{seed}: memory was never short");
    }
}

#[test]
fn a_gat_of_an_item_that_cannot_change_just_now_is_a_miss_and_one_reply() {
    let server = Server::start(&["-m", "8", "-I", "3m"], 4);
    let mut client = Client::new();
    let mut misses = 0;
    for number in 0..20 {
        // On their way to a device that takes none.
        client.send(&server, &support::set(&format!("k{number}"), &[b'v'; 900_000]));
        client.settle_beside(&server, |_| {});
        client.got.clear();
        for number in 0..=number {
            client.send(&server, format!("gat 100 k{number}\r\nmn\r\n").as_bytes());
            client.settle_beside(&server, |_| {});
            let got = std::mem::take(&mut client.got);
            let hit =
                [&support::value(&format!("k{number}"), &[b'v'; 900_000])[..], b"END\r\nMN\r\n"].concat();
            let is_miss = got == b"END\r\nMN\r\n";
            assert!(is_miss || got == hit, "{}", got[..got.len().min(200)].escape_ascii());
            misses += usize::from(is_miss && server.shared.totals().get_misses > 0);
        }
    }
    assert!(misses > 0, "no item was on its way");
}
