//! `ml`: rate limits are exact in both tiers, by a simulated clock, and whatever happens to their item meanwhile.

mod support;

use support::{Client, Random, Server, set};

fn say(server: &Server, line: &str) -> String {
    Client::new().say(server, format!("{line}\r\n")).trim_end().to_string()
}

/// Moves the clock to a turn of minutes, so that windows of a minute begin now.
fn to_full_minute(server: &Server) {
    let into_minute = server.shared.clock.unix_ns() / 1_000_000_000 % 60;
    server.pass(60 - into_minute as i64);
}

#[test]
fn a_fixed_window_passes_its_count_in_each_period() {
    for server in Server::both() {
        to_full_minute(&server);
        let check = |cost| say(&server, &format!("ml k L5 P60000 MF r w a D{cost}"));
        assert_eq!(check(3), "HD r2 w0 a60000");
        server.push_out();
        assert_eq!(check(3), "NS r2 w60000 a60000", "a denial is not counted");
        server.pass(20);
        assert_eq!(check(2), "HD r0 w0 a40000");
        server.push_out();
        assert_eq!(check(1), "NS r0 w40000 a40000");
        assert_eq!(check(6), "NS r0 w-1 a0", "more than the limit never passes");
        server.pass(40);
        assert_eq!(check(5), "HD r0 w0 a60000");
    }
}

#[test]
fn a_sliding_window_fades_with_time() {
    for server in Server::both() {
        to_full_minute(&server);
        let check = |cost| say(&server, &format!("ml k L60 P60000 MS r w D{cost}"));
        assert_eq!(check(60), "HD r0 w0");
        server.push_out();
        assert_eq!(check(1), "NS r0 w61000", "a sixtieth has faded one second into the next period");
        server.pass(61);
        server.push_out();
        assert_eq!(check(1), "HD r0 w0");
        assert_eq!(check(1), "NS r0 w1000");
        server.pass(29);
        assert_eq!(check(0), "HD r29 w0");
    }
}

#[test]
fn a_bucket_refills_evenly() {
    for server in Server::both() {
        let check = |cost| say(&server, &format!("ml k L6 P60000 B3 r w a D{cost}"));
        assert_eq!(check(3), "HD r0 w0 a30000");
        server.push_out();
        assert_eq!(check(1), "NS r0 w10000 a30000");
        server.pass(9);
        assert_eq!(check(1), "NS r0 w1000 a21000");
        server.push_out();
        server.pass(1);
        assert_eq!(check(1), "HD r0 w0 a30000");
        server.pass(3000);
        assert_eq!(check(0), "HD r3 w0 a0");
    }
}

#[test]
fn a_state_is_an_ordinary_item_that_expires_once_it_does_not_matter() {
    let server = Server::ram();
    assert_eq!(say(&server, "ml k L6 P60000 D2"), "HD");
    let item = say(&server, "mg k t v");
    assert!(item.starts_with("VA 21 t22\r\nG "), "20 s and two to spare: {item}");
    assert_eq!(say(&server, "ml k L5 P60000 MF"), "HD", "another algorithm begins again");
    assert!(say(&server, "mg k v").ends_with(" 1"));
    assert_eq!(say(&server, "delete k"), "DELETED");
    assert_eq!(say(&server, "ml k L1 P60000"), "HD");
    assert_eq!(say(&server, "ml k L1 P60000"), "NS");
    server.pass(63);
    assert_eq!(say(&server, "get k"), "END");
    assert_eq!(say(&server, "ml aw== L1 P60000 b k"), "HD kaw== b", "a key in base64 is decoded");
    assert_eq!(say(&server, "ml k L1 P60000 k"), "NS kk");
}

#[test]
fn an_item_that_holds_something_else_stays_as_it_is() {
    for server in Server::both() {
        for value in [&b""[..], b"text", b"F 1", &[b'1'; 65], &[b'1'; 100_000]] {
            assert_eq!(Client::new().ask(&server, set("k", value)), b"STORED\r\n");
            server.push_out();
            assert_eq!(say(&server, "ml k L5 P1000 q"), "CLIENT_ERROR the item holds no rate limit");
            assert_eq!(
                Client::new().ask(&server, "get k\r\n"),
                [support::value("k", value), b"END\r\n".to_vec()].concat()
            );
        }
    }
}

#[test]
fn a_peek_counts_nothing_and_creates_no_item() {
    let server = Server::ram();
    for mode in ["MF", "MS", "MG"] {
        assert_eq!(say(&server, &format!("ml k L5 P60000 {mode} D0 r")), "HD r5");
    }
    assert_eq!(say(&server, "get k"), "END");
}

#[test]
fn verdicts_are_counted() {
    let server = Server::ram();
    let asked = "ml k L2 P60000 q\r\n".repeat(5) + "mn\r\n";
    assert_eq!(Client::new().say(&server, asked), "NS\r\nNS\r\nNS\r\nMN\r\n");
    let stats = say(&server, "stats larder");
    assert!(
        stats.contains("STAT limits_allowed 2\r\n") && stats.contains("STAT limits_denied 3\r\n"),
        "{stats}"
    );
    assert!(say(&server, "stats").contains("STAT cmd_meta 5\r\n"));
}

/// Sixty-four connections ask for the same few keys in pipelines while their items leave RAM again and again, and the
/// reads of the SSD come back in any order.
#[test]
fn not_one_passes_beyond_the_limit_while_its_item_moves_between_the_tiers() {
    for seed in 0..6 {
        let mut random = Random(seed);
        let server = Server::ssd();
        to_full_minute(&server);
        let modes = ["MF", "MS", "MG"];
        let mut clients: Vec<Client> = (0..64).map(|_| Client::new()).collect();
        for turn in 0..400 {
            let client = &mut clients[random.below(64)];
            for _ in 0..random.below(4) {
                let mode = modes[random.below(3)];
                client.send(&server, format!("ml {mode} L100 P60000 {mode}\r\n").as_bytes());
            }
            let at = random.below(64);
            if !clients[at].owed.is_empty() {
                clients[at].deliver(&server, 0, true);
            }
            if turn % 20 == 19 {
                server.push_out();
            }
        }
        clients.iter_mut().for_each(|client| client.settle(&server));
        assert!(server.reads.get() > 20, "items were read from the SSD");
        let mut passed: usize = clients.iter().map(|client| count(&client.got, b"HD\r\n")).sum();
        let denied: usize = clients.iter().map(|client| count(&client.got, b"NS\r\n")).sum();
        for mode in modes {
            let more = Client::new().say(&server, format!("ml {mode} L100 P60000 {mode}\r\n").repeat(200));
            passed += count(more.as_bytes(), b"HD\r\n");
        }
        assert_eq!(passed, 300, "seed {seed}, {denied} denied meanwhile");
    }
}

fn count(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).filter(|window| window == &what).count()
}
