//! What is announced to a connection that has subscribed: every change of a leased key, once, and nothing else.

mod support;

use std::time::{Duration, Instant};

use support::{Client, SSD_SEGMENTS, Server};

/// A connection that has subscribed.
struct Listener {
    client: Client,
    number: String,
}

impl Listener {
    fn new(server: &Server) -> Listener {
        let mut client = Client::to(server);
        let said = client.say(server, "mi\r\n");
        let number = said.strip_prefix("MI ").and_then(|number| number.strip_suffix("\r\n"));
        let number = number.unwrap_or_else(|| panic!("{said}")).to_string();
        Listener { client, number }
    }

    /// Returns what it was told until now.
    fn told(&mut self, server: &Server) -> String {
        let said = self.client.say(server, "mn\r\n");
        said.strip_suffix("MN\r\n").unwrap_or_else(|| panic!("{said}")).to_string()
    }

    /// Leases a key by a connection of its own, with the token 77.
    fn lease(&self, server: &Server, key: &str) {
        let said = Client::to(server).say(server, format!("mg {key} A{}:77\r\n", self.number));
        assert!(said == "HD A\r\n" || said == "EN A\r\n", "{said}");
    }
}

/// A request on the key `k`, with the value that the key has before (none: it does not exist), and whether the
/// request changes it.
const REQUESTS: [(Option<&str>, &str, bool); 53] = [
    (Some("5"), "set k 0 0 1\r\nx\r\n", true),
    (None, "set k 0 0 1\r\nx\r\n", true),
    (Some("5"), "set k 0 0 1 noreply\r\nx\r\n", true),
    (Some("5"), "set k 0 -1 1\r\nx\r\n", true),
    (None, "add k 0 0 1\r\nx\r\n", true),
    (Some("5"), "add k 0 0 1\r\nx\r\n", false),
    (Some("5"), "replace k 0 0 1\r\nx\r\n", true),
    (None, "replace k 0 0 1\r\nx\r\n", false),
    (Some("5"), "append k 0 0 1\r\nx\r\n", true),
    (Some("5"), "prepend k 0 0 1\r\nx\r\n", true),
    (None, "append k 0 0 1\r\nx\r\n", false),
    (Some("5"), "cas k 0 0 1 1\r\nx\r\n", false),
    (Some("5"), "set k 0 0 9999999\r\n", true),
    (Some("5"), "ms k 1\r\nx\r\n", true),
    (Some("5"), "ms k 1 ME\r\nx\r\n", false),
    (None, "ms k 1 MA N60\r\nx\r\n", true),
    (Some("5"), "ms k 1 C1\r\nx\r\n", false),
    (Some("5"), "ms k 1 C1 I\r\nx\r\n", true),
    (Some("5"), "delete k\r\n", true),
    (None, "delete k\r\n", false),
    (Some("5"), "md k\r\n", true),
    (Some("5"), "md k q\r\n", true),
    (Some("5"), "md k I T30\r\n", true),
    (Some("5"), "md k x\r\n", true),
    (Some("5"), "md k C1\r\n", false),
    (Some("5"), "incr k 1\r\n", true),
    (Some("5"), "decr k 1\r\n", true),
    (None, "incr k 1\r\n", false),
    (Some("v"), "incr k 1\r\n", false),
    (Some("5"), "ma k\r\n", true),
    (None, "ma k N0 J5\r\n", true),
    (None, "ma k\r\n", false),
    (None, "ml k L5 P60000\r\n", true),
    (Some("5"), "ml k L5 P60000\r\n", false),
    (Some("5"), "touch k 30\r\n", true),
    (None, "touch k 30\r\n", false),
    (Some("5"), "gat 30 k\r\n", true),
    (Some("5"), "gats 30 x k\r\n", true),
    (None, "gat 30 k\r\n", false),
    (Some("5"), "mg k T30\r\n", true),
    (None, "mg k T30\r\n", false),
    (None, "mg k N30\r\n", true),
    (Some("5"), "mg k N30 v\r\n", false),
    (Some("5"), "get k\r\n", false),
    (Some("5"), "gets k k\r\n", false),
    (Some("5"), "mg k v t c f h l s k\r\n", false),
    (Some("5"), "me k\r\n", false),
    (Some("5"), "set other 0 0 1\r\nx\r\n", false),
    (Some("5"), "version\r\n", false),
    (Some("5"), "cache_memlimit 64\r\n", false),
    (Some("5"), "stats reset\r\n", false),
    (Some("5"), "verbosity 1\r\n", false),
    (Some("5"), "mg k q\r\n", false),
];

