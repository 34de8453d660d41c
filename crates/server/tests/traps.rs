//! Where other servers diverged from memcached, as far as it is about what is stored and in which order it is
//! answered. (What is about the wire alone is tested with the protocol.) Over both tiers, where an item may
//! lie in either.

mod support;

use support::{Client, Random, Server, set, value};

/// Answers of one client to one server after another: `says` is sent request by request, what is stored moves
/// out between.
fn on_both(requests: &[&str], expected: &str) {
    for server in Server::both() {
        let mut client = Client::new();
        let mut answered = String::new();
        for request in requests {
            server.push_out();
            answered += &client.say(&server, request);
        }
        assert_eq!(answered, expected);
    }
}

/// A cas unique as `gets` tells it.
fn cas_of(client: &mut Client, server: &Server, key: &str) -> u64 {
    let answer = client.say(server, format!("gets {key}\r\n"));
    let line = answer.lines().next().expect("an answer");
    let word = line.split(' ').nth(4).unwrap_or_else(|| panic!("no cas in {answer:?}"));
    word.parse().expect("a number")
}

#[test]
fn noreply_is_silent_on_errors_and_large_values_too() {
    let large = "x".repeat(2_000_000);
    let wrong = [
        "set k 0 0 2 noreply\r\nhi\r\n".to_string(),
        "add k 0 0 2 noreply\r\nhi\r\n".to_string(),
        "replace nope 0 0 2 noreply\r\nhi\r\n".to_string(),
        "cas k 0 0 2 999999 noreply\r\nhi\r\n".to_string(),
        "cas nope 0 0 2 1 noreply\r\nhi\r\n".to_string(),
        "append nope 0 0 2 noreply\r\nhi\r\n".to_string(),
        "incr k 1 noreply\r\n".to_string(),
        "incr nope 1 noreply\r\n".to_string(),
        "touch nope 0 noreply\r\n".to_string(),
        "delete nope noreply\r\n".to_string(),
        "flush_all 100 noreply\r\n".to_string(),
        "verbosity 0 noreply\r\n".to_string(),
        format!("set big 0 0 2000000 noreply\r\n{large}\r\n"),
    ];
    for server in Server::both() {
        let mut client = Client::new();
        for request in &wrong {
            server.push_out();
            let answered = client.say(&server, format!("{request}mn\r\n"));
            assert_eq!(answered, "MN\r\n", "{}", &request[..request.len().min(60)]);
        }
        assert_eq!(client.say(&server, wrong.concat() + "get k\r\n"), "VALUE k 0 2\r\nhi\r\nEND\r\n");
    }
}

/// libmemcached sends -1 as an unsigned number, as Django's `cache.set(key, value, 0)` has it do.
#[test]
fn a_set_with_an_unsigned_minus_one_replaces_the_old_value_by_an_expired_one() {
    on_both(
        &[
            "set k 0 0 3\r\nold\r\n",
            "set k 0 4294967295 3\r\nnew\r\n",
            "get k\r\n",
            "set k 0 4294967396 3\r\nnew\r\n",
            "mg k v t\r\n",
            "touch k 4294967295\r\n",
            "get k\r\n",
        ],
        "STORED\r\nSTORED\r\nEND\r\nSTORED\r\nVA 3 t100\r\nnew\r\nTOUCHED\r\nEND\r\n",
    );
}

