//! Servers that lie, hang and send without end: an error, a closed connection, and bounded memory.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use larder_client::wire::Malformed;
use larder_client::{Client, Error, Options, Put};

use crate::fake::{Fake, hang, hasty, opaque, read_line, read_some};

/// Returns the fault of the reply that a server gives to a get.
fn fault(bytes: &'static [u8]) -> Malformed {
    let fake = Fake::saying(bytes);
    match fake.client(Options { value_bytes_max: 1000, batch_bytes_max: 100_000, ..hasty() }).get(b"k") {
        Err(Error::Protocol { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn replies_that_no_server_sends_are_errors() {
    assert!(matches!(fault(b"WHAT\r\n"), Malformed::Unknown(_)));
    assert!(matches!(fault(b"VA x\r\n"), Malformed::Number(_)));
    assert!(matches!(fault(b"VA 1001\r\n"), Malformed::ValueTooLarge { len: 1001, max: 1000 }));
    assert!(matches!(fault(b"VA 18446744073709551615\r\n"), Malformed::ValueTooLarge { .. }));
    assert!(matches!(fault(b"VA 2\r\nabcd\r\n"), Malformed::ValueEnd));
    assert!(matches!(fault(b"STAT a b\r\n"), Malformed::Unfitting(_)));
    assert!(matches!(fault(b"OK\r\n"), Malformed::Unfitting(_)));
    assert!(matches!(fault(b"NF\r\n"), Malformed::Unfitting(_)));
    assert!(matches!(fault(b"HD\r\n"), Malformed::Unfitting(_)));
    assert!(matches!(fault(b"EN O77\r\n"), Malformed::OutOfOrder));
    assert!(matches!(fault(&[b'x'; 5000]), Malformed::LineTooLong));
}

#[test]
fn a_connection_with_more_than_was_asked_for_is_not_used_again() {
    let fake = Fake::saying(b"EN\r\nVA 6\r\nothers\r\n");
    let client = fake.client(hasty());
    for asked in 1..=3 {
        assert_eq!(client.get(b"k").expect("the first reply is good"), None);
        assert_eq!(fake.connections(), asked);
    }
}

#[test]
fn a_late_answer_is_never_taken_for_anothers() {
    // Answers each get with its key, but the first one only after the client has given up.
    let fake = Fake::start(|number, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            if number == 0 {
                std::thread::sleep(Duration::from_millis(1200));
            }
            let key = line.split(' ').nth(1).unwrap_or_default();
            let _ = write!(peer, "VA {} f0{}\r\n{key}\r\n", key.len(), opaque(&line));
        }
    });
    let client = fake.client(hasty());
    assert!(matches!(client.get(b"slow"), Err(Error::Timeout { .. })));
    for key in ["one", "two", "three"] {
        let item = client.get(key.as_bytes()).expect("it answers").expect("it is there");
        assert_eq!(item.value, key.as_bytes());
    }
    assert_eq!(fake.connections(), 2);
}

#[test]
fn a_server_that_hangs_is_given_up_within_its_time() {
    for (limit, part) in [(50, ""), (300, ""), (300, "VA 100 f0\r\nabc")] {
        let fake = Fake::start(move |_, mut peer| {
            read_some(&mut peer);
            let _ = peer.write_all(part.as_bytes());
            hang(peer);
        });
        let client = fake.client(Options { timeout: Duration::from_millis(limit), ..hasty() });
        let began = Instant::now();
        assert!(matches!(client.get(b"k"), Err(Error::Timeout { limit_ms, .. }) if limit_ms == limit));
        let took = began.elapsed().as_millis() as u64;
        assert!((limit - 10..limit + 2000).contains(&took), "{took} ms");
    }
}

#[test]
fn a_drip_of_bytes_ends_with_the_call_s_own_limit() {
    let fake = Fake::start(|_, mut peer| {
        read_some(&mut peer);
        let _ = peer.write_all(b"VA 100000 f0\r\n");
        while peer.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let call_timeout = Duration::from_millis(400);
    let client = fake.client(Options { call_timeout, ..hasty() });
    let began = Instant::now();
    assert!(matches!(client.get(b"k"), Err(Error::Timeout { limit_ms: 400, .. })));
    assert!(began.elapsed() < Duration::from_secs(5));
    let lone = began.elapsed();
    let keys = ["a", "b"];
    assert!(client.get_many(&keys).iter().all(|item| matches!(item, Err(Error::Timeout { .. }))), "{lone:?}");
}

#[test]
fn endless_replies_are_cut_off() {
    let endless = |line: &'static [u8]| {
        Fake::start(move |_, mut peer| {
            read_some(&mut peer);
            let block = line.repeat((64 << 10) / line.len());
            while peer.write_all(&block).is_ok() {}
        })
    };
    let options = || Options { batch_bytes_max: 8 << 20, timeout: Duration::from_secs(5), ..hasty() };
    let fake = endless(b"STAT name value\r\n");
    let found = fake.client(options()).stats("").remove(0);
    assert!(matches!(found, Err(Error::Protocol { source: Malformed::TooMuch { .. }, .. })), "{found:?}");
    let fake = endless(b"STAT n ");
    let found = fake.client(options()).stats("").remove(0);
    assert!(matches!(found, Err(Error::Protocol { source: Malformed::LineTooLong, .. })), "{found:?}");
    // Values that are each within the bound.
    let fake = Fake::start(|_, mut peer| {
        read_some(&mut peer);
        let value = vec![b'x'; 1 << 20];
        while peer.write_all(b"VA 1048576\r\n").is_ok() {
            let _ = peer.write_all(&value);
            let _ = peer.write_all(b"\r\n");
        }
    });
    let keys: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let found = fake.client(options()).get_many(&keys);
    assert!(found[..6].iter().all(|item| matches!(item, Ok(Some(_)))));
    let last = found.last().expect("there are many");
    assert!(matches!(last, Err(Error::Protocol { source: Malformed::TooMuch { .. }, .. })), "{last:?}");
}

#[test]
fn an_announced_value_takes_no_memory_before_it_comes() {
    let fake = Fake::start(|_, mut peer| {
        read_some(&mut peer);
        let _ = peer.write_all(b"VA 1000000000\r\nabc");
        hang(peer);
    });
    let client = fake.client(Options { value_bytes_max: 1 << 30, ..hasty() });
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
    };
    let before = resident();
    assert!(matches!(client.get(b"k"), Err(Error::Timeout { .. })));
    // Other tests run at the same time; a gigabyte is far more than they take.
    assert!(resident().saturating_sub(before) < 700 << 20);
}

#[test]
fn a_server_without_the_meta_protocol_is_an_error_and_not_confusion() {
    // What memcached 1.5 says to a store that it does not know: the value is taken for a command, too.
    let fake = Fake::start(|_, mut peer| {
        while read_line(&mut peer).is_some() {
            let _ = peer.write_all(b"ERROR\r\n");
        }
    });
    let client = fake.client(hasty());
    for asked in 1..=3 {
        assert!(
            matches!(client.set(b"k", b"v", Put::default()), Err(Error::Refused { line, .. }) if line == "ERROR")
        );
        assert_eq!(fake.connections(), asked, "each such connection is closed");
    }
}

fn cut_off(part: &'static [u8]) -> Client {
    let fake = Box::leak(Box::new(Fake::start(move |_, mut peer: TcpStream| {
        read_some(&mut peer);
        let _ = peer.write_all(part);
        let _ = peer.shutdown(Shutdown::Both);
    })));
    fake.client(hasty())
}

#[test]
fn a_connection_that_breaks_in_the_middle_fails_what_was_unanswered() {
    for part in [&b""[..], b"V", b"VA 5 f0\r\n", b"VA 5 f0\r\nabcde", b"VA 5 f0\r\nabcde\r"] {
        assert!(matches!(cut_off(part).get(b"k"), Err(Error::Lost { .. })), "{part:?}");
    }
    let found = cut_off(b"VA 1 f0\r\na\r\nEN\r\nVA 9").get_many(&["a", "b", "c", "d"]);
    assert!(matches!(&found[0], Ok(Some(item)) if item.value == b"a"));
    assert!(matches!(&found[1], Ok(None)));
    assert!(found[2..].iter().all(|item| matches!(item, Err(Error::Lost { .. }))), "{found:?}");
}

#[test]
fn what_a_quiet_batch_may_not_bring_closes_the_connection() {
    let fake = Fake::start(|number, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            let answer: &[u8] = match line.as_str() {
                "mn" if number == 0 => b"VA 4\r\nevil\r\nMN\r\n",
                "mn" => b"MN\r\n",
                line if line.starts_with("mg") => b"VA 4 f0\r\ngood\r\n",
                _ => b"",
            };
            let _ = peer.write_all(answer);
        }
    });
    let client = fake.client(hasty());
    client.quiet().delete(b"k").expect("it is sent");
    assert!(matches!(client.get(b"k"), Err(Error::Protocol { .. })));
    let item = client.get(b"k").expect("it answers").expect("it is there");
    assert_eq!(item.value, b"good");
}

