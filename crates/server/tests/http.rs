//! The HTTP interface without sockets: what is answered, what is refused, and that any bytes end well.

#[path = "../../../fuzz/harness.rs"]
mod harness;
mod support;
#[path = "fuzz/web.rs"]
mod web;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::for_a_while;
use larder_server::config::{Config, HttpOptions};
use larder_server::curves::{Curve, Trial};
use larder_server::http::{Connection, State};
use larder_store::shadow::{Amount, PrefixAmounts, PrefixReport, Quantity, Real, State as SampleState};
use support::{Client, Random, SSD_SEGMENTS, Server};

fn options(args: &[&str]) -> HttpOptions {
    let args = ["larder", "--ssd", "none", "--http", "127.0.0.1"].iter().chain(args);
    Config::from_args(args).expect("valid options").http.expect("it is given")
}

/// The state of a daemon that serves.
fn serving(args: &[&str], server: &Server) -> State {
    let state = State::new(options(args));
    state.serve(Arc::clone(&server.shared));
    state
}

/// What a peer gets that sends these bytes and takes everything, and whether the connection stays open.
fn exchange(state: &State, bytes: &[u8]) -> (String, bool) {
    let now = Instant::now();
    let mut connection = Connection::new(now);
    let (mut got, mut left) = (Vec::new(), bytes);
    loop {
        let take = connection.room().min(left.len());
        if take > 0 {
            connection.receive(state, &left[..take], now);
            left = &left[take..];
        }
        let sent = connection.output().len();
        got.extend_from_slice(connection.output());
        if sent > 0 {
            connection.note_sent(state, sent, now);
        } else if take == 0 {
            break;
        }
    }
    (String::from_utf8(got).expect("text"), !connection.is_over())
}

/// The status and the body of an answer to a request with these header fields.
fn ask(state: &State, line: &str, fields: &str) -> (u16, String) {
    let (got, _) = exchange(state, format!("{line} HTTP/1.1\r\n{fields}\r\n").as_bytes());
    let (head, body) = got.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{line}: {got}"));
    for field in ["Content-Security-Policy: default-src 'none'", "X-Content-Type-Options: nosniff"] {
        assert!(head.contains(field), "{head}");
    }
    assert!(!head.contains("Access-Control"), "{head}");
    (head[9..12].parse().expect("a status"), body.to_string())
}

fn get(state: &State, path: &str) -> (u16, String) {
    ask(state, &format!("GET {path}"), "Host: localhost:9150\r\n")
}

#[test]
fn each_path_answers() {
    let server = Server::ssd();
    let state = serving(&[], &server);
    assert_eq!(get(&state, "/healthz"), (200, "ok\n".to_string()));
    assert_eq!(get(&state, "/readyz"), (200, "ready\n".to_string()));
    assert!(get(&state, "/version").1.contains("\"memcached\":\"1.6.45\""));
    assert!(get(&state, "/api/v1/stats").1.starts_with("{\"stats\":{\"pid\":"));
    assert!(get(&state, "/api/v1/latency").1.starts_with("{\"ram\":{\"count\":0,"));
    let threads = "{\"name\":\"threads\",\"value\":\"1\",\"origin\":\"flag -t\"}";
    assert!(get(&state, "/api/v1/config").1.contains(threads));
    assert!(get(&state, "/metrics").1.contains("\nmemcached_up 1\n"));
    assert!(get(&state, "/metrics?x=1").1.contains("\nlarder_gets_total{outcome=\"ram\"} 0\n"));
    assert_eq!(get(&state, "/<b>"), (404, "Not Found\n".to_string()), "nothing is repeated");
    let (status, body) = ask(&state, "HEAD /metrics", "Host: 127.0.0.1\r\n");
    assert_eq!((status, body.as_str()), (200, ""));
}

#[test]
fn segments_are_counted_by_state_and_age() {
    let server = Server::ssd();
    let state = serving(&[], &server);
    let mut client = Client::new();
    client.ask(&server, "set a 0 0 1\r\nx\r\n");
    let ssd = format!("\"ssd\":{{\"segments\":{SSD_SEGMENTS},\"segment_bytes\":16777216,\"used\":");
    let body = get(&state, "/api/v1/segments").1;
    assert!(body.contains(&format!("{ssd}0,\"oldest_age_s\":0,\"live_shares\":[]}}")), "{body}");
    server.push_out();
    let body = get(&state, "/api/v1/segments").1;
    assert!(body.starts_with("{\"ram\":{\"segments\":") && body.contains(",\"withheld\":0,"), "{body}");
    assert!(body.contains(&format!("{ssd}1,")) && body.contains("\"live_shares\":[0."), "{body}");
}