#[test]
fn counters_answer_bare_numbers_and_store_padded_ones() {
    on_both(
        &[
            "set n 5 0 2\r\n10\r\n",
            "decr n 1\r\n",
            "get n\r\n",
            "incr n 91\r\n",
            "get n\r\n",
            "decr n 200\r\n",
            "get n\r\n",
        ],
        "STORED\r\n9\r\nVALUE n 5 2\r\n9 \r\nEND\r\n100\r\nVALUE n 5 3\r\n100\r\nEND\r\n0\r\nVALUE n 5 3\r\n0  \r\nEND\r\n",
    );
    on_both(
        &[
            "set n 0 0 20\r\n18446744073709551615\r\n",
            "incr n 2\r\n",
            "get n\r\n",
            "incr n 18446744073709551615\r\n",
        ],
        "STORED\r\n1\r\nVALUE n 0 20\r\n1                   \r\nEND\r\n0\r\n",
    );
    on_both(
        &[
            "set n 0 0 0\r\n\r\n",
            "incr n 1\r\n",
            "set n 0 0 3\r\n5  \r\n",
            "incr n 1\r\n",
            "set n 0 0 1\r\nx\r\n",
            "decr n 1\r\n",
        ],
        "STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nSTORED\r\n6\r\nSTORED\r\n\
         CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    );
}

#[test]
fn cas_is_never_zero_and_new_with_each_change_but_not_with_a_touch() {
    for server in Server::both() {
        let mut client = Client::new();
        client.ask(&server, "set k 0 0 1\r\n1\r\n");
        let mut seen = vec![cas_of(&mut client, &server, "k")];
        for change in [
            "set k 0 0 1\r\n2\r\n",
            "incr k 1\r\n",
            "append k 0 0 1\r\n5\r\n",
            "decr k 1\r\n",
            "ms k 1\r\n7\r\n",
            "ma k\r\n",
        ] {
            server.push_out();
            client.ask(&server, change);
            server.push_out();
            let cas = cas_of(&mut client, &server, "k");
            assert!(cas > 0 && !seen.contains(&cas), "{change:?} keeps {cas}");
            seen.push(cas);
        }
        for no_change in ["touch k 0\r\n", "gat 100 k\r\n", "get k\r\n", "mg k T90 v\r\n", "touch nope 0\r\n"]
        {
            server.push_out();
            client.ask(&server, no_change);
            server.push_out();
            assert_eq!(cas_of(&mut client, &server, "k"), seen[seen.len() - 1], "{no_change:?}");
        }
        let last = seen[seen.len() - 1];
        server.push_out();
        assert_eq!(client.say(&server, format!("cas k 0 0 1 {}\r\nx\r\n", last - 1)), "EXISTS\r\n");
        server.push_out();
        assert_eq!(client.say(&server, format!("cas k 0 0 1 {last}\r\ny\r\n")), "STORED\r\n");
        assert_eq!(client.say(&server, "cas nope 0 0 1 1\r\nx\r\n"), "NOT_FOUND\r\n");
        assert_eq!(client.say(&server, "get k\r\n"), "VALUE k 0 1\r\ny\r\nEND\r\n");
    }
}

#[test]
fn a_set_that_is_too_large_swallows_its_value_and_removes_the_old_one() {
    let large = "x".repeat(1_048_577);
    for server in Server::both() {
        let mut client = Client::new();
        for (key, refused) in [
            ("a", format!("set a 0 0 1048577\r\n{large}\r\n")),
            ("b", format!("set b 0 0 1048577 noreply\r\n{large}\r\n")),
            ("c", format!("ms c 1048577\r\n{large}\r\n")),
        ] {
            client.ask(&server, set(key, b"old"));
            server.push_out();
            let answered = client.say(&server, format!("{refused}get {key}\r\n"));
            let error = if key == "b" { "" } else { "SERVER_ERROR object too large for cache\r\n" };
            assert_eq!(answered, format!("{error}END\r\n"));
        }
        client.ask(&server, set("d", b"old"));
        server.push_out();
        let answered = client.say(&server, format!("add d 0 0 1048577\r\n{large}\r\nget d\r\n"));
        assert_eq!(answered, "SERVER_ERROR object too large for cache\r\nVALUE d 0 3\r\nold\r\nEND\r\n");
        let fits = "y".repeat(1_047_552);
        assert_eq!(client.say(&server, set("e", fits.as_bytes())), "STORED\r\n");
        server.push_out();
        assert_eq!(
            client.ask(&server, "get e\r\n"),
            [value("e", fits.as_bytes()), b"END\r\n".to_vec()].concat()
        );
        assert_eq!(
            client.say(&server, "append e 0 0 2000\r\n".to_string() + &large[..2000] + "\r\n"),
            "SERVER_ERROR object too large for cache\r\n"
        );
    }
}

#[test]
fn a_set_without_memory_removes_the_old_value() {
    let server = Server::start(&["-m", "4", "-M", "-I", "1m"], 0);
    let mut client = Client::new();
    let value = "x".repeat(4000);
    assert_eq!(client.say(&server, set("k", b"old")), "STORED\r\n");
    let mut number = 0;
    while client.say(&server, set(&format!("filler-{number}"), value.as_bytes())) == "STORED\r\n" {
        number += 1;
        assert!(number < 5000, "memory without end");
    }
    assert_eq!(
        client.say(&server, "get k\r\n"),
        "VALUE k 0 3\r\nold\r\nEND\r\n",
        "with -M nothing is evicted"
    );
    let answered = client.say(&server, set("k", value.as_bytes()));
    assert_eq!(answered, "SERVER_ERROR out of memory storing object\r\n");
    assert_eq!(client.say(&server, "get k\r\n"), "END\r\n");
}

#[test]
fn exptimes_are_relative_absolute_never_or_past() {
    for server in Server::both() {
        let mut client = Client::new();
        let unix = server.shared.clock.unix(server.now());
        for (key, exptime) in [
            ("never", "0".to_string()),
            ("past", "-1".to_string()),
            ("soon", "10".to_string()),
            ("longest", "2592000".to_string()),
            ("in1970", "2592001".to_string()),
            ("at", (unix + 20).to_string()),
        ] {
            assert_eq!(client.say(&server, format!("set {key} 0 {exptime} 1\r\nx\r\n")), "STORED\r\n");
        }
        server.push_out();
        let mut there = |expected: &[&str]| {
            let answered = client.say(&server, "get never past soon longest in1970 at\r\n");
            let keys: Vec<&str> = answered.lines().filter_map(|line| line.strip_prefix("VALUE ")).collect();
            let keys: Vec<&str> = keys.iter().map(|line| line.split(' ').next().expect("a key")).collect();
            assert_eq!(keys, expected);
        };
        there(&["never", "soon", "longest", "at"]);
        server.pass(9);
        there(&["never", "soon", "longest", "at"]);
        server.pass(1);
        there(&["never", "longest", "at"]);
        server.pass(10);
        there(&["never", "longest"]);
        server.pass(2_592_000);
        there(&["never"]);
    }
}

#[test]
fn add_succeeds_on_what_has_expired_or_was_flushed() {
    for server in Server::both() {
        let mut client = Client::new();
        client.ask(&server, "set e 0 5 3\r\nold\r\nset f 0 0 3\r\nold\r\nset live 0 0 3\r\nold\r\n");
        server.push_out();
        server.pass(5);
        assert_eq!(
            client.say(&server, "add e 0 0 3\r\nnew\r\nadd live 0 0 3\r\nnew\r\n"),
            "STORED\r\nNOT_STORED\r\n"
        );
        server.push_out();
        assert_eq!(
            client.say(&server, "flush_all\r\nadd f 0 0 3\r\nnew\r\nget e f live\r\n"),
            "OK\r\nSTORED\r\nVALUE f 0 3\r\nnew\r\nEND\r\n"
        );
        // libmemcached's exist(): stored already expired, so nothing is there afterwards either.
        assert_eq!(
            client.say(&server, "add x 0 2678400 0\r\n\r\nget x\r\nadd f 0 2678400 0\r\n\r\n"),
            "STORED\r\nEND\r\nNOT_STORED\r\n"
        );
    }
}

#[test]
fn multi_gets_keep_order_and_duplicates_however_the_reads_complete() {
    let server = Server::ssd();
    let mut random = Random(3);
    let mut setter = Client::new();
    let of = |number: usize| format!("value {number} ").repeat(number % 30 + 1).into_bytes();
    for number in 0..60 {
        setter.ask(&server, set(&format!("k{number}"), &of(number)));
    }
    for round in 0..40 {
        server.push_out();
        // Some are in RAM again, so that answers known at once and later ones mix.
        for _ in 0..10 {
            let number = random.below(60);
            setter.ask(&server, set(&format!("k{number}"), &of(number)));
        }
        let mut client = Client::new();
        let (mut sent, mut expected) = (String::new(), Vec::new());
        for request in 0..8 {
            match random.below(4) {
                0 => {
                    sent += &format!("mn\r\nmg k{round} v O{request} k\r\n");
                    let value = of(round);
                    expected.extend(format!("MN\r\nVA {} O{request} kk{round}\r\n", value.len()).bytes());
                    expected.extend([&value[..], b"\r\n"].concat());
                }
                _ => {
                    sent += "get";
                    for _ in 0..=random.below(12) {
                        let number = random.below(70);
                        sent += &format!(" k{number}");
                        if number < 60 {
                            expected.extend(value(&format!("k{number}"), &of(number)));
                        }
                    }
                    sent += "\r\n";
                    expected.extend(b"END\r\n");
                }
            }
        }
        client.send(&server, sent.as_bytes());
        while !client.owed.is_empty() {
            assert!(expected.starts_with(&client.got), "what has been sent was in order");
            let at = random.below(client.owed.len());
            client.deliver(&server, at, true);
        }
        client.settle(&server);
        assert_eq!(client.got.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
    assert!(server.reads.get() > 500, "{} reads", server.reads.get());
}

#[test]
fn what_follows_a_get_that_waits_for_the_ssd_does_not_change_its_answer() {
    for (change, answer, after) in [
        ("set k 0 0 3\r\nnew\r\n", "STORED\r\n", "VALUE k 0 3\r\nnew\r\nEND\r\n"),
        ("delete k\r\n", "DELETED\r\n", "END\r\n"),
        ("incr k 1\r\n", "8\r\n", "VALUE k 0 1\r\n8\r\nEND\r\n"),
        ("append k 0 0 1\r\n1\r\n", "STORED\r\n", "VALUE k 0 2\r\n71\r\nEND\r\n"),
        ("touch k 10\r\n", "TOUCHED\r\n", "VALUE k 0 1\r\n7\r\nEND\r\n"),
        ("md k I\r\n", "HD\r\n", "VALUE k 0 1\r\n7\r\nEND\r\n"),
    ] {
        for backwards in [false, true] {
            let server = Server::ssd();
            let mut client = Client::new();
            client.ask(&server, "set k 0 0 1\r\n7\r\n");
            server.push_out();
            client.send(&server, format!("get k\r\n{change}get k\r\n").as_bytes());
            assert!(client.got.is_empty() && !client.owed.is_empty(), "the get waits, and all behind it");
            while !client.owed.is_empty() {
                let at = if backwards { client.owed.len() - 1 } else { 0 };
                client.deliver(&server, at, true);
            }
            client.settle(&server);
            let got: String = client.got.iter().map(|byte| char::from(*byte)).collect();
            assert_eq!(got, format!("VALUE k 0 1\r\n7\r\nEND\r\n{answer}{after}"));
        }
    }
}

#[test]
fn another_clients_change_does_not_tear_a_get_that_waits() {
    let server = Server::ssd();
    let (mut reader, mut writer) = (Client::new(), Client::new());
    writer.ask(&server, set("k", &[b'a'; 3000]));
    server.push_out();
    reader.send(&server, b"get k\r\n");
    writer.ask(&server, set("k", &[b'b'; 2000]));
    server.push_out();
    writer.ask(&server, set("k", &[b'c'; 1000]));
    reader.settle(&server);
    let whole = [value("k", &[b'a'; 3000]), b"END\r\n".to_vec()].concat();
    assert_eq!(reader.got, whole);
}

#[test]
fn a_read_that_fails_is_a_miss_and_the_item_is_gone() {
    for request in [
        "get k\r\n",
        "gat 0 k\r\n",
        "mg k v\r\n",
        "append k 0 0 1\r\nx\r\n",
        "incr k 1\r\n",
        "md k\r\n",
        "touch k 1\r\n",
    ] {
        let server = Server::ssd();
        let mut client = Client::new();
        client.ask(&server, "set k 0 0 1\r\n1\r\nset other 0 0 1\r\n2\r\n");
        server.push_out();
        client.send(&server, request.as_bytes());
        client.deliver(&server, 0, false);
        client.settle(&server);
        let got: String = std::mem::take(&mut client.got).iter().map(|byte| char::from(*byte)).collect();
        let misses = ["END\r\n", "EN\r\n", "NOT_STORED\r\n", "NOT_FOUND\r\n", "NF\r\n"];
        assert!(misses.contains(&got.as_str()), "{request:?}: {got:?}");
        assert_eq!(client.say(&server, "get k other\r\n"), "VALUE other 0 1\r\n2\r\nEND\r\n", "{request:?}");
    }
}

#[test]
fn flush_all_spares_what_is_stored_after_it_in_the_same_second() {
    on_both(
        &["set a 0 0 1\r\nx\r\n", "flush_all\r\n", "set b 0 0 1\r\ny\r\n", "get a b\r\n"],
        "STORED\r\nOK\r\nSTORED\r\nVALUE b 0 1\r\ny\r\nEND\r\n",
    );
    on_both(
        &[
            "set a 0 0 1\r\nx\r\n",
            "flush_all -1\r\n",
            "get a\r\n",
            "set a 0 0 1\r\nz\r\n",
            "flush_all 0\r\n",
            "get a\r\n",
        ],
        "STORED\r\nOK\r\nEND\r\nSTORED\r\nOK\r\nEND\r\n",
    );
}

#[test]
fn a_delayed_flush_takes_what_was_stored_until_then() {
    for server in Server::both() {
        let mut client = Client::new();
        let unix = server.shared.clock.unix(server.now());
        for delay in ["5".to_string(), (unix + 5).to_string()] {
            client.ask(&server, "set before 0 0 1\r\nx\r\n");
            assert_eq!(client.say(&server, format!("flush_all {delay}\r\n")), "OK\r\n");
            server.push_out();
            server.pass(4);
            client.ask(&server, "set between 0 0 1\r\ny\r\n");
            assert_eq!(client.say(&server, "get before between\r\n").matches("VALUE").count(), 2);
            server.push_out();
            server.pass(1);
            assert_eq!(client.say(&server, "get before between\r\n"), "END\r\n", "flush_all {delay}");
            client.ask(&server, "set after 0 0 1\r\nz\r\n");
            server.pass(20);
            assert_eq!(client.say(&server, "get after\r\n"), "VALUE after 0 1\r\nz\r\nEND\r\n");
            server.pass(-25);
        }
        // One flush waits at a time; a new one takes its place.
        client.ask(&server, "set k 0 0 1\r\nx\r\nflush_all 5\r\nflush_all 50\r\n");
        server.pass(10);
        assert_eq!(client.say(&server, "get k\r\n"), "VALUE k 0 1\r\nx\r\nEND\r\n");
    }
}

#[test]
fn flush_all_can_be_forbidden() {
    let server = Server::start(&["-F"], 0);
    let mut client = Client::new();
    let answered = client.say(&server, "set k 0 0 1\r\nx\r\nflush_all\r\nflush_all noreply\r\nget k\r\n");
    assert_eq!(answered, "STORED\r\nCLIENT_ERROR flush_all not allowed\r\nVALUE k 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn append_and_prepend_keep_flags_and_expiry_and_never_create() {
    on_both(
        &[
            "set k 7 100 2\r\nbb\r\n",
            "append k 9 1 2\r\ncc\r\n",
            "prepend k 9 1 2\r\naa\r\n",
            "get k\r\n",
            "mg k t\r\n",
            "append nope 0 0 1\r\nx\r\n",
            "prepend nope 0 0 1\r\nx\r\n",
            "get nope\r\n",
        ],
        "STORED\r\nSTORED\r\nSTORED\r\nVALUE k 7 6\r\naabbcc\r\nEND\r\nHD t100\r\nNOT_STORED\r\nNOT_STORED\r\nEND\r\n",
    );
}

#[test]
fn ms_answers_the_size_that_append_and_prepend_arrive_at() {
    on_both(
        &[
            "ms k 2 s\r\nhi\r\n",
            "ms k 3 MA s\r\nabc\r\n",
            "ms k 1 MP s\r\n!\r\n",
            "ms new 2 MA N0 s\r\nhi\r\n",
            "mg k s v\r\n",
        ],
        "HD s2\r\nHD s5\r\nHD s6\r\nHD s2\r\nVA 6 s6\r\n!hiabc\r\n",
    );
}

#[test]
fn touch_and_gat_change_the_expiry_only() {
    on_both(
        &[
            "set k 3 10 2\r\nhi\r\n",
            "touch k 100\r\n",
            "mg k t f s\r\n",
            "gat 50 k\r\n",
            "mg k t\r\n",
            "gats 0 nope\r\n",
            "touch nope 1\r\n",
            "mg k T5 t\r\n",
            "mg k t T6 v\r\n",
        ],
        "STORED\r\nTOUCHED\r\nHD t100 f3 s2\r\nVALUE k 3 2\r\nhi\r\nEND\r\nHD t50\r\nEND\r\nNOT_FOUND\r\nHD t5\r\nVA 2 t5\r\nhi\r\n",
    );
}

#[test]
fn quiet_meta_commands_hide_what_their_command_expects() {
    on_both(
        &[
            "ms k 1 q\r\nx\r\nms k 1 q ME\r\ny\r\nmg k q v\r\nmg nope q v\r\nmd nope q\r\nma nope q\r\nma k q\r\nmd k q\r\nmn\r\n",
        ],
        "NS\r\nVA 1\r\nx\r\nNF\r\nNF\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nMN\r\n",
    );
}

#[test]
fn stale_items_have_one_winner() {
    on_both(
        &[
            "set k 0 0 1\r\nx\r\n",
            "md k I T30\r\n",
            "mg k v t\r\n",
            "mg k v\r\n",
            "get k\r\n",
            "ms k 1\r\ny\r\n",
            "mg k v\r\n",
        ],
        "STORED\r\nHD\r\nVA 1 t30 X W\r\nx\r\nVA 1 Z X\r\nx\r\nVALUE k 0 1\r\nx\r\nEND\r\nHD\r\nVA 1\r\ny\r\n",
    );
    on_both(
        &[
            "mg v N30 v t\r\n",
            "mg v N30 v\r\n",
            "get v\r\n",
            "ms v 1 T0\r\nz\r\n",
            "mg v R30 v\r\n",
            "touch v 10\r\n",
            "mg v R30 v\r\n",
            "mg v R30 v\r\n",
        ],
        "VA 0 t30 W\r\n\r\nVA 0 Z\r\n\r\nVALUE v 0 0\r\n\r\nEND\r\nHD\r\nVA 1\r\nz\r\nTOUCHED\r\nVA 1 W\r\nz\r\nVA 1 Z\r\nz\r\n",
    );
}

#[test]
fn times_to_live_of_a_meta_command_apply_in_the_order_in_which_they_come() {
    on_both(
        &[
            "mg a N30 T60 t\r\nmg b t T60 N30\r\nmg c T60 N30 t\r\nmg d N0 T60 t\r\nmg e N30 T0 t\r\n",
            "ma f N30 J5 T60 t v\r\nma g T60 N30 t\r\n",
            "mg a t\r\nmg b t\r\nmg f t\r\nmg g t\r\n",
            "mg a N30 T90 t\r\nmg b t T90 N30\r\nmg b t\r\n",
        ],
        "HD t60 W\r\nHD t-1 W\r\nHD t30 W\r\nHD t60 W\r\nHD t-1 W\r\nVA 1 t60\r\n5\r\nHD t30\r\n\
         HD t60 Z\r\nHD t30 Z\r\nHD t60\r\nHD t30\r\nHD t90 Z\r\nHD t30 Z\r\nHD t90 Z\r\n",
    );
    let sets: String = ["a", "b", "c", "d"].map(|key| format!("set {key} 0 50 1\r\nx\r\n")).concat();
    on_both(
        &[&sets, "mg a R60 T100\r\nmg b T100 R60\r\nmg c R40 T10\r\nmg d T10 R40\r\n"],
        &format!("{}HD W\r\nHD\r\nHD\r\nHD W\r\n", "STORED\r\n".repeat(4)),
    );
}

#[test]
fn a_number_that_grew_is_a_new_item_that_nobody_has_read() {
    on_both(
        &[
            "ms k 1 T100\r\n8\r\nmg k\r\n",
            "ma k v t T50\r\nmg k h t\r\n",
            "ma k v T70 t\r\nmg k h t\r\n",
            "mg k h\r\nma k v MD\r\nmg k h v\r\n",
        ],
        "HD\r\nHD\r\nVA 1 t100\r\n9\r\nHD h1 t50\r\nVA 2 t70\r\n10\r\nHD h0 t70\r\n\
         HD h1\r\nVA 1\r\n9\r\nVA 2 h1\r\n9 \r\n",
    );
}

#[test]
fn a_half_sent_value_stays_what_it_was() {
    for size in [5_000, 100_000, 900_000] {
        for server in Server::both() {
            let (mut reader, mut writer) = (Client::new(), Client::new());
            let old = vec![b'o'; size];
            writer.ask(&server, set("k", &old));
            server.push_out();
            reader.takes = false;
            reader.send(&server, b"get k\r\nget k\r\n");
            while !reader.owed.is_empty() {
                reader.deliver(&server, 0, true);
            }
            reader.take(&server, size / 3);
            for _ in 0..20 {
                assert_eq!(writer.say(&server, set("k", &vec![b'n'; size])), "STORED\r\n");
                server.push_out();
            }
            writer.ask(&server, "delete k\r\nflush_all\r\n");
            for number in 0..60 {
                writer.ask(&server, set(&format!("filler {number}").replace(' ', "-"), &vec![b'f'; size]));
            }
            reader.settle(&server);
            let once = [value("k", &old), b"END\r\n".to_vec()].concat();
            assert!(reader.got.starts_with(&once), "{size} bytes");
            let rest = &reader.got[once.len()..];
            assert!(rest == once || rest == b"END\r\n", "the second get is whole as well");
        }
    }
}

#[test]
fn a_peer_that_does_not_read_pins_little() {
    let server = Server::ssd();
    let mut setter = Client::new();
    for number in 0..40 {
        setter.ask(&server, set(&format!("k{number}"), &vec![b'x'; 300_000]));
    }
    for (pushed, count) in [(false, 300), (false, 10_000), (true, 300), (true, 10_000)] {
        if pushed {
            server.push_out();
        }
        let mut client = Client::new();
        client.takes = false;
        let gets: String = (0..count).map(|number| format!("get k{}\r\n", number % 40)).collect();
        client.send(&server, gets.as_bytes());
        for _ in 0..1000 {
            while !client.owed.is_empty() {
                client.deliver(&server, 0, true);
            }
            client.retry(&server);
        }
        let (waiting, held) = (client.session.out.bytes(), client.session.memory_bytes());
        assert!(waiting > 256 << 10 && waiting < 8 << 20, "{waiting} bytes wait to be sent");
        assert!(held < 8 << 20, "{held} bytes are held");
        if count > 300 {
            assert!(!client.inbox.is_empty(), "the rest of its requests are not even read");
            continue;
        }
        client.settle(&server);
        let whole =
            |number| [value(&format!("k{number}"), &vec![b'x'; 300_000]), b"END\r\n".to_vec()].concat();
        let expected: Vec<u8> = (0..count).flat_map(|number| whole(number % 40)).collect();
        assert!(client.got == expected, "in the end it gets everything: {} bytes", client.got.len());
    }
}

#[test]
fn an_item_on_the_ssd_counts_as_a_hit() {
    for server in Server::both() {
        let mut client = Client::new();
        client.ask(&server, "set k 0 0 1\r\n1\r\n");
        server.push_out();
        client.ask(&server, "get k nope\r\n");
        server.push_out();
        client.ask(&server, "incr k 1\r\n");
        server.push_out();
        client.ask(&server, "touch k 0\r\ntouch nope 0\r\ngat 0 k\r\n");
        server.push_out();
        client.ask(&server, "delete k\r\ndelete k\r\n");
        let totals = server.shared.totals();
        assert_eq!((totals.cmd_get, totals.get_hits, totals.get_misses), (3, 2, 1));
        assert_eq!((totals.touch_hits, totals.touch_misses, totals.cmd_touch), (2, 1, 3));
        assert_eq!((totals.incr_hits, totals.delete_hits, totals.delete_misses), (1, 1, 1));
    }
}

#[test]
fn listings_that_are_not_allowed_are_refused() {
    for (args, expected) in [
        (&[][..], "OK\r\nEND\r\nOK\r\nEN\r\n"),
        (&["-X"][..], "ERROR metadump not allowed\r\nERROR key dump not allowed\r\n"),
        (
            &["-o", "no_lru_crawler"][..],
            "CLIENT_ERROR lru crawler disabled\r\nCLIENT_ERROR lru crawler disabled\r\n",
        ),
    ] {
        let server = Server::start(args, 0);
        let dumps = "lru_crawler metadump all\r\nlru_crawler mgdump all\r\n";
        assert_eq!(Client::new().say(&server, dumps), expected);
    }
}

#[test]
fn keys_are_listed_with_what_is_known_of_their_items() {
    for on_ssd in [false, true] {
        let server = Server::start(&[], if on_ssd { 8 } else { 0 });
        let mut client = Client::new();
        client.ask(&server, "set a 0 0 1\r\nx\r\nset b%c 5 100 3\r\nxyz\r\nms YQA= 2 b\r\nhi\r\n");
        client.ask(&server, "mg a t\r\nget a\r\n");
        if on_ssd {
            server.push_out();
        }
        let class = if on_ssd { 2 } else { 1 };
        let listed = client.say(&server, "lru_crawler metadump all\r\n");
        let mut lines: Vec<&str> = listed.strip_prefix("OK\r\n").expect("OK").split_inclusive('\n').collect();
        assert_eq!(lines.pop(), Some("END\r\n"));
        lines.sort_unstable();
        let [a, binary, b] = lines[..] else { panic!("{listed}") };
        assert!(a.starts_with("key=a exp=-1 la="), "{a}");
        assert!(a.ends_with(&format!(" fetch=yes cls={class} size=34\n")), "{a}");
        assert!(binary.starts_with("key=a%00 exp=-1"), "{binary}");
        assert!(b.starts_with("key=b%25c exp=1") && b.contains(" fetch=no "), "{b}");
        let gets = client.say(&server, "lru_crawler mgdump hash\r\n");
        for line in ["mg a\r\n", "mg YQA= b\r\n", "mg b%c\r\n"] {
            assert!(gets.contains(line), "{gets}");
        }
        assert!(gets.starts_with("OK\r\n") && gets.ends_with("EN\r\n"));
        let other = if on_ssd { "1" } else { "2" };
        assert!(!client.say(&server, format!("lru_crawler metadump {other}\r\n")).contains("key=a "));
        assert_eq!(client.say(&server, "lru_crawler metadump 0\r\n"), "BADCLASS invalid class id\r\n");
    }
}
