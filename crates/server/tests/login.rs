//! Connections that have to authenticate: what they are answered, byte for byte, on both wires; that nothing reaches
//! the store before; what each role may do; that answers wait and hold up nobody else.

mod support;
#[path = "../../protocol/tests/support/mod.rs"]
mod wire;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use larder_server::session::Wait;
use support::{Client, Random, Server};
use wire::{answer, corpus, packet};

/// A file of users, removed with this value.
struct Users(PathBuf);

impl Users {
    fn new(name: &str, text: &str) -> Users {
        let path = std::env::temp_dir().join(format!("larder-users-{name}-{}", std::process::id()));
        fs::write(&path, text).expect("the temporary directory can be written");
        Users(path)
    }

    /// A server with these users, and with SASL.
    fn server(&self, ssd_segments: u64) -> Server {
        let path = self.0.to_str().expect("a path of text");
        Server::start(&["-m", "64", "-Y", path, "-S", "-A"], ssd_segments)
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const USERS: &str = "foo:bar\n[write app%3A]\nweb:p q:r\n[read]\nseer:see\n[write]\npen:ink\n";

const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated\r\n";
const FAILURE: &str = "CLIENT_ERROR authentication failure\r\n";
const DENIED: &str = "CLIENT_ERROR permission denied\r\n";

fn login(user: &str, password: &str) -> String {
    format!("set any 0 0 {}\r\n{user} {password}\r\n", user.len() + password.len() + 1)
}

/// A text connection of this user.
fn client_of(server: &Server, user: &str, password: &str) -> Client {
    let mut client = Client::to(server);
    assert_eq!(client.say(server, login(user, password)), "STORED\r\n", "{user}");
    client
}

fn plain(user: &str, password: &str) -> Vec<u8> {
    packet(0x21, b"PLAIN", &[], format!("\0{user}\0{password}").as_bytes(), 0)
}

fn count(server: &Server, name: &str) -> u64 {
    let mut admin = client_of(server, "foo", "bar");
    ["stats\r\n", "stats larder\r\n"]
        .iter()
        .find_map(|asked| {
            let said = admin.say(server, asked);
            let line = said.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
            line.map(|number| number.parse().expect("a number"))
        })
        .expect("a statistic")
}

#[test]
fn a_text_connection_is_answered_as_memcached_answers_it() {
    let users = Users::new("text", USERS);
    let server = users.server(0);
    let mut client = Client::to(&server);
    for (asked, answered) in [
        ("set foo 0 0 2\r\nhi\r\n", "CLIENT_ERROR bad authentication token format\r\n"),
        ("get foo\r\n", UNAUTHENTICATED),
        ("version\r\nmn\r\n", "CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR unauthenticated\r\n"),
        ("set foo 0 0 7\r\nfoo bab\r\n", FAILURE),
        ("set foo 0 0 7 noreply\r\nfoo bab\r\n", FAILURE),
        ("ms foo 7\r\nfoo bar\r\n", "CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR unauthenticated\r\n"),
        (
            "set foo 0 0 6\r\nfoo bar\r\nget foo\r\n",
            "CLIENT_ERROR bad command line termination\r\nCLIENT_ERROR unauthenticated\r\nCLIENT_ERROR unauthenticated\r\n",
        ),
        ("quit\r\n", UNAUTHENTICATED),
        ("set foo 0 0 7\r\nfoo bar\r\n", "STORED\r\n"),
        ("set foo 0 0 2\r\nhi\r\nget foo\r\n", "STORED\r\nVALUE foo 0 2\r\nhi\r\nEND\r\n"),
        ("set foo 0 0 7\r\nfoo bab\r\nget foo\r\n", "STORED\r\nVALUE foo 0 7\r\nfoo bab\r\nEND\r\n"),
    ] {
        assert_eq!(client.say(&server, asked), answered, "{asked:?}");
    }
    assert!(!client.session.is_over());
    let long = format!("set k 0 0 3000\r\n{}\r\nget a\r\n", "x ".repeat(1500));
    let said = Client::to(&server).say(&server, &long);
    assert_eq!(said, format!("CLIENT_ERROR auth token too long\r\n{UNAUTHENTICATED}"));
    let mut client = Client::to(&server);
    assert_eq!(client.say(&server, "x".repeat(3000)), "");
    assert!(client.session.is_over(), "that is no login");
}

#[test]
fn a_binary_connection_is_answered_as_memcached_answers_it() {
    let users = Users::new("binary", USERS);
    let server = users.server(0);
    let said = |opcode, status, words: &str| answer(opcode, status, 0, b"", b"", words.as_bytes());
    let mut client = Client::to(&server);
    let mut ask = |bytes: Vec<u8>| client.ask(&server, bytes);
    assert_eq!(ask(packet(0x20, b"", b"", b"", 0)), said(0x20, 0, "PLAIN"));
    assert_eq!(ask(packet(0x0b, b"", b"", b"", 0)), said(0x0b, 0, "1.6.45"));
    assert_eq!(ask(plain("foo", "bab")), said(0x21, 0x20, "Auth failure."));
    assert_eq!(ask(packet(0x21, b"CRAM-MD5", b"", b"", 0)), said(0x21, 0x20, "Auth failure."));
    assert_eq!(ask(packet(0x22, b"PLAIN", b"", b"\0foo\0bar", 0)), said(0x22, 0x20, "Auth failure."));
    assert_eq!(ask(packet(0x21, b"PLAIN", b"", b"", 0)), said(0x21, 0x21, ""));
    assert_eq!(ask(packet(0x22, b"PLAIN", b"", b"\0foo\0bar", 0)), said(0x22, 0, "Authenticated"));
    let (stored, noop) = (packet(0x11, b"k", &[0; 8], b"v", 0), packet(0x0a, b"", b"", b"", 0));
    assert_eq!(ask([stored, noop.clone()].concat()), said(0x0a, 0, ""));
    assert_eq!(ask(plain("foo", "bar")), said(0x21, 0, "Authenticated"), "once more");
    assert_eq!(ask(plain("foo", "no")), said(0x21, 0x20, "Auth failure."));
    assert_eq!(ask(noop), said(0x0a, 0x20, "Auth failure."), "what was given is taken back");
    assert!(client.session.is_over());
    let mut client = Client::to(&server);
    let asked = [packet(0x09, b"k", b"", b"", 0), plain("foo", "bar")].concat();
    assert_eq!(client.ask(&server, asked), said(0x09, 0x20, "Auth failure."), "quiet or not");
    assert!(client.session.is_over());
}

#[test]
fn without_sasl_there_is_no_binary_wire_beside_users() {
    let users = Users::new("ascii", USERS);
    let server = Server::start(&["-Y", users.0.to_str().expect("text")], 0);
    let mut client = Client::to(&server);
    let said = client.say(&server, [plain("foo", "bar"), b"\n".to_vec()].concat());
    assert_eq!(said, UNAUTHENTICATED);
    assert_eq!(client.say(&server, login("foo", "bar")), "STORED\r\n");
}

#[test]
fn without_users_sasl_is_unknown_and_nothing_is_asked() {
    let server = Server::ram();
    let mut client = Client::new();
    let unknown = answer(0x21, 0x81, 0, b"", b"", b"Unknown command");
    assert_eq!(client.ask(&server, plain("foo", "bar")), unknown);
    assert_eq!(client.ask(&server, packet(0x0a, b"", b"", b"", 0)), answer(0x0a, 0, 0, b"", b"", b""));
}

#[test]
fn a_file_that_is_not_loaded_lets_nobody_in() {
    let users = Users::new("unloaded", USERS);
    let server = users.server(0);
    let auth = server.shared.auth.as_ref().expect("there are users");
    fs::write(&users.0, "broken").expect("the file can be written");
    assert!(auth.load().expect_err("no user").contains("line 1"));
    client_of(&server, "foo", "bar");
    fs::write(&users.0, "new:user\n").expect("the file can be written");
    let mut before = client_of(&server, "foo", "bar");
    assert_eq!(auth.load().expect("a valid file").users, 1);
    client_of(&server, "new", "user");
    assert_eq!(Client::to(&server).say(&server, login("foo", "bar")), FAILURE);
    assert_eq!(before.say(&server, "mn\r\n"), "MN\r\n", "who is in stays in, as in memcached");
    let empty = larder_server::auth::Auth::new(&users.0);
    assert!(empty.check(b"new", b"user").is_none());
}

#[test]
fn no_cut_of_a_login_matters() {
    let users = Users::new("cuts", USERS);
    let server = users.server(0);
    let text = format!("get a\r\n{}get a\r\nset a 0 0 1\r\nx\r\nget a\r\ndelete a\r\n", login("foo", "bar"));
    let asked =
        [packet(0x20, b"", b"", b"", 0), plain("foo", "bar"), packet(0x0a, b"", b"", b"", 0)].concat();
    for sent in [text.into_bytes(), asked] {
        let whole = Client::to(&server).ask(&server, &sent);
        for cut in 1..sent.len() {
            let mut client = Client::to(&server);
            let mut said = client.ask(&server, &sent[..cut]);
            said.extend(client.ask(&server, &sent[cut..]));
            assert_eq!(said, whole, "cut at {cut}");
        }
        let mut client = Client::to(&server);
        let said: Vec<u8> = sent.chunks(1).flat_map(|byte| client.ask(&server, byte)).collect();
        assert_eq!(said, whole, "byte by byte");
    }
}

/// Figures that would change if a request reached the store, or another connection.
fn traces(server: &Server) -> Vec<u64> {
    let totals = server.shared.lifetime();
    let stats = server.shared.store.stats();
    vec![
        totals.cmd_get,
        totals.cmd_set,
        totals.cmd_touch,
        totals.cmd_flush,
        totals.cmd_meta,
        totals.total_items,
        totals.delete_misses + totals.incr_misses + totals.decr_misses + totals.cas_misses,
        totals.store_too_large + totals.store_no_memory,
        stats.ram_items + stats.ssd_items,
        stats.ram_segments_reserved,
        u64::from(server.shared.logs(1)),
        u64::from(server.shared.stopping.load(std::sync::atomic::Ordering::Relaxed)),
        server.shared.store.memory_limit_bytes(),
    ]
}

#[test]
fn no_bytes_reach_the_store_before_authentication() {
    let users = Users::new("blind", USERS);
    let server = users.server(2);
    let before = traces(&server);
    let mut random = Random(0x10c4_ed00);
    let pieces: Vec<Vec<u8>> = corpus::all()
        .into_iter()
        .chain([b"set k 0 0 200000\r\n".to_vec(), b"shutdown\r\n".to_vec(), b"cache_memlimit 8\r\n".to_vec()])
        .chain([packet(0x01, b"key", &[0; 8], &[b'v'; 200_000], 0), b"flush_all\r\nverbosity 3\r\n".to_vec()])
        .chain([b"set k 0 0 7\r\nfoo baz\r\n".to_vec(), plain("foo", "baz"), packet(0x20, b"", b"", b"", 0)])
        .collect();
    let mut sent = 0;
    for _ in 0..4000 {
        let mut client = Client::to(&server);
        for _ in 0..1 + random.below(6) {
            let mut bytes = pieces[random.below(pieces.len())].clone();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes[at] = random.next() as u8,
                    1 => drop(bytes.splice(at..at, [b"\r\n"[random.below(2)]])),
                    _ => bytes.truncate(at + 1),
                }
            }
            client.send(&server, &bytes);
            client.settle(&server);
            sent += bytes.len();
            assert!(
                client.session.memory_bytes() < 300 << 10,
                "{} bytes held",
                client.session.memory_bytes()
            );
        }
        assert!(client.owed.is_empty(), "nothing is read from the SSD");
    }
    assert_eq!(traces(&server), before, "{sent} bytes left a trace");
    assert!(count(&server, "auth_errors") > 100, "logins were among them");
    let mut client = client_of(&server, "foo", "bar");
    assert_eq!(client.say(&server, "get k\r\n"), "END\r\n");
    assert_ne!(traces(&server), before, "the figures show a single get");
}