const TOKEN_FIELDS: &str = "Host: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\n";

/// The state of a daemon that answers requests with [`TOKEN_FIELDS`], and its file of the token.
fn serving_with_token(name: &str, server: &Server) -> (State, PathBuf) {
    let path = std::env::temp_dir().join(format!("larder-token-{name}-{}", std::process::id()));
    std::fs::write(&path, "0123456789abcdef\n").expect("room");
    (serving(&["--http-token-file", &path.display().to_string()], server), path)
}

#[test]
fn parts_of_keys_are_shown_only_behind_the_token() {
    let server = Server::start(&["-m", "8", "-D", ":"], 0);
    let mut client = Client::new();
    client.ask(&server, "set user\x01:1 0 0 1\r\nx\r\nset user:1 0 0 1\r\nx\r\nget user:1\r\nget user:2\r\n");
    let (status, body) = get(&serving(&[], &server), "/api/v1/top");
    assert_eq!(status, 403);
    assert!(body.contains("--http-token-file") && !body.contains("user"), "{body}");
    let (state, token) = serving_with_token("top", &server);
    assert_eq!(get(&state, "/api/v1/top").0, 401);
    let (status, body) = ask(&state, "GET /api/v1/top", TOKEN_FIELDS);
    std::fs::remove_file(token).expect("it is there");
    assert_eq!(status, 200);
    let user = "{\"prefix\":\"user\",\"gets\":2,\"hits\":1,\"sets\":1,\"deletes\":0}";
    assert!(body.starts_with(&format!("{{\"is_counting\":true,\"prefixes\":[{user}")), "{body}");
}

#[test]
fn the_list_of_prefixes_is_bounded() {
    let server = Server::start(&["-m", "8", "-D", ":"], 0);
    let mut client = Client::new();
    for number in 0..300 {
        client.ask(&server, format!("get {number}:{}\r\n", "k".repeat(200)));
    }
    let (state, token) = serving_with_token("list", &server);
    let (_, body) = ask(&state, "GET /api/v1/top", TOKEN_FIELDS);
    std::fs::remove_file(token).expect("it is there");
    assert_eq!(body.matches("\"prefix\":").count(), 100);
}

/// A prefix of which one key in eight is in the sample, so that its amounts rest on an eighth of its items.
fn amounts(name: Option<&[u8]>, items: u64) -> PrefixAmounts {
    let amounts =
        Quantity::ALL.map(|quantity| Amount { value: (8 * items + quantity as u64) as f64, error: 7.0 });
    PrefixAmounts { name: name.map(Box::from), items, amounts }
}

fn publish(server: &Server, rows: Vec<PrefixAmounts>) {
    server.shared.curves.publish(Curve {
        samples: vec![],
        points: vec![],
        chosen: None,
        prefixes: PrefixReport { rows, delimiter: b':', scale: 8, state: SampleState::Ready },
        trial: Trial::default(),
        window: Real::default(),
        memory_bytes: 0,
        events: 0,
        events_dropped: 0,
    });
}

#[test]
fn what_prefixes_cost_is_shown_only_behind_the_token() {
    let server = Server::start(&["-m", "8"], 0);
    let names = [&b"<b>user"[..], b"other", b"", b"\0\xff"];
    let named = names.iter().zip(1..).map(|(name, nth)| amounts(Some(name), 1_000 / nth));
    publish(&server, named.chain([amounts(None, 5)]).collect());
    let open = serving(&[], &server);
    assert_eq!(get(&open, "/api/v1/prefixes").0, 403);
    assert!(!get(&open, "/metrics").1.contains("larder_prefix_"));
    assert!(!get(&open, "/").1.contains("prefix-costs"));

    let (state, token) = serving_with_token("costs", &server);
    assert_eq!(get(&state, "/api/v1/prefixes").0, 401);
    let [(_, body), (_, metrics), (_, page)] =
        ["/api/v1/prefixes", "/metrics", "/"].map(|path| ask(&state, &format!("GET {path}"), TOKEN_FIELDS));
    std::fs::remove_file(token).expect("it is there");
    let first = "{\"prefix\":\"%3Cb%3Euser\",\"items\":1000,\"ram_bytes\":8000,\"ram_bytes_error\":7,";
    assert!(body.starts_with("{\"state\":\"ready\",\"delimiter\":\"%3A\",\"sample_rate\":8,"), "{body}");
    assert!(body.contains(&format!("\"prefixes\":[{first}")) && body.contains(",{\"items\":5,"), "{body}");
    // A prefix that is called as all others are is no other one.
    for label in ["%3Cb%3Euser", "other", "", "%00%FF", "(other)"] {
        let line = format!("larder_prefix_ssd_written_bytes{{prefix=\"{label}\"}}");
        assert_eq!(metrics.matches(&line).count(), 1, "{line}");
    }
    assert!(page.contains("prefix-costs") && page.contains("&lt;b&gt;user") && !page.contains("<b>user"));
    assert!(page.contains("no prefix") && page.contains("all others"));
}

