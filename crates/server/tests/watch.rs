//! `watch`: what a connection is shown of what the others do, in memcached's words.

mod support;

use support::{Client, Server, set};

/// A connection that watches some classes.
fn watcher(server: &Server, classes: &str) -> Client {
    let mut watcher = Client::to(server);
    assert_eq!(watcher.say(server, format!("watch{classes}\r\n")), "OK\r\n");
    watcher
}

/// The lines that a watcher has been sent since the last call, without their times and numbers.
fn shown(server: &Server, watcher: &mut Client) -> Vec<String> {
    server.shared.show_departed(server.now());
    loop {
        let before = watcher.got.len();
        watcher.session.announce();
        watcher.take(server, usize::MAX);
        if watcher.got.len() == before {
            break;
        }
    }
    let text = String::from_utf8(std::mem::take(&mut watcher.got)).expect("lines are text");
    let line = |line: &str| match line.split_once(" type=") {
        Some((when, what)) => {
            assert!(when.starts_with("ts=") && when.contains(" gid="), "{line}");
            what.to_string()
        }
        None => line.to_string(),
    };
    text.lines().map(line).collect()
}

#[test]
fn reads_are_shown_to_those_that_watch_fetchers() {
    for server in Server::both() {
        let mut client = Client::to(&server);
        client.ask(&server, set("here", b"abc"));
        server.push_out();
        let class = if server.device.is_some() { 2 } else { 1 };
        let mut watchers = ["", " fetchers", " fetchers mutations"].map(|which| watcher(&server, which));
        client.ask(&server, "get here nope\r\nmg here\r\n");
        let found = format!("item_get key=here status=found clsid={class} cfd=0 size=3");
        let missed = "item_get key=nope status=not_found clsid=0 cfd=0 size=0";
        let expected = [&found, &found, missed].map(String::from);
        for watcher in &mut watchers {
            let mut lines = shown(&server, watcher);
            // Reads from the SSD end later.
            lines.sort_unstable();
            assert_eq!(lines, expected);
        }
    }
}

#[test]
fn every_command_that_looks_for_an_item_shows_it_once() {
    let server = Server::ram();
    let mut client = Client::to(&server);
    let mut fetchers = watcher(&server, " fetchers");
    client.ask(&server, set("n", b"10"));
    assert_eq!(shown(&server, &mut fetchers), ["item_get key=n status=not_found clsid=0 cfd=0 size=0"]);
    for request in [
        "gat 0 n",
        "touch n 0",
        "me n",
        "incr n 1",
        "ma n",
        "decr n 1",
        "mg n v",
        "md n I",
        "gets n",
        "delete n",
    ] {
        client.ask(&server, format!("{request}\r\n"));
        let lines = shown(&server, &mut fetchers);
        assert_eq!(lines, ["item_get key=n status=found clsid=1 cfd=0 size=2"], "{request}");
    }
    for request in ["gat 0 n", "touch n 0", "me n", "incr n 1", "ma n", "md n", "delete n", "mg n N30"] {
        client.ask(&server, format!("{request}\r\n"));
        let lines = shown(&server, &mut fetchers);
        assert_eq!(lines, ["item_get key=n status=not_found clsid=0 cfd=0 size=0"], "{request}");
    }
}

#[test]
fn stores_are_shown_with_what_came_of_them() {
    let server = Server::ram();
    let mut client = Client::to(&server);
    let mut mutations = watcher(&server, " mutations");
    for (request, expected) in [
        ("set k 0 0 3\r\nabc", "stored cmd=set ttl=0 clsid=1 cfd=0 size=3"),
        ("set k 0 100 3\r\nabc", "stored cmd=set ttl=100 clsid=1 cfd=0 size=3"),
        ("add k 0 0 1\r\nx", "not_stored cmd=add ttl=0 clsid=0 cfd=0 size=1"),
        ("cas k 0 0 1 1\r\nx", "exists cmd=cas ttl=0 clsid=0 cfd=0 size=1"),
        ("append k 0 0 1\r\nx", "stored cmd=append ttl=0 clsid=1 cfd=0 size=4"),
        ("prepend k 0 0 1\r\nx", "stored cmd=prepend ttl=0 clsid=1 cfd=0 size=5"),
        ("ms k 2 T9\r\nab", "stored cmd=set ttl=9 clsid=1 cfd=0 size=2"),
        ("delete k\r\nreplace k 0 0 1\r\nx", "not_stored cmd=replace ttl=0 clsid=0 cfd=0 size=1"),
        ("cas k 0 0 1 1\r\nx", "not_found cmd=cas ttl=0 clsid=0 cfd=0 size=1"),
        ("ma k N0 J12", "stored cmd=add ttl=0 clsid=1 cfd=0 size=2"),
    ] {
        client.ask(&server, format!("{request}\r\n"));
        let expected = format!("item_store key=k status={expected}");
        assert_eq!(shown(&server, &mut mutations), [expected], "{request}");
    }
    client.ask(&server, "incr k 1\r\ndecr k 1\r\ntouch k 0\r\nget k\r\ndelete k\r\n");
    assert_eq!(shown(&server, &mut mutations), Vec::<String>::new());
    for bytes in [70_000, 600_000] {
        client.ask(&server, set("large", &vec![b'x'; bytes]));
        let expected = format!("item_store key=large status=stored cmd=set ttl=0 clsid=1 cfd=0 size={bytes}");
        assert_eq!(shown(&server, &mut mutations), [expected]);
    }
    client.ask(&server, set("large", &vec![b'x'; 2_000_000]));
    let refused = "item_store key=large status=too_large cmd=set ttl=0 clsid=0 cfd=0 size=2000000";
    assert_eq!(shown(&server, &mut mutations), [refused]);
}