#[test]
fn each_role_may_do_its_part_on_each_wire() {
    let users = Users::new("roles", USERS);
    for server in [users.server(0), users.server(support::SSD_SEGMENTS)] {
        let mut admin = client_of(&server, "foo", "bar");
        let stored = "STORED\r\n".repeat(3);
        let sets = "set app:a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\nset n 0 0 1\r\n1\r\n";
        assert_eq!(admin.say(&server, sets), stored);
        server.push_out();
        let mut seer = client_of(&server, "seer", "see");
        let (get, hit) = ("get b\r\n", "VALUE b 0 1\r\n1\r\nEND\r\n");
        for (asked, answered) in [
            (get, hit.to_string()),
            ("set b 0 0 1\r\n2\r\nget b\r\n", format!("{DENIED}{hit}")),
            ("set b 0 0 1 noreply\r\n2\r\nget b\r\n", hit.to_string()),
            ("ms b 1 q\r\n2\r\nmn\r\n", format!("{DENIED}MN\r\n")),
            ("get b\r\nincr n 1\r\nget b\r\n", format!("{hit}{DENIED}{hit}")),
            ("delete b\r\nmd b q\r\nma n\r\ntouch b 1\r\ngat 1 b\r\n", DENIED.repeat(5)),
            ("flush_all\r\nshutdown\r\nverbosity 1\r\nstats reset\r\n", DENIED.repeat(4)),
            ("stats cachedump 1 1\r\nlru_crawler metadump all\r\n", DENIED.repeat(2)),
            ("nonsense\r\nversion\r\n", "ERROR\r\nVERSION 1.6.45\r\n".to_string()),
        ] {
            assert_eq!(seer.say(&server, asked), answered, "{asked:?}");
        }
        assert!(seer.say(&server, "stats\r\n").ends_with("END\r\n"));
        let large = [b"set b 0 0 300000\r\n", &[b'x'; 300_000][..], b"\r\nget b\r\n"].concat();
        assert_eq!(seer.say(&server, large), format!("{DENIED}{hit}"), "its value is skipped");
        let mut web = client_of(&server, "web", "p q:r");
        for (asked, answered) in [
            ("get app:a app:b\r\n", "VALUE app:a 0 1\r\n1\r\nEND\r\n"),
            ("get app:a b\r\nget app\r\n", &DENIED.repeat(2)),
            ("set app:c 0 0 1\r\n3\r\nset c 0 0 1\r\n3\r\n", &format!("STORED\r\n{DENIED}")),
            ("flush_all\r\nstats\r\n", &DENIED.repeat(2)),
        ] {
            assert_eq!(web.say(&server, asked), answered, "{asked:?}");
        }
        assert_eq!(
            client_of(&server, "pen", "ink").say(&server, "flush_all\r\ndelete n\r\n"),
            format!("{DENIED}DELETED\r\n")
        );
        let mut binary = Client::to(&server);
        binary.ask(&server, plain("seer", "see"));
        let quiet_set = packet(0x11, b"b", &[0; 8], b"9", 0);
        assert_eq!(binary.ask(&server, &quiet_set), answer(0x11, 0x20, 0, b"", b"", b"Auth failure."));
        let found = binary.ask(&server, packet(0x00, b"b", b"", b"", 0));
        assert!(found.ends_with(b"1") && found[7] == 0, "{}", found.escape_ascii());
        assert_eq!(binary.ask(&server, packet(0x08, b"", b"", b"", 0))[7], 0x20);
        assert_eq!(binary.ask(&server, plain("pen", "ink"))[7], 0, "another user");
        assert_eq!(binary.ask(&server, [quiet_set, packet(0x0a, b"", b"", b"", 0)].concat())[1], 0x0a);
        assert_eq!(count(&server, "requests_denied"), 24);
    }
}