#[test]
fn stats_prefixes_is_refused_as_stats_detail_is() {
    let server = Server::start(&["-m", "8", "-X"], 0);
    publish(&server, vec![amounts(Some(b"user"), 9), amounts(None, 5)]);
    assert_eq!(
        Client::new().say(&server, "stats prefixes\r\n"),
        "CLIENT_ERROR stats prefixes not allowed\r\n"
    );
    let server = Server::start(&["-m", "8"], 0);
    assert_eq!(Client::new().say(&server, "stats prefixes\r\n"), "STAT state off\r\nEND\r\n");
    publish(&server, vec![amounts(Some(b"a b"), 9), amounts(None, 5)]);
    let said = Client::new().say(&server, "stats prefixes\r\n");
    assert!(said.contains("STAT prefix:1:name a%20b\r\nSTAT prefix:1:items 9\r\n"), "{said}");
    assert!(
        said.contains("STAT prefix:other:misses 45\r\nSTAT prefix:other:misses_error 7\r\nEND"),
        "{said}"
    );
}

#[test]
fn a_daemon_is_ready_from_the_opening_of_its_store_until_it_is_stopped() {
    let server = Server::ram();
    let state = State::new(options(&[]));
    assert_eq!(get(&state, "/healthz").0, 200);
    for path in
        ["/readyz", "/metrics", "/api/v1/stats", "/api/v1/latency", "/api/v1/config", "/api/v1/segments"]
    {
        assert_eq!(get(&state, path), (503, "starting\n".to_string()), "{path}");
    }
    state.serve(Arc::clone(&server.shared));
    assert_eq!(get(&state, "/readyz").0, 200);
    server.shared.stop();
    assert_eq!(get(&state, "/readyz"), (503, "stopping\n".to_string()));
    assert_eq!(get(&state, "/healthz").0, 200);
}

#[test]
fn metrics_count_what_stats_count() {
    let server = Server::ssd();
    let state = serving(&[], &server);
    let mut client = Client::new();
    client.ask(&server, "set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\nget a\r\nget nope\r\n");
    server.push_out();
    client.ask(&server, "get a b\r\ncas a 0 0 1 9\r\ny\r\n");
    let (_, text) = get(&state, "/metrics");
    for line in [
        "larder_gets_total{outcome=\"ram\"} 1",
        "larder_gets_total{outcome=\"ssd\"} 2",
        "larder_gets_total{outcome=\"miss\"} 1",
        "memcached_commands_total{command=\"get\",status=\"hit\"} 3",
        "memcached_commands_total{command=\"get\",status=\"miss\"} 1",
        "memcached_commands_total{command=\"set\",status=\"hit\"} 2",
        "memcached_commands_total{command=\"cas\",status=\"badval\"} 1",
        "memcached_current_items 2",
        "memcached_max_connections 1024",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line} in {text}");
    }
}

/// The value of a series that counts.
fn count(state: &State, series: &str) -> u64 {
    let (_, text) = get(state, "/metrics");
    let found = text.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("{series}"));
    found.trim().parse().expect("a count")
}

