//! Options do what they say: each that is said to have an effect is read where it has one, and what `-C` and
//! `-D` change can be seen.

mod support;

use std::fs;
use std::path::Path;

use support::{Client, Server};

/// The text of every source file below a folder, but for those that `skipped` names.
fn sources(folder: &Path, skipped: &[&str], text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_string();
        if skipped.contains(&name.as_str()) {
            continue;
        }
        match path.is_dir() {
            true => sources(&path, skipped, text),
            false => text.push_str(&fs::read_to_string(&path).expect("a source file")),
        }
    }
}

fn source_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Whether `text` holds `word` where no longer name does.
fn mentions(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let next = text[at + word.len()..].chars().next();
        !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
    })
}

#[test]
fn every_value_of_the_configuration_is_read_outside_of_it() {
    let resolved = fs::read_to_string(source_folder().join("config/resolved.rs")).expect("the file is there");
    let (_, fields) = resolved.split_once("pub struct Config {").expect("the configuration");
    let (fields, _) = fields.split_once("\n}").expect("its end");
    let fields = fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'));
    let mut elsewhere = String::new();
    sources(&source_folder(), &["config", "config.rs"], &mut elsewhere);
    let unread: Vec<&str> =
        fields.map(|(name, _)| name).filter(|name| !mentions(&elsewhere, &format!(".{name}"))).collect();
    assert!(
        unread.is_empty(),
        "nothing reads {unread:?}: make them do what they say, or list them as ignored"
    );
}

#[test]
fn every_honoured_option_comes_to_something() {
    let config = source_folder().join("config");
    let read = |name: &str| fs::read_to_string(config.join(name)).expect("the file is there");
    let mut rest = read("../config.rs");
    sources(&config, &["option.rs", "options.rs", "words.rs", "help.rs", "show.rs", "tests"], &mut rest);
    let rows = read("options.rs");
    let ids = rows.lines().filter_map(|line| line.trim().strip_prefix("opt(")?.split_once(','));
    let ids: Vec<&str> = ids.map(|(id, _)| id).filter(|id| id.starts_with("Id::")).collect();
    assert!(ids.len() > 30, "{ids:?}");
    for id in ids {
        assert!(mentions(&rest, id), "{id} is said to have an effect, and nothing reads it");
    }
    let rows = read("words.rs");
    let words = rows.lines().filter_map(|line| line.trim().strip_prefix("word(")?.split_once(','));
    let words: Vec<&str> = words.map(|(word, _)| word).filter(|word| word.starts_with('"')).collect();
    assert!(words.len() > 3, "{words:?}");
    for word in words {
        assert!(rest.contains(word), "{word} is said to have an effect, and nothing reads it");
    }
}

#[test]
fn without_cas_uniques_they_read_as_0_and_none_matches() {
    let server = Server::start(&["-C"], 0);
    let mut client = Client::new();
    for (request, answer) in [
        ("set a 0 0 1\r\n1\r\ngets a\r\n", "STORED\r\nVALUE a 0 1 0\r\n1\r\nEND\r\n"),
        ("cas a 0 0 1 0\r\n2\r\n", "EXISTS\r\n"),
        ("cas a 0 0 1 7\r\n2\r\n", "EXISTS\r\n"),
        ("cas nope 0 0 1 7\r\n2\r\n", "NOT_FOUND\r\n"),
        ("mg a c v\r\n", "VA 1 c0\r\n1\r\n"),
        ("ms a 1 c\r\n4\r\n", "HD c0\r\n"),
        ("ms a 1 C9 c\r\n5\r\n", "EX c0\r\n"),
        ("ms a 1 C9 I c\r\n5\r\n", "EX c0\r\n"),
        ("md a C3\r\n", "EX\r\n"),
        ("ma a c v\r\n", "VA 1 c0\r\n5\r\n"),
        ("ma a c v C8\r\n", "EX\r\n"),
        ("gats 0 a\r\n", "VALUE a 0 1 0\r\n5\r\nEND\r\n"),
    ] {
        assert_eq!(client.say(&server, request), answer, "{request:?}");
    }
}