#[test]
fn each_command_that_changes_a_leased_key_is_announced_and_no_other() {
    for server in Server::both() {
        for (before, request, changes) in REQUESTS {
            let mut client = Client::to(&server);
            client.say(&server, "delete k\r\n");
            if let Some(value) = before {
                client.say(&server, format!("set k 0 0 1\r\n{value}\r\n"));
            }
            server.push_out();
            let mut listener = Listener::new(&server);
            listener.lease(&server, "k");
            let said = client.say(&server, request);
            let shown = request.escape_debug();
            let wanted = if changes { "IN 77\r\n" } else { "" };
            assert_eq!(listener.told(&server), wanted, "{shown}: {said}");
            // The lease ended with the announcement, or is still there.
            Client::to(&server).say(&server, "set k 0 0 1\r\ny\r\n");
            assert_eq!(listener.told(&server), if changes { "" } else { "IN 77\r\n" }, "{shown}");
        }
    }
}

/// A packet of the binary protocol.
fn packet(opcode: u8, extras: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, opcode, 0, 1, extras.len() as u8, 0, 0, 0, 0, 0, 0];
    bytes.push((1 + extras.len() + value.len()) as u8);
    bytes.extend([0; 12]);
    [&bytes, extras, b"k", value].concat()
}

#[test]
fn commands_of_the_binary_protocol_are_announced_too() {
    let server = Server::ram();
    let counter = [&[0; 7][..], &[1], &[0; 12]].concat();
    for (packet, changes) in [
        (packet(0x01, &[0; 8], b"x"), true),
        (packet(0x11, &[0; 8], b"x"), true),
        (packet(0x02, &[0; 8], b"x"), false),
        (packet(0x0e, &[], b"x"), true),
        (packet(0x05, &counter, b""), true),
        (packet(0x1c, &[0, 0, 0, 9], b""), true),
        (packet(0x1d, &[0, 0, 0, 9], b""), true),
        (packet(0x04, &[], b""), true),
        (packet(0x00, &[], b""), false),
    ] {
        Client::to(&server).say(&server, "set k 0 0 1\r\n5\r\n");
        let mut listener = Listener::new(&server);
        listener.lease(&server, "k");
        Client::to(&server).ask(&server, &packet);
        let wanted = if changes { "IN 77\r\n" } else { "" };
        assert_eq!(listener.told(&server), wanted, "{}", packet.escape_ascii());
    }
}

#[test]
fn a_large_value_is_announced_when_it_is_stored() {
    let server = Server::start(&["-m", "64", "-I", "8m"], SSD_SEGMENTS);
    let mut listener = Listener::new(&server);
    for len in [0, 1, 70_000, 4 << 20] {
        listener.lease(&server, "k");
        let mut client = Client::to(&server);
        let set = support::set("k", &vec![b'v'; len]);
        client.send(&server, &set[..set.len() - 1]);
        assert_eq!(listener.told(&server), "", "{len}");
        client.say(&server, "\n");
        assert_eq!(listener.told(&server), "IN 77\r\n", "{len}");
    }
}

#[test]
fn a_flush_is_announced_as_a_change_of_everything() {
    let server = Server::ram();
    let mut listener = Listener::new(&server);
    listener.lease(&server, "k");
    Client::to(&server).say(&server, "flush_all\r\n");
    assert_eq!(listener.told(&server), "IN *\r\n");
    listener.lease(&server, "k");
    Client::to(&server).say(&server, "flush_all 10\r\n");
    assert_eq!(listener.told(&server), "IN *\r\n", "at once, while it is not due yet");
    let lease = format!("mg k A{}:77\r\n", listener.number);
    assert_eq!(Client::to(&server).say(&server, &lease), "EN\r\n", "nothing is leased until it is due");
    server.pass(11);
    listener.lease(&server, "k");
    Client::to(&server).say(&server, "set k 0 0 1\r\nx\r\n");
    assert_eq!(listener.told(&server), "IN 77\r\n");
}