#[test]
fn deletes_of_items_that_were_there_are_shown_once() {
    for server in Server::both() {
        let mut client = Client::to(&server);
        client.ask(&server, [set("a", b"abc"), set("b", b"abcd"), set("c", b"")].concat());
        server.push_out();
        let class = if server.device.is_some() { 2 } else { 1 };
        let mut deletions = watcher(&server, " deletions");
        client.ask(&server, "delete a\r\ndelete a\r\nmd b\r\nmd b q\r\nmd c I\r\nget c\r\nmn\r\n");
        let expected = [
            format!("deleted key=a cmd=delete clsid={class} size=3"),
            format!("deleted key=b cmd=md clsid={class} size=4"),
        ];
        assert_eq!(shown(&server, &mut deletions), expected);
    }
}

#[test]
fn items_that_leave_ram_are_shown_with_where_they_went() {
    for server in Server::both() {
        let mut client = Client::to(&server);
        client.ask(&server, "set a%b 0 100 3\r\nabc\r\nset b 0 0 1\r\nx\r\nget a%b\r\n");
        let mut evictions = watcher(&server, " evictions");
        server.pass(7);
        while !server.shared.store.evict_all(server.now()) {
            server.write_all();
        }
        let mut lines = shown(&server, &mut evictions);
        lines.sort_unstable();
        let (kind, tail) = match server.device.is_some() {
            true => ("extwrite", ["bucket=0"; 2]),
            false => ("eviction", ["size=3", "size=1"]),
        };
        let expected = [
            format!("{kind} key=a%25b fetch=yes ttl=93 la=7 clsid=1 {}", tail[0]),
            format!("{kind} key=b fetch=no ttl=-1 la=7 clsid=1 {}", tail[1]),
        ];
        assert_eq!(lines, expected);
    }
}

#[test]
fn more_departures_at_a_time_than_have_room_are_counted() {
    let server = Server::ram();
    let mut client = Client::to(&server);
    for number in 0..1000 {
        client.ask(&server, set(&format!("k{number}"), b"x"));
    }
    let mut evictions = watcher(&server, " evictions");
    assert!(server.shared.store.evict_all(server.now()));
    assert_eq!(shown(&server, &mut evictions).len(), 256);
    assert_eq!(server.shared.watchers.stats().dropped, 744);
}

#[test]
fn a_watcher_is_shown_events_only_whatever_it_sends() {
    let server = Server::ram();
    let mut watcher = Client::to(&server);
    let got = watcher.say(&server, "watch\r\nget a\r\nbogus\r\n");
    assert_eq!(got, "OK\r\n", "what is behind it is ignored");
    assert_eq!(watcher.say(&server, "version\r\nset a 0 0 1\r\nx\r\n"), "");
    assert!(!watcher.session.is_over() && watcher.session.wants_input());
    assert_eq!(Client::to(&server).say(&server, "get a\r\n"), "END\r\n");
    assert_eq!(shown(&server, &mut watcher).len(), 1);
}

#[test]
fn classes_are_known_and_refusals_are_memcacheds() {
    let server = Server::ram();
    let say = |request: &str| Client::to(&server).say(&server, format!("{request}\r\n"));
    let own = "rawcmds evictions fetchers mutations sysevents connevents deletions";
    assert_eq!(say(&format!("watch {own} proxyreqs proxyevents proxyuser")), "OK\r\n");
    assert_eq!(say("watch foo"), "ERROR\r\n");
    assert_eq!(say("watch noreply"), "");
    assert_eq!(
        say("version\r\nwatch"),
        "VERSION 1.6.45\r\nERROR cannot pipeline other commands before watch\r\n"
    );
    let refusing = Server::start(&["-W"], 0);
    let refused = "CLIENT_ERROR watch commands not allowed\r\n";
    assert_eq!(Client::to(&refusing).say(&refusing, "watch\r\nwatch foo\r\n"), refused.repeat(2));
}

#[test]
fn watchers_are_bounded_in_number_and_memory() {
    let server = Server::ram();
    let mut watchers: Vec<Client> = (0..20).map(|_| watcher(&server, "")).collect();
    let too_many = "WATCHER_TOO_MANY log watcher limit reached\r\n";
    assert_eq!(Client::to(&server).say(&server, "watch\r\n"), too_many);
    let mut client = Client::to(&server);
    for _ in 0..100 {
        client.ask(&server, format!("get {}\r\n", "#".repeat(200)).repeat(100));
    }
    let held: usize = watchers.iter().map(|one| one.session.memory_bytes()).sum();
    assert!(held <= 20 * (257 << 10), "{held}");
    for watcher in &mut watchers {
        let lines = shown(&server, watcher);
        assert!(lines.len() < 10_000, "some are skipped");
    }
    let stats = server.shared.watchers.stats();
    assert_eq!((stats.watchers, stats.lines, stats.sent + stats.skipped), (20, 10_000, 200_000));
    client.ask(&server, "get again\r\n");
    assert!(shown(&server, &mut watchers[0])[0].starts_with("skipped="));
    watchers.clear();
    assert_eq!(server.shared.watchers.stats().watchers, 0);
    let _ = watcher(&server, "");
}

#[test]
fn a_queue_is_taken_from_the_memory_of_connections() {
    let server = Server::start(&["--conn-memory", "1m", "-o", "watcher_logbuf_size=900"], 0);
    let failed = "WATCHER_FAILED failed to add log watcher\r\n";
    assert_eq!(Client::to(&server).say(&server, "watch\r\n"), failed);
    assert_eq!(server.shared.budget.used(), 0);
    let server = Server::start(&["--conn-memory", "1m", "-o", "watcher_logbuf_size=8"], 0);
    let watcher = watcher(&server, "");
    assert!(watcher.session.memory_bytes() >= 8 << 10);
}
