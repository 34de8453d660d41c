//! Authentication: each connection logs in first, the password is shown to nobody else, and a refusal is clear.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread::scope;
use std::time::{Duration, Instant};

use larder_client::{Client, Error, Login, Options, Put};

use crate::fake::{Fake, hang, patient, read_line};
use crate::servers::each;

const PASSWORD: &str = "correct:horse";

/// Writes a file of users, and returns its path.
fn users(name: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("larder-client-users-{}-{name}", std::process::id()));
    std::fs::write(&path, format!("shop:{PASSWORD}\n")).expect("it can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    path.into_os_string().into_string().expect("it is text")
}

fn with(password: &str, options: Options) -> Options {
    let login = Login::new("shop", password.as_bytes()).expect("it is good");
    Options { login: Some(login), ..options }
}

fn tells_nothing(client: &Client, error: &Error) {
    for text in [format!("{client:?}"), format!("{error:?}"), error.to_string()] {
        assert!(!text.contains(PASSWORD) && !text.contains("wrong horse"), "{text}");
    }
}

#[test]
fn each_connection_authenticates_before_anything_else() {
    let file = users("right");
    for daemon in each(&["-Y", &file]) {
        let client = daemon.client(with(PASSWORD, patient()));
        scope(|scope| {
            for thread in 0..8 {
                let client = &client;
                scope.spawn(move || {
                    for number in 0..50 {
                        let key = format!("{thread}:{number}");
                        client.set(key.as_bytes(), b"v", Put::default()).expect("it is let in");
                        assert!(client.get(key.as_bytes()).expect("it is let in").is_some());
                    }
                });
            }
        });
        client.quiet().set(b"quiet", b"v", Put::default()).expect("it is sent");
        assert!(client.get(b"quiet").expect("it is let in").is_some(), "{}", daemon.name);
        assert_eq!(client.get(b"login").expect("it is let in"), None, "the login is no item");
    }
    std::fs::remove_file(file).expect("it is there");
}

#[test]
fn a_refused_login_is_a_clear_error_and_the_server_is_not_taken_for_down() {
    let file = users("wrong");
    for daemon in each(&["-Y", &file]) {
        let client = daemon.client(with("wrong horse", patient()));
        for _ in 0..7 {
            let error = client.get(b"k").expect_err("it is refused");
            assert!(
                matches!(&error, Error::Login { line, .. } if line.starts_with("CLIENT_ERROR")),
                "{error}"
            );
            assert!(error.to_string().contains("refused the login"), "{error}");
            tells_nothing(&client, &error);
        }
        assert!(client.is_up(0), "{}: it answered", daemon.name);
        let none = daemon.client(patient());
        assert!(matches!(none.get(b"k"), Err(Error::Refused { .. })), "without a login it is refused, too");
    }
    std::fs::remove_file(file).expect("it is there");
}

#[test]
fn a_server_without_users_is_not_told_the_password() {
    for daemon in each(&[]) {
        let client = daemon.client(with(PASSWORD, patient()));
        client.set(b"k", b"v", Put::default()).expect("it asks for no login");
        assert_eq!(client.get(b"login").expect("it answers"), None, "{}", daemon.name);
    }
    let sent = Arc::new(Mutex::new(String::new()));
    let heard = sent.clone();
    let fake = Fake::start(move |_, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            heard.lock().expect("it is whole").push_str(&line);
            let answer = if line == "version" { "VERSION 1.6.0\r\n" } else { "EN\r\n" };
            let _ = peer.write_all(answer.as_bytes());
        }
    });
    assert_eq!(fake.client(with(PASSWORD, patient())).get(b"k").expect("it answers"), None);
    let sent = sent.lock().expect("it is whole").clone();
    assert!(sent.starts_with("version") && !sent.contains(PASSWORD), "{sent}");
}

#[test]
fn servers_that_hang_lie_or_end_in_a_login_cost_no_more_than_its_time() {
    let limit = Duration::from_millis(200);
    let options = || {
        let options = Options { timeout: limit, retry_percent: 0, ..Options::default() };
        with(PASSWORD, options)
    };
    let fakes = [
        Fake::start(|_, peer| hang(peer)),
        Fake::start(|_, peer| drop(peer)),
        Fake::saying(b"CLIENT_ERROR unauthenticated\r\n"),
        Fake::saying(b"CLIENT_ERROR unauthenticated\r\nSTORED\r\n"),
        Fake::saying(b"\xff\0\r\n"),
        Fake::saying(&[b'x'; 5000]),
        Fake::start(|_, mut peer| {
            while peer.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }),
    ];
    for (number, fake) in fakes.iter().enumerate() {
        let client = fake.client(options());
        let began = Instant::now();
        let error = client.get(b"k").expect_err("it cannot log in");
        assert!(began.elapsed() < limit * 20, "server {number}: {:?}", began.elapsed());
        let is_clear = matches!(&error, Error::Login { .. } | Error::Timeout { .. } | Error::Connect { .. });
        assert!(is_clear, "server {number}: {error:?}");
        tells_nothing(&client, &error);
    }
}