#[test]
fn reads_of_the_ssd_and_waits_are_timed_by_their_class() {
    let server = Server::ssd();
    let state = serving(&[], &server);
    let mut client = Client::new();
    client.ask(&server, "set a 0 0 1\r\nx\r\nset b 0 0 1\r\n1\r\n");
    server.push_out();
    let class =
        |class: &str| count(&state, &format!("larder_request_duration_seconds_count{{class=\"{class}\"}}"));
    client.ask(&server, "get a\r\n");
    assert_eq!((class("ssd"), class("mutate_ssd")), (1, 0));
    client.ask(&server, "incr b 1\r\n");
    assert_eq!((class("ssd"), class("mutate_ssd")), (1, 1));
    assert_eq!(count(&state, "larder_ssd_queue_seconds_count"), 2);
    // It is in RAM by now.
    client.ask(&server, "incr b 1\r\n");
    assert_eq!((class("ssd"), class("mutate_ssd")), (1, 1));
    // A get that may not read now waits for its turn.
    let before = count(&state, "larder_ssd_queue_seconds_bucket{le=\"0.000001\"}");
    client.read_room = 0;
    client.send(&server, b"get a\r\n");
    assert!(client.owed.is_empty());
    server.wait(Duration::from_millis(3));
    client.read_room = 200;
    client.retry(&server);
    while !client.owed.is_empty() {
        client.deliver(&server, 0, true);
    }
    assert_eq!(count(&state, "larder_ssd_queue_seconds_bucket{le=\"0.002048\"}"), before);
    assert_eq!(count(&state, "larder_ssd_queue_seconds_bucket{le=\"0.004096\"}"), before + 1);
    assert_eq!(class("ssd"), 2);
}

#[test]
fn items_that_are_not_written_to_the_ssd_are_counted_by_the_reason() {
    let server = Server::start(&["-m", "64", "--ssd-admission", "returning"], SSD_SEGMENTS);
    let state = serving(&[], &server);
    let mut client = Client::new();
    client.ask(&server, "set soon 0 1 1\r\nx\r\nset later 0 100 1\r\nx\r\n");
    server.push_out();
    let refused =
        |reason: &str| count(&state, &format!("larder_ssd_not_admitted_total{{reason=\"{reason}\"}}"));
    assert_eq!(["expiring", "policy", "limit", "too_large", "behind"].map(refused), [1, 0, 0, 0, 0]);
    assert_eq!(server.shared.store.stats().ssd_admissions_refused, 1, "the sum of all but those behind");
}

#[test]
fn a_request_for_another_host_is_refused_whatever_it_asks() {
    let server = Server::ram();
    let state = serving(&["--http-host", "cache.lan"], &server);
    for host in ["evil.example", "evil.example:9150", "127.0.0.1.evil.example", ""] {
        let (status, body) = ask(&state, "GET /metrics", &format!("Host: {host}\r\n"));
        assert_eq!((status, body.as_str()), (421, "Misdirected Request\n"), "{host}");
    }
    for host in ["127.0.0.1:9150", "[::1]:9150", "localhost", "Cache.lan:1"] {
        assert_eq!(ask(&state, "GET /metrics", &format!("Host: {host}\r\n")).0, 200, "{host}");
    }
}

