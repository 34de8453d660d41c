//! The command itself: its exit statuses, its one line an error, and what it leaves behind.

#[path = "fake/server.rs"]
mod fake;

use fake::Fault;
use larder_bench::result::Document;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn bench(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder-bench"));
    command.args(words);
    command
}

fn run(port: u16, more: &[&str]) -> Output {
    let port = port.to_string();
    let mut words = vec!["run", "-p", &port, "--keys", "300", "-c", "4", "--warmup", "0"];
    if !more.contains(&"-d") {
        words.extend(["-d", "300ms"]);
    }
    words.extend(more);
    bench(&words).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn a_refused_connection_is_status_1_and_one_line() {
    let free =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let output = run(free, &[]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("cannot connect to 127.0.0.1:"), "{message}");
}

#[test]
fn a_wrong_name_is_status_1() {
    let output = bench(&["run", "-s", "no-such-host.invalid"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for words in [
        &["run", "--no-such-option"][..],
        &["run", "-c", "1", "-t", "2"],
        &["run", "--mix", "touch=1"],
        &["run", "--rate", "5", "--pipeline", "4"],
        &["run", "-s", "mysql://h"],
        &[],
    ] {
        let output = bench(words).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn errors_say_what_to_do_and_print_no_secret() {
    let port = fake::start(Fault::None).to_string();
    for (words, says) in [
        (vec!["run", "-p", &port, "--cpus", "777"], "may use the CPUs"),
        (vec!["run", "-s", "redis://user:geheim@127.0.0.1"], "redis://...@127.0.0.1"),
    ] {
        let output = bench(&words).output().expect("it starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(says) && !said.contains("geheim") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_password_in_an_address_is_never_printed() {
    let secret = "redis://user:geheim@127.0.0.1";
    for words in [
        &["ab", secret, "127.0.0.1"][..],
        &["sweep", "-s", secret, "--rates", "1k"],
        &["calibrate", "-s", secret],
        &["replay", "x.trace", "-s", secret],
        &["counter", "--store", "redis=redis://user:geheim@127.0.0.1:1/0", "-t", "1"],
        &["counter", "--store", "none-such=redis://user:geheim@127.0.0.1:1/0"],
        &["scenario", "run", "perl-tiers", "--server", secret],
        &["scenario", "run", "php-loop", "--peer", "x=redis://user:geheim@h"],
        &["tier", "--near", "memcached://user:geheim@h"],
        &["run", "-s", "redis://user:geheim@a,redis://user:geheim@b"],
        &["fleet", "--hosts", "user:geheim@h"],
    ] {
        let output = bench(words).output().expect("it starts");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.code() != Some(0) && !said.contains("geheim"), "{words:?}: {said}");
    }
}

#[test]
fn a_wrong_value_is_status_4() {
    let output = run(fake::start(Fault::Flipped), &["--prefill", "--verify", "full", "--no-calibrate"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("differs at byte 99"), "{}", text(&output.stdout));
}

#[test]
fn a_run_of_misses_is_status_5() {
    let output = run(fake::start(Fault::None), &["--ratio", "0:1", "--no-calibrate"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("NOT CERTIFIED"));
}

#[test]
fn repeats_are_runs_of_one_result_and_the_worst_of_them_is_the_status() {
    let path = file("repeats.json");
    let json = path.display().to_string();
    let words = ["--prefill", "--no-calibrate", "--repeat", "3", "--label", "name", "--json", &json];
    let output = run(fake::start(Fault::None), &words);
    let document: Document =
        serde_json::from_slice(&std::fs::read(&path).expect("a result")).expect("it is one");
    let labels: Vec<&str> = document.runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["name #1", "name #2", "name #3"], "{}", text(&output.stdout));
    assert_eq!(text(&output.stdout).matches("run ").count(), 3, "{}", text(&output.stdout));
    let output = run(fake::start(Fault::Flipped), &["--prefill", "--no-calibrate", "--repeat", "2"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
}

/// Compares a server with this fault to one without.
fn ab(fault: Fault, more: &[&str]) -> Output {
    let (a, b) = (fake::start(Fault::None), fake::start(fault));
    let (a, b) = (format!("127.0.0.1:{a}"), format!("127.0.0.1:{b}"));
    let mut words =
        vec!["ab", &a, &b, "--pairs", "3", "--keys", "300", "-c", "4", "--warmup", "0", "--prefill"];
    words.extend(["-d", "400ms", "--no-calibrate"]);
    words.extend(more);
    bench(&words).output().expect("it starts")
}

#[test]
fn a_server_that_is_slower_than_the_other_fails_the_comparison() {
    let slow = Fault::Slow(Duration::from_millis(5));
    let rules = ["--fail-if", "p50>+100%", "--allow-uncertified"];
    let output = ab(slow, &rules);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    let said = text(&output.stdout);
    assert!(said.contains("worse") && said.contains("pair 3 of 3: B"), "{said}");
    assert!(said.lines().all(|line| line.len() <= 80), "{said}");
    let output = ab(Fault::None, &rules);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn a_wrong_value_of_either_server_is_status_4_of_a_comparison() {
    let output = ab(Fault::Flipped, &[]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
}

/// A sweep of gets and sets against a server that refuses all requests beyond 2,000 a second.
fn sweep_of_a_busy_server(more: &[&str]) -> Output {
    let port = fake::start(Fault::Busy(20)).to_string();
    let mut words = vec!["sweep", "-p", &port, "--keys", "10", "-c", "4", "--warmup", "100ms"];
    words.extend(["--arrival", "const", "--slo", "p99<500ms", "--expect-misses"]);
    words.extend(more);
    bench(&words).output().expect("it starts")
}

#[test]
fn refused_requests_are_no_capacity_of_a_sweep() {
    let output = sweep_of_a_busy_server(&["--rates", "500,4k", "--repeat", "1", "-d", "1s", "--need", "3k"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}{}", text(&output.stderr));
    let row = said.lines().find(|line| line.trim_start().starts_with("4")).expect("a row of 4,000/s");
    assert!(row.ends_with('!'), "{said}");
    assert!(said.contains("! NOT CERTIFIED") && said.contains("SERVER_ERROR"), "{said}");
    assert!(!said.contains("highest   4"), "{said}");
}

#[test]
fn refused_requests_are_no_capacity_of_a_search() {
    let output = sweep_of_a_busy_server(&["--search", "--budget", "22s", "--need", "20k"]);
    let said = text(&output.stdout);
    // 5 where this host is too busy to search at all.
    assert!(matches!(output.status.code(), Some(3 | 5)), "{said}{}", text(&output.stderr));
    assert!(!said.contains("above"), "{said}");
}

#[test]
fn a_level_that_the_host_itself_does_not_keep_is_not_searched_for() {
    let port = fake::start(Fault::None).to_string();
    let words = ["sweep", "-p", &port, "--keys", "10", "--slo", "p99.9<2us", "--search", "--budget", "20s"];
    let output = bench(&words).output().expect("it starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("this host cannot measure p99.9 < 2.00 us"), "{said}");
}

#[test]
fn a_dying_server_is_status_1_and_leaves_its_result() {
    let path = file("dying.json");
    let name = path.to_string_lossy().into_owned();
    let port = fake::start(Fault::Dies(2000));
    let output = run(port, &["-d", "20s", "--prefill", "--no-calibrate", "--json", &name]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("CUT SHORT"));
    let json = std::fs::read_to_string(path).expect("it was written");
    let document: Document = serde_json::from_str(&json).expect("it is a result");
    assert!(document.runs[0].cut_short.is_some() && document.runs[0].count() > 100);
}

#[test]
fn control_c_keeps_what_was_measured() {
    let path = file("stopped.json");
    let port = fake::start(Fault::None).to_string();
    let mut command =
        bench(&["run", "-p", &port, "--keys", "300", "-d", "60s", "--no-calibrate", "--warmup", "0"]);
    let command = command.arg("--json").arg(&path).stdout(Stdio::piped());
    let child = command.spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(1500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("CUT SHORT"), "{}", text(&output.stdout));
    let json = std::fs::read_to_string(path).expect("it was written");
    let document: Document = serde_json::from_str(&json).expect("it is a result");
    assert!(document.runs[0].count() > 100);
}

#[test]
fn a_full_disk_is_said_and_the_summary_stays() {
    let output = run(fake::start(Fault::None), &["--prefill", "--no-calibrate", "--json", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("could not be written to /dev/full"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("requests"));
}

#[test]
fn no_control_characters_without_a_terminal() {
    let output = run(fake::start(Fault::None), &["--prefill", "-d", "1200ms"]);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.chars().all(|c| c == '\n' || !c.is_control()), "{said}");
    assert!(said.lines().all(|line| line.len() <= 80), "{said}");
    assert!(said.contains("of its ceiling"), "{said}");
}

#[test]
fn calibrate_finds_a_ceiling_for_new_connections() {
    for protocol in ["text", "meta", "binary", "resp2"] {
        for more in [&["--mix", "connect=1"][..], &["--reconnect", "5"]] {
            let mut words = vec!["calibrate", "-P", protocol, "-d", "150ms", "--keys", "1000"];
            words.extend(more);
            let output = bench(&words).output().expect("it starts");
            assert_eq!(output.status.code(), Some(0), "{protocol}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn calibrate_finds_a_ceiling_for_every_protocol() {
    for protocol in ["text", "meta", "binary", "resp2"] {
        let quiet = if protocol == "resp2" { "1" } else { "7" };
        for more in [&[][..], &["--multi-key-get", "5", "--noreply", quiet, "--pipeline", "8"]] {
            let changes = if protocol == "resp2" { "" } else { ",cas=1,append=1,prepend=1" };
            let mix = format!("get=5,set=2,incr=1,delete=1,touch=1,gat=1{changes}");
            let mut words = vec!["calibrate", "-P", protocol, "-d", "150ms", "--keys", "1000"];
            words.extend(["--mix", &mix, "--expiry-range", "60"]);
            words.extend(more);
            let output = bench(&words).output().expect("it starts");
            assert_eq!(output.status.code(), Some(0), "{protocol}: {}", text(&output.stderr));
            assert!(text(&output.stdout).contains("ceiling"), "{protocol}");
        }
    }
}