/// Pieces of replies, some right, some not.
const PIECES: &[&[u8]] = &[
    b"VA 3 f0\r\nabc\r\n",
    b"VA 3",
    b"VA 0\r\n\r\n",
    b"HD",
    b"HD c1\r\n",
    b"EN\r\n",
    b"NF\r\n",
    b"NS\r\n",
    b"EX\r\n",
    b"MN\r\n",
    b"OK\r\n",
    b"STAT a b\r\n",
    b"END\r\n",
    b"VERSION 1.6.0\r\n",
    b"ERROR\r\n",
    b"SERVER_ERROR x\r\n",
    b"\r\n",
    b"\n",
    b" ",
    b" O1",
    b" O0\r\n",
    b" W",
    b"\xff\0",
    b"9",
    b"-",
    b"VA 18446744073709551614\r\n",
    b"ME k a=b\r\n",
];

/// Whatever comes, cut wherever, each call ends with a result, and soon.
#[test]
fn random_servers_end_no_client() {
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    let fake = Fake::start(|number, mut peer| {
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(number as u64);
        let mut below = |bound: usize| (random.next_u64() % bound as u64) as usize;
        let _ = peer.set_read_timeout(Some(Duration::from_millis(20)));
        read_some(&mut peer);
        for _ in 0..below(12) {
            let piece = PIECES[below(PIECES.len())];
            let cut = if below(4) == 0 { below(piece.len() + 1) } else { piece.len() };
            let _ = peer.write_all(&piece[..cut]);
            if below(3) == 0 {
                read_some(&mut peer);
            }
        }
    });
    let timeout = Duration::from_millis(500);
    let breaker = larder_client::Thresholds { failures: 0, ..Default::default() };
    let client = fake.client(Options { timeout, breaker, ..Options::default() });
    let keys = ["a", "b", "c", "d"];
    let began = Instant::now();
    let mut answered = 0;
    for turn in 0..900 {
        match turn % 6 {
            0 => {
                for item in client.get_many(&keys).into_iter().flatten().flatten() {
                    // A head can have been joined with other pieces, but never more of them than came.
                    assert!(item.value.len() < 1000);
                    answered += 1;
                }
            }
            1 => answered += usize::from(client.incr(b"k", 1).is_ok()),
            2 => answered += usize::from(client.stats("").iter().all(Result::is_ok)),
            3 => drop(client.quiet().set(b"k", b"v", Put::default())),
            4 => answered += usize::from(client.set(b"k", b"v", Put::default()).is_ok()),
            _ => answered += usize::from(client.version().iter().all(Result::is_ok)),
        }
    }
    assert!(answered > 0, "some replies fit");
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn one_connection_too_many_is_told_what_the_server_says() {
    // What memcached does when it has no connection left.
    let fake = Fake::start(|_, mut peer| {
        let _ = peer.write_all(b"ERROR Too many open connections\r\n");
        read_some(&mut peer);
    });
    let refused = fake.client(hasty()).get(b"k");
    assert!(matches!(&refused, Err(Error::Refused { line, .. }) if line.contains("Too many")), "{refused:?}");
}