#[test]
fn logins_are_counted() {
    let users = Users::new("counts", USERS);
    let server = users.server(0);
    assert_eq!(server.shared.lifetime().auth_cmds, 0);
    let mut client = Client::to(&server);
    client.say(&server, "get a\r\nset k 0 0 2\r\nhi\r\n");
    client.say(&server, login("foo", "no"));
    client.say(&server, login("foo", "bar"));
    Client::to(&server).ask(&server, plain("nobody", "x"));
    let totals = server.shared.lifetime();
    assert_eq!((totals.auth_cmds, totals.auth_errors), (3, 2), "what is no login is not counted");
    assert_eq!((count(&server, "auth_cmds"), count(&server, "auth_errors")), (4, 2));
}

#[test]
fn a_refusal_waits_and_holds_up_what_its_own_peer_sends() {
    let users = Users::new("wait", USERS);
    let server = users.server(0);
    let mut client = Client::to(&server);
    client.send(&server, format!("{}{}get a\r\n", login("foo", "no"), login("foo", "bar")).as_bytes());
    assert_eq!((client.session.wait(), client.got.len()), (Wait::Login, 0));
    assert!(!client.session.wants_input() && !client.session.is_over());
    client.retry(&server);
    assert_eq!((client.session.wait(), client.got.len()), (Wait::Login, 0), "its time has not come");
    let mut other = client_of(&server, "foo", "bar");
    assert_eq!(other.say(&server, "mn\r\n"), "MN\r\n", "others are served");
    assert_eq!(client.got.len(), 0);
    client.settle(&server);
    let said = String::from_utf8(std::mem::take(&mut client.got)).expect("text");
    assert_eq!(said, format!("{FAILURE}STORED\r\nEND\r\n"));
}