#[test]
fn only_reading_is_possible_and_not_from_other_sites() {
    let server = Server::ram();
    let state = serving(&[], &server);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"] {
        assert_eq!(ask(&state, &format!("{method} /metrics"), "Host: localhost\r\n").0, 405, "{method}");
    }
    assert_eq!(ask(&state, "GET /metrics", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n").0, 403);
    assert_eq!(ask(&state, "GET /metrics", "Host: localhost\r\nSec-Fetch-Site: none\r\n").0, 200);
}

#[test]
fn with_a_token_only_probes_go_without() {
    let server = Server::ram();
    let path = std::env::temp_dir().join(format!("larder-http-token-{}", std::process::id()));
    std::fs::write(&path, "a-token-that-is-long\n").expect("room");
    let state = serving(&["--http-token-file", &path.display().to_string()], &server);
    let with = |path: &str, token: &str| {
        let fields = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
        ask(&state, &format!("GET {path}"), &fields).0
    };
    for path in ["/", "/metrics", "/version", "/api/v1/stats", "/nothing"] {
        assert_eq!(get(&state, path).0, 401, "{path}");
        assert_eq!(with(path, "a-token-that-is-wrong"), 401, "{path}");
    }
    assert_eq!(
        (with("/metrics", "a-token-that-is-long"), with("/nothing", "a-token-that-is-long")),
        (200, 404)
    );
    assert_eq!((get(&state, "/healthz").0, get(&state, "/readyz").0), (200, 200));
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!(with("/metrics", "a-token-that-is-long"), 401, "without the file nobody is let in");
}

#[test]
fn requests_follow_each_other_on_a_connection_up_to_a_bound() {
    let server = Server::ram();
    let state = serving(&[], &server);
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let (got, is_open) = exchange(&state, request.repeat(999).as_bytes());
    assert_eq!((got.matches("HTTP/1.1 200 OK").count(), is_open), (999, true));
    let (got, is_open) = exchange(&state, request.repeat(1001).as_bytes());
    assert_eq!((got.matches("HTTP/1.1 200 OK").count(), is_open), (1000, false));
    let (got, is_open) =
        exchange(&state, request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes());
    assert!(got.contains("Connection: close\r\n") && !is_open);
}

#[test]
fn a_connection_that_does_not_progress_ends() {
    let server = Server::ram();
    let state = serving(&[], &server);
    let now = Instant::now();
    let mut silent = Connection::new(now);
    assert_eq!(silent.deadline(), now + Duration::from_secs(5));
    assert!(!silent.expire(silent.deadline()), "it has nothing to be told");
    let mut slow = Connection::new(now);
    // One byte each second: the deadline stays that of the first.
    for (second, byte) in b"GET ".iter().enumerate() {
        slow.receive(&state, &[*byte], now + Duration::from_secs(second as u64));
    }
    assert_eq!(slow.deadline(), now + Duration::from_secs(5));
    assert!(slow.expire(slow.deadline()) && slow.output().starts_with(b"HTTP/1.1 408 "));
    slow.note_sent(&state, slow.output().len(), now);
    assert!(slow.is_over());
    let mut lazy = Connection::new(now);
    lazy.receive(&state, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", now);
    assert_eq!((lazy.deadline(), lazy.room()), (now + Duration::from_secs(10), 0));
    assert!(!lazy.expire(lazy.deadline()), "it did not take its answer");
}

/// The figure that the page has under one of the names of `stats`.
fn stat(page: &str, name: &str) -> u64 {
    let start = format!("<span id=\"stat-{name}\"><data value=\"");
    let at = page.find(&start).unwrap_or_else(|| panic!("{name} in {page}")) + start.len();
    let end = page[at..].find('"').expect("a value ends");
    page[at..at + end].parse().expect("a number")
}

#[test]
fn the_page_counts_what_stats_count() {
    let server = Server::ssd();
    let state = serving(&[], &server);
    let mut client = Client::new();
    client.ask(&server, "set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\nget a\r\nget nope\r\n");
    server.push_out();
    client.ask(&server, "get a b\r\ndelete a\r\n");
    let (status, page) = get(&state, "/");
    assert_eq!(status, 200);
    let names = ["get_hits_ram", "get_hits_ssd", "get_misses", "cmd_set", "others", "items"];
    assert_eq!(names.map(|name| stat(&page, name)), [1, 2, 1, 2, 1, 1]);
    for title in ["Requests", "Hit ratio", "Latency", "Memory", "SSD", "Device", "Wear", "Dropped items"] {
        assert!(page.contains(&format!("\">{title} <small>")), "{title}");
    }
    let (_, page) = get(&serving(&[], &Server::ram()), "/");
    assert!(!page.contains("SSD"), "nothing is shown of what is not there: {page}");
}

#[test]
fn the_ring_of_the_ssd_shows_what_is_used_and_what_lives() {
    let server = Server::ssd();
    let mut client = Client::new();
    let survey = || server.shared.store.survey_ssd(8, server.now());
    assert_eq!((survey().used_share, survey().live_shares.len()), (0.0, 0));
    for key in 0..100 {
        client.ask(&server, format!("set {key} 0 0 9000\r\n{}\r\n", "x".repeat(9000)));
    }
    server.push_out();
    let shares = survey().live_shares;
    assert!(survey().used_share > 0.0 && shares.iter().any(|share| *share > 0.01), "{shares:?}");
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
    let ring = |page: &str| page.matches("<path class=\"live").count();
    assert!(ring(&get(&serving(&[], &server), "/").1) > 0);
    client.ask(&server, "flush_all\r\n");
    server.pass(2);
    assert!(survey().live_shares.iter().all(|share| *share == 0.0), "{:?}", survey());
}

#[test]
fn the_page_has_a_line_once_it_was_looked_at_twice() {
    let server = Server::ram();
    let state = serving(&[], &server);
    let mut client = Client::new();
    let began = Instant::now();
    for second in 0..=6 {
        state.note(began + Duration::from_secs(second));
        client.ask(&server, "get nope\r\nget nope\r\n");
    }
    let (_, page) = get(&state, "/");
    assert!(page.contains("<dt>Misses</dt><dd><data value=\"2\">2/s</data></dd>"), "{page}");
    assert!(page.contains("<path class=\"line miss\" d=\"M27 0 28 0 29 0\"/>"), "{page}");
    assert!(page.contains("0:00\u{2013}0:30</th><td>0/s</td><td>2/s</td>"), "{page}");
}

#[test]
fn a_page_with_a_full_history_has_a_bound() {
    let server = Server::ssd();
    let state = serving(&[], &server);
    let mut client = Client::new();
    let (began, mut random) = (Instant::now(), Random(3));
    for point in 0..400 {
        let key = random.below(400);
        client.ask(&server, format!("get {key}\r\n").repeat(1 + random.below(40)));
        client.ask(&server, format!("set {key} 0 0 5000\r\n{}\r\n", "x".repeat(5000)));
        if point % 30 == 0 {
            server.push_out();
        }
        state.note(began + Duration::from_secs(2 * point));
    }
    let sizes = ["/", "/page.css", "/page.js"].map(|path| get(&state, path).1.len());
    assert!(sizes[0] > 20_000, "the history is drawn: {sizes:?}");
    assert!(sizes.iter().sum::<usize>() < 60_000, "{sizes:?}");
}

#[test]
fn the_page_needs_nothing_that_its_policy_forbids() {
    let server = Server::ssd();
    let state = serving(&[], &server);
    let pages = [get(&state, "/").1, get(&State::new(options(&[])), "/").1];
    for page in &pages {
        assert!(
            !page.contains(" style=") && !page.contains("<style") && !page.contains("javascript:"),
            "{page}"
        );
        let is_handler = |word: &str| word.starts_with("on") && word.contains('=');
        assert!(!page.split([' ', '"', '\n']).any(is_handler), "no handler stands in the page: {page}");
        let scripts: Vec<_> = page.match_indices("<script").map(|(at, _)| &page[at..at + 31]).collect();
        assert!(scripts.iter().all(|script| *script == "<script src=\"/page.js\" defer></"), "{scripts:?}");
    }
    let (_, style) = get(&state, "/page.css");
    assert!(!style.contains("url(") && !style.contains("@import"));
    let fields = "Host: localhost\r\nConnection: close\r\n";
    let kind = |path: &str| exchange(&state, format!("GET {path} HTTP/1.1\r\n{fields}\r\n").as_bytes()).0;
    for (path, kind_of) in [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")] {
        assert!(kind(path).contains(&format!("Content-Type: {kind_of}; charset=utf-8\r\n")), "{path}");
    }
}

#[test]
fn the_page_of_a_daemon_that_starts_loads_itself_again() {
    let state = State::new(options(&[]));
    let (status, page) = get(&state, "/");
    assert_eq!(status, 503);
    assert!(page.contains("Starting") && page.contains("http-equiv=\"refresh\""), "{page}");
    assert_eq!(get(&state, "/page.css").0, 200);
}

#[test]
fn prefixes_of_keys_are_shown_behind_the_token_alone_and_escaped() {
    let server = Server::start(&["-m", "64", "-D", ":"], 0);
    Client::new().ask(&server, "set <i>user'&:1 0 0 1\r\nx\r\nget <i>user'&:1\r\n");
    let (_, page) = get(&serving(&[], &server), "/");
    assert!(!page.contains("user"), "{page}");
    let path = std::env::temp_dir().join(format!("larder-page-token-{}", std::process::id()));
    std::fs::write(&path, "a-token-that-is-long\n").expect("room");
    let state = serving(&["--http-token-file", &path.display().to_string()], &server);
    // "larder:a-token-that-is-long", as a browser sends it.
    let login = "Host: localhost\r\nAuthorization: Basic bGFyZGVyOmEtdG9rZW4tdGhhdC1pcy1sb25n\r\n";
    let (status, page) = ask(&state, "GET /", login);
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!(status, 200);
    assert!(page.contains("&lt;i&gt;user&#39;&amp;") && !page.contains("<i>user"), "{page}");
}

#[test]
fn any_bytes_are_answered_or_the_connection_ends() {
    for_a_while("http", Duration::from_secs(2), 2_000, 2_000, web::check);
}