#[test]
fn an_eviction_and_an_expiry_are_no_changes() {
    let server = Server::ram();
    let mut listener = Listener::new(&server);
    Client::to(&server).say(&server, "set k 0 5 1\r\nx\r\n");
    listener.lease(&server, "k");
    server.pass(10);
    assert_eq!(Client::to(&server).say(&server, "get k\r\n"), "END\r\n");
    assert_eq!(listener.told(&server), "");
    Client::to(&server).say(&server, "set k 0 0 1\r\nx\r\n");
    assert_eq!(listener.told(&server), "IN 77\r\n", "the next change is announced");
}

#[test]
fn a_key_is_leased_to_a_subscription_that_exists_only() {
    let server = Server::ram();
    let mut client = Client::to(&server);
    client.say(&server, "set k 0 0 1\r\nx\r\n");
    assert_eq!(client.say(&server, "mg k v A1:2\r\n"), "VA 1\r\nx\r\n");
    let mut listener = Listener::new(&server);
    let said = listener.client.say(&server, "mi\r\n");
    assert_eq!(said, format!("MI {}\r\n", listener.number), "one subscription a connection");
    let lease = format!("mg k v A{}:2\r\n", listener.number);
    assert_eq!(client.say(&server, &lease), "VA 1 A\r\nx\r\n");
    drop(listener);
    assert_eq!(client.say(&server, &lease), "VA 1\r\nx\r\n");
    let stats = server.shared.leases.stats();
    assert_eq!((stats.subscriptions, stats.leases), (0, 0));
}

#[test]
fn without_memory_for_leases_the_command_is_unknown() {
    let server = Server::start(&["-m", "64", "--lease-memory", "0"], 0);
    assert_eq!(Client::to(&server).say(&server, "mi\r\n"), "ERROR\r\n");
    let server = Server::start(&["-m", "64", "--lease-memory", "1m"], 0);
    let listeners: Vec<_> = (0..8).map(|_| Listener::new(&server)).collect();
    let refused = "SERVER_ERROR too many subscriptions; raise --lease-memory\r\n";
    assert_eq!(Client::to(&server).say(&server, "mi\r\n"), refused);
    drop(listeners);
    Listener::new(&server);
}

#[test]
fn a_peer_that_does_not_read_holds_a_bounded_amount() {
    let server = Server::ram();
    let mut listener = Listener::new(&server);
    listener.client.takes = false;
    let mut client = Client::to(&server);
    for round in 0..40 {
        for key in 0..1_000 {
            client.say(&server, format!("mg k{key} A{}:{}\r\n", listener.number, u64::MAX - key));
            client.say(&server, format!("set k{key} 0 0 1\r\nx\r\n"));
        }
        listener.client.session.announce();
        assert!(listener.client.session.memory_bytes() < 64 << 10, "round {round}");
    }
    listener.client.takes = true;
    let told = listener.told(&server);
    assert!(told.ends_with("IN *\r\n"), "more changed than is remembered one by one");
}

#[test]
fn a_subscription_whose_peer_is_silent_for_a_minute_is_given_up() {
    let server = Server::ram();
    let mut client = Client::to(&server);
    let after = |seconds| Instant::now() + Duration::from_secs(seconds);
    assert!(!client.session.is_unheard(after(1_000)), "it has not subscribed");
    client.say(&server, "mi\r\n");
    assert!(!client.session.is_unheard(after(55)) && client.session.is_unheard(after(65)));
}

#[test]
fn what_was_changed_before_a_noop_is_told_before_its_reply() {
    let server = Server::ram();
    let mut listener = Listener::new(&server);
    for number in 0..300 {
        listener.lease(&server, &format!("k{number}"));
        Client::to(&server).say(&server, format!("set k{number} 0 0 1\r\nx\r\n"));
    }
    let said = listener.client.say(&server, "mn\r\n");
    assert_eq!(said.matches(" 77").count(), 300);
    assert!(said.ends_with(" 77\r\nMN\r\n"));
}