#[test]
fn a_reader_leaves_the_lease_of_a_stale_item_to_a_writer() {
    let users = Users::new("lease", USERS);
    for server in [users.server(0), users.server(support::SSD_SEGMENTS)] {
        let [mut seer, mut pen] =
            [("seer", "see"), ("pen", "ink")].map(|(user, password)| client_of(&server, user, password));
        for key in ["one", "two"] {
            assert_eq!(pen.say(&server, format!("ms {key} 1\r\n1\r\nmd {key} I\r\n")), "HD\r\nHD\r\n");
        }
        server.push_out();
        for _ in 0..3 {
            assert_eq!(seer.say(&server, "mg one v\r\nmg two s\r\n"), "VA 1 Z X\r\n1\r\nHD s1 Z X\r\n");
        }
        assert_eq!(pen.say(&server, "mg one v\r\nmg two s\r\n"), "VA 1 X W\r\n1\r\nHD s1 X W\r\n");
        assert_eq!(pen.say(&server, "mg one v\r\nmg two s\r\n"), "VA 1 Z X\r\n1\r\nHD s1 Z X\r\n");
    }
}

#[test]
fn a_peer_that_does_not_log_in_is_late_and_a_login_in_time_is_answered() {
    let users = Users::new("late", USERS);
    let server = users.server(0);
    let limit = Duration::from_secs(10);
    let is_late = |client: &mut Client, seconds: u64| {
        let now = server.instant() + Duration::from_secs(seconds);
        client.session.is_late(now, limit)
    };
    let mut inside = client_of(&server, "pen", "ink");
    assert!(!is_late(&mut inside, 0) && !is_late(&mut inside, 1000), "this one is in");
    for sent in ["", "set any 0 0 7\r\nfoo", "get a\r\nversion\r\n", "\u{1}"] {
        let mut client = Client::to(&server);
        client.send(&server, sent.as_bytes());
        client.settle(&server);
        assert!(!is_late(&mut client, 0) && !is_late(&mut client, 9) && is_late(&mut client, 10), "{sent:?}");
    }
    let mut client = Client::to(&server);
    assert!(!is_late(&mut client, 0));
    server.wait(Duration::from_secs(9));
    client.send(&server, login("foo", "wrong").repeat(30).as_bytes());
    assert!(!is_late(&mut client, 5), "it came in time and is answered first");
    server.wait(Duration::from_secs(2));
    client.settle(&server);
    assert!(is_late(&mut client, 0), "those behind it came late, whatever they say");
}

#[test]
fn a_login_that_fails_begins_the_time_again_for_a_peer_that_was_in_alone() {
    let users = Users::new("again", USERS);
    let server = users.server(0);
    let limit = Duration::from_secs(10);
    let is_late = |client: &mut Client| client.session.is_late(server.instant(), limit);
    let [mut inside, mut outside] = [true, false].map(|is_in| {
        let mut client = Client::to(&server);
        assert!(!is_late(&mut client));
        let user = if is_in { plain("pen", "ink") } else { plain("pen", "lead") };
        client.send(&server, &user);
        server.wait(Duration::from_secs(1));
        client.settle(&server);
        client
    });
    server.wait(Duration::from_secs(8));
    for client in [&mut outside, &mut inside] {
        assert!(!is_late(client));
        client.send(&server, &plain("pen", "lead"));
        assert!(!is_late(client));
        server.wait(Duration::from_secs(2));
        client.settle(&server);
    }
    assert!(is_late(&mut outside) && !is_late(&mut inside));
    server.wait(limit);
    assert!(is_late(&mut inside));
}