#[test]
fn prefixes_are_counted_once_that_is_turned_on() {
    for server in Server::both() {
        let mut client = Client::new();
        let commands = "set a:b 0 0 1\r\nx\r\nget a:b\r\nget a:c\r\ndelete a:b\r\nget a\r\nincr a:q 1\r\n\
                        touch a:q 0\r\nset a:n 0 0 1\r\n1\r\nincr a:n 1\r\ngat 0 a:n\r\nappend a:n 0 0 1\r\n1\r\n\
                        set x:n 0 0 1\r\n1\r\nadd x:n 0 0 1\r\n1\r\nmg x:n v\r\nms x:m 1\r\n1\r\nmd x:m\r\n\
                        ma x:n\r\ndelete x:none\r\n";
        client.ask(&server, commands);
        assert_eq!(client.say(&server, "stats detail dump\r\n"), "END\r\n", "it is off");
        assert_eq!(client.say(&server, "stats detail on\r\n"), "OK\r\n");
        client.ask(&server, commands);
        server.push_out();
        client.ask(&server, "get x:n x:nope\r\n");
        assert_eq!(client.say(&server, "stats detail off\r\n"), "OK\r\n");
        client.ask(&server, commands);
        let dump = client.say(&server, "stats detail dump\r\n");
        let mut lines: Vec<&str> = dump.split_terminator("\r\n").collect();
        lines.sort_unstable();
        let expected = ["END", "PREFIX a get 3 hit 2 set 3 del 1", "PREFIX x get 2 hit 1 set 2 del 1"];
        assert_eq!(lines, expected);
        assert_eq!(client.say(&server, "stats reset\r\n"), "RESET\r\n");
        assert_eq!(client.say(&server, "stats detail dump\r\n"), "END\r\n");
        let usage = "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
        assert_eq!(client.say(&server, "stats detail\r\n"), usage);
    }
}

#[test]
fn a_prefix_delimiter_starts_the_counting() {
    let server = Server::start(&["-D", "/"], 0);
    let mut client = Client::new();
    client.ask(&server, "set a/b/c 0 0 1\r\nx\r\nget a/x a:y\r\n");
    let dump = client.say(&server, "stats detail dump\r\n");
    assert_eq!(dump, "PREFIX a get 1 hit 0 set 1 del 0\r\nEND\r\n");
    assert!(client.say(&server, "stats settings\r\n").contains("STAT detail_enabled yes\r\n"));
    client.ask(&server, "stats detail off\r\n");
    assert!(client.say(&server, "stats settings\r\n").contains("STAT detail_enabled no\r\n"));
    let server = Server::start(&["-X"], 0);
    assert_eq!(
        Client::new().say(&server, "stats detail on\r\n"),
        "CLIENT_ERROR stats detail not allowed\r\n"
    );
}

/// The answers to `stat` on the binary wire: status, name and value of each packet.
fn stat(client: &mut Client, server: &Server, name: &str) -> Vec<(u8, String, String)> {
    let mut request = vec![0; 24];
    (request[0], request[1]) = (0x80, 0x10);
    request[3] = name.len() as u8;
    request[11] = name.len() as u8;
    request.extend_from_slice(name.as_bytes());
    let answer = client.ask(server, request);
    let mut rest = &answer[..];
    let mut packets = Vec::new();
    while rest.len() >= 24 {
        let (key, body) = (usize::from(rest[3]), u32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        packets.push((rest[7], text(&rest[24..24 + key]), text(&rest[24 + key..24 + body as usize])));
        rest = &rest[24 + body as usize..];
    }
    packets
}

#[test]
fn the_binary_wire_gets_an_answer_to_every_stat() {
    let server = Server::ram();
    let mut client = Client::new();
    let end = || (0, String::new(), String::new());
    let unknown = || vec![(1, String::new(), "Not found".to_string())];
    assert_eq!(stat(&mut client, &server, "nonesuch"), unknown());
    assert_eq!(stat(&mut client, &server, "detail"), unknown());
    assert_eq!(stat(&mut client, &server, "cachedump 1 1"), unknown());
    assert_eq!(stat(&mut client, &server, "cachedump"), unknown());
    assert_eq!(stat(&mut client, &server, "detail on"), [end()]);
    Client::new().ask(&server, "set a:b 0 0 1\r\nx\r\n");
    let dump = "PREFIX a get 0 hit 0 set 1 del 0\r\nEND\r\n".to_string();
    assert_eq!(stat(&mut client, &server, "detail dump"), [(0, "detailed".to_string(), dump), end()]);
    assert_eq!(stat(&mut client, &server, "detail off"), [end()]);
    assert_eq!(stat(&mut client, &server, "reset"), [end()]);
    for group in ["", "settings", "items", "slabs", "sizes"] {
        assert_eq!(stat(&mut client, &server, group).pop(), Some(end()), "{group}");
    }
}
